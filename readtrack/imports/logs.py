"""Log files: their lines (combined, common or JSON; none raises), and which were imported before,
and how far.
"""

import gzip
import json
import re
import secrets
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import unquote

from django.utils.dateparse import parse_datetime

from readtrack.hits import addresses
from readtrack.imports import ledger
from readtrack.models import Import

# what a file that is neither text nor gzip begins with, its form, and a command that makes a log of
# it
_OTHERS = {
    b"BZh": ("bzip2", "bunzip2 --keep"),
    b"\xfd7zXZ\x00": ("xz", "unxz --keep"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"PK\x03\x04": ("zip", "unzip"),
    b"\xff\xfe": ("UTF-16", "iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": ("UTF-16", "iconv -f UTF-16 -t UTF-8"),
}
# Of times that are no damage. To subtract a window from one at the edge of the calendar would fail.
YEARS = range(1970, 9000)
LONGEST = 65_536  # bytes of a line that are looked at; a longer one is malformed


class Line(NamedTuple):
    """One request and its answer. The agent is None if the log does not hold it; the time is aware
    UTC.
    """

    address: (
        str  # without a port; a host name or a masked address, as the log has it; "" if it has none
    )
    at: datetime
    method: str
    path: str
    status: int
    agent: str | None
    forwarded: str = ""  # X-Forwarded-For


# Fields of JSON logs: nginx's usual names, then Caddy's, then Traefik's. The first one found is
# taken.
FIELDS: Mapping[str, Sequence[str]] = {
    "address": ("remote_addr", "request.client_ip", "request.remote_ip", "ClientHost"),
    "time": ("time_iso8601", "msec", "time_local", "ts", "StartUTC", "timestamp", "time"),
    "method": ("request_method", "request.method", "RequestMethod", "method"),
    "path": ("request_uri", "request.uri", "RequestPath", "uri", "path"),
    "request": ("request",),  # the whole request line, for logs that do not take it apart
    "status": ("status", "DownstreamStatus", "OriginStatus"),
    "agent": ("http_user_agent", "request.headers.User-Agent", "request_User-Agent", "user_agent"),
    "forwarded": (
        "http_x_forwarded_for",
        "request.headers.X-Forwarded-For",
        "request_X-Forwarded-For",
    ),
}

# No part can match what the next part starts with, so that no line takes long, however it is made.
_TEXT = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
_COMMON = re.compile(
    rf"(\S{{1,255}}) (?:([^\s\[]\S{{0,254}}) )?[^\[]*\[([^\]]{{1,40}})\] {_TEXT} (\d{{3}}) \S+"
)
# nginx's own "main" has X-Forwarded-For behind the agent.
_COMBINED = re.compile(rf"{_COMMON.pattern} {_TEXT} {_TEXT}(?: {_TEXT})?")
_ESCAPE = re.compile(r'\\(?:x([0-9A-Fa-f]{2})|(["\\]))')
_TIME = re.compile(r"(\d{2})/(\w{3})/(\d{4}):(\d{2}:\d{2}:\d{2}) ([+-]\d{4})")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def parser(form: str, fields: Mapping[str, str] | None = None) -> Callable[[bytes], Line | None]:
    """Returns a parser of lines; None for a malformed one. `fields` are those of JSON: `{"address":
    "client.ip"}`.
    """
    if form == "json":
        paths = {**FIELDS, **{name: (field,) for name, field in (fields or {}).items()}}
        # A key may have dots itself.
        places = {
            name: [way for path in of for way in ([path], path.split("."))]
            for name, of in paths.items()
        }
        return partial(_json, places)
    return partial(_text, _COMBINED if form == "combined" else _COMMON)


def _text(pattern: re.Pattern[str], raw: bytes) -> Line | None:
    found = pattern.match(
        raw.decode("latin-1")
    )  # as WSGI decodes headers, so that agents are equal
    if found is None:
        return None
    first, second, time, request, status, *rest = found.groups()
    address = first if second in {None, "-"} else _client(first, second)
    agent, forwarded = (_unescaped(rest[1]), rest[2] or "") if rest else (None, "")
    return _line(address, time, _unescaped(request), status, agent, forwarded)


@lru_cache(maxsize=4096)
def _client(first: str, second: str) -> str:
    """Returns the client among a line's first two words: the second one behind a virtual host, as
    in vhost_combined.
    """
    is_host = addresses.WITH_PORT.fullmatch(first) and not addresses.network_of(
        addresses.without_port(first)
    )
    return second if is_host or addresses.network_of(addresses.without_port(second)) else first


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: match[2] or chr(int(match[1], 16)), text)


def _json(places: Mapping[str, Sequence[Sequence[str]]], raw: bytes) -> Line | None:
    try:
        entry = json.loads(raw)
        values = {name: _first(entry, ways) for name, ways in places.items()}
        request, status, agent = values["request"], str(values["status"]), values["agent"]
        if not isinstance(request, str):
            request = " ".join(str(values[name] or "") for name in ("method", "path")).rstrip()
        # not with half a character, which JSON may hold, and which fits into no query
        request.encode()
    except (ValueError, RecursionError):
        return None
    address, forwarded = (
        "" if values[name] is None else values[name] for name in ("address", "forwarded")
    )
    if not isinstance(address, str) or not re.fullmatch("[0-9]{3}", status):
        return None
    return _line(
        address,
        values["time"],
        request,
        status,
        None if agent is None else str(agent),
        str(forwarded),
    )


def _first(entry: Any, ways: Sequence[Sequence[str]]) -> Any:
    """Returns the first value that the entry has at the end of one of the ways; of a list its first
    item.
    """
    for names in ways:
        value = entry
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, (str, int, float)):
            return value
    return None


