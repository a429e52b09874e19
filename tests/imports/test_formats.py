"""Each format of a log, and whatever collectors of logs put before a line, is recognised by the
lines themselves.
"""

import json
import re
from datetime import datetime, timezone
from time import process_time

import pytest
from django.test.utils import override_settings
from hypothesis import given
from hypothesis import strategies as st

from readtrack.hits.addresses import network
from readtrack.imports import lines as lines_of_logs
from readtrack.imports.line import Line
from readtrack.imports.lines import FORMATS, parser
from tests.imports import weblogs
from tests.support.factories import BROWSER
from tests.support.rows import each_row

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
LINE = Line("192.0.2.1", NOON, "GET", "/posts/1/", 200, BROWSER)
LINE_OF_HOST = LINE._replace(host="www.example.com")

IIS = [
    "#Software: Microsoft Internet Information Services 10.0",
    "#Version: 1.0",
    "#Date: 2026-03-01 12:00:00",
    "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip"
    " cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken",
    f"2026-03-01 12:00:00 10.0.0.4 GET /posts/1/ page=2 443 - 192.0.2.1"
    f" {BROWSER.replace(' ', '+')} - 200 0 0 15",
]
IIS_FORWARDED = [
    "#Fields: date time cs-method cs-uri-stem c-ip cs(User-Agent) sc-status X-Forwarded-For",
    f"2026-03-01 12:00:00 GET /posts/1/ 10.0.0.4 {BROWSER.replace(' ', '+')} 200"
    " 192.0.2.1,+10.0.0.9",
]
CLOUDFRONT = [
    "#Version: 1.0",
    "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status"
    " cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-forwarded-for",
    "2026-03-01\t12:00:00\tFRA56-P1\t512\t192.0.2.1\tGET\td111.cloudfront.example\t/posts/1/\t200"
    f"\t-\t{BROWSER.replace(' ', '%20')}\tpage=2\t-\tMiss\t198.51.100.99",
]
CLOUDFRONT_OLD = [*CLOUDFRONT[:2], CLOUDFRONT[2].replace("%20", "%2520")]
ALB = (
    "https 2026-03-01T12:00:00.000000Z app/site/50dc6c495c0c9188 192.0.2.1:2817 10.0.0.1:8000"
    ' 0.000 0.012 0.000 200 200 34 366 "GET https://www.example.com:443/posts/1/?page=2 HTTP/1.1"'
    f' "{BROWSER}" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:targetgroup/site/73e2 "Root=1-5"'
)
ELB = (
    "2026-03-01T12:00:00.000000Z site 192.0.2.1:2817 10.0.0.1:80 0.000073 0.001048 0.000057"
    f' 200 200 0 29 "GET http://www.example.com:80/posts/1/ HTTP/1.1" "{BROWSER}" - -'
)
S3 = (
    "79a59df900b949e5 site [01/Mar/2026:12:00:00 +0000] 192.0.2.1 - 3E57427F33A59F07"
    ' WEBSITE.GET.OBJECT posts/1/index.html "GET /posts/1/ HTTP/1.1" 200 - 113 113 7 6'
    f' "https://www.example.com/" "{BROWSER}" - s9lzHYrFp76ZVxRc - ECDHE AuthHeader - TLSV1.2'
)
HAPROXY = (
    "192.0.2.1:33317 [01/Mar/2026:12:00:00.000] http-in site/web1 10/0/30/69/109 200 2750 - -"
    f' ---- 1/1/1/1/0 0/0 {{www.example.com|{BROWSER}}} {{nginx}} "GET /posts/1/?page=2 HTTP/1.1"'
)
HAPROXY_FORWARDED = HAPROXY.replace("192.0.2.1:", "10.0.0.4:").replace(
    "www.example.com|", "192.0.2.1, 10.0.0.9|"
)
MATOMO = json.dumps(
    {
        "ip": "192.0.2.1",
        "host": "www.example.com",
        "path": "/posts/1/",
        "status": "200",
        "referrer": "",
        "user_agent": BROWSER,
        "length": 512,
        "generation_time_milli": 0.12,
        "date": "2026-03-01T12:00:00+00:00",
    }
)
LOGS: dict[str, tuple[str, list[str], Line]] = {
    "combined": ("combined", [weblogs.line()], LINE),
    "common": (
        "common",
        [weblogs.line().rpartition(' "-" ')[0]],
        LINE._replace(agent=None),
    ),
    "nginx as JSON": ("json", [weblogs.nginx()], LINE),
    "nginx as JSON for Matomo": ("json", [MATOMO], LINE_OF_HOST),
    "IIS": ("w3c", IIS, LINE),
    "IIS behind a proxy": (
        "w3c",
        IIS_FORWARDED,
        LINE._replace(address="10.0.0.4", forwarded="192.0.2.1, 10.0.0.9"),
    ),
    "CloudFront": ("w3c", CLOUDFRONT, LINE),
    "CloudFront with blanks escaped twice": ("w3c", CLOUDFRONT_OLD, LINE),
    "application load balancer": ("alb", [ALB], LINE_OF_HOST),
    "classic load balancer": ("alb", [ELB], LINE_OF_HOST),
    "S3": ("s3", [S3], LINE),
    "HAProxy": ("haproxy", [HAPROXY], LINE),
    "HAProxy behind a proxy": (
        "haproxy",
        [HAPROXY_FORWARDED],
        LINE._replace(address="10.0.0.4", forwarded="192.0.2.1, 10.0.0.9"),
    ),
}


