"""Lines of logs: which request each one tells of. No line raises an error, whatever it contains."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from functools import lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import unquote

from django.utils.dateparse import parse_datetime
from django.utils.timezone import get_default_timezone

from readtrack.hits import addresses

# A time in any other year is taken for damage. At the edge of the calendar, subtracting a window
# from it would fail.
YEARS = range(1970, 9000)


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


Parser = Callable[[bytes], Line | None]

# The fields of JSON logs that have each value: nginx's usual names and those that Matomo advises,
# then Caddy's, then Traefik's. The first field that an entry has is taken. A dot leads into a
# nested object.
FIELDS: Mapping[str, Sequence[str]] = {
    "address": ("remote_addr", "request.client_ip", "request.remote_ip", "ClientHost", "ip"),
    "time": ("time_iso8601", "msec", "time_local", "ts", "StartUTC", "timestamp", "time", "date"),
    "method": ("request_method", "request.method", "RequestMethod", "method"),
    "path": ("request_uri", "request.uri", "RequestPath", "uri", "path"),
    "request": ("request",),  # the whole request line, "GET /path HTTP/1.1"
    "status": ("status", "DownstreamStatus", "OriginStatus"),
    "agent": ("http_user_agent", "request.headers.User-Agent", "request_User-Agent", "user_agent"),
    "host": ("http_host", "host", "request.host", "RequestHost"),
    "forwarded": (
        "http_x_forwarded_for",
        "request.headers.X-Forwarded-For",
        "request_X-Forwarded-For",
    ),
}

FORMATS = ("combined", "common", "json", "w3c", "alb", "s3", "haproxy")
_QUOTED_FIELDS = 6  # quoted fields at the end of a line that are looked at
_LAYERS = 3  # programs that may have put something before the line, one around the other

# No part of these patterns can match what the next part starts with. So they never try many ways,
# and no line takes long, whatever it contains.
_QUOTED_TEXT = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
# All before the time, which may begin with an IPv6 address in brackets, and have a user in
# brackets, as ingress-nginx wrote it; then time, request, status. A time in brackets has a `/`.
_ACCESS = re.compile(
    r"(\[?[^\[]{1,2000}(?:\[[^\[\]/]{0,255}\] [^\[]{0,255})?)"
    rf"\[([^\]]{{1,40}})\] {_QUOTED_TEXT} (\d{{3}}) \S+"
)
_NEXT_QUOTED = re.compile(rf'[^"]*{_QUOTED_TEXT}')
# Of Elastic Load Balancing: the type, which only newer balancers have, then time, name, client,
# target, three durations, status, status of the target, sizes, request, agent.
_ALB = re.compile(
    r"(?:[a-z]\w{1,5} )?(\d{4}-\d\d-\d\dT[\d:.]{8,20}Z) \S+ (\S+) \S+ [-\d.]+ [-\d.]+ [-\d.]+"
    rf" (\d{{3}}) \S+ \d+ \d+ {_QUOTED_TEXT} {_QUOTED_TEXT}"
)
# Of S3: owner, bucket, time, client, requester, id, operation, key, request, status, error, sizes,
# durations, referrer, agent.
_S3 = re.compile(
    rf"\S+ \S+ \[([^\]]{{1,40}})\] (\S+) \S+ \S+ \S+ \S+ {_QUOTED_TEXT} (\d{{3}})"
    rf" \S+ \S+ \S+ \S+ \S+ {_QUOTED_TEXT} {_QUOTED_TEXT}"
)
# Of HAProxy's `option httplog`: client, time, front, back and server, durations, status, size,
# cookies, state, connections, queues, captured headers of the request and of the answer, request.
_HAPROXY = re.compile(
    r"(\S+) \[(\d\d)/(\w{3})/(\d{4}):([\d:]{8}\.\d{3})\] \S+ \S+ [-+/\d]+ (\d{3}) \S+ \S+ \S+ \S+"
    rf" [+/\d]+ [+/\d]+ (?:\{{([^}}]*)\}} )?(?:\{{[^}}]*\}} )?{_QUOTED_TEXT}"
)
_ESCAPE = re.compile(r'\\(?:x([0-9A-Fa-f]{2})|(["\\]))')
# A product and its version, as user agents begin.
_PRODUCT = re.compile(r"(?!HTTP/)[A-Za-z][\w.-]*/\d")
_STATUS = re.compile("[0-9]{3}")
LONGEST_HOST = 255  # characters; no name is longer
_NO_ADDRESS = {"-", "unknown", "unix:", "(null)"}
_NO_HOST = {"-", "_"}  # `server_name _;` is nginx's name for any other host
_TIME = re.compile(r"(\d{2})/(\w{3})/(\d{4}):(\d{2}:\d{2}:\d{2})(?:[.,]\d{1,9})? ([+-]\d{4})")
# Caddy's `wall`, which is UTC.
_WALL_TIME = re.compile(r"(\d{4})/(\d\d)/(\d\d) (\d\d:\d\d:\d\d)(?:\.\d{1,9})?")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

_COLOUR = rb"(?:\x1b\[[\d;]{0,9}m)?"
_ISO = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_TAG = rb"[A-Za-z][\w./-]{0,63}(?:\[[^\]]{0,20}\])?: "
# What programs that collect logs put before a line.
_PREFIX = re.compile(
    b"|".join(
        (
            # docker compose: `web-1  | `
            _COLOUR + rb"[\w.-]{1,128} *" + _COLOUR + rb"\| " + _COLOUR,
            rb"\[[\w-]{1,16}/[^\]\s]{1,255}\] ",  # kubectl logs --prefix: `[pod/web-1/nginx] `
            _ISO + rb" std(?:out|err) [FP] ",  # CRI, the files of Kubernetes
            # syslog by RFC 5424
            rb"<\d{1,3}>1 \S{1,40} (?:\S{1,255} ){4}(?:-|\[[^\]]{0,999}\]) (?:\xef\xbb\xbf)?",
            # syslog: `Mar  1 12:00:00 host nginx: `, with or without the host
            rb"(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|"
            + _ISO
            + rb") (?:\S{1,255} )?"
            + _TAG,
            # docker logs -t, and HAProxy's `iso`: a time before an address or before JSON
            _ISO + rb" (?=[\d.]{7,15}(?::\d{1,5})?[ ,]|[0-9a-f]{0,4}:[0-9a-f:.]{1,40}[ ,]|\{)",
            rb"(?!unix: )" + _TAG,
            rb"<\d{1,3}>",  # HAProxy's `short`, `priority` and `timed`
        )
    )
)
_JSON_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|.)")


def parser(form: str = "auto", fields: Mapping[str, str] | None = None) -> Parser:
    """Returns the function that parses the lines of one log, in their order. It returns None for a
    malformed line.

    `form` is one of FORMATS, or "auto", which takes the first format that a line has. `fields`
    names fields of JSON logs that are taken in place of the usual ones in FIELDS:
    `{"address": "client.ip"}`.
    """
    parse_json = partial(_parse_json, _json_paths(fields or {}))
    parsers: dict[str, Parser] = {
        "json": parse_json,
        "w3c": _W3c(),
        "alb": _parse_alb,
        "s3": _parse_s3,
        "haproxy": _parse_haproxy,
    }
    if form == "auto":
        chosen: Sequence[Parser] = [_parse_access, *parsers.values()]
    elif form == "combined":
        chosen = [_parse_combined]
    elif form == "common":
        chosen = [_parse_common]
    else:
        chosen = [parsers[form]]

    def parse(raw: bytes) -> Line | None:
        written = _without_prefix(raw)
        for parse_format in chosen:
            line = parse_format(written)
            if line is not None:
                return line
        return None

    return parse


def is_comment(raw: bytes) -> bool:
    """Returns True for a line that tells of no request, such as the head of a W3C log."""
    return raw.startswith((b"#", b"\xef\xbb\xbf#"))


def _without_prefix(raw: bytes) -> bytes:
    """Returns the line as the web server wrote it, without what a collector of logs has added.

    A machine that lost power may leave NUL bytes before a line.
    """
    raw = raw.lstrip(b"\0")
    for _ in range(_LAYERS):
        if raw.startswith(b'{"log":'):  # docker's files
            raw = _docker_text(raw)
        match = _PREFIX.match(raw)
        if match is None:
            break
        raw = raw[match.end() :]
    return raw


def _docker_text(raw: bytes) -> bytes:
    """Returns the line in an entry of docker's JSON, or the entry itself if it has none."""
    try:
        text = json.loads(raw)["log"]
    except (ValueError, RecursionError):
        return raw
    if not isinstance(text, str):
        return raw
    return text.rstrip("\r\n").encode(errors="replace")


