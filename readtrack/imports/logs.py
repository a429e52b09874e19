"""Log files: parsing their lines (combined, common or JSON), and finding out how far a file was
imported before. No line raises.
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


class _Form(NamedTuple):
    """A form of file that is not read."""

    name: str
    command: str  # that makes a log of it


# By the bytes that such a file begins with.
_UNREADABLE_FORMS = {
    b"BZh": _Form("bzip2", "bunzip2 --keep"),
    b"\xfd7zXZ\x00": _Form("xz", "unxz --keep"),
    b"\x28\xb5\x2f\xfd": _Form("zstd", "unzstd"),
    b"PK\x03\x04": _Form("zip", "unzip"),
    b"\xff\xfe": _Form("UTF-16", "iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": _Form("UTF-16", "iconv -f UTF-16 -t UTF-8"),
}
# Of times that are no damage. To subtract a window from one at the edge of the calendar would fail.
YEARS = range(1970, 9000)
LONGEST = 65_536  # bytes of a line that are looked at; a longer one is malformed


class Line(NamedTuple):
    """One request and its answer."""

    # Without a port. A host name or a masked address, as the log has it; "" if it has none.
    address: str
    at: datetime  # aware UTC
    method: str
    path: str
    status: int
    agent: str | None  # None if the log does not hold it
    forwarded: str = ""  # X-Forwarded-For


# Fields of JSON logs: nginx's usual names, then Caddy's, then Traefik's. The first field that an
# entry has is taken.
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
_STATUS = re.compile("[0-9]{3}")
_NO_ADDRESS = {"-", "unknown", "unix:", "(null)"}
_TIME = re.compile(r"(\d{2})/(\w{3})/(\d{4}):(\d{2}:\d{2}:\d{2}) ([+-]\d{4})")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def parser(form: str, fields: Mapping[str, str] | None = None) -> Callable[[bytes], Line | None]:
    """Returns a function that parses a line, and returns None for a malformed one.

    `form` is "combined", "common" or "json". `fields` are fields of JSON in place of the usual
    ones: `{"address": "client.ip"}`.
    """
    if form == "json":
        return partial(_parse_json, _json_paths(fields or {}))
    return partial(_parse_text, _COMBINED if form == "combined" else _COMMON)


def _json_paths(fields: Mapping[str, str]) -> dict[str, list[list[str]]]:
    """Returns, for each value of a line, the lists of keys that lead to it in an entry of JSON."""
    paths: dict[str, list[list[str]]] = {}
    for name, usual in FIELDS.items():
        dotted_paths = [fields[name]] if name in fields else usual
        paths[name] = []
        for dotted in dotted_paths:
            paths[name].append([dotted])  # because a key may have dots itself
            paths[name].append(dotted.split("."))
    return paths


def _parse_text(pattern: re.Pattern[str], raw: bytes) -> Line | None:
    # Decoded as WSGI decodes headers, so that agents are equal to those of live hits.
    match = pattern.match(raw.decode("latin-1"))
    if match is None:
        return None
    first, second, time, request, status, *combined = match.groups()
    agent = None
    forwarded = ""
    if combined:
        _, raw_agent, raw_forwarded = combined
        agent = _unescaped(raw_agent)
        forwarded = raw_forwarded or ""
    return _line(
        time=time,
        request=_unescaped(request),
        status=status,
        address=first if second in {None, "-"} else _client(first, second),
        agent=agent,
        forwarded=forwarded,
    )


@lru_cache(maxsize=4096)
def _client(first: str, second: str) -> str:
    """Returns the client among a line's first two words: the second one behind a virtual host, as
    in vhost_combined.
    """
    if addresses.network_of(addresses.without_port(second)):
        return second
    is_host_with_port = addresses.WITH_PORT.fullmatch(first) and not addresses.network_of(
        addresses.without_port(first)
    )
    return second if is_host_with_port else first


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: match[2] or chr(int(match[1], 16)), text)


def _parse_json(paths: Mapping[str, Sequence[Sequence[str]]], raw: bytes) -> Line | None:
    try:
        entry = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    values = {name: _first_value(entry, ways) for name, ways in paths.items()}
    request = _request_of(values)
    status = str(values["status"])
    address = "" if values["address"] is None else values["address"]
    if request is None or not isinstance(address, str) or not _STATUS.fullmatch(status):
        return None
    agent = values["agent"]
    forwarded = values["forwarded"]
    return _line(
        time=values["time"],
        request=request,
        status=status,
        address=address,
        agent=None if agent is None else str(agent),
        forwarded="" if forwarded is None else str(forwarded),
    )


def _request_of(values: Mapping[str, Any]) -> str | None:
    """Returns the request line of an entry, whole or put together; None for one with half a
    character, which JSON may hold and no query takes.
    """
    request = values["request"]
    if not isinstance(request, str):
        method = values["method"] or ""
        path = values["path"] or ""
        request = f"{method} {path}".rstrip()
    try:
        request.encode()
    except UnicodeEncodeError:
        return None
    return request


def _first_value(entry: Any, paths: Sequence[Sequence[str]]) -> Any:
    """Returns the first value that the entry has at the end of one of the paths: of a list its
    first item. Returns None if it has no value there.
    """
    for path in paths:
        value = entry
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, (str, int, float)):
            return value
    return None


def _line(
    *, time: Any, request: str, status: str, address: str, agent: str | None, forwarded: str
) -> Line | None:
    """Returns the line of these values; None without a path, or with an impossible time."""
    method, _, target = request.partition(" ")
    at = clock(time)
    if at is None or not target:
        return None
    path = target.partition(" ")[0].partition("?")[0]
    if not path.startswith("/"):  # asked through a proxy: GET http://host/path
        path = "/" + path.partition("://")[2].partition("/")[2]
    address = addresses.without_port(address[:255].lower())  # no host name is longer
    if address in _NO_ADDRESS:
        address = ""
    if agent == "-":
        agent = ""
    if forwarded == "-":
        forwarded = ""
    return Line(address, at, method, unquote(path), int(status), agent, forwarded)


@lru_cache(maxsize=1024)  # because many lines share a second
def clock(value: Any) -> datetime | None:
    """Returns a log's time as aware UTC; None for a value that is no time, or one out of YEARS.

    The value is a time of a combined log, ISO 8601 with a zone, or a number since 1970 (s, ms, µs
    or ns).
    """
    with suppress(ValueError, OverflowError, OSError):
        try:
            number = float(value)
        except (TypeError, ValueError):
            at = _time_of_text(str(value).strip())
        else:
            at = _time_of_number(number)
        if at is None or at.tzinfo is None:  # a time without a zone says nothing
            return None
        at = at.astimezone(timezone.utc)
        if at.year in YEARS:
            return at
    return None


def _time_of_text(text: str) -> datetime | None:
    """Returns the time that a text names. Raises ValueError for an impossible one."""
    if match := _TIME.fullmatch(text):
        day, month, year, time, zone = match.groups()
        text = f"{year}-{_MONTHS.index(month) + 1:02}-{day}T{time}{zone}"
    return parse_datetime(text)


def _time_of_number(number: float) -> datetime:
    """Returns the time of a number since 1970, whatever its unit. Raises ValueError, OverflowError
    or OSError for one out of range.
    """
    while 1e11 <= abs(number) < float("inf"):  # milli-, micro- or nanoseconds
        number /= 1000
    return datetime.fromtimestamp(number, timezone.utc)


class LogFile:
    """One file: a log, or a piece of one. Its content identifies it, so it may be renamed, rotated
    or compressed.
    """

    record: Import  # of this import of the file; `identify` finds or makes it
    position: int  # where the import goes on, in bytes of the uncompressed log
    lost: int  # bytes before the position that were passed over

    def __init__(self, file: BinaryIO) -> None:
        """Raises ImportRefusedError for a file in another form than text and gzip."""
        self.name = file.name
        self.read = file.tell  # how many bytes of the file were read, compressed as they are
        self.is_damaged = False
        # Of everything up to the end of the last line that `lines` gave.
        self.state = blake2b(digest_size=16)
        self._file = file
        head = file.read(max(map(len, _UNREADABLE_FORMS)))
        for start, form in _UNREADABLE_FORMS.items():
            if head.startswith(start):
                raise ledger.ImportRefusedError(
                    f"{self.name} is {form.name}. Convert it first: {form.command} {self.name}"
                )
        self._is_compressed = head.startswith(b"\x1f\x8b")
        raw = next(self._pieces(), b"")
        # The first line, or as much of it as is looked at; empty if there is no whole line.
        self.first = raw if len(raw) == LONGEST or raw[-1:] == b"\n" else b""

    def lines(self) -> Iterator[tuple[bytes, int]]:
        """Yields each whole line, empty if it is too long, and where it ends among the log's
        uncompressed bytes.
        """
        state = blake2b(digest_size=16)
        end = 0
        is_rest_of_line = False
        for raw in self._pieces():
            state.update(raw)
            end += len(raw)
            is_end_of_line = raw[-1:] == b"\n"
            # A last line without an end is still being written: the next import takes it.
            if is_end_of_line:
                self.state = state.copy()
                yield b"" if is_rest_of_line else raw[:-1].rstrip(b"\r"), end
            is_rest_of_line = not is_end_of_line

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
        self.record = self._earlier_import() or Import(
            source=secrets.token_hex(8),
            name=self.name[-255:],
            first_line=self._first_line_digest(),
            digest=self.state.hexdigest(),
        )
        self.position, self.lost = ledger.resume(
            self.record, digest=self.digest_at, dry_run=dry_run
        )
        if not dry_run and self.record.pk is None:
            self.record.save()

    def _first_line_digest(self) -> str:
        return blake2b(self.first, digest_size=16).hexdigest()

    def _earlier_import(self) -> Import | None:
        same_start = Import.objects.filter(first_line=self._first_line_digest())
        for record in same_start.order_by("-position"):
            # A log that ends before the position cannot be compared, and is taken for an older
            # copy.
            if self.digest_at(record.position) in {record.digest, None}:
                return record
        return None

    def _pieces(self) -> Iterator[bytes]:
        """Yields lines, a long one in pieces, up to where a gzip file is damaged."""
        self._file.seek(0)
        stream = gzip.GzipFile(fileobj=self._file) if self._is_compressed else self._file
        try:
            while raw := stream.readline(LONGEST):
                yield raw
        except (EOFError, gzip.BadGzipFile, zlib.error):
            self.is_damaged = True
