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
from typing import Any
from urllib.parse import quote, unquote

from django.core import signing
from django.db.models import Model
from django.utils.translation import get_language

from readtrack.conf import conf
from readtrack.hits.reading import Reading, least_seconds
from readtrack.request import Recorder
from readtrack.store import clock, keys
from readtrack.store.circuit import fail_open

LONGEST_NAME, LONGEST_PATH = (
    4_000,
    500,
)  # characters of a page's name in its placeholder, and of a path in it
PLAIN, READING = (
    files("readtrack.page").joinpath(name).read_bytes() for name in ("script.js", "reading.js")
)
# The script by its version: for pages without a marked text, and for pages with one.
VERSIONS = [sha256(script).hexdigest()[:8] for script in (PLAIN, PLAIN + READING)]
SCRIPTS = dict(zip(VERSIONS, (PLAIN, PLAIN + READING), strict=True))
ANSWER = "-"  # in place of a name: the response answers the script


def name_of(seen: Recorder, *, path: str) -> str:
    """Returns the name of the page with that path: what it shows, as far as the recorder knows now."""
    # By Redis's clock (µs); what was published since then is not in the page.
    as_of = fail_open(clock.at, 0, seen.began) - conf.STALE_FOR * 1_000_000 if seen.reads else 0
    path = quote(path[:LONGEST_PATH], safe="/", errors="replace")
    return (
        f"{path}|{seen.is_shared:d}|{max(0, as_of)}|{','.join(seen.views)}|{','.join(seen.reads)}"
    )


def tell(name: str, recorder: Recorder) -> str:
    """Hands what the page shows to the recorder of a request whose view did not collect it. Returns
    the page's path.
    """
    path, is_shared, as_of, views, reads = name.split("|")
    recorder.views.update(dict.fromkeys(filter(None, views.split(","))))
    recorder.reads.update(dict.fromkeys(filter(None, reads.split(","))))
    recorder.as_of, recorder.is_shared = int(as_of), is_shared == "1"
    return unquote(path)


def token_of(name: str, places: Sequence[Sequence[Any]], text: Sequence[Any] = ()) -> str:
    """Returns the token for the page's script, "" with nothing to tell; `text` has a subject and
    its words.
    """
    has_subjects = conf.COUNT_BY != "server" and not name.endswith("||")
    if not (has_subjects or places or text):
        return ""
    told = [
        name,
        get_language() or "",
        places[:200],
        text,
        int(time()),
    ]  # more counts and dots stay as they are
    return signing.dumps(told, salt=keys.salt("page"), compress=True)


def reading(state: str, text: Sequence[Any], *, made: int) -> Reading | None:
    """Returns what the script says of the text, as far as there was time for it since the page was
    made.
    """
    said = re.fullmatch(
        "([0-9]{1,5}) ([01])", state
    )  # seconds of engagement, and 1 if the text was read
    if not (said and text):
        return None
    subject, words = text
    seconds, least = min(int(said[1]), int(time()) - made), least_seconds(words)
    return Reading(subject, least, max(0, seconds), said[2] == "1" and seconds >= least)


def told(token: str) -> tuple[str, str, list[Any], list[Any], int] | None:
    """Returns the page's name, language, placeholders, text and time; None for a token that is not
    ours, or too old.
    """
    try:
        name, language, places, text, made = signing.loads(
            token, salt=keys.salt("page"), max_age=conf.SCRIPT_AGE
        )
        return name, language, places, text, made
    except (
        signing.BadSignature,
        TypeError,
        ValueError,
    ):  # the last two for a token of another version
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
