"""Log files: parsing their lines (combined, common or JSON), and finding out how far a file was
imported before. No line raises an error, whatever it contains.
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
    """A form of file that cannot be read."""

    name: str
    command: str  # the command that converts it to a log


# By the bytes at the start of such a file.
_UNREADABLE_FORMS = {
    b"BZh": _Form("bzip2", "bunzip2 --keep"),
    b"\xfd7zXZ\x00": _Form("xz", "unxz --keep"),
    b"\x28\xb5\x2f\xfd": _Form("zstd", "unzstd"),
    b"PK\x03\x04": _Form("zip", "unzip"),
    b"\xff\xfe": _Form("UTF-16", "iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": _Form("UTF-16", "iconv -f UTF-16 -t UTF-8"),
}
# A time in any other year is taken for damage. At the edge of the calendar, subtracting a window
# from it would fail.
YEARS = range(1970, 9000)
LONGEST = 65_536  # bytes of a line that are read at once; a longer line is malformed


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


# The fields of JSON logs that have each value: nginx's usual names, then Caddy's, then Traefik's.
# The first field that an entry has is taken. A dot leads into a nested object.
FIELDS: Mapping[str, Sequence[str]] = {
    "address": ("remote_addr", "request.client_ip", "request.remote_ip", "ClientHost"),
    "time": ("time_iso8601", "msec", "time_local", "ts", "StartUTC", "timestamp", "time"),
    "method": ("request_method", "request.method", "RequestMethod", "method"),
    "path": ("request_uri", "request.uri", "RequestPath", "uri", "path"),
    "request": ("request",),  # the whole request line, "GET /path HTTP/1.1"
    "status": ("status", "DownstreamStatus", "OriginStatus"),
    "agent": ("http_user_agent", "request.headers.User-Agent", "request_User-Agent", "user_agent"),
    "forwarded": (
        "http_x_forwarded_for",
        "request.headers.X-Forwarded-For",
        "request_X-Forwarded-For",
    ),
}

# No part of these patterns can match what the next part starts with. So they never try many ways,
# and no line takes long, whatever it contains.
_TEXT = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
_COMMON = re.compile(
    rf"(\S{{1,255}}) (?:([^\s\[]\S{{0,254}}) )?[^\[]*\[([^\]]{{1,40}})\] {_TEXT} (\d{{3}}) \S+"
)
# The format "main" of nginx's packages has X-Forwarded-For after the agent.
_COMBINED = re.compile(rf"{_COMMON.pattern} {_TEXT} {_TEXT}(?: {_TEXT})?")
_ESCAPE = re.compile(r'\\(?:x([0-9A-Fa-f]{2})|(["\\]))')
_STATUS = re.compile("[0-9]{3}")
_NO_ADDRESS = {"-", "unknown", "unix:", "(null)"}
_TIME = re.compile(r"(\d{2})/(\w{3})/(\d{4}):(\d{2}:\d{2}:\d{2}) ([+-]\d{4})")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def parser(form: str, fields: Mapping[str, str] | None = None) -> Callable[[bytes], Line | None]:
    """Returns the function that parses a line of that form. It returns None for a malformed line.

    `form` is "combined", "common" or "json". `fields` names fields of JSON logs that are taken in
    place of the usual ones in FIELDS: `{"address": "client.ip"}`.
    """
    if form == "json":
        return partial(_parse_json, _json_paths(fields or {}))
    pattern = _COMBINED if form == "combined" else _COMMON
    return partial(_parse_text, pattern)


def _json_paths(fields: Mapping[str, str]) -> dict[str, list[list[str]]]:
    """Returns where an entry of JSON may have each value of a line, by the name of the value.

    Each place is a list of keys, which lead from object to object.
    """
    paths: dict[str, list[list[str]]] = {}
    for name, usual_fields in FIELDS.items():
        dotted_paths = [fields[name]] if name in fields else usual_fields
        paths[name] = []
        for dotted in dotted_paths:
            paths[name].append([dotted])  # because a key may have dots itself
            paths[name].append(dotted.split("."))
    return paths


def _parse_text(pattern: re.Pattern[str], raw: bytes) -> Line | None:
    """Returns the line of a combined or common log; None for a malformed one."""
    # Decoded as WSGI decodes headers, so that agents are equal to those of live hits.
    match = pattern.match(raw.decode("latin-1"))
    if match is None:
        return None
    first_word, second_word, time, request, status, *combined = match.groups()
    address = first_word
    if second_word not in {None, "-"}:
        address = _client(first_word, second_word)
    agent = None
    forwarded = ""
    if combined:
        _referrer, raw_agent, raw_forwarded = combined
        agent = _unescaped(raw_agent)
        forwarded = raw_forwarded or ""
    return _line(
        time=time,
        request=_unescaped(request),
        status=status,
        address=address,
        agent=agent,
        forwarded=forwarded,
    )


@lru_cache(maxsize=4096)
def _client(first_word: str, second_word: str) -> str:
    """Returns the one of a line's first two words that is the client.

    It is the first one, unless that is the virtual host, as in Apache's vhost_combined.
    """
    if addresses.network_of(addresses.without_port(second_word)):
        return second_word
    has_port = addresses.WITH_PORT.fullmatch(first_word)
    is_virtual_host = has_port and not addresses.network_of(addresses.without_port(first_word))
    return second_word if is_virtual_host else first_word


def _unescaped(text: str) -> str:
    r"""Returns the text without the escapes of a log: `\x22` and `\"` are a quote."""
    return _ESCAPE.sub(lambda match: match[2] or chr(int(match[1], 16)), text)


def _parse_json(paths: Mapping[str, Sequence[Sequence[str]]], raw: bytes) -> Line | None:
    """Returns the line of a JSON log; None for a malformed one. `paths` is from _json_paths."""
    try:
        entry = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    values = {name: _first_value(entry, paths_of_value) for name, paths_of_value in paths.items()}
    request = _request_of(values)
    status = str(values["status"])
    address = values["address"]
    if address is None:
        address = ""
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
    """Returns the request line of an entry, `GET /path`, from one field or put together.

    Returns None if it has half a character (a lone surrogate), which JSON allows and no database
    takes.
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
    """Returns the first text or number that the entry has at the end of a path, or None.

    If there is a list at the end of the path, its first item is taken.
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
    """Returns the line with these values; None without a path, or with an impossible time."""
    method, _, target = request.partition(" ")
    at = clock(time)
    if at is None or not target:
        return None
    url, _, _version = target.partition(" ")
    path, _, _query = url.partition("?")
    if not path.startswith("/"):  # requested through a proxy: GET http://host/path
        _scheme, _, host_and_path = path.partition("://")
        _host, _, relative_path = host_and_path.partition("/")
        path = f"/{relative_path}"
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
    """Returns a log's time as aware UTC. None for a value that is no time, or a year out of YEARS.

    The value may be a time as in a combined log, a time in ISO 8601 with a zone, or a number since
    1970 (s, ms, µs or ns).
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
    """Returns the time of a text, as a combined log or ISO 8601 has it; None for another text.

    Raises ValueError for an impossible time.
    """
    if match := _TIME.fullmatch(text):
        day, month, year, time, zone = match.groups()
        text = f"{year}-{_MONTHS.index(month) + 1:02}-{day}T{time}{zone}"
    return parse_datetime(text)