def last_line(lines: list[str], form: str = "auto") -> Line | None:
    """Returns the last of the lines of a log, as they are parsed one after the other."""
    parse = parser(form)
    parsed = [parse(text.encode()) for text in lines]
    assert parsed[:-1] == [None] * (len(lines) - 1)
    return parsed[-1]


@each_row("name", LOGS)
@each_row("is_named", [True, False])
def test_a_line_of_each_format_is_recognised(name: str, *, is_named: bool) -> None:
    form, lines, expected = LOGS[name]
    assert last_line(lines, form if is_named else "auto") == expected


@each_row("name", LOGS)
def test_a_line_is_no_line_of_another_format(name: str) -> None:
    form, lines, _ = LOGS[name]
    others = {*FORMATS} - {form, "common"}
    if form == "common":
        others.discard("combined")
    assert [other for other in sorted(others) if last_line(lines, other) is not None] == []


@each_row(
    ("name", "written", "path"),
    [
        ("CloudFront", "/b%25C3%25BC/", "/b\u00fc/"),  # CloudFront escapes the escapes
        ("CloudFront", "/b%C3%BC/", "/b\u00fc/"),  # and bytes that a client sent as they are
        ("CloudFront", "/e%253Ff/", "/e?f/"),
        ("CloudFront", "/a%2520b/", "/a b/"),
        ("CloudFront", "/100%2525/", "/100%/"),
        ("CloudFront", "/a+b/", "/a+b/"),
        ("IIS", "/a+b/", "/a b/"),
        ("IIS", "/e?f/", "/e?f/"),
        ("IIS", "/b\u00fc/", "/b\u00fc/"),
        ("IIS", "/b%C3%BC/", "/b\u00fc/"),
        ("IIS", "posts/1/", None),
    ],
)
def test_a_path_of_a_w3c_log_is_the_one_that_the_site_was_asked_for(
    name: str, written: str, path: str | None
) -> None:
    _, lines, _ = LOGS[name]
    line = last_line([*lines[:-1], lines[-1].replace("/posts/1/", written)])
    assert (line and line.path) == path


def test_cloudfronts_second_version_may_have_blanks_between_its_columns() -> None:
    lines = [*CLOUDFRONT[:2], CLOUDFRONT[2].replace("\t", " ")]
    assert last_line(lines) == LINE


def test_a_log_may_change_its_format() -> None:
    parse = parser()
    lines = [*IIS, weblogs.line(), ALB, weblogs.nginx(), *CLOUDFRONT]
    parsed = [parse(text.encode()) for text in lines]
    assert [line for line in parsed if line] == [LINE, LINE, LINE_OF_HOST, LINE, LINE]


def test_the_client_of_a_balancer_may_have_an_address_of_ipv6() -> None:
    line = last_line([ALB.replace("192.0.2.1:2817", "2001:db8:0:0:0:0:0:1:2817")])
    assert line is not None
    assert line.address == "2001:db8:0:0:0:0:0:1"