def _parse_combined(raw: bytes) -> Line | None:
    """Returns the line of a combined log; None for a malformed one, and for one without agent."""
    line = _parse_access(raw)
    if line is None or line.agent is None:
        return None
    return line


def _parse_common(raw: bytes) -> Line | None:
    """Returns the line of a common log, which has no agent; None for a malformed one."""
    line = _parse_access(raw)
    if line is None:
        return None
    return line._replace(agent=None, forwarded="")


def _parse_access(raw: bytes) -> Line | None:
    """Returns the line of a combined or common log; None for a malformed one."""
    # Decoded as WSGI decodes headers, so that agents are equal to those of live hits.
    text = raw.decode("latin-1")
    match = _ACCESS.match(text)
    if match is None:
        return None
    head, time, request, status = match.groups()
    client = _client(head)
    if client is None:
        return None
    fields = list(_quoted(text, start=match.end()))
    forwarded = next(filter(_is_address_list, fields), "")
    if forwarded:
        fields.remove(forwarded)  # so that the place of the agent is the usual one
    agent = _agent_in(fields)
    return _line(
        time=time,
        request=_request_text(request),
        status=status,
        address=client.address,
        agent=None if agent is None else _unescaped(agent),
        forwarded=forwarded or client.forwarded,
        host=client.host,
    )


