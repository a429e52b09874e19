"""Hits: what one request views and reads, what became of that, and why it may not count."""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, get_args

from readtrack.conf import conf
from readtrack.hits import bots, origins, visitors
from readtrack.hits.readers import Reader
from readtrack.hits.visitors import Visitor

if TYPE_CHECKING:
    from readtrack.store.scripts import Call

# Reasons for a skip. The reasons up to "excluded" are found before Redis is asked. The next three
# are found by Redis. "busy" is a hit for which no connection was free.
Reason = Literal[
    "method",
    "status",
    "prefetch",
    "embed",
    "bot",
    "agent",
    "anonymous",
    "excluded",
    "rate",
    "repeat",
    "honeypot",
    "busy",
    "error",
]
REASONS: tuple[Reason, ...] = get_args(Reason)

# Sec-Purpose (prefetch, prefetch;prerender, prefetch;anonymous-client-ip, ...) is sent by Chromium
# and Firefox 115, Purpose by Safari and by Chromium for <link rel=prefetch>, X-Purpose: preview by
# older Safari, X-Moz by older Firefox. X-Sec-Purpose: prefetch is sent by Turbo while the pointer
# is over a link, and HX-Preloaded: true by htmx's preload extension.
PREFETCH_HEADERS = (
    "HTTP_SEC_PURPOSE",
    "HTTP_PURPOSE",
    "HTTP_X_PURPOSE",
    "HTTP_X_MOZ",
    "HTTP_X_SEC_PURPOSE",
)
PREFETCH = re.compile("prefetch|prerender|preview", re.IGNORECASE)

# Values of Sec-Fetch-Dest (Fetch standard) for a part of a page. A script's fetch has "empty".
PARTS = re.compile(
    "audio(?:worklet)?|font|image|json|manifest|paintworklet|report|script|style|text|track|video"
    "|webidentity|xslt|(?:service|shared)?worker"
)


class PartRecord(Protocol):
    """What a part records of a hit beside its views, reads and steps."""

    def call(self, hit: "Hit") -> "Call[list[tuple[str, str]]]":
        """Returns the call that records it. Its result are subjects, and stages that are new."""


class Hit(NamedTuple):
    """The subjects that one request views and reads. Times are aware UTC."""

    visitor: Visitor
    at: datetime
    views: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    # Names and values, by which the views are broken down.
    dimensions: tuple[tuple[str, str], ...] = ()
    steps: tuple[tuple[str, str], ...] = ()  # subjects and stages of their funnels
    part_record: "PartRecord | None" = None
    # A later request tells of the page, mostly for the second time, so repeats are expected.
    is_report: bool = False
    # It says that the page was seen: it came to life in a browser.
    is_seen: bool = False
    # If it comes with a cookie: the id that stood in for the cookie before.
    stand_in: str = ""
    reader: Reader | None = None
    # What is published after the page began stays unread. If both are None, it began now.
    began: float | None = None  # `time.perf_counter` before the page's first query
    as_of: int | None = None  # µs by Redis's clock

    @property
    def named(self) -> "Hit":
        """The hit, with the visitor's fallback_id computed where only the caller was known."""
        visitor = self.visitor
        if visitor.caller is None:
            return self
        fallback_id = visitors.id_of(visitor.caller)
        named_visitor = visitor._replace(fallback_id=fallback_id, caller=None)
        return self._replace(visitor=named_visitor)


class Outcome(NamedTuple):
    """What became of the views, reads and steps of a hit."""

    counted: tuple[str, ...] = ()  # subjects of views that counted
    skipped: Mapping[str, Reason] = MappingProxyType({})  # by subject of the view
    read: tuple[str, ...] = ()  # subjects that are read now
    steps: tuple[tuple[str, str], ...] = ()  # subjects and stages that are new
    queued: tuple[str, ...] = ()  # subjects of views that a part sends later

    def __str__(self) -> str:
        """Returns the X-Readtrack header: `counted, skipped; reason=repeat; subjects=2`."""
        entries = ["counted"] * len(self.counted)
        entries += [f"skipped; reason={reason}" for reason in self.skipped.values()]
        entries += ["read"] * len(self.read)
        entries += ["step"] * len(self.steps)
        entries += ["queued"] * len(self.queued)
        texts = []
        for entry, number in Counter(entries).items():
            texts.append(f"{entry}; subjects={number}" if number > 1 else entry)
        return ", ".join(texts)


NO_OUTCOME = Outcome()


def refusal(
    method: str | None, status: int, meta: Mapping[str, Any], *, is_anonymous: bool = True
) -> Reason | None:
    """Returns the reason why a request with these headers cannot count; None if it can.

    `meta` is that of a request, or of a line of a log, whose HTTP_USER_AGENT is None if the log has
    no agents.
    """
    if method != "GET":
        return "method"
    # After a 304 the browser shows the page that it has.
    if not 200 <= status < 300 and status != 304:
        return "status"
    if _is_prefetch(meta):
        return "prefetch"
    if _is_embedded(meta):
        return "embed"
    reason = _reason_of_agent(meta, is_anonymous=is_anonymous)
    if reason is not None:
        return reason
    if is_anonymous and conf.ANONYMOUS == "none":
        return "anonymous"
    return None


def _reason_of_agent(meta: Mapping[str, Any], *, is_anonymous: bool) -> Reason | None:
    """Returns why a request does not count that is made by a program; None for a person's."""
    agent = meta.get("HTTP_USER_AGENT", "")
    if agent is None:
        return None
    is_signed = "HTTP_SIGNATURE_AGENT" in meta or "HTTP_SIGNATURE_INPUT" in meta
    # Signed-in users count as people, also by an app or a script, which have agents of their own.
    return bots.reason_of(agent[: bots.LONGEST], is_anonymous, is_signed)


def _is_prefetch(meta: Mapping[str, Any]) -> bool:
    """Returns True for a page that is fetched before anybody opens it."""
    # A loop, because `any` takes five times as long where no header is there.
    for header in PREFETCH_HEADERS:
        if header in meta and PREFETCH.search(meta[header]):
            return True
    return meta.get("HTTP_HX_PRELOADED") == "true"


def _is_embedded(meta: Mapping[str, Any]) -> bool:
    """Returns True for a page that a browser fetches as a part of a page, such as an image, or that
    a page of another site fetches or frames.
    """
    destination = meta.get("HTTP_SEC_FETCH_DEST", "document")
    if destination != "document" and PARTS.fullmatch(destination):
        return True
    if meta.get("HTTP_SEC_FETCH_SITE") in origins.OWN_SITES:
        return False
    return origins.is_foreign_part(meta)