def test_times_without_a_zone_are_those_of_the_site() -> None:
    with override_settings(TIME_ZONE="Asia/Tokyo"):
        line = last_line([HAPROXY.replace(":12:00:00", ":21:00:00")])
    assert line == LINE


def test_haproxy_without_captured_headers_has_no_agent() -> None:
    line = last_line([HAPROXY.replace(f"{{www.example.com|{BROWSER}}} {{nginx}} ", "")])
    assert line == LINE._replace(agent=None)


# What collectors put before the line of a web server.
PREFIXES = [
    "2026-03-01T12:00:00.123456789Z stdout F ",
    "2026-03-01T12:00:00.123456789+01:00 stderr F ",
    "Mar  1 12:00:00 web1 nginx: ",
    "Mar 01 12:00:00 10.0.0.5 nginx[123]: ",
    "<190>Mar  1 12:00:00 nginx: ",
    "2026-03-01T12:00:00.123+00:00 web1 nginx[123]: ",
    "<190>1 2026-03-01T12:00:00.123Z 10.0.0.5 nginx 123 - - ",
    '<190>1 2026-03-01T12:00:00Z web1 nginx - - [origin ip="10.0.0.5"] ',
    "web-1  | ",
    "site_web_1 | ",
    "\x1b[36mweb-1  | \x1b[0m",
    "web-1  | 2026-03-01T12:00:00.123456789Z ",
    "2026-03-01T12:00:00.123456789Z ",
    "[pod/web-7d4b9/nginx] ",
    "nginx[123]: ",
    "nginx: ",
    "<134>",  # HAProxy's formats of syslog: priority, timed, and iso
    "<6>2026-03-01T12:00:00.123456+00:00 ",
    "2026-03-01T12:00:00.123456+00:00 ",
    "\0\0\0",  # after a loss of power
]


@each_row("prefix", PREFIXES)
@each_row("text", [weblogs.line(), weblogs.line().replace("192.0.2.1", "2001:db8::1", 1)])
def test_what_a_collector_of_logs_put_before_a_line_is_passed_over(prefix: str, text: str) -> None:
    expected = last_line([text])
    assert expected is not None
    assert last_line([prefix + text]) == last_line([prefix + text], "combined") == expected


@each_row("prefix", PREFIXES)
def test_a_collector_may_carry_every_format(prefix: str) -> None:
    assert last_line([prefix + weblogs.nginx()]) == LINE or prefix.startswith("2026")
    assert last_line([prefix + HAPROXY]) == LINE


@pytest.mark.parametrize("text", [weblogs.line(), weblogs.nginx(), f"nginx: {weblogs.line()}"])
def test_a_line_in_dockers_json_is_read(text: str) -> None:
    entry = {"log": text + "\n", "stream": "stdout", "time": "2026-04-01T00:00:00.123456789Z"}
    assert last_line([json.dumps(entry, separators=(",", ":"))]) == LINE


@each_row(
    "head",
    [
        "Sun web1 nginx host-7.example.net - -",
        "10.0.0.5 nginx: host-7.example.net - -",
        "stdout F host-7.example.net - -",
        "one 10.0.0.5 two 192.0.2.1 - -",
        "one two 192.0.2.1 frank",
        " ",
    ],
)
@each_row("form", ["auto", "combined", "common"])
def test_a_line_with_an_unknown_beginning_is_refused(form: str, head: str) -> None:
    assert last_line([weblogs.line().replace("192.0.2.1 - -", head, 1)], form) is None


