"""Lines of logs are read, and no line raises an error."""

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readtrack.imports.line import Line, time_of
from readtrack.imports.lines import parser
from tests.imports import weblogs
from tests.support.factories import BROWSER
from tests.support.rows import each_row

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
LINE = Line("192.0.2.1", NOON, "GET", "/posts/1/", 200, BROWSER)

CADDY: dict[str, Any] = {
    "ts": 1772366400.0,
    "request": {
        "remote_ip": "192.0.2.1",
        "method": "GET",
        "uri": "/posts/1/",
        "headers": {"User-Agent": [BROWSER]},
    },
    "status": 200,
}
TRAEFIK = {
    "ClientHost": "192.0.2.1",
    "RequestMethod": "GET",
    "RequestPath": "/posts/1/",
    "DownstreamStatus": 200,
    "StartUTC": "2026-03-01T12:00:00.000000000Z",
    "request_User-Agent": BROWSER,
}


def parse(text: str, form: str = "combined", **fields: str) -> Line | None:
    return parser(form, fields)(text.encode())


def test_a_combined_line_says_everything() -> None:
    assert parse(weblogs.line()) == LINE


def test_a_common_line_does_not_say_the_agent() -> None:
    assert parse(weblogs.line(), "common") == LINE._replace(agent=None)
    assert parse('::1 - - [01/Mar/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 -', "common") == Line(
        "::1", NOON, "GET", "/", 200, None
    )


@each_row(
    ("start", "address"),
    [
        ("192.0.2.1 - -", "192.0.2.1"),
        ("2001:db8::1 - frank", "2001:db8::1"),
        ("192.0.2.1 - a user with spaces", "192.0.2.1"),
        ("192.0.2.1 frank -", "192.0.2.1"),
        ("192.0.2.1 - [frank]", "192.0.2.1"),
        ("192.0.2.1 - [192.0.2.1] - -", "192.0.2.1"),  # as ingress-nginx wrote it
        ("192.0.2.1:49152 - -", "192.0.2.1"),
        ("[2001:db8::1]:49152 - -", "2001:db8::1"),
        ("192.0.2.1:49152 frank -", "192.0.2.1"),
        ("Host-7.Example.NET - -", "host-7.example.net"),
        ("192.0.2.xxx - -", "192.0.2.xxx"),
        ("www.example.com:443 192.0.2.1 - -", "192.0.2.1"),  # Apache's vhost_combined
        ("www.example.com:443 2001:db8::1 - -", "2001:db8::1"),
        ("www.example.com:443 host-7.example.net - -", "host-7.example.net"),
        ("192.0.2.99:80 192.0.2.1 - -", "192.0.2.1"),
        ("www.example.com 192.0.2.1 - -", "192.0.2.1"),
        ("www.example.com:80 - - -", "www.example.com"),
        ("- - -", ""),
        ("unix: - -", ""),
        ("192.0.2.1", "192.0.2.1"),
    ],
)
@each_row("form", ["combined", "common"])
def test_the_client_of_a_line_is_found_however_the_line_begins(
    form: str, start: str, address: str
) -> None:
    line = parse(weblogs.line().replace("192.0.2.1 - -", start, 1), form)
    assert line is not None
    assert line.address == address


def test_the_addresses_behind_an_agent_are_those_that_a_proxy_forwarded() -> None:
    assert parse(f'{weblogs.line()} "198.51.100.7"') == LINE._replace(
        forwarded="198.51.100.7"
    )  # nginx's main
    assert parse(f'{weblogs.line()} "-"') == LINE
    entry = weblogs.nginx(http_x_forwarded_for="198.51.100.7, 10.0.0.1")
    assert parse(entry, "json") == LINE._replace(forwarded="198.51.100.7, 10.0.0.1")


@pytest.mark.parametrize("name", ["request_uri", "request_method"])
def test_json_with_half_a_character_is_malformed(name: str) -> None:
    assert parse(weblogs.nginx(**{name: "/posts/\ud800/"}), "json") is None


@pytest.mark.parametrize("entry", [CADDY, TRAEFIK])
def test_json_of_other_servers_is_understood(entry: object) -> None:
    assert parse(json.dumps(entry), "json") == LINE


@each_row(
    ("values", "expected"),
    [
        ({}, LINE),
        ({"time_iso8601": None, "time_local": "01/Mar/2026:12:00:00 +0000"}, LINE),
        ({"time_iso8601": None, "msec": 1772366400000}, LINE),
        ({"status": "200"}, LINE),
        ({"request_uri": None, "request_method": None, "request": "GET /posts/1/ HTTP/2.0"}, LINE),
        ({"http_user_agent": None}, LINE._replace(agent=None)),
        ({"http_user_agent": []}, LINE._replace(agent=None)),
        ({"http_user_agent": "-"}, LINE._replace(agent="")),
    ],
)
def test_json_is_read_as_servers_are_told_to_write_it(
    values: dict[str, object], expected: Line
) -> None:
    assert parse(weblogs.nginx(**values), "json") == expected


def test_fields_of_ones_own_are_named() -> None:
    entry = weblogs.nginx(client={"ip": "2001:db8::1"})
    assert parse(entry, "json", address="client.ip") == LINE._replace(address="2001:db8::1")
    assert parse(entry, "json", address="nowhere") == LINE._replace(address="")


