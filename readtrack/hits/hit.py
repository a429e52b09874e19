"""Hits: what one request views and reads, what became of it, and why it may not count."""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from readtrack.conf import conf
from readtrack.hits import bots, origins, visitors
from readtrack.hits.readers import Reader
from readtrack.hits.reading import Reading
from readtrack.hits.visitors import Visitor

# Reasons for a skip. The reasons up to "excluded" are found before Redis is asked, Redis finds the
# next three; "busy" is a hit for which no connection was free.
Reason = Literal[
    "method",
    "status",
    "prefetch",
    "embed",
    "bot",
    "anonymous",
    "excluded",
    "rate",
    "repeat",
    "honeypot",
    "busy",
    "error",
]
REASONS: tuple[Reason, ...] = get_args(Reason)

# Chromium and Firefox 115 send Sec-Purpose (prefetch, prefetch;prerender,
# prefetch;anonymous-client-ip, ...), Chromium's <link rel=prefetch> and Safari send Purpose, older
# Safari X-Purpose: preview, older Firefox X-Moz. Under a pointer that hovers, Turbo sends
# X-Sec-Purpose: prefetch, and htmx's preload extension HX-Preloaded: true.
PREFETCH_HEADERS = (
    "HTTP_SEC_PURPOSE",
    "HTTP_PURPOSE",
    "HTTP_X_PURPOSE",
    "HTTP_X_MOZ",
    "HTTP_X_SEC_PURPOSE",
)
PREFETCH = re.compile("prefetch|prerender|preview", re.IGNORECASE)

# Values of Sec-Fetch-Dest (Fetch standard) of parts of a page. Scripts fetch with "empty".
PARTS = re.compile(
    "audio(?:worklet)?|font|image|json|manifest|paintworklet|report|script|style|text|track|video|webidentity|xslt"
    "|(?:service|shared)?worker"
)


class Hit(NamedTuple):
    """The subjects that one request views and reads. Times are aware UTC."""

    visitor: Visitor
    at: datetime
    views: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    # Name and value: the views are broken down by them.
    dimensions: tuple[tuple[str, str], ...] = ()
    steps: tuple[tuple[str, str], ...] = ()  # subject and stage of its funnel
    reading: Reading | None = None
    # A page's script tells of it, mostly a second time; repeats are expected.
    by_script: bool = False
    # The id that stood in for the visitor's cookie, if the script tells of a visitor with a cookie.
    stand_in: str = ""
    reader: Reader | None = None
    # The reader has not seen what is published after this time; without either it is now.
    began: float | None = None  # `time.perf_counter` before the page's first query
    as_of: int | None = None  # Redis's clock, in microseconds

    @property
    def named(self) -> "Hit":
        """The hit of the visitor with both ids."""
        visitor = self.visitor
        if visitor.caller is None:
            return self
        return self._replace(
            visitor=visitor._replace(fallback_id=visitors.id_of(visitor.caller), caller=None)
        )


class Outcome(NamedTuple):
    """The outcome of a hit, by subject."""

    counted: tuple[str, ...] = ()
    skipped: Mapping[str, Reason] = MappingProxyType({})
    read: tuple[str, ...] = ()
    steps: tuple[tuple[str, str], ...] = ()  # subjects and their new stages
    queued: tuple[str, ...] = ()  # will be recorded within BUFFER seconds

    def __str__(self) -> str:
        """Returns the X-Readtrack header: `counted, skipped; reason=repeat; subjects=2`."""
        entries = ["counted"] * len(self.counted)
        entries += [f"skipped; reason={reason}" for reason in self.skipped.values()]
        entries += ["read"] * len(self.read)
        entries += ["step"] * len(self.steps)
        entries += ["queued"] * len(self.queued)
        shown = []
        for entry, number in Counter(entries).items():
            shown.append(f"{entry}; subjects={number}" if number > 1 else entry)
        return ", ".join(shown)


NO_OUTCOME = Outcome()


def refusal(
    method: str | None, status: int, meta: Mapping[str, Any], *, is_anonymous: bool = True
) -> Reason | None:
    """Returns the reason why a request with these headers cannot count, or None. An agent of None
    is unknown.
    """
    if method != "GET":
        return "method"
    if not 200 <= status < 300 and status != 304:  # with 304 the browser shows the page that it has
        return "status"
    if _is_prefetch(meta):
        return "prefetch"
    if _is_embedded(meta):
        return "embed"
    agent = meta.get("HTTP_USER_AGENT", "")
    # Whoever is signed in is a person: apps and scripts of users have agents of their own.
    if agent is not None and bots.is_bot(agent[: bots.LONGEST], is_anonymous):
        return "bot"
    if is_anonymous and conf.ANONYMOUS == "none":
        return "anonymous"
    return None


def _is_prefetch(meta: Mapping[str, Any]) -> bool:
    """Returns True for a page that is fetched before anybody opens it."""
    # A loop, because `any` takes five times as long where no header is there.
    for header in PREFETCH_HEADERS:
        if header in meta and PREFETCH.search(meta[header]):
            return True
    return meta.get("HTTP_HX_PRELOADED") == "true"


def _is_embedded(meta: Mapping[str, Any]) -> bool:
    """Returns True for a page that a browser fetches as an image, a script or the like, or for
    another site's page.
    """
    destination = meta.get("HTTP_SEC_FETCH_DEST", "document")
    if destination != "document" and PARTS.fullmatch(destination):
        return True
    if meta.get("HTTP_SEC_FETCH_SITE") in origins.OWN_SITES:
        return False
    return origins.is_foreign_part(meta)
