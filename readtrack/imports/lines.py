"""Lines of logs: which request each one tells of. No line raises an error, whatever it contains."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import NamedTuple
from urllib.parse import unquote

from django.utils.timezone import get_default_timezone

from readtrack.hits import addresses
from readtrack.imports.entries import Entries
from readtrack.imports.line import (
    MONTHS,
    STATUS,
    Line,
    Request,
    line_of,
    request_of,
    time_of,
)
from readtrack.imports.ports import WITH_PORT, without_port

Parser = Callable[[bytes], Line | None]
Requests = Callable[[str], Request | None]  # returns the request in a request line

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
# The usual line of nginx or Apache, which needs no look at what else it may mean: an address, no
# name of the first user, a referrer that is an address or none, and a browser.
_USUAL = re.compile(
    r"(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}|[0-9a-f]{1,4}:[0-9a-f:]{1,39}) - [^\s\[\"]+ "
    r"\[(\d\d/[A-Z][a-z][a-z]/\d{4}:\d\d:)(\d\d:\d\d) ([+-]\d{4})\]"
    r' "([^"\\]+)" (\d{3}) \S+ "(?:-|https?://[^"\\]*)" "(Mozilla/[^"\\]*)"(?: "-")?'
)
# The time since the full hour, by its text: `59:07`.
_SINCE_HOUR = {f"{n // 60:02}:{n % 60:02}": timedelta(seconds=n) for n in range(3600)}
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
_COLUMNS = b"#Fields:"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

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
            # hypercorn: `[2026-03-01 12:00:00 +0000] [42] [INFO] `
            rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}\] \[\d{1,10}\] \[[A-Z]{1,8}\] ",
            rb"(?!unix: )" + _TAG,
            rb"<\d{1,3}>",  # HAProxy's `short`, `priority` and `timed`
        )
    )
)


def parser(
    form: str = "auto",
    fields: Mapping[str, str] | None = None,
    *,
    where: Iterable[tuple[str, str]] = (),
    is_decoded: bool = False,
) -> Parser:
    """Returns the function that parses the lines of one log, in their order. It returns None for a
    malformed line.

    `form` is one of FORMATS, or "auto", which takes the first format that a line has. `fields`
    names fields of JSON logs that are taken in place of the usual ones: `{"address": "client.ip"}`.
    `where` has fields of JSON logs with a value that visits have. `is_decoded` says that paths have
    neither escapes nor parameters, as nginx's `$uri`.
    """
    requests: Requests = partial(request_of, is_decoded=True) if is_decoded else request_of
    may_be_usual = form in {"auto", "combined"}
    parse_access = partial(_parse_access, requests)
    parsers: dict[str, Parser] = {
        "json": Entries(fields or {}, where=where, is_decoded=is_decoded),
        "w3c": _W3c(),
        "alb": _parse_alb,
        "s3": _parse_s3,
        "haproxy": partial(_parse_haproxy, requests),
    }
    if form == "auto":
        chosen: Sequence[Parser] = [parse_access, *parsers.values()]
    elif form == "combined":
        chosen = [partial(_with_agent, parse_access)]
    elif form == "common":
        chosen = [partial(_without_agent, parse_access)]
    else:
        chosen = [parsers[form]]

    def parse(raw: bytes) -> Line | None:
        line = _usual_line(requests, raw) if may_be_usual else None
        if line is not None:
            return line
        written = _without_prefix(raw)
        for parse_format in chosen:
            line = parse_format(written)
            if line is not None:
                return line
        return None

    return parse


def is_head(raw: bytes) -> bool:
    """Returns True for the line of a W3C log that names the columns of those after it."""
    # The first test is for all lines of all logs, and quick.
    return _COLUMNS in raw and _without_prefix(raw).startswith(_COLUMNS)


def is_comment(raw: bytes) -> bool:
    """Returns True for a line that tells of no request, such as the head of a W3C log."""
    return raw.startswith((b"#", b"\xef\xbb\xbf#"))


def _without_prefix(raw: bytes) -> bytes:
    """Returns the line as the web server wrote it, without what a collector of logs has added.

    A machine that lost power may leave NUL bytes before a line, and Windows begins a file with the
    mark of its byte order.
    """
    raw = raw.lstrip(b"\0").removeprefix(_BYTE_ORDER_MARK)
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


def _with_agent(parse_access: Parser, raw: bytes) -> Line | None:
    """Returns the line of a combined log; None for a malformed one, and for one without agent."""
    line = parse_access(raw)
    if line is None or line.agent is None:
        return None
    return line


def _without_agent(parse_access: Parser, raw: bytes) -> Line | None:
    """Returns the line of a common log, which has no agent; None for a malformed one."""
    line = parse_access(raw)
    if line is None:
        return None
    return line._replace(agent=None, forwarded="")


def _parse_access(requests: Requests, raw: bytes) -> Line | None:
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
    return line_of(
        requests(_request_text(request)),
        time=time_of(time),
        status=status,
        address=client.address,
        agent=None if agent is None else _unescaped(agent),
        forwarded=forwarded or client.forwarded,
        host=client.host,
    )


def _usual_line(requests: Requests, raw: bytes) -> Line | None:
    """Returns the line if it is a usual one; None if it is another, or if a look at each value is
    needed.

    It is the line that `_parse_access` returns, too, in a third of the time.
    """
    match = _USUAL.fullmatch(raw.decode("latin-1"))
    if match is None:
        return None
    address, hour, since_hour, zone, request_text, status, agent = match.groups()
    start = _start_of_hour(hour, zone)
    if start is None or since_hour not in _SINCE_HOUR or not addresses.network_of(address):
        return None
    request = requests(_request_text(request_text))
    if request is None or request.host:
        return None
    at = start + _SINCE_HOUR[since_hour]
    return Line(address, at, request.method, request.path, int(status), agent)


@lru_cache(maxsize=1024)
def _start_of_hour(hour: str, zone: str) -> datetime | None:
    """Returns the time of `01/Mar/2026:12:`; None if there is no such hour."""
    return time_of(f"{hour}00:00 {zone}")


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
        # lighttpd writes the host in the place of the first user.
        client = _Client(listed, host=_virtual_host(words[:start] or users[:1]))
    has_usual_users = len(users) == 2 and users[0] == "-"
    if start > 1 and not has_usual_users:
        return None  # an address of something else, perhaps of a machine that collects logs
    return client if _are_users(users) else None


def _virtual_host(words: Sequence[str]) -> str:
    """Returns the virtual host, which may be the only one of these words; "" if it is not."""
    if len(words) != 1:
        return ""
    [word] = words
    # Any other word may be the name of a machine, or of a user.
    return word if "." in word or WITH_PORT.fullmatch(word) else ""


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
    if WITH_PORT.fullmatch(listed):
        return _Client(address, host=listed)
    return _Client(address, forwarded=listed)


def _host(words: Sequence[str]) -> _Client | None:
    """Returns the host name or masked address in a line without addresses, or None."""
    if not words:
        return None
    index = 0
    has_second_name = len(words) > 1 and words[1] != "-"
    if has_second_name and (len(words) == 4 or WITH_PORT.fullmatch(words[0])):
        index = 1  # the first one is the virtual host
    if not _are_users(words[index + 1 :]):
        return None
    return _Client(words[index], host=_virtual_host(words[:index]))


def _are_users(words: Sequence[str]) -> bool:
    """Returns True if the words between a line's client and its time may be names of users."""
    # The name of the second user may have blanks. The first one is not known to most servers.
    return len(words) <= 2 or words[0] == "-"


