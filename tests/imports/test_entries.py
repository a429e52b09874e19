"""Entries of JSON logs, as servers and services write them."""

import json
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote, quote_plus

from readtrack.imports.line import Line
from readtrack.imports.lines import parser
from tests.imports import weblogs
from tests.support.factories import BROWSER
from tests.support.rows import each_row

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
LINE = Line("192.0.2.1", NOON, "GET", "/posts/1/", 200, BROWSER)
LINE_OF_HOST = LINE._replace(host="www.example.com")
ADDRESS = "https://www.example.com/posts/1/?page=2"

CLOUDFRONT: dict[str, Any] = {  # standard logging v2
    "date": "2026-03-01",
    "time": "12:00:00",
    "x-edge-location": "SFO53-P7",
    "sc-bytes": "1068",
    "c-ip": "192.0.2.1",
    "cs-method": "GET",
    "cs(Host)": "d111111abcdef8.cloudfront.net",
    "cs-uri-stem": "/posts/1/",
    "sc-status": "200",
    "cs(Referer)": "-",
    "cs(User-Agent)": quote(BROWSER, safe="();,:"),
    "cs-uri-query": "page=2",
    "x-edge-result-type": "Hit",
    "x-host-header": "www.example.com",
    "cs-protocol": "https",
    "x-forwarded-for": "198.51.100.99",
}
AKAMAI: dict[str, Any] = {  # DataStream 2
    "cliIP": "192.0.2.1",
    "reqTimeSec": "1772366400.000",
    "reqMethod": "GET",
    "reqHost": "www.example.com",
    "reqPath": "posts/1/",
    "queryStr": "page=2",
    "statusCode": "200",
    "UA": quote(BROWSER, safe=""),
}
CLOUDFLARE: dict[str, Any] = {  # Logpush
    "ClientIP": "192.0.2.1",
    "ClientRequestHost": "www.example.com",
    "ClientRequestMethod": "GET",
    "ClientRequestPath": "/posts/1/",
    "ClientRequestURI": "/posts/1/?page=2",
    "ClientRequestSource": "eyeball",
    "ClientRequestUserAgent": BROWSER,
    "EdgeResponseStatus": 200,
    "EdgeStartTimestamp": "2026-03-01T12:00:00Z",
}
FRONT_DOOR: dict[str, Any] = {
    "time": "2026-03-01T12:00:00.0000000Z",
    "category": "FrontdoorAccessLog",
    "operationName": "Microsoft.Network/FrontDoor/AccessLog/Write",
    "properties": {
        "httpMethod": "GET",
        "requestUri": "https://www.example.com:443/posts/1/?page=2",
        "userAgent": BROWSER,
        "clientIp": "192.0.2.1",
        "httpStatusCode": "200",
        "isReceivedFromClient": True,
    },
}
GATEWAY: dict[str, Any] = {
    "timeStamp": "2026-03-01T12:00:00+00:00",
    "category": "ApplicationGatewayAccessLog",
    "properties": {
        "clientIP": "192.0.2.1",
        "clientPort": 46886,
        "httpMethod": "GET",
        "requestUri": "/posts/1/",
        "userAgent": BROWSER,
        "httpStatus": 200,
        "host": "10.0.0.4",
        "originalHost": "www.example.com",
    },
}
APP_SERVICE: dict[str, Any] = {
    "time": "2026-03-01T12:00:00.1234567",
    "category": "AppServiceHTTPLogs",
    "properties": json.dumps(
        {
            "CsHost": "www.example.com",
            "CIp": "192.0.2.1",
            "CsUriStem": "/posts/1/",
            "CsUriQuery": "page=2",
            "CsMethod": "GET",
            "ScStatus": "200",
            "UserAgent": BROWSER.replace(" ", "+"),
        }
    ),
}
GOOGLE: dict[str, Any] = {
    "httpRequest": {
        "requestMethod": "GET",
        "requestUrl": ADDRESS,
        "status": 200,
        "userAgent": BROWSER,
        "remoteIp": "192.0.2.1",
        "latency": "0.1s",
    },
    "resource": {"type": "http_load_balancer"},
    "timestamp": "2026-03-01T12:00:00.000000Z",
}
VERCEL: dict[str, Any] = {
    "id": "1",
    "timestamp": 1772366400123,
    "source": "static",
    "host": "site-7.vercel.app",
    "proxy": {
        "timestamp": 1772366400000,
        "method": "GET",
        "host": "www.example.com",
        "path": "/posts/1/?page=2",
        "userAgent": [BROWSER],
        "clientIp": "192.0.2.1",
        "statusCode": 200,
    },
}
INGRESS: dict[str, Any] = {  # ingress-nginx, as its documentation has it
    "time": "2026-03-01T12:00:00+00:00",
    "remote_addr": "192.0.2.1",
    "x-forward-for": "192.0.2.1",
    "status": 200,
    "vhost": "www.example.com",
    "path": "/posts/1/",
    "request_query": "page=2",
    "method": "GET",
    "http_user_agent": BROWSER,
}
SERVICES = {
    "CloudFront": CLOUDFRONT,
    "Akamai": AKAMAI,
    "Cloudflare": CLOUDFLARE,
    "Azure Front Door": FRONT_DOOR,
    "Azure Application Gateway": GATEWAY,
    "Azure App Service": APP_SERVICE,
    "Google Cloud": GOOGLE,
    "Vercel": VERCEL,
    "ingress-nginx": INGRESS,
}


