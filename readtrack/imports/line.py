"""A line of a log, whatever its format: which request it tells of. Nothing here raises an error,
whatever the log contains.
"""

import re
from contextlib import suppress
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from django.utils.dateparse import parse_datetime

from readtrack.conf import conf
from readtrack.hits import addresses, bots, visitors
from readtrack.hits.visitors import Visitor
from readtrack.imports.ports import without_port

# A time in any other year is taken for damage. At the edge of the calendar, subtracting a window
# from it would fail.
YEARS = range(1970, 9000)
STATUS = re.compile("[0-9]{3}")
LONGEST_HOST = 255  # characters; no name is longer
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

_NO_ADDRESS = {"-", "unknown", "unix:", "(null)"}
_VERSIONS = {"1.0", "1.1", "2", "3"}
_NO_HOST = {"-", "_"}  # `server_name _;` is nginx's name for any other host
_TIME = re.compile(r"(\d{2})/(\w{3})/(\d{4}):(\d{2}:\d{2}:\d{2})(?:[.,]\d{1,9})? ([+-]\d{4})")
# Caddy's `wall`, which is UTC.
_WALL_TIME = re.compile(r"(\d{4})/(\d\d)/(\d\d) (\d\d:\d\d:\d\d)(?:\.\d{1,9})?")


class Line(NamedTuple):
    """A line of a log: one request and its answer."""

    # Without a port. It may be a host name or a masked address. "" if the log has none.
    address: str
    at: datetime  # aware UTC
    method: str
    path: str
    status: int
    agent: str | None  # the user agent; None if the log does not have it
    forwarded: str = ""  # X-Forwarded-For
    host: str = ""  # that was asked for the path, without a port; "" if the log does not say it
    is_visit: bool = True  # False for an entry of JSON that `--where` or its form leaves out


class Request(NamedTuple):
    """What a request asked for."""

    method: str
    path: str  # without escapes and parameters
    host: str = ""  # "" if the request does not name it


def visitor_of(address: str, agent: str, *, at: datetime) -> Visitor:
    """Returns the visitor of a line. The address may be the name of a host, or any text.

    The `fallback_id` is the same on every day.
    """
    network = addresses.network_of(address) or address
    permanent_id = visitors.id_by_network(network, agent[: bots.LONGEST])
    if conf.ANONYMOUS == "cookie" and conf.COOKIE.name:
        return Visitor(permanent_id, fallback_id=permanent_id)
    id_of_day = visitors.digest("visitor", f"{at.date()}:{permanent_id}")
    return Visitor(id_of_day, fallback_id=permanent_id, kind="hash")


@lru_cache(maxsize=8192)  # because a site's pages are asked for again and again
def request_of(text: str, *, is_decoded: bool = False) -> Request | None:
    """Returns the request in a request line, `GET /path HTTP/1.1`; None if it names no path.

    `is_decoded` says that the path has neither escapes nor parameters. Only then it may have
    blanks.
    """
    method, _, rest = text.partition(" ")
    target, _, version = rest.partition(" ")
    if is_decoded:
        decoded_path, _, last_word = rest.rpartition(" ")
        path = decoded_path if _is_version(last_word) else rest
        return Request(method, path) if path.startswith("/") else None
    if version and not _is_version(version.rstrip()):
        return None  # where the path ends is not known
    target_path = path_of(target)
    return target_path and Request(method, target_path.path, target_path.host)


def _is_version(word: str) -> bool:
    """Returns True for `HTTP/1.1`, and for `1.1` as hypercorn writes it."""
    if " " in word:
        return False
    return word[:5].upper() == "HTTP/" or word in _VERSIONS


class Target(NamedTuple):
    """A path, and the host if the URL names it."""

    path: str
    host: str = ""


def path_of(url: str) -> Target | None:
    """Returns the path of a URL, without escapes and parameters; None for a text without a path."""
    address, _, _query = url.partition("?")
    if address.startswith("/"):
        return Target(unquote(address))
    if address == "*":
        return Target("/")
    # Requested through a proxy: GET http://host/path
    _scheme, separator, host_and_path = address.partition("://")
    if not separator:
        return None
    host, _, relative_path = host_and_path.partition("/")
    return Target(unquote(f"/{relative_path}"), host)


def line_of(
    request: Request | None,
    *,
    time: datetime | None,
    status: str,
    address: str,
    agent: str | None,
    forwarded: str = "",
    host: str = "",
) -> Line | None:
    """Returns the line with these values; None without a request or without a time.

    `address` may be a list as in X-Forwarded-For, whose first entry is the client. A host in the
    request counts in place of `host`.
    """
    if request is None or time is None:
        return None
    client, forwarded = _client_in(address, forwarded)
    return Line(
        client,
        time,
        request.method,
        request.path,
        int(status),
        "" if agent == "-" else agent,
        forwarded,
        _host_name(request.host or host),
    )


@lru_cache(maxsize=8192)
def _client_in(address: str, forwarded: str) -> tuple[str, str]:
    """Returns the client's address without a port, and X-Forwarded-For, as a line has them."""
    first_address, _, other_addresses = address.partition(",")
    if other_addresses:
        forwarded = forwarded or address
        address = first_address
    address = without_port(address[:LONGEST_HOST].lower())
    if address in _NO_ADDRESS:
        address = ""
    if forwarded == "-":
        forwarded = ""
    return address, forwarded


@lru_cache(maxsize=1024)
def _host_name(text: str) -> str:
    """Returns the name of a host without a port; "" for what means no host."""
    if text in _NO_HOST:
        return ""
    return without_port(text[:LONGEST_HOST].lower()).rstrip(".")


@lru_cache(maxsize=1024)  # because many lines share a second
def time_of(value: Any, *, is_utc: bool = False) -> datetime | None:
    """Returns a log's time as aware UTC. None for a value that is no time, or a year out of YEARS.

    The value may be a time as in a combined log, a time in ISO 8601 with a zone, or a number since
    1970 (s, ms, µs or ns). `is_utc` says that a time without a zone is one of UTC.
    """
    with suppress(ValueError, OverflowError, OSError):
        try:
            number = float(value)
        except (TypeError, ValueError):
            at = _time_of_text(str(value).strip())
        else:
            at = _time_of_number(number)
        if at is not None and at.tzinfo is None and is_utc:
            at = at.replace(tzinfo=timezone.utc)
        if at is None or at.tzinfo is None:  # a time without a zone says nothing
            return None
        at = at.astimezone(timezone.utc)
        if at.year in YEARS:
            return at
    return None


def _time_of_text(text: str) -> datetime | None:
    """Returns the time of a text, as a combined log, Caddy or ISO 8601 has it; None for another
    text.

    Raises ValueError for an impossible time.
    """
    if match := _TIME.fullmatch(text):
        day, month, year, time, zone = match.groups()
        text = f"{year}-{MONTHS.index(month) + 1:02}-{day}T{time}{zone}"
    elif match := _WALL_TIME.fullmatch(text):
        year, month, day, time = match.groups()
        text = f"{year}-{month}-{day}T{time}Z"
    return parse_datetime(text)


def _time_of_number(number: float) -> datetime:
    """Returns the time of a number since 1970 (s, ms, µs or ns), aware UTC.

    Raises ValueError, OverflowError or OSError for a number out of range.
    """
    # As seconds, 1e11 would be the year 5138. So it is milli-, micro- or nanoseconds.
    while 1e11 <= abs(number) < float("inf"):
        number /= 1000
    return datetime.fromtimestamp(number, timezone.utc)