def _is_address(word: str) -> bool:
    return bool(addresses.network_of(without_port(word.rstrip(","))))


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
        # The delimiter of CloudFront's second version may be a blank.
        is_cloudfront = "\t" in text or "x-edge-location" in self._columns
        cells = text.split("\t" if "\t" in text else " ")
        if len(cells) != len(self._columns):
            return None
        values = dict(zip(self._columns, cells, strict=True))
        return _cloudfront_line(values) if is_cloudfront else _iis_line(values)


def _cloudfront_line(values: Mapping[str, str]) -> Line | None:
    """Returns the line with these values of CloudFront's columns; None for a malformed one.

    The list in X-Forwarded-For is the visitor's own, because CloudFront is the first proxy, and
    `cs(Host)` is CloudFront's own name.
    """
    # CloudFront escapes the escapes of the address.
    path = unquote(values.get("cs-uri-stem", "").replace("%25", "%"))
    agent = _decoded_of_cloudfront(values.get("cs(User-Agent)"))
    return _w3c_line(values, path=path, agent=agent, host=values.get("x-host-header", ""))


def _iis_line(values: Mapping[str, str]) -> Line | None:
    """Returns the line with these values of IIS's columns; None for a malformed one."""
    # IIS refuses an address with a `+`.
    path = unquote(values.get("cs-uri-stem", "").replace("+", " "))
    agent = values.get("cs(User-Agent)")
    forwarded = values.get("X-Forwarded-For") or values.get("cs(X-Forwarded-For)", "")
    return _w3c_line(
        values,
        path=path,
        agent=None if agent is None else agent.replace("+", " "),
        host=values.get("cs-host", ""),
        forwarded=forwarded.replace("+", " "),
    )


def _w3c_line(
    values: Mapping[str, str], *, path: str, agent: str | None, host: str, forwarded: str = ""
) -> Line | None:
    """Returns the line of a W3C log with these values; None for a malformed one."""
    status = values.get("sc-status", "")
    if not STATUS.fullmatch(status) or not path.startswith("/"):
        return None
    return line_of(
        Request(values.get("cs-method", ""), path),
        time=time_of(f"{values.get('date')}T{values.get('time')}Z"),
        status=status,
        address=values.get("c-ip", ""),
        agent=agent,
        forwarded=forwarded,
        host=host,
    )


def _decoded_of_cloudfront(agent: str | None) -> str | None:
    """Returns an agent of CloudFront's log, where blanks are `%20`, or `%2520` in older logs."""
    return None if agent is None else unquote(unquote(agent))


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
    """Returns the line of these texts, as logs of ELB and S3 quote them; None for a malformed
    one.
    """
    return line_of(
        request_of(_request_text(request)),
        time=time_of(time),
        status=status,
        address=address,
        agent=_unescaped(agent),
    )


def _parse_haproxy(requests: Requests, raw: bytes) -> Line | None:
    """Returns the line of HAProxy's `option httplog`; None for a malformed one.

    Its times have no zone: they are taken for those of TIME_ZONE. Of captured headers, the one that
    looks like a user agent is the agent, and a list of addresses is X-Forwarded-For.
    """
    match = _HAPROXY.match(raw.decode("latin-1"))
    if match is None:
        return None
    address, day, month, year, time, status, captured, request = match.groups()
    if month not in MONTHS:
        return None
    headers = (captured or "").split("|")
    return line_of(
        requests(_request_text(request)),
        time=time_of(_local_time(f"{year}-{MONTHS.index(month) + 1:02}-{day}T{time}")),
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
