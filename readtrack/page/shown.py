"""The content of a page: a tag says it while the page is made, a signed token tells it to the
page's script.

The token says nothing about the reader, so whoever gets the page may give the token back, for
SCRIPT_AGE seconds.
"""

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from importlib.resources import files
from time import time
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from django.core import signing
from django.db.models import Model
from django.utils.translation import get_language

from readtrack.conf import conf
from readtrack.hits.reading import Reading, least_seconds
from readtrack.request import Recorder
from readtrack.store import clock, keys
from readtrack.store.circuit import fail_open

LONGEST_NAME = 4_000  # characters of a page's name in its placeholder
LONGEST_PATH = 500  # characters of a path in the name
PLAIN = files("readtrack.page").joinpath("script.js").read_bytes()
READING = files("readtrack.page").joinpath("reading.js").read_bytes()
# The script by its version: for pages without a marked text, and for pages with one.
VERSIONS = [sha256(script).hexdigest()[:8] for script in (PLAIN, PLAIN + READING)]
SCRIPTS = dict(zip(VERSIONS, (PLAIN, PLAIN + READING), strict=True))
MOST_PLACES = 200  # counts and dots of a page that its script keeps up to date
END_OF_TOKEN = slice(-8, None)  # by which reading.js knows the mark of the page's text
# What the script says of a text: seconds of engagement, and 1 if the text was read.
STATE = re.compile("(?P<seconds>[0-9]{1,5}) (?P<is_read>[01])")
ANSWER = "-"  # in place of a name: the response answers the script


class NamedPage(NamedTuple):
    """What a page shows, by its name."""

    path: str  # its first LONGEST_PATH characters
    is_shared: bool
    as_of: int  # Redis's clock (µs) when the page was made
    views: tuple[str, ...]  # subjects
    reads: tuple[str, ...]  # subjects


class ToldPage(NamedTuple):
    """A page by its token."""

    name: str  # see `name_of`
    language: str
    places: Sequence[Sequence[Any]]  # the fields of each placeholder
    text: Sequence[Any]  # subject and number of words of a marked text; empty without one
    is_counted: bool  # by the server, when it sent the page
    made: int  # seconds since 1970


def name_of(recorder: Recorder, *, path: str) -> str:
    """Returns the name of the page with that path: what it shows, as far as the recorder knows now."""
    as_of = 0
    if recorder.reads:
        # What was published since then is not in the page.
        as_of = fail_open(clock.at, 0, recorder.began) - conf.STALE_FOR * 1_000_000
    parts = (
        quote(path[:LONGEST_PATH], safe="/", errors="replace"),
        f"{recorder.is_shared:d}",
        str(max(0, as_of)),
        ",".join(recorder.views),
        ",".join(recorder.reads),
    )
    return "|".join(parts)


def parse(name: str) -> NamedPage:
    """Returns what the page with that name shows."""
    path, is_shared, as_of, views, reads = name.split("|")
    return NamedPage(
        unquote(path), is_shared == "1", int(as_of), _subjects_in(views), _subjects_in(reads)
    )


def _subjects_in(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def token_of(
    name: str,
    places: Sequence[Sequence[Any]],
    text: Sequence[Any] = (),
    *,
    is_counted: bool = False,
) -> str:
    """Returns the token for the page's script, "" with nothing to tell.

    `places` are placeholders of counts and dots. `text` has the subject of a marked text and its
    number of words. `is_counted` says that the server has counted the page's views.
    """
    has_subjects = conf.COUNT_BY != "server" and not name.endswith("||")
    if not (has_subjects or places or text):
        return ""
    page = ToldPage(
        name,
        language=get_language() or "",
        places=places[:MOST_PLACES],  # further ones stay as they are
        text=text,
        is_counted=is_counted,
        made=int(time()),
    )
    return signing.dumps(page, salt=keys.salt("page"), compress=True)


def reading(state: str, text: Sequence[Any], *, made: int) -> Reading | None:
    """Returns what the script says of the text, as far as there was time for it since the page was
    made.
    """
    fields = STATE.fullmatch(state)
    if not (fields and text):
        return None
    subject, number_of_words = text
    seconds_since = int(time()) - made
    seconds = max(0, min(int(fields["seconds"]), seconds_since))
    least = least_seconds(number_of_words)
    is_read = fields["is_read"] == "1" and seconds >= least
    return Reading(subject, least, seconds, is_read)


def told(token: str) -> ToldPage | None:
    """Returns the page with that token; None for a token that is not ours, or too old."""
    try:
        return ToldPage(*signing.loads(token, salt=keys.salt("page"), max_age=conf.SCRIPT_AGE))
    except (signing.BadSignature, TypeError, ValueError):
        # The last two for a token of another version.
        return None


def page_token(request: Any, *, views: Iterable[Model] = (), reads: Iterable[Model] = ()) -> str:
    """Returns the token of a page that JavaScript shows: `readtrack.page(token)` tells that it is
    looked at.

    Raises TypeError for an object without counts, or without read state.
    """
    recorder = Recorder()
    for obj in views:
        recorder.view(obj)
    for obj in reads:
        recorder.read(obj)
    return token_of(name_of(recorder, path=request.path), ())