@each_row(
    ("head", "proxies", "client"),
    [
        ("203.0.113.1, 198.51.100.7 - -", "auto", "203.0.113.1"),
        ("203.0.113.1,198.51.100.7 - frank", "auto", "203.0.113.1"),
        ("203.0.113.1, ::ffff:198.51.100.7 - -", "auto", "203.0.113.1"),
        ("203.0.113.1, 198.51.100.7, 10.0.0.1 - -", "auto", "203.0.113.1"),
        ("10.9.9.9, 203.0.113.1 - -", "auto", "203.0.113.1"),
        ("unknown, 203.0.113.1 - -", "auto", "203.0.113.1"),
        ("203.0.113.9, 203.0.113.1 - -", 1, "203.0.113.1"),  # a visitor's own claim comes first
        ("203.0.113.9, 203.0.113.1, 198.51.100.7 - -", 2, "203.0.113.1"),
        ("203.0.113.1 10.0.0.1 - -", "auto", "203.0.113.1"),
        ("203.0.113.9, 203.0.113.1 10.0.0.1 - -", "auto", "203.0.113.1"),
        ('"203.0.113.1" 10.0.0.1 - -', "auto", "203.0.113.1"),
        ("- 203.0.113.1 - -", "auto", "203.0.113.1"),
        ("203.0.113.9 203.0.113.1 - -", "auto", "203.0.113.1"),  # a virtual host, or a claim
        ("10.0.0.1:443 203.0.113.1 - -", "auto", "203.0.113.1"),
        ("www.example.com 203.0.113.1 - -", "auto", "203.0.113.1"),
    ],
)
def test_the_client_is_found_in_a_list_of_addresses(
    head: str, proxies: object, client: str
) -> None:
    line = last_line([weblogs.line().replace("192.0.2.1 - -", head, 1)])
    assert line is not None
    with override_settings(READTRACK={"PROXIES": proxies}):
        found = network(line.address, line.forwarded) if line.forwarded else line.address
    assert found == client


@each_row(
    ("fields", "agent", "forwarded"),
    [
        ('"-" "AGENT" "203.0.113.1"', BROWSER, "203.0.113.1"),
        ('"-" "AGENT" "203.0.113.1, 10.0.0.1"', BROWSER, "203.0.113.1, 10.0.0.1"),
        ('"-" "AGENT" "unknown, 203.0.113.1"', BROWSER, "unknown, 203.0.113.1"),
        ('"-" "203.0.113.1" "AGENT"', BROWSER, "203.0.113.1"),
        ('"203.0.113.1" "-" "AGENT"', BROWSER, "203.0.113.1"),
        ('"-" "AGENT" 0.012 "203.0.113.1"', BROWSER, "203.0.113.1"),
        ('"-" "AGENT" "www.example.com" "203.0.113.1"', BROWSER, "203.0.113.1"),
        ('"-" "-" "AGENT"', BROWSER, ""),
        ('"-" "https://www.example.com/" "AGENT"', BROWSER, ""),
        ('"https://www.example.com/" "-" "203.0.113.1"', "", "203.0.113.1"),
        ('"-" "-" "HTTP/2.0"', "", ""),
        ('"-" "AGENT" "2.31"', BROWSER, ""),
        ('"-" "AGENT" "AGENT"', BROWSER, ""),
    ],
)
def test_the_agent_and_forwarded_addresses_are_found_in_any_order(
    fields: str, agent: str, forwarded: str
) -> None:
    start = weblogs.line().rpartition(' "-" ')[0]
    line = last_line([f"{start} {fields.replace('AGENT', BROWSER)}"])
    assert line == LINE._replace(agent=agent, forwarded=forwarded)


def test_a_list_in_json_is_one_of_forwarded_addresses() -> None:
    line = last_line([weblogs.nginx(remote_addr="203.0.113.1, 198.51.100.7")])
    assert line == LINE._replace(address="203.0.113.1", forwarded="203.0.113.1, 198.51.100.7")


@each_row(
    ("raw", "path"),
    [
        ("/titles/Käse/".encode(), "/titles/Käse/"),
        (rb"/titles/K\xC3\xA4se/", "/titles/Käse/"),
        (b"/titles/K%C3%A4se/", "/titles/Käse/"),
        ("/titles/猫%20😀/".encode(), "/titles/猫 😀/"),
        (b"/titles/K\xe4se/", "/titles/K\ufffdse/"),
    ],
)
@each_row("form", ["combined", "alb", "haproxy", "json"])
def test_a_path_may_be_escaped_or_not(form: str, raw: bytes, path: str) -> None:
    log = {"combined": weblogs.line(), "alb": ALB, "haproxy": HAPROXY, "json": MATOMO}[form]
    line = parser()(log.encode().replace(b"/posts/1/", raw))
    assert line is not None
    assert line == LINE._replace(path=path, host=line.host)


