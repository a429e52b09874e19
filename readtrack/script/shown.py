"""What a page shows: the subjects whose views and reads it counts, its counts and dots, its text.

The page's script gets it as a signed token, and gives the token back when it tells that the page
was looked at. The token says nothing about the reader. Whoever gets the page may give it back, for
LONGEST_AGE seconds.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from time import time
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from django.core import signing
from django.db.models import Model
from django.utils.translation import get_language

from readtrack.conf import cached_setting, conf
from readtrack.hits.stages import ENGAGED, READS
from readtrack.page.reporting import NamedPage
from readtrack.request import Recorder
from readtrack.script import additions, tokens
from readtrack.script.additions import source_of
from readtrack.script.options import count_by
from readtrack.script.reading import Reading, least_seconds
from readtrack.store import clock, keys
from readtrack.store.circuit import fail_open

LONGEST_NAME = 4_000  # characters of a page's name in its placeholder
LONGEST_PATH = 500  # characters of a path in the name

PLAIN = source_of("readtrack.script", "script.js")
READING = source_of("readtrack.script", "reading.js")  # for pages with a marked text


def _script(*, has_text: bool, options: int) -> bytes:
    """Returns the script of a page. `options` is the sum of those of its additions."""
    script = PLAIN
    if has_text:
        script += READING
    return script + b"".join(addition.source() for addition in additions.among(options))


@cached_setting("INSTALLED_APPS")
def version(*, has_text: bool = False, options: int = 0) -> str:
    """Returns the version of a page's script, by which browsers and caches keep it.

    `options` is the sum of those of its additions.
    """
    return sha256(_script(has_text=has_text, options=options)).hexdigest()[:8]


@cached_setting("INSTALLED_APPS", maxsize=1)
def scripts() -> dict[str, bytes]:
    """Returns the scripts of all kinds of pages by their versions."""
    sums = [0]
    for addition in additions.all_additions():
        sums += [options + addition.option for options in sums]
    return {
        version(has_text=has_text, options=options): _script(has_text=has_text, options=options)
        for has_text in (False, True)
        for options in sums
    }


# Seconds for which a page counts after it was made: longer than caches keep it.
LONGEST_AGE = 86_400
MOST_ELEMENTS = 200  # counts and dots of a page that its script keeps up to date
END_OF_TOKEN = slice(-8, None)  # by which reading.js recognizes the mark of the page's text
# The script's report on a text: seconds of engagement, and 1 if the text was read.
STATE = re.compile("(?P<seconds>[0-9]{1,5}) (?P<is_read>[01])")
# The script's report when it asks for dots alone. Nothing is counted.
ASKS_FOR_DOTS = "dots"
ANSWER = "-"  # in place of a page's name in the answer to a script


class TokenPage(NamedTuple):
    """What the token of a page says."""

    name: str  # see `name_of`
    language: str
    elements: Sequence[Sequence[Any]]  # the fields of each Placeholder of a count or a dot
    text: Sequence[Any]  # subject and number of words of a marked text; empty without one
    is_counted: bool  # the server has counted the page's views when it sent the page
    options: int  # the sum of those of the additions to its script
    made: int  # seconds since 1970


def name_of(recorder: Recorder, *, path: str) -> str:
    """Returns the name of the page with that path, which `parse` understands.

    It contains what the page shows, as far as the recorder knows that by now.
    """
    as_of = 0
    if recorder.reads:
        # A page may show a state that is `stale_for` seconds old.
        as_of = fail_open(clock.at, 0, recorder.began) - conf.DOTS.stale_for * 1_000_000
    fields = (
        quote(path[:LONGEST_PATH], safe="/", errors="replace"),
        f"{recorder.is_shared:d}",
        str(max(0, as_of)),
        ",".join(recorder.views),
        ",".join(recorder.reads),
    )
    return "|".join(fields)


@lru_cache(maxsize=256)  # as `_page_of`
def parse(name: str) -> NamedPage:
    """Returns what the page called `name` shows."""
    path, is_shared, as_of, views, reads = name.split("|")
    return NamedPage(
        path=unquote(path),
        is_shared=is_shared == "1",
        as_of=int(as_of),
        views=_subjects_in(views),
        reads=_subjects_in(reads),
    )


def _subjects_in(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def token_of(
    name: str,
    elements: Sequence[Sequence[Any]],
    text: Sequence[Any] = (),
    *,
    is_counted: bool = False,
    options: int = 0,
) -> str:
    """Returns the token for the page's script; "" if the script would have nothing to do.

    `name` is that of the page. `elements` are its placeholders of counts and dots. `text` is the
    subject of a marked text and its number of words. `is_counted` says that the server has counted
    the page's views. `options` is the sum of those of the additions to the script.
    """
    _, views, reads = name.rsplit("|", 2)  # the last fields are the subjects of views and reads
    # Where only the server counts, the script still tells that the views are seen.
    is_reported = views or (reads and count_by() != "server")
    if not (is_reported or elements or text):
        return ""
    page = TokenPage(
        name,
        language=get_language() or "",
        elements=elements[:MOST_ELEMENTS],  # the script does not update further ones
        text=text,
        is_counted=is_counted,
        options=options,
        made=int(time()),
    )
    content = tokens.signed_content(page)
    return signing.dumps(content, salt=keys.salt("page"), compress=True)


def reading(state: str, text: Sequence[Any], *, made: int) -> Reading | None:
    """Returns the reading that the script reports; None if it reports none.

    `state` is its report, `text` and `made` are those of a TokenPage. No more seconds are believed
    than have passed since the page was made.
    """
    report = STATE.fullmatch(state)
    if not (report and text):
        return None
    subject, number_of_words = text
    seconds_since = int(time()) - made
    seconds = max(0, min(int(report["seconds"]), seconds_since))
    least = least_seconds(number_of_words)
    is_read = report["is_read"] == "1" and seconds >= least
    return Reading(subject, least, seconds, READS if is_read else ENGAGED)


def page_of(token: str, *, max_age: int | None = None) -> TokenPage | None:
    """Returns the page with that token; None for a token that is not ours, or older than `max_age`
    (seconds).
    """
    page = _page_of(token, keys.salt("page"))
    if page is None or (max_age is not None and time() - page.made > max_age):
        return None
    return page


# All who get a page out of a shared cache send the same token. To open one takes as long as to
# count its view.
@cached_setting("SECRET_KEY", "SECRET_KEY_FALLBACKS", maxsize=256)
def _page_of(token: str, salt: str) -> TokenPage | None:
    """Returns the page with that token, of any age; None for a token that is not ours."""
    try:
        content = signing.loads(token, salt=salt)
        return TokenPage(*tokens.fields_in(content, what="The token of a page"))
    except (signing.BadSignature, TypeError, ValueError):
        return None


def page_token(request: Any, *, views: Iterable[Model] = (), reads: Iterable[Model] = ()) -> str:
    """Returns the token of a page that JavaScript shows, for `readtrack.page(token)`.

    That call tells the server that the page is looked at. Raises TypeError for an object without
    counts, or without read state.
    """
    recorder = Recorder()
    for obj in views:
        recorder.view(obj)
    for obj in reads:
        recorder.read(obj)
    return token_of(name_of(recorder, path=request.path), ())