def _line(
    address: str, time: Any, request: str, status: str, agent: str | None, forwarded: str
) -> Line | None:
    method, _, target = request.partition(" ")
    at = clock(time)
    if at is None or not target:
        return None
    path = target.partition(" ")[0].partition("?")[0]
    if not path.startswith("/"):  # asked through a proxy: GET http://host/path
        path = "/" + path.partition("://")[2].partition("/")[2]
    address = addresses.without_port(address[:255].lower())  # a host name is no longer
    address = "" if address in {"-", "unknown", "unix:", "(null)"} else address
    agent, forwarded = "" if agent == "-" else agent, "" if forwarded == "-" else forwarded
    return Line(address, at, method, unquote(path), int(status), agent, forwarded)


@lru_cache(maxsize=1024)  # because many lines share a second
def clock(value: Any) -> datetime | None:
    """Returns a log's time, ISO 8601 with a zone, or a number since 1970 as aware UTC; None for no
    time.
    """
    with suppress(ValueError, OverflowError, OSError):
        try:
            number = float(value)
        except (TypeError, ValueError):
            text = str(value).strip()
            if found := _TIME.fullmatch(text):
                day, month, year, time, zone = found.groups()
                text = f"{year}-{_MONTHS.index(month) + 1:02}-{day}T{time}{zone}"
            at = parse_datetime(text)
        else:
            while 1e11 <= abs(number) < float("inf"):  # milli-, micro- or nanoseconds
                number /= 1000
            at = datetime.fromtimestamp(number, timezone.utc)
        # A time without a zone says nothing.
        if at and at.tzinfo and (at := at.astimezone(timezone.utc)).year in YEARS:
            return at
    return None


class LogFile:
    """One file: a log, or a piece of one. Its content identifies it, so it may be renamed, rotated
    or compressed.
    """

    def __init__(self, file: BinaryIO) -> None:
        """Raises ImportRefusedError for a file in another form than text and gzip."""
        self.name, self._file = file.name, file
        self.read = file.tell  # how many bytes of the file were read, compressed as they are
        head = file.read(max(map(len, _OTHERS)))
        for start, (form, command) in _OTHERS.items():
            if head.startswith(start):
                raise ledger.ImportRefusedError(
                    f"{self.name} is {form}. Convert it first: {command} {self.name}"
                )
        self._is_compressed = head.startswith(b"\x1f\x8b")
        self.is_damaged = False
        self.state = blake2b(
            digest_size=16
        )  # of everything up to the end of the last line that `lines` gave
        raw = next(self._pieces(), b"")
        # The first line, or as much of it as is looked at; empty if there is no whole line.
        self.first = raw if len(raw) == LONGEST or raw[-1:] == b"\n" else b""

    def lines(self) -> Iterator[tuple[bytes, int]]:
        """Yields each whole line, empty if it is too long, and where it ends among the log's
        uncompressed bytes.
        """
        # A last line without an end is still being written: the next import takes it.
        end, state, is_long = 0, blake2b(digest_size=16), False
        for raw in self._pieces():
            state.update(raw)
            end += len(raw)
            if raw[-1:] == b"\n":
                self.state = state.copy()
                yield b"" if is_long else raw[:-1].rstrip(b"\r"), end
            is_long = raw[-1:] != b"\n"

    def digest_at(self, position: int) -> str | None:
        """Returns the digest of everything up to the position; None if the log ends sooner."""
        state = blake2b(digest_size=16)
        for raw in self._pieces():
            state.update(raw[:position])
            position -= len(raw)
            if position <= 0:
                return state.hexdigest()
        return None

    def identify(self, *, dry_run: bool = False) -> None:
        """Finds the record of an earlier import of the file, or makes one."""
        first_line, digest = blake2b(self.first, digest_size=16).hexdigest(), self.state.hexdigest()
        new = Import(
            source=secrets.token_hex(8), name=self.name[-255:], first_line=first_line, digest=digest
        )
        same_start = Import.objects.filter(first_line=first_line).order_by("-position")
        # A log that ends before the position cannot be compared, and is taken for an older copy.
        known = (
            record
            for record in same_start
            if self.digest_at(record.position) in {record.digest, None}
        )
        self.record = next(known, new)
        # Where its import goes on, and the bytes before that which were passed over.
        self.position, self.lost = ledger.resume(
            self.record, digest=self.digest_at, dry_run=dry_run
        )
        if not dry_run and self.record.pk is None:
            self.record.save()

    def _pieces(self) -> Iterator[bytes]:
        """Yields lines, a long one in pieces, up to where a gzip file is damaged."""
        self._file.seek(0)
        stream = gzip.GzipFile(fileobj=self._file) if self._is_compressed else self._file
        try:
            while raw := stream.readline(LONGEST):
                yield raw
        except (EOFError, gzip.BadGzipFile, zlib.error):
            self.is_damaged = True
