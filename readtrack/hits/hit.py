"""One request that was seen: the frozen hit, and why a request may not count at all."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from readtrack.hits.bots import is_bot
from readtrack.hits.readers import Reader
from readtrack.hits.visitors import Visitor

# Why a hit did not count. Up to anonymous it is judged before Redis is asked, from rate on by Redis.
Reason = Literal["method", "status", "prefetch", "bot", "anonymous", "rate", "repeat", "honeypot", "error"]
REASONS: tuple[Reason, ...] = get_args(Reason)

# Chromium and Firefox 115 send Sec-Purpose (prefetch, prefetch;prerender, prefetch;anonymous-client-ip, ...),
# Chromium's <link rel=prefetch> and Safari send Purpose, older Safari X-Purpose: preview, older Firefox X-Moz.
PREFETCH_HEADERS = ("Sec-Purpose", "Purpose", "X-Purpose", "X-Moz")
PREFETCH_WORDS = ("prefetch", "prerender", "preview")


class Hit(NamedTuple):
    """What one request views and reads. Subjects, not objects; times are aware UTC."""

    visitor: Visitor
    at: datetime
    views: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    dimensions: tuple[tuple[str, str], ...] = ()  # name and value of what the views are broken down by
    steps: tuple[tuple[str, str], ...] = ()  # subject and stage of the funnels that the visitor went on in
    reader: Reader | None = None
    # What was published later than that stays unread. Without either it is now.
    began: float | None = None  # `time.perf_counter` at the page's first query, or before
    as_of: int | None = None  # the same by Redis's clock, in microseconds


class Outcome(NamedTuple):
    """What became of a hit: subjects that counted, subjects that did not and why, subjects now read."""

    counted: tuple[str, ...] = ()
    skipped: Mapping[str, Reason] = MappingProxyType({})
    read: tuple[str, ...] = ()
    steps: tuple[tuple[str, str], ...] = ()  # subjects and stages that were new

    def __str__(self) -> str:
        """The X-Readtrack header: `counted, skipped; reason=repeat; subjects=2`."""
        words = ["counted"] * len(self.counted) + [f"skipped; reason={reason}" for reason in self.skipped.values()]
        words += ["read"] * len(self.read) + ["step"] * len(self.steps)
        return ", ".join(f"{word}; subjects={many}" if many > 1 else word for word, many in Counter(words).items())


def refusal(request: HttpRequest, response: HttpResponseBase, *, is_refused: bool = False) -> Reason | None:
    """Why this exchange cannot count; None when it may. `is_refused` for a visitor that the site does not count."""
    agent, is_ahead = request.headers.get("User-Agent", ""), is_prefetch(request)
    return judged(
        method=request.method, status=response.status_code, agent=agent, is_prefetch=is_ahead, is_refused=is_refused
    )


def judged(
    *, method: str | None, status: int, agent: str | None, is_prefetch: bool = False, is_refused: bool = False
) -> Reason | None:
    """The same of an exchange that is known by its parts; an agent of None is one that nobody noted down."""
    if method != "GET":
        return "method"
    if not 200 <= status < 300:
        return "status"
    return _visitor_refusal(agent=agent, is_prefetch=is_prefetch, is_refused=is_refused)


def step_refusal(request: HttpRequest, response: HttpResponseBase, *, is_refused: bool = False) -> Reason | None:
    """Why this exchange is no step in a funnel; None when it may be. A form that leads on is one."""
    if response.status_code >= 400:
        return "status"
    agent, is_ahead = request.headers.get("User-Agent", ""), is_prefetch(request)
    return _visitor_refusal(agent=agent, is_prefetch=is_ahead, is_refused=is_refused)


def _visitor_refusal(*, agent: str | None, is_prefetch: bool, is_refused: bool) -> Reason | None:
    if is_prefetch:
        return "prefetch"
    if agent is not None and is_bot(agent):
        return "bot"
    return "anonymous" if is_refused else None


def is_prefetch(request: HttpRequest) -> bool:
    """Whether a browser fetches the page ahead, which nobody may ever look at."""
    return any(word in request.headers.get(name, "").lower() for name in PREFETCH_HEADERS for word in PREFETCH_WORDS)