class _Client(NamedTuple):
    """What a line says of its client before the time."""

    address: str  # an address or host, or a list as in X-Forwarded-For
    forwarded: str = ""
    host: str = ""  # the virtual host


@lru_cache(maxsize=4096)
def _client(head: str) -> _Client | None:
    """Returns the client by what a line has before its time; None if that is not understood.

    It is usually an address and the names of two users, `192.0.2.1 - frank`. Before the address may
    be the virtual host, as in Apache's vhost_combined, or X-Forwarded-For. In place of the address
    may be a list, `client, proxy`.
    """
    words = head.replace('"', "").replace(",", ", ").split()
    first_address = _index_of_address(words)
    if first_address is None:
        return _host(words)
    start, end = _list_around(words, first_address)
    listed = " ".join(words[start:end])
    users = words[end:]
    if users and _is_address(users[0]):
        client = _second_client(listed, users[0])
        users = users[1:]
    else:
        client = _Client(listed, host=_virtual_host(words[:start]))
    has_usual_users = len(users) == 2 and users[0] == "-"
    if start > 1 and not has_usual_users:
        return None  # an address of something else, perhaps of a machine that collects logs
    return client if _are_users(users) else None


def _virtual_host(words: Sequence[str]) -> str:
    """Returns the virtual host, which may be the only word before the address; "" if it is not."""
    if len(words) != 1:
        return ""
    [word] = words
    # Any other word may be the name of a machine, or of a user.
    return word if "." in word or addresses.WITH_PORT.fullmatch(word) else ""


def _index_of_address(words: Sequence[str]) -> int | None:
    """Returns the index of the first word that is an address; None if no word is one."""
    for index, word in enumerate(words):
        if _is_address(word):
            return index
    return None