def parse(entry: dict[str, Any], **options: Any) -> Line | None:
    return parser("json", **options)(json.dumps(entry).encode())


@each_row("name", SERVICES)
def test_entries_of_services_are_read_by_themselves(name: str) -> None:
    line = parse(SERVICES[name])
    assert line is not None
    line = line._replace(at=line.at.replace(microsecond=0), forwarded="")
    assert line == LINE_OF_HOST


@each_row("name", SERVICES)
def test_an_entry_of_a_service_is_recognised_among_other_formats(name: str) -> None:
    raw = json.dumps(SERVICES[name]).encode()
    assert parser()(raw) == parser("json")(raw)


@each_row("name", SERVICES)
def test_an_entry_of_a_service_that_lacks_a_field_is_no_error(name: str) -> None:
    entry = SERVICES[name]
    for field in entry:
        parse({key: value for key, value in entry.items() if key != field})
        values: tuple[object, ...] = (None, 7, "text", "{", [], {}, [[]])
        for value in values:
            parse({**entry, field: value})


@each_row(
    ("path", "host", "expected", "expected_host"),
    [
        ("/posts/1/", "", "/posts/1/", ""),
        ("posts/1/", "www.example.com", "/posts/1/", "www.example.com"),
        ("posts/1/", "", "/posts/1/", ""),
        ("about.html", "www.example.com", "/about.html", "www.example.com"),
        ("www.example.com/posts/1/", "www.example.com", "/posts/1/", "www.example.com"),
        ("www.example.com:443/posts/1/", "www.example.com", "/posts/1/", "www.example.com"),
        ("www.example.com/posts/1/", "", None, ""),  # it may be a path that begins so
        ("localhost:8000/posts/1/", "", None, ""),
        ("https://www.example.com", "", "/", "www.example.com"),
        ("https://www.example.com?x=/posts/1/", "", "/", "www.example.com"),
        ("https://www.example.com/posts/1/", "", "/posts/1/", "www.example.com"),
        ("?page=2", "", None, ""),
        ("", "www.example.com", None, ""),
    ],
)
def test_a_path_without_its_first_slash_is_its_page_or_malformed(
    path: str, host: str, expected: str | None, expected_host: str
) -> None:
    line = parse({**AKAMAI, "reqPath": path, "reqHost": host})
    found = (line.path, line.host) if line else (None, "")
    assert found == (expected, expected_host)


@each_row(
    ("path", "expected"),
    [
        ("/p/a b/", "/p/a b/"),
        ("/e?f/", "/e?f/"),
        ("/100%25/", "/100%25/"),
        ("/b\u00fc/", "/b\u00fc/"),
    ],
)
def test_a_decoded_path_is_known_by_its_form_or_by_an_option(path: str, expected: str) -> None:
    line = parse({**INGRESS, "path": path})
    assert line == LINE_OF_HOST._replace(path=expected, forwarded="192.0.2.1")
    entry = json.loads(weblogs.nginx(request_uri=None, uri=path))
    assert parse(entry, is_decoded=True) == LINE._replace(path=expected)
    log = weblogs.line(path).encode()
    line = parser("combined", is_decoded=True)(log)
    assert line == LINE._replace(path=expected)


