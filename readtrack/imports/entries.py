"""Entries of JSON logs: which request each one tells of. No entry raises an error, whatever it
contains.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from readtrack.imports.line import STATUS, Line, Request, line_of, path_of, request_of, time_of
from readtrack.imports.ports import without_port

# The fields that have each value: nginx's usual names and those that Matomo advises, then Caddy's,
# then Traefik's. The first field that an entry has is taken. A dot leads into a nested object, a
# comma joins a date and a time.
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


class Form(NamedTuple):
    """How a program or a service names its fields. An entry that has a path by these is of it."""

    fields: Mapping[str, Sequence[str]]
    mark: str = ""  # a field that the entry must have, too; "" if the path is enough
    has_decoded_paths: bool = False  # paths have neither escapes nor parameters
    is_utc: bool = False  # times without a zone are those of UTC
    # A field, and the value that it has for a visit. CDNs also log what they ask each other.
    visits: tuple[str, str] = ("", "")


USUAL = Form(FIELDS)
FORMS = (
    Form(  # CloudFront, standard logging v2. Its X-Forwarded-For is the visitor's own.
        {
            "address": ("c-ip",),
            "time": ("date,time", "timestamp(ms)"),
            "method": ("cs-method",),
            "path": ("cs-uri-stem",),
            "status": ("sc-status",),
            "agent": ("cs(User-Agent)",),
            "host": ("x-host-header",),
        },
        is_utc=True,
    ),
    Form(  # Akamai, DataStream 2
        {
            "address": ("cliIP",),
            "time": ("reqTimeSec",),
            "method": ("reqMethod",),
            "path": ("reqPath",),
            "status": ("statusCode",),
            "agent": ("UA",),
            "host": ("reqHost",),
        },
    ),
    Form(  # Cloudflare, Logpush
        {
            "address": ("ClientIP",),
            "time": ("EdgeStartTimestamp",),
            "method": ("ClientRequestMethod",),
            "path": ("ClientRequestURI", "ClientRequestPath"),
            "status": ("EdgeResponseStatus",),
            "agent": ("ClientRequestUserAgent",),
            "host": ("ClientRequestHost",),
        },
        visits=("ClientRequestSource", "eyeball"),
    ),
    Form(  # Azure: Front Door, Application Gateway, App Service
        {
            "address": ("properties.clientIp", "properties.clientIP", "properties.CIp"),
            "time": ("timeStamp", "time", "TimeGenerated"),
            "method": ("properties.httpMethod", "properties.CsMethod"),
            "path": ("properties.requestUri", "properties.CsUriStem"),
            "status": (
                "properties.httpStatusCode",
                "properties.httpStatus",
                "properties.ScStatus",
            ),
            "agent": ("properties.userAgent", "properties.UserAgent"),
            "host": ("properties.originalHost", "properties.host", "properties.CsHost"),
        },
        is_utc=True,
        visits=("properties.isReceivedFromClient", "true"),
    ),
    Form(  # Google Cloud: load balancers, Cloud Run, App Engine
        {
            "address": ("httpRequest.remoteIp",),
            "time": ("timestamp",),
            "method": ("httpRequest.requestMethod",),
            "path": ("httpRequest.requestUrl",),
            "status": ("httpRequest.status",),
            "agent": ("httpRequest.userAgent",),
        },
    ),
    Form(  # Vercel
        {
            "address": ("proxy.clientIp",),
            "time": ("proxy.timestamp", "timestamp"),
            "method": ("proxy.method",),
            "path": ("proxy.path",),
            "status": ("proxy.statusCode",),
            "agent": ("proxy.userAgent",),
            "host": ("proxy.host",),
        },
    ),
    Form(  # ingress-nginx, as its documentation has it, with nginx's $uri
        {
            "address": ("remote_addr",),
            "time": ("time", "time_iso8601"),
            "method": ("method", "request_method"),
            "path": ("path",),
            "status": ("status",),
            "agent": ("http_user_agent",),
            "host": ("vhost", "host"),
            "forwarded": ("x-forward-for", "x_forwarded_for", "http_x_forwarded_for"),
        },
        mark="request_query",
        has_decoded_paths=True,
    ),
)

_JSON_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|.)")
_URL_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")


class Entries:
    """Parses the entries of a JSON log."""

    def __init__(
        self,
        fields: Mapping[str, str],
        *,
        where: Iterable[tuple[str, str]] = (),
        is_decoded: bool = False,
    ) -> None:
        """Takes the fields that are named in place of the usual ones, `{"address": "client.ip"}`;
        the fields that a visit has with one of some values; and whether paths are decoded.
        """
        named_fields = {name: (field,) for name, field in fields.items()}
        self._forms = [
            form._replace(
                fields={**form.fields, **named_fields},
                has_decoded_paths=is_decoded or form.has_decoded_paths,
                is_utc=form.is_utc or "time" in fields,
            )
            for form in (*FORMS, USUAL)
        ]
        self._wanted: defaultdict[str, set[str]] = defaultdict(set)  # values by field
        for field, value in where:
            self._wanted[field].add(value)

    def __call__(self, raw: bytes) -> Line | None:
        """Returns the line of an entry; None for a malformed one."""
        if not raw.lstrip().startswith(b"{"):
            return None
        entry = _entry_of(raw)
        if not isinstance(entry, dict):
            return None
        form = self._forms[_index_of_form(entry)]
        values = {name: _first_value(entry, names) for name, names in form.fields.items()}
        status = str(values["status"])
        address = "" if values["address"] is None else values["address"]
        if not isinstance(address, str) or not STATUS.fullmatch(status):
            return None
        agent = values["agent"]
        host = _text_or_empty(values.get("host"))
        line = line_of(
            _request_of(values, host=host, is_decoded=form.has_decoded_paths),
            time=time_of(values["time"], is_utc=form.is_utc),
            status=status,
            address=address,
            agent=None if agent is None else decoded_agent(str(agent)),
            forwarded=_text_or_empty(values.get("forwarded")),
            host=host,
        )
        if line is None or self._is_visit(entry, form):
            return line
        return line._replace(is_visit=False)

    def _is_visit(self, entry: Mapping[str, Any], form: Form) -> bool:
        """Returns True if the fields that tell visits from other entries have the right values."""
        field, value = form.visits
        if field and _text_at(entry, field) not in {"", value}:
            return False
        return all(_text_at(entry, name) in values for name, values in self._wanted.items())


def _index_of_form(entry: Mapping[str, Any]) -> int:
    """Returns the index of the entry's form; that behind all FORMS for one of the usual names."""
    for index, form in enumerate(FORMS):
        has_path = _first_value(entry, form.fields["path"]) is not None
        if has_path and (not form.mark or form.mark in entry):
            return index
    return len(FORMS)