def _list_around(words: Sequence[str], index: int) -> tuple[int, int]:
    """Returns the start and the end of the list that the word is in. Commas join its words."""
    start = index
    while start > 0 and words[start - 1].endswith(","):
        start -= 1
    end = index + 1
    while end < len(words) and words[end - 1].endswith(","):
        end += 1
    return start, end


def _second_client(listed: str, address: str) -> _Client:
    """Returns the client of a line that has an address or a list before the address.

    That is the virtual host, if it has a port, or X-Forwarded-For.
    """
    if addresses.WITH_PORT.fullmatch(listed):
        return _Client(address, host=listed)
    return _Client(address, forwarded=listed)


def _host(words: Sequence[str]) -> _Client | None:
    """Returns the host name or masked address in a line without addresses, or None."""
    if not words:
        return None
    index = 0
    has_second_name = len(words) > 1 and words[1] != "-"
    if has_second_name and (len(words) == 4 or addresses.WITH_PORT.fullmatch(words[0])):
        index = 1  # the first one is the virtual host
    if not _are_users(words[index + 1 :]):
        return None
    return _Client(words[index], host=_virtual_host(words[:index]))


def _are_users(words: Sequence[str]) -> bool:
    """Returns True if the words between a line's client and its time may be names of users."""
    # The name of the second user may have blanks. The first one is not known to most servers.
    return len(words) <= 2 or words[0] == "-"


def _is_address(word: str) -> bool:
    return bool(addresses.network_of(addresses.without_port(word.rstrip(","))))


@lru_cache(maxsize=1024)
def _is_address_list(text: str) -> bool:
    """Returns True for X-Forwarded-For: addresses, and "unknown" beside them."""
    words = text.replace(",", " ").split()
    address_words = [word for word in words if word != "unknown"]
    return bool(address_words) and all(map(_is_address, address_words))


def _quoted(text: str, *, start: int) -> Iterator[str]:
    """Yields the quoted fields of a line from that position on."""
    for _ in range(_QUOTED_FIELDS):
        match = _NEXT_QUOTED.match(text, start)
        if match is None:
            return
        yield match[1]
        start = match.end()


def _agent_in(fields: Sequence[str]) -> str | None:
    """Returns the user agent in the quoted fields behind the size; None if there is none.

    `fields` has no X-Forwarded-For. The referrer comes first and the agent second; but a field that
    is empty in this line may come before them.
    """
    if len(fields) < 2:
        return None
    agent = fields[1]
    if agent == "-" or "://" in agent[:8]:
        agent = next(filter(_PRODUCT.match, fields[2:]), agent)
    return agent


def _unescaped(text: str) -> str:
    r"""Returns the text without the escapes of a log: `\x22` and `\"` are a quote."""
    return _ESCAPE.sub(lambda match: match[2] or chr(int(match[1], 16)), text)


def _request_text(text: str) -> str:
    """Returns a request that was read as Latin-1. Its bytes, raw or escaped, are UTF-8."""
    if text.isascii() and "\\" not in text:
        return text
    return _unescaped(text).encode("latin-1").decode(errors="replace")


def _parse_json(paths: Mapping[str, Sequence[Sequence[str]]], raw: bytes) -> Line | None:
    """Returns the line of a JSON log; None for a malformed one. `paths` is from _json_paths."""
    if not raw.lstrip().startswith(b"{"):
        return None
    entry = _json_entry(raw)
    values = {name: _first_value(entry, paths_of_value) for name, paths_of_value in paths.items()}
    request = _request_of(values)
    status = str(values["status"])
    address = values["address"]
    if address is None:
        address = ""
    if request is None or not isinstance(address, str) or not _STATUS.fullmatch(status):
        return None
    agent = values["agent"]
    return _line(
        time=values["time"],
        request=request,
        status=status,
        address=address,
        agent=None if agent is None else str(agent),
        forwarded=_text_or_empty(values["forwarded"]),
        host=_text_or_empty(values["host"]),
    )