def test_json_with_escapes_that_json_lacks_is_read() -> None:
    entry = weblogs.nginx(request_uri="/a/", http_user_agent="AGENT").encode()
    entry = entry.replace(b"AGENT", rb"a \x22quoted\x22 \x5C \\x41 agent")
    line = parser()(entry)
    assert line is not None
    assert line.agent == 'a "quoted" \\ \\x41 agent'


@given(st.sampled_from(["auto", *FORMATS]), st.sampled_from([*LOGS]), st.binary(), st.data())
def test_no_harm_in_a_line_raises(form: str, name: str, harm: bytes, data: st.DataObject) -> None:
    lines = [text.encode() for text in LOGS[name][1]]
    at = data.draw(st.integers(0, len(lines[-1])))
    parse = parser(form)
    for raw in [*lines[:-1], lines[-1][:at] + harm + lines[-1][at:], harm + lines[-1][at:]]:
        line = parse(raw)
        assert line is None or line.path.startswith("/")


ADDRESSES = ["192.0.2.1", "2001:db8::1", "300.1.1.1", "::ffff:192.0.2.1", "fe80::1%eth0", "a:b"]
USERS = ["-", "frank", "a,b", "192.0.2.9", "[x]", '"x"']
TIMES = [
    "01/Mar/2026:12:00:00 +0000",
    "01/Mar/2026:12:00:59 -0130",
    "01/Mar/2026:12:00:60 +0000",
    "31/Feb/2026:12:00:00 +0000",
    "01/Xyz/2026:12:00:00 +0000",
    "01/Mar/2026:25:00:00 +0000",
    "01/Mar/0001:00:00:00 +2359",
    "01/Mar/2026:12:00:00.5 +0000",
]
REQUESTS = [
    "GET /posts/1/ HTTP/1.1",
    "GET /b%C3%BC/?a=/ HTTP/2.0",
    "GET /b\u00fc/ HTTP/1.1",
    r"GET /b\xC3\xBC/ HTTP/1.1",
    "GET http://a.example/ HTTP/1.1",
    "GET /a b HTTP/1.1",
    "GET / ",
    "-",
    "",
]
REFERRERS = ["-", "https://a.example/", "192.0.2.7", "", r"https://a/\"b"]
AGENTS = [BROWSER, "-", "", "Mozilla/5.0", "Mozilla/5.0 192.0.2.7", r"Mozilla/5.0 \x22", "x/1"]
ENDS = ["", ' "-"', ' "192.0.2.7"', " 0.012", ' "a/1"', " "]


@given(
    *map(st.sampled_from, (ADDRESSES, USERS, TIMES, REQUESTS, REFERRERS, AGENTS, ENDS)),
    st.booleans(),
)
def test_a_usual_line_is_read_as_any_other_line_is(
    address: str,
    user: str,
    time: str,
    request: str,
    referrer: str,
    agent: str,
    end: str,
    is_decoded: bool,
) -> None:
    text = f'{address} - {user} [{time}] "{request}" 200 1 "{referrer}" "{agent}"{end}'
    found = parser(is_decoded=is_decoded)(text.encode())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lines_of_logs, "_USUAL", re.compile("(?!)"))
        assert found == parser(is_decoded=is_decoded)(text.encode())


@each_row("form", ["auto", *FORMATS])
@each_row(
    "text",
    [
        '192.0.2.1 - - [x] "GET / HTTP/1.1" 200 1' + ' "' + '\\"' * 30_000,
        '192.0.2.1 - - [x] "GET / HTTP/1.1" 200 1' + ' "-"' * 15_000,
        "192.0.2.1, " * 6_000 + '- - [x] "GET / HTTP/1.1" 200 1',
        "https " + "2026-03-01T12:00:00Z " * 3_000,
        "<190>1 " + "a " * 30_000,
        "[a/" + "b" * 60_000,
        "a" * 60_000 + " | ",
        "192.0.2.1:1 [01/Mar/2026:12:00:00.000] a b 1 200 1 - - ---- 1 0 {" + "|" * 60_000,
        '{"log":' * 9_000,
        '{"a":"' + "\\x41" * 16_000,
        "#Fields:" + " a" * 30_000,
    ],
)
def test_long_lines_take_no_long_time(form: str, text: str) -> None:
    start = process_time()
    assert parser(form)(text.encode()) is None
    assert process_time() - start < 1
