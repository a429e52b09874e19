"""Twenty logs of real programs, counted by awk or jq, by GoAccess, and by an import: equal by page."""

import gzip
import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pytest
from pytest_django import Settings

from readtrack.imports.weblog import Importer
from tests.site.models import Post
from tests.support import factories

LOGS = Path(__file__).parent / "logs" / "counted"
TITLES = ("one", "two", "three", "four", "five", "b\u00fc", "a b", "100%")

# Counts lines that are views: GET, 200, no robot. `request` and `agent` are numbers of fields between
# quotes, `status` is that of a word in the field before or behind the request.
AWK = """
$agent ~ /Googlebot/ || $request !~ /^GET / { next }
{
  split($(request + status_field), words, " ")
  if (words[status_word] != 200) next
  page = $request
  sub(/^GET /, "", page); sub(/ (HTTP\\/)?[0-9.]+$/, "", page)
  sub(/^https?:\\/\\/[^\\/]*/, "", page); sub(/\\?.*/, "", page)
  print page
}
"""
JQ = """
select({method} == "GET" and ({status} | tostring) == "200")
| select({agent} | test("Googlebot") | not) | {path} | sub("[?].*"; "")
"""
COMBINED = '%h %^[%d:%t %^] "%r" %s %b "%R" "%u"'


class Log(NamedTuple):
    """How a log is read."""

    goaccess: str  # its format
    options: dict[str, Any] = {}  # of the import
    jq: dict[str, str] = {}  # where JSON has each value; without it awk counts
    request: int = 2  # numbers of fields between quotes
    agent: int = 6
    status_field: int = 1  # beside the request
    status_word: int = 1
    dates: str = "%d/%b/%Y"


JSON_OF_NGINX = (
    '{"time_iso8601":"%dT%t+%^","remote_addr":"%h","request_method":"%m","request_uri":"%U",'
    '"status":"%s","http_user_agent":"%u"}'
)
JSON_OF_INGRESS = (
    '{"time":"%dT%t+%^","remote_addr":"%h","method":"%m","path":"%U","status":"%s",'
    '"http_user_agent":"%u"}'
)
READ: dict[str, Log] = {
    "apache-combined": Log(COMBINED),
    "apache-vhost-combined": Log(f"%v:%^ {COMBINED}"),
    "nginx-combined": Log(COMBINED),
    "nginx-gzip": Log(COMBINED),
    "nginx-ipv6": Log(COMBINED),
    "nginx-main": Log(f'{COMBINED} "%^"'),
    "nginx-timed": Log(f"{COMBINED} %^"),
    "nginx-vhost": Log(f"%v:%^ {COMBINED}"),
    "nginx-syslog": Log(f"%^ %^ %^ %^ %^ {COMBINED}"),
    "nginx-decoded": Log(COMBINED, {"is_decoded": True}),
    "nginx-json": Log(
        JSON_OF_NGINX,
        jq={
            "method": ".request_method",
            "status": ".status",
            "agent": ".http_user_agent",
            "path": ".request_uri",
        },
        dates="%Y-%m-%d",
    ),
    "ingress-nginx": Log(
        JSON_OF_INGRESS,
        jq={
            "method": ".method",
            "status": ".status",
            "agent": ".http_user_agent",
            "path": ".path",
        },
        dates="%Y-%m-%d",
    ),
    "lighttpd": Log('%h %v %^[%d:%t %^] "%r" %s %b "%R" "%u"'),
    "caddy": Log(
        "CADDY",
        jq={
            "method": ".request.method",
            "status": ".status",
            "agent": '.request.headers["User-Agent"][0]',
            "path": ".request.uri",
        },
    ),
    "haproxy": Log(
        '%h:%^ [%d:%t.%^] %^ %^ %^ %s %b %^ %^ %^ %^ %^ {%u} "%r"',
        agent=1,
        status_field=-1,
        status_word=6,
    ),
    "varnishncsa": Log(COMBINED),
    "gunicorn": Log(COMBINED),
    "hypercorn": Log(
        '[%^] [%^] [%^] %h:%^ %^[%d:%t %^] "%m %U %H" %s %b "%R" "%u"', {"is_decoded": True}
    ),
    "aiohttp": Log('%h [%d:%t %^] "%r" %s %b "%R" "%u"'),
    "twisted": Log('"%h" %^[%d:%t %^] "%r" %s %b "%R" "%u"', request=4, agent=8),
}
# GoAccess 1.7 keeps the host of an address in a request, as Varnish writes it; takes escapes of
# bytes, `\\xC3\\xBC`, as they are, as nginx writes them where it does not escape as in an address;
# and knows no version but `HTTP/1.1`, so that it has no format for hypercorn's `1.1`.
READ_OTHERWISE = {"varnishncsa", "nginx-decoded", "hypercorn"}