def _text_or_empty(value: Any) -> str:
    """Returns the value as text, "" for None."""
    return "" if value is None else str(value)


def _json_entry(raw: bytes) -> Any:
    """Returns the entry of a line of JSON; None if it is no JSON."""
    with suppress(ValueError, RecursionError):
        return json.loads(raw)
    # nginx writes bytes as they came, and `\xC3` where it is not told `escape=json`.
    with suppress(ValueError, RecursionError):
        return json.loads(_JSON_ESCAPE.sub(_unescaped_byte, raw).decode(errors="replace"))
    return None


def _unescaped_byte(match: "re.Match[bytes]") -> bytes:
    r"""Returns the byte of an escape such as `\xC3`, as it may stand in JSON."""
    if match[1] is None:
        return match[0]
    code = int(match[1], 16)
    is_special = code < 0x20 or chr(code) in '"\\'
    return b"\\u%04x" % code if is_special else bytes([code])


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


def _request_of(values: Mapping[str, Any]) -> str | None:
    """Returns the request line of an entry, `GET /path`, from one field or put together.

    An entry without a method is taken for a GET, because some logs leave it out. Returns None if it
    has half a character (a lone surrogate), which JSON allows and no database takes.
    """
    request = values["request"]
    if not isinstance(request, str):
        method = "GET" if values["method"] is None else values["method"]
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
        value = _value_at(entry, path)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, (str, int, float)):
            return value
    return None


def _value_at(entry: Any, path: Sequence[str]) -> Any:
    """Returns the value that the keys of the path lead to, from object to object; None if there is
    none.
    """
    value = entry
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


class _W3c:
    """Parses a log in W3C's extended format, as IIS and CloudFront write it. The head of the log
    names its columns.
    """

    def __init__(self) -> None:
        self._columns: list[str] = []

    def __call__(self, raw: bytes) -> Line | None:
        """Returns the line; None for the head, and for a malformed line."""
        text = raw.decode(errors="replace").removeprefix("\ufeff")
        if text.startswith("#"):
            name, _, columns = text.partition(":")
            if name == "#Fields":
                self._columns = columns.split()
            return None
        is_cloudfront = "\t" in text
        cells = text.split("\t" if is_cloudfront else " ")
        if len(cells) != len(self._columns):
            return None
        values = dict(zip(self._columns, cells, strict=True))
        status = values.get("sc-status", "")
        if not _STATUS.fullmatch(status):
            return None
        agent = values.get("cs(User-Agent)")
        forwarded = ""
        if is_cloudfront:
            # The list in X-Forwarded-For is the visitor's own, because CloudFront is the first
            # proxy.
            decode = _decoded_of_cloudfront
            host = values.get("x-host-header", "")  # `cs(Host)` is CloudFront's own name
        else:
            decode = _decoded_of_iis
            host = values.get("cs-host", "")
            forwarded = values.get("X-Forwarded-For") or values.get("cs(X-Forwarded-For)", "")
        return _line(
            time=f"{values.get('date')}T{values.get('time')}Z",
            request=f"{values.get('cs-method')} {values.get('cs-uri-stem', '')}",
            status=status,
            address=values.get("c-ip", ""),
            agent=None if agent is None else decode(agent),
            forwarded=_decoded_of_iis(forwarded),
            host=host,
        )


def _decoded_of_cloudfront(text: str) -> str:
    """Returns a text of CloudFront's log, where blanks are `%20`, or `%2520` in older logs."""
    return unquote(unquote(text))


def _decoded_of_iis(text: str) -> str:
    """Returns a text of IIS's log, where blanks are `+`."""
    return text.replace("+", " ")


def _parse_alb(raw: bytes) -> Line | None:
    """Returns the line of a balancer of Elastic Load Balancing; None for a malformed one."""
    match = _ALB.match(raw.decode("latin-1"))
    if match is None:
        return None
    time, client, status, request, agent = match.groups()
    address, _, _port = client.rpartition(":")
    return _amazon_line(time=time, request=request, status=status, address=address, agent=agent)