@each_row(
    ("text", "host"),
    [
        (weblogs.line(), ""),
        (weblogs.line().replace("192", "www.example.com:443 192", 1), "www.example.com"),
        (weblogs.line().replace("192", "WWW.Example.com. 192", 1), "www.example.com"),
        (weblogs.line().replace("192", "192.0.2.99:80 192", 1), "192.0.2.99"),
        (weblogs.line().replace("192", "[2001:db8::1]:80 192", 1), "2001:db8::1"),
        (weblogs.line().replace("192.0.2.1", "a.example:80 b.example", 1), "a.example"),
        (weblogs.line().replace(" - -", " www.example.com -", 1), "www.example.com"),  # lighttpd
        (weblogs.line().replace(" - -", " frank -", 1), ""),
        (weblogs.line().replace("192", "web1 192", 1), ""),  # a machine, or anything else
        (weblogs.line("http://Example.com:8000/posts/1/?q"), "example.com"),
        (weblogs.nginx(host="www.example.com"), "www.example.com"),
        (weblogs.nginx(host="_"), ""),
        (weblogs.nginx(http_host="www.example.com:8000", host="web1"), "www.example.com"),
        (json.dumps({**CADDY, "request": {**CADDY["request"], "host": "a.example"}}), "a.example"),
        (json.dumps({**TRAEFIK, "RequestHost": "a.example"}), "a.example"),
    ],
)
def test_the_host_of_a_line_is_known_in_each_format(text: str, host: str) -> None:
    line = parse(text, "auto")
    assert line is not None
    assert line.host == host


@pytest.mark.parametrize(
    ("request_line", "path"),
    [
        ("/a%20b/?q=/c/", "/a b/"),
        ("/%C3%BC/%FF/", "/ü/\ufffd/"),
        ("http://example.com/posts/1/?q", "/posts/1/"),
        ("*", "/"),
    ],
)
def test_the_path_of_a_line_is_the_one_that_the_site_was_asked_for(
    request_line: str, path: str
) -> None:
    line = parse(weblogs.line(request_line))
    assert line is not None
    assert line.path == path


def test_escapes_in_an_agent_are_undone() -> None:
    line = parse(weblogs.line(agent=r"a \"quoted\" \x22agent\x22 \n"))
    assert line is not None
    assert line.agent == 'a "quoted" "agent" \\n'


@each_row(
    ("value", "expected"),
    [
        ("01/Mar/2026:13:30:00 +0130", NOON),
        ("01/Mar/2026:10:00:00 -0200", NOON),
        ("01/Mar/2026:12:00:00.999 +0000", NOON),
        ("2026/03/01 12:00:00", NOON),  # Caddy's formats wall and wall_milli
        ("2026/03/01 12:00:00.999", NOON),
        ("2026-03-01T12:00:00Z", NOON),
        ("2026-03-01 14:00:00+02:00", NOON),
        (1772366400, NOON),
        ("1772366400.25", NOON + timedelta(milliseconds=250)),
        (1772366400000000, NOON),
        (1772366400000000000, NOON),
        ("2026-03-01T12:00:00", None),
        ("01/Mrz/2026:12:00:00 +0000", None),
        ("01/anF/2026:12:00:00 +0000", None),
        ("31/Feb/2026:12:00:00 +0000", None),
        ("01/Jan/9999:12:00:00 +0000", None),
        ("01/Jan/0001:00:00:00 +2359", None),
        ("01/Jan/2026:00:00:00 +9999", None),
        ("2026-02-30T12:00:00Z", None),
        (10**400, None),
        ("nan", None),
        ("inf", None),
        (-1, None),
        (-1e300, None),
        (None, None),
    ],
)
def test_times_are_utc_or_nothing(value: object, expected: datetime | None) -> None:
    assert time_of(value) == expected


@each_row(
    "text",
    [
        "",
        "-",
        "[]",
        "{}",
        '{"status": 200}',
        '{"status": "²²²"}',
        "[" * 100_000,
        '{"a":' * 100_000,
        f'{{"status": {"9" * 5000}}}',
        weblogs.nginx(request_uri=None),
        weblogs.nginx(time_iso8601="yesterday"),
        weblogs.nginx(remote_addr=7),
        '192.0.2.1 - - [01/Mar/2026:12:00:00 +0000] "GET" 400 0 "-" "-"',
        '192.0.2.1 - - [01/Mar/2026:12:00:00 +0000] "GET / HTTP/1.1 200 0 "-" "-"',
        "a " + " [" * 30_000,
        'a - [x] "' + "\\" * 60_000,
        'a - [x] "' + '\\"' * 30_000,
    ],
)
@each_row("form", ["combined", "common", "json"])
def test_text_that_is_no_log_line_gives_none(text: str, form: str) -> None:
    assert parse(text, form) is None


FORMS = st.sampled_from(["combined", "common", "json"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = SCALARS | st.lists(SCALARS) | st.dictionaries(st.text(), SCALARS)
NAMES = st.sampled_from(
    ["remote_addr", "time_iso8601", "ts", "request", "request_method", "request_uri", "status"]
)


@given(FORMS, st.binary())
def test_no_bytes_raise(form: str, raw: bytes) -> None:
    line = parser(form)(raw)
    assert line is None or line.path.startswith("/")


@given(FORMS, st.binary(), st.binary(), st.binary(), st.integers(0, 999))
def test_no_bytes_in_a_line_raise(
    form: str, time: bytes, request: bytes, agent: bytes, status: int
) -> None:
    parser(form)(b'a - - [%b] "%b" %03d 1 "-" "%b"' % (time, request, status, agent))


@given(st.dictionaries(NAMES, VALUES))
def test_no_json_raises(entry: dict[str, object]) -> None:
    parser("json")(json.dumps(entry).encode())