def path_of(name: str) -> Path:
    [path] = LOGS.glob(f"{name}.log*")
    return path


def text_of(name: str, folder: Path) -> Path:
    """Returns the path of the log as GoAccess and awk read it: unpacked, without other lines."""
    path = path_of(name)
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if name == "caddy":
        data = b"".join(line for line in data.splitlines(keepends=True) if b'"request"' in line)
    copy = folder / f"{name}.log"
    copy.write_bytes(data)
    return copy


def printed(*words: str | Path) -> str:
    run = subprocess.run(words, check=True, capture_output=True, text=True)
    return run.stdout


def counted_by_hand(name: str, path: Path) -> Counter[str]:
    """Returns the views by page as awk or jq count them."""
    log = READ[name]
    if log.jq:
        lines = printed("jq", "-r", JQ.format(**log.jq), path)
    else:
        numbers = {
            "request": log.request,
            "agent": log.agent,
            "status_field": log.status_field,
            "status_word": log.status_word,
        }
        settings = [word for key, value in numbers.items() for word in ("-v", f"{key}={value}")]
        lines = printed("awk", "-F", '"', *settings, AWK, path)
    return Counter(_readable(page, name) for page in lines.splitlines())


def _readable(page: str, name: str) -> str:
    """Returns the page as people read it."""
    if "\\x" in page:
        page = page.encode("latin-1").decode("unicode_escape").encode("latin-1").decode()
    is_decoded = name in {"nginx-decoded", "ingress-nginx", "hypercorn"}
    return page if is_decoded else unquote(page)


def counted_by_goaccess(name: str, path: Path) -> Counter[str]:
    report = path.with_suffix(".json")
    log = READ[name]
    times = [] if log.goaccess == "CADDY" else [f"--date-format={log.dates}", "--time-format=%T"]
    printed(
        "goaccess",
        path,
        f"--log-format={log.goaccess}",
        *times,
        "--no-global-config",
        "--no-query-string",
        "--ignore-crawlers",
        "--http-method=yes",
        "-o",
        report,
    )
    counts: Counter[str] = Counter()
    for entry in json.loads(report.read_text())["requests"]["data"]:
        if entry["method"] == "GET":
            counts[unquote(entry["data"])] += entry["hits"]["count"]
    return counts


@pytest.fixture
def pages(settings: Settings) -> dict[int, str]:
    """The pages of the posts, by primary key."""
    settings.ROOT_URLCONF = "tests.imports.urls"
    settings.ALLOWED_HOSTS = ["www.example.com"]
    settings.READTRACK = {"RATE": (0, 10)}  # each request has another agent
    by_pk = {}
    for pk, title in enumerate(TITLES, start=1):
        factories.post(pk=pk, title=title)
        by_pk[pk] = f"/posts/{pk}/" if pk <= 5 else f"/titles/{title}/"
    return by_pk


def counted_by_import(name: str, pages: dict[int, str]) -> Counter[str]:
    Importer(**READ[name].options).run([str(path_of(name))])
    counts = Post.objects.values_list("pk", "view_count")
    return +Counter({pages[pk]: count for pk, count in counts})


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", READ)
def test_an_import_counts_what_others_count_in_a_real_log(
    name: str, pages: dict[int, str], tmp_path: Path
) -> None:
    path = text_of(name, tmp_path)
    counted = counted_by_import(name, pages)
    assert counted.total() > 30
    assert len(counted) == len(TITLES)
    if shutil.which("jq" if READ[name].jq else "awk"):
        assert counted == counted_by_hand(name, path)
    if shutil.which("goaccess") and name not in READ_OTHERWISE:
        assert counted == counted_by_goaccess(name, path)


def test_there_are_twenty_logs_and_their_sources_are_named() -> None:
    names = {path.name.partition(".")[0] for path in LOGS.glob("*.log*")}
    assert names == {*READ}
    assert len(names) == 20
    sources = (LOGS.parent / "README.md").read_text()
    assert [name for name in sorted(names) if f"| counted/{name} |" not in sources] == []