def _parse_s3(raw: bytes) -> Line | None:
    """Returns the line of an access log of S3; None for a malformed one."""
    match = _S3.match(raw.decode("latin-1"))
    if match is None:
        return None
    time, address, request, status, _referrer, agent = match.groups()
    return _amazon_line(time=time, request=request, status=status, address=address, agent=agent)


def _amazon_line(*, time: str, request: str, status: str, address: str, agent: str) -> Line | None:
    """Returns the line of these texts, as logs of ELB and S3 quote them; None for a malformed one."""
    return _line(
        time=time,
        request=_request_text(request),
        status=status,
        address=address,
        agent=_unescaped(agent),
        forwarded="",
    )


def _parse_haproxy(raw: bytes) -> Line | None:
    """Returns the line of HAProxy's `option httplog`; None for a malformed one.

    Its times have no zone: they are taken for those of TIME_ZONE. Of captured headers, the one that
    looks like a user agent is the agent, and a list of addresses is X-Forwarded-For.
    """
    match = _HAPROXY.match(raw.decode("latin-1"))
    if match is None:
        return None
    address, day, month, year, time, status, captured, request = match.groups()
    if month not in _MONTHS:
        return None
    headers = (captured or "").split("|")
    return _line(
        time=_local_time(f"{year}-{_MONTHS.index(month) + 1:02}-{day}T{time}"),
        request=_request_text(request),
        status=status,
        address=address,
        agent=next(filter(_PRODUCT.match, headers), None),
        forwarded=next(filter(_is_address_list, headers), ""),
    )


def _local_time(text: str) -> str:
    """Returns a time of TIME_ZONE with its offset; "" for a text that is no time."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=get_default_timezone()).isoformat()
    except (ValueError, OverflowError):
        return ""


def _line(
    *,
    time: Any,
    request: str,
    status: str,
    address: str,
    agent: str | None,
    forwarded: str,
    host: str = "",
) -> Line | None:
    """Returns the line with these values; None without a path, or with an impossible time.

    `address` may be a list as in X-Forwarded-For, whose first entry is the client. A host in the
    request counts in place of `host`.
    """
    method, _, target = request.partition(" ")
    at = time_of(time)
    if at is None or not target:
        return None
    url, _, _version = target.partition(" ")
    path, _, _query = url.partition("?")
    if not path.startswith("/"):  # requested through a proxy: GET http://host/path
        _scheme, _, host_and_path = path.partition("://")
        requested_host, _, relative_path = host_and_path.partition("/")
        path = f"/{relative_path}"
        host = requested_host or host
    first_address, _, other_addresses = address.partition(",")
    if other_addresses:
        forwarded = forwarded or address
        address = first_address
    address = addresses.without_port(address[:255].lower())  # no host name is longer
    if address in _NO_ADDRESS:
        address = ""
    if agent == "-":
        agent = ""
    if forwarded == "-":
        forwarded = ""
    return Line(address, at, method, unquote(path), int(status), agent, forwarded, _host_name(host))


@lru_cache(maxsize=1024)
def _host_name(text: str) -> str:
    """Returns the name of a host without a port; "" for what means no host."""
    if text in _NO_HOST:
        return ""
    return addresses.without_port(text[:LONGEST_HOST].lower()).rstrip(".")


@lru_cache(maxsize=1024)  # because many lines share a second
def time_of(value: Any) -> datetime | None:
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
    """Returns the time of a text, as a combined log, Caddy or ISO 8601 has it; None for another
    text.

    Raises ValueError for an impossible time.
    """
    if match := _TIME.fullmatch(text):
        day, month, year, time, zone = match.groups()
        text = f"{year}-{_MONTHS.index(month) + 1:02}-{day}T{time}{zone}"
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