def test_a_blank_in_a_path_does_not_end_it() -> None:
    assert parse(json.loads(weblogs.nginx(request_uri=None, uri="/p/a b/"))) is None
    assert parser("combined")(weblogs.line("/p/a b/").encode()) is None
    assert (
        parser("combined")(b'192.0.2.1 - - [01/Mar/2026:12:00:00 +0000] "GET /a b" 200 1') is None
    )


AGENTS = {
    "plain": BROWSER,
    "escaped": quote(BROWSER, safe=""),
    "escaped twice": quote(quote(BROWSER, safe=""), safe=""),
    "blanks only": BROWSER.replace(" ", "%20"),
    "blanks only, twice": BROWSER.replace(" ", "%2520"),
    "form": quote_plus(BROWSER),
    "plus": BROWSER.replace(" ", "+"),
}


@each_row("name", AGENTS)
def test_an_escaped_agent_is_decoded_before_it_is_judged(name: str) -> None:
    line = parse(json.loads(weblogs.nginx(http_user_agent=AGENTS[name])))
    assert line == LINE


@each_row("agent", ["Bot/1.0 +https://a.example/a+b", "100%", "a/1 %20", "", "App/1.0"])
def test_an_agent_that_is_not_escaped_stays_as_it_is(agent: str) -> None:
    line = parse(json.loads(weblogs.nginx(http_user_agent=agent)))
    assert line is not None
    assert line.agent == agent


def test_a_time_may_be_in_two_fields_and_is_then_one_of_utc() -> None:
    entry = json.loads(weblogs.nginx(time_iso8601=None, day="2026-03-01", hour="12:00:00"))
    assert parse(entry) is None
    assert parse(entry, fields={"time": "day,hour"}) == LINE
    assert parse({**entry, "hour": None}, fields={"time": "day,hour"}) is None
    assert parse({**entry, "hour": "13:00:00+01:00"}, fields={"time": "day,hour"}) == LINE


def test_a_time_without_a_zone_is_one_of_utc_if_its_field_is_named() -> None:
    entry = json.loads(weblogs.nginx(time_iso8601="2026-03-01T12:00:00"))
    assert parse(entry) is None
    assert parse(entry, fields={"time": "time_iso8601"}) == LINE


def test_a_field_of_json_inside_a_text_is_named_as_any_other() -> None:
    entry = {"message": weblogs.nginx(), "time": "2026-03-02T00:00:00Z"}
    fields = {
        "address": "message.remote_addr",
        "time": "message.time_iso8601",
        "path": "message.request_uri",
        "status": "message.status",
        "agent": "message.http_user_agent",
    }
    assert parse(entry, fields=fields) == LINE
    assert parse({**entry, "message": "{"}, fields=fields) is None


def test_a_byte_order_mark_before_an_entry_is_passed_over() -> None:
    assert parser()(b"\xef\xbb\xbf" + weblogs.nginx().encode()) == LINE
    assert parser()(b"\xef\xbb\xbf" + weblogs.line().encode()) == LINE


@each_row(
    ("entry", "where", "is_visit"),
    [
        (CLOUDFLARE, [], True),
        ({**CLOUDFLARE, "ClientRequestSource": "edgeWorkerFetch"}, [], False),
        ({**FRONT_DOOR, "properties": {**FRONT_DOOR["properties"], "isReceivedFromClient": False}},
         [], False),
        (VERCEL, [("source", "static")], True),
        (VERCEL, [("source", "lambda"), ("source", "static")], True),
        (VERCEL, [("source", "lambda")], False),
        (VERCEL, [("proxy.host", "www.example.com"), ("source", "static")], True),
        (VERCEL, [("proxy.host", "www.example.com"), ("source", "edge")], False),
        (VERCEL, [("proxy.statusCode", "200")], True),
        (VERCEL, [("nowhere", "x")], False),
        ({**VERCEL, "ok": True}, [("ok", "true")], True),
        ({**VERCEL, "ok": None}, [("ok", "")], True),
    ],
)  # fmt: skip
def test_entries_that_are_no_visit_are_left_out(
    entry: dict[str, Any], where: list[tuple[str, str]], *, is_visit: bool
) -> None:
    line = parse(entry, where=where)
    assert line is not None
    assert line.is_visit == is_visit