def _text_at(entry: Mapping[str, Any], field: str) -> str:
    """Returns the value of the field as JSON writes it, without quotes; "" for none."""
    value = _first_value(entry, (field,))
    if isinstance(value, bool):
        return str(value).lower()
    return _text_or_empty(value)


def _text_or_empty(value: Any) -> str:
    """Returns the value as text, "" for None."""
    return "" if value is None else str(value)


def _entry_of(raw: bytes) -> Any:
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


def _first_value(entry: Mapping[str, Any], fields: Sequence[str]) -> Any:
    """Returns the first text or number that one of the fields has, or None.

    Of a list its first item is taken.
    """
    for field in fields:
        value = _value_at(entry, field)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, (str, int, float)):
            return value
    return None


def _value_at(entry: Mapping[str, Any], field: str) -> Any:
    """Returns the value of the field; None if there is none.

    A dot leads from object to object, and into JSON that is inside a text. A comma joins two values
    as a date and a time.
    """
    if field in entry:  # also if its name has a dot or a comma itself
        return entry[field]
    if "," in field:
        parts = [_first_value(entry, (name,)) for name in field.split(",")]
        return None if None in parts else "T".join(map(str, parts))
    value: Any = entry
    for key in field.split("."):
        if isinstance(value, str):
            value = _inner_entry(value)
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


@lru_cache(maxsize=4)  # because several values of a line are in the same text
def _inner_entry(text: str) -> Any:
    """Returns the entry in a text that is JSON itself; None for another text."""
    return _entry_of(text.encode(errors="replace")) if text.startswith("{") else None


def _request_of(values: Mapping[str, Any], *, host: str, is_decoded: bool) -> Request | None:
    """Returns the request of an entry, from one field or put together; None without a path.

    An entry without a method is taken for a GET, because some logs leave it out. Returns None if it
    has half a character (a lone surrogate), which JSON allows and no database takes.
    """
    whole_request = values.get("request")
    method = "GET" if values["method"] is None else str(values["method"])
    path = _text_or_empty(values["path"])
    try:
        f"{whole_request}{method}{path}".encode()
    except UnicodeEncodeError:
        return None
    if isinstance(whole_request, str):
        return request_of(whole_request)
    if is_decoded:
        return Request(method, path) if path.startswith("/") else None
    if " " in path:  # it is decoded, so a `?` in it may be part of the path
        return None
    if not path.startswith("/"):
        path = _with_slash(path, host=host)
    target = path_of(path)
    return target and Request(method, target.path, target.host)


def _with_slash(text: str, *, host: str) -> str:
    """Returns the path or URL of an entry with the slash before the path, if the entry left it out;
    "" if it is not known whether it begins with a host.
    """
    url, _, _query = text.partition("?")
    first_part, _, _ = url.partition("/")
    if not first_part or "://" in url:
        return text
    if host:
        is_host = without_port(first_part) == without_port(host)
        return text[len(first_part) :] or "/" if is_host else f"/{text}"
    return "" if "." in first_part or ":" in first_part else f"/{text}"


@lru_cache(maxsize=4096)
def decoded_agent(text: str) -> str:
    """Returns a user agent without the escapes of a URL, which some services write, up to twice.

    An agent with a blank has none.
    """
    if " " in text:
        return text
    text = text.replace("+", " ")
    for _ in range(2):
        if not _URL_ESCAPE.search(text):
            break
        text = unquote(text)
    return text