def _time_of_number(number: float) -> datetime:
    """Returns the time of a number since 1970 (s, ms, µs or ns), aware UTC.

    Raises ValueError, OverflowError or OSError for a number out of range.
    """
    # As seconds, 1e11 would be the year 5138. So it is milli-, micro- or nanoseconds.
    while 1e11 <= abs(number) < float("inf"):
        number /= 1000
    return datetime.fromtimestamp(number, timezone.utc)


class LogFile:
    """One file: a log, or a piece of a rotated one. It is identified by its content, so it may be
    renamed, rotated or compressed between two imports.
    """

    record: Import  # of the imports of this file; `identify` finds or makes it
    position: int  # where the import goes on, in bytes of the uncompressed log
    lost: int  # bytes before the position that are passed over

    def __init__(self, file: BinaryIO) -> None:
        """Raises ImportRefusedError for a file in another form than text and gzip."""
        self.name = file.name
        self.read = file.tell  # returns how many bytes of the (compressed) file were read
        self.is_damaged = False
        # The digest of everything up to the end of the last line that `lines` has yielded.
        self.state = blake2b(digest_size=16)
        self._file = file
        head = file.read(max(map(len, _UNREADABLE_FORMS)))
        for start, form in _UNREADABLE_FORMS.items():
            if head.startswith(start):
                raise ledger.ImportRefusedError(
                    f"{self.name} is {form.name}. Convert it first: {form.command} {self.name}"
                )
        self._is_compressed = head.startswith(b"\x1f\x8b")
        piece = next(self._pieces(), b"")
        is_cut = len(piece) == LONGEST
        is_whole_line = piece.endswith(b"\n")
        # The first line, or the first LONGEST bytes of it. Empty if the line has no end yet.
        self.first = piece if is_cut or is_whole_line else b""

    def lines(self) -> Iterator[tuple[bytes, int]]:
        """Yields each whole line, and the position of its end in the uncompressed log.

        A line that is too long is yielded as an empty one.
        """
        state = blake2b(digest_size=16)
        end = 0
        is_rest_of_line = False
        for piece in self._pieces():
            state.update(piece)
            end += len(piece)
            is_end_of_line = piece.endswith(b"\n")
            # A last line without an end is still being written: the next import takes it.
            if is_end_of_line:
                self.state = state.copy()
                line = b"" if is_rest_of_line else piece[:-1].rstrip(b"\r")
                yield line, end
            is_rest_of_line = not is_end_of_line

    def digest_at(self, position: int) -> str | None:
        """Returns the digest of the log up to the position; None if the log ends before it."""
        state = blake2b(digest_size=16)
        remaining = position
        for piece in self._pieces():
            state.update(piece[:remaining])
            remaining -= len(piece)
            if remaining <= 0:
                return state.hexdigest()
        return None

    def identify(self, *, dry_run: bool = False) -> None:
        """Finds the record of an earlier import of the file, or makes a new one. Sets `record`,
        `position` and `lost`.
        """
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
        """Returns the digest of the first line, by which records of imports are looked up."""
        return blake2b(self.first, digest_size=16).hexdigest()

    def _earlier_import(self) -> Import | None:
        """Returns the record of an earlier import of this file, or None."""
        same_start = Import.objects.filter(first_line=self._first_line_digest())
        for record in same_start.order_by("-position"):
            # A log that ends before the position cannot be compared, and is taken for an older
            # copy.
            if self.digest_at(record.position) in {record.digest, None}:
                return record
        return None

    def _pieces(self) -> Iterator[bytes]:
        """Yields the lines from the start of the log, a line longer than LONGEST bytes in pieces.

        Ends where a gzip file is damaged.
        """
        self._file.seek(0)
        stream = gzip.GzipFile(fileobj=self._file) if self._is_compressed else self._file
        try:
            while piece := stream.readline(LONGEST):
                yield piece
        except (EOFError, gzip.BadGzipFile, zlib.error):
            self.is_damaged = True
