"""Logs that real programs have written: each request that was made is in the log, and no other."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from readtrack.imports.lines import parser
from readtrack.imports.logs import LogFile
from tests.support.rows import each_row

LOGS = Path(__file__).parent / "logs"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
HOST = "www.example.com"
# The requests that were made, and the path that Django gets of each.
REQUESTS = {
    ("GET", "/posts/1/"): "/posts/1/",
    ("GET", "/posts/1/?page=2"): "/posts/1/",
    ("GET", "/posts/2/"): "/posts/2/",
    ("GET", "/b%C3%BC/"): "/b\u00fc/",
    ("GET", "/a%20b/"): "/a b/",
    ("GET", "/e%3Ff/"): "/e?f/",
    ("GET", "/100%25/"): "/100%/",
    ("HEAD", "/posts/1/"): "/posts/1/",
    ("POST", "/posts/1/"): "/posts/1/",
}


class Log(NamedTuple):
    """How a log is read, and what it says of each request."""

    options: dict[str, Any] = {}
    host: str = ""
    agent: str | None = BROWSER
    malformed: int = 0  # lines


READ: dict[str, Log] = {
    "apache-combined": Log(),
    "apache-common": Log(agent=None),
    "apache-vhost-combined": Log(host=HOST),
    "nginx-combined": Log(),
    "nginx-main": Log(),
    "nginx-decoded": Log({"is_decoded": True}),
    "nginx-json": Log(host=HOST),
    "ingress-nginx": Log(host=HOST),
    "lighttpd": Log(host=HOST),
    "caddy": Log(host=HOST),
    "haproxy": Log(malformed=1),
    "varnishncsa": Log(host=HOST),
    "gunicorn": Log(),
}


def lines_of(name: str) -> list[bytes]:
    with (LOGS / f"{name}.log").open("rb") as file:
        return [raw for raw, _ in LogFile(file).lines()]


@each_row("name", READ)
def test_the_requests_that_were_made_are_read(name: str) -> None:
    log = READ[name]
    parse = parser(**log.options)
    parsed = [parse(raw) for raw in lines_of(name)]
    found = [line for line in parsed if line]
    expected = Counter((method, path) for (method, _), path in REQUESTS.items())
    assert Counter((line.method, line.path) for line in found) == expected
    assert {(line.address, line.host, line.agent) for line in found} == {
        ("127.0.0.1", log.host, log.agent)
    }
    assert len(parsed) - len(found) == log.malformed


def test_a_log_that_says_neither_agents_nor_escapes_is_malformed() -> None:
    parse = parser()
    assert {parse(raw) for raw in lines_of("granian")} == {None}


def test_each_log_is_read_and_its_source_is_named() -> None:
    names = {path.stem for path in LOGS.glob("*.log")}
    assert names == {*READ, "granian"}
    sources = (LOGS / "README.md").read_text()
    assert [name for name in sorted(names) if f"| {name}.log |" not in sources] == []
