"""One request that was seen: the frozen hit, and why a request may not count at all."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from readtrack.bots import is_bot
from readtrack.visitors import Visitor

# Why a hit did not count. The first group is judged before Redis is asked, the second by Redis.
Reason = Literal["method", "prefetch", "status", "bot", "rate", "repeat", "error"]
REASONS: tuple[Reason, ...] = get_args(Reason)

# Browsers send these when they fetch a page that nobody may ever look at.
PREFETCH_HEADERS = ("Sec-Purpose", "Purpose", "X-Purpose", "X-Moz")


class Hit(NamedTuple):
    """What one request views and reads. Tokens, not objects; times are aware UTC."""

    visitor: Visitor
    at: datetime
    views: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    reader: int | None = None  # number of the reader's bit
    built_in: float = 0.0  # seconds from the page's first query, at the latest, to now


class Outcome(NamedTuple):
    """What became of a hit: tokens that counted, tokens that did not and why, tokens now read."""

    counted: tuple[str, ...] = ()
    skipped: Mapping[str, Reason] = MappingProxyType({})
    read: tuple[str, ...] = ()


def refusal(request: HttpRequest, response: HttpResponseBase) -> Reason | None:
    """Why this exchange cannot count, whoever makes it; None when it may."""
    if request.method != "GET":
        return "method"
    if not 200 <= response.status_code < 300:
        return "status"
    if any(_is_prefetch(request.headers.get(name, "")) for name in PREFETCH_HEADERS):
        return "prefetch"
    if is_bot(request.headers.get("User-Agent", "")):
        return "bot"
    return None


def _is_prefetch(value: str) -> bool:
    return "prefetch" in value or "prerender" in value or "preview" in value
