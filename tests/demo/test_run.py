"""`manage.py demo`, from the first line that it prints to the end of its last process."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from redis import Redis

from demo_project.engines.valkey import Valkey
from demo_project.run.options import PREFIX, parse
from demo_project.run.supervisor import step
from demo_project.traffic.browser import Browser
from tests.demo.conftest import AGENT, ROOT
from tests.demo.running import Demo, command, environment, processes, running
from tests.demo.test_site import live_views
from tests.support.depth import DEEP
from tests.support.waiting import ENOUGH, comes_true

ROBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"

numbers = count(100)


@dataclass(frozen=True)
class Watched:
    """A running demo with connections to its Redis and its database."""

    demo: Demo
    redis: Redis
    sql: psycopg.Connection
    posts: Iterator[int] = field(default_factory=lambda: count(1))

    def visitor(self) -> Browser:
        """Returns the browser of a new visitor."""
        return Browser(self.demo.url, AGENT.replace("147", str(next(numbers))))

    def shown(self, post: int) -> int:
        """Returns the count that the post's page shows. A robot asks for it, which does not count."""
        robot = Browser(self.demo.url, ROBOT)
        found = re.search(r"Live, in Redis</dt><dd>(\d+)<", robot.get(f"/post/{post}/").html)
        assert found
        return int(found[1])

    def live(self, post: int) -> int:
        return int(self.redis.get(f"views:total:blog.post:{post}") or 0)

    def stored(self, post: int) -> int:
        return int(self.number("SELECT view_count FROM blog_post WHERE id = %s", post))

    def flushes(self) -> int:
        """Returns the number of flushes that ended well."""
        return self.number(
            "SELECT count(*) FROM readtrack_flushrun WHERE ended IS NOT NULL AND error = ''"
        )

    def number(self, query: str, *values: int) -> int:
        row = self.sql.execute(query, values).fetchone()
        assert row
        return int(row[0])


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    """Starts a demo, whose Valkey is killed as soon as everything runs: all tests meet the one that
    takes its place.
    """
    with (
        running("--lose-redis", "0") as demo,
        Redis.from_url(demo.servers["REDIS_URL"], decode_responses=True) as redis,
        psycopg.connect(demo.servers["DATABASE_URL"], autocommit=True) as sql,
    ):
        assert demo.comes_to_say("Valkey is back.")
        yield Watched(demo, redis, sql)


@pytest.fixture
def post(watched: Watched) -> int:
    """Returns the number of a post that nobody has opened yet."""
    return next(watched.posts)


def test_every_line_it_prints_is_true(watched: Watched) -> None:
    lines = watched.demo.lines
    site = Browser(lines["Site"].rstrip("/"), AGENT)
    assert site.get("/").status == 200
    url, _, login = lines["Admin"].partition(" ")
    username, password = login.strip("()").split(" / ")
    admin = Browser(url.removesuffix("/admin/"), AGENT)
    page = admin.submit(
        admin.get("/admin/login/?next=/admin/"),
        {"username": username, "password": password, "next": "/admin/"},
    )
    assert (page.status, page.path) == (200, "/admin/")
    assert "Site administration" in page.html
    assert (
        "Views over time"
        in admin.get(lines["Dashboard"].removeprefix(url.removesuffix("/admin/"))).html
    )
    assert watched.redis.ping()
    assert watched.number("SELECT 1") == 1


def test_it_prints_where_its_servers_are_without_their_passwords(watched: Watched) -> None:
    for line, name in [("Redis", "REDIS_URL"), ("Database", "DATABASE_URL")]:
        user, _, rest = watched.demo.servers[name].rpartition(":")[0].rpartition(":")
        password, _, host = rest.partition("@")
        assert len(password) > 20
        shown = watched.demo.lines[line]
        assert shown.startswith(f"{user}:***@{host}:")
        assert not any(password in text for text in watched.demo.lines.values())


def test_each_visitor_counts_exactly_once_in_a_window(watched: Watched, post: int) -> None:
    one, two = watched.visitor(), watched.visitor()
    for browser in (one, one, two, one, two):
        assert browser.get(f"/post/{post}/").status == 200
    assert watched.live(post) == 2
    two.jar.clear()  # as if it refused cookies
    two.get(f"/post/{post}/")
    assert watched.live(post) == 2
    for key in watched.redis.scan_iter("viewed:*"):
        assert 1800 - ENOUGH < watched.redis.ttl(key) <= 1800
        watched.redis.delete(key)  # as if half an hour had passed
    one.get(f"/post/{post}/")
    assert watched.live(post) == 3


def test_a_robot_is_served_and_not_counted(watched: Watched, post: int) -> None:
    assert watched.shown(post) == 0
    assert watched.live(post) == 0


def test_beat_and_worker_carry_the_counts_into_sql(watched: Watched, post: int) -> None:
    for _ in range(2):
        watched.visitor().get(f"/post/{post}/")
    assert comes_true(lambda: watched.stored(post) == 2)
    assert watched.live(post) == 2


def test_an_emptied_redis_lowers_nothing_and_the_next_view_is_added(
    watched: Watched, post: int
) -> None:
    for _ in range(3):
        watched.visitor().get(f"/post/{post}/")
    assert comes_true(lambda: watched.stored(post) == 3)
    watched.redis.flushdb()
    flushes = watched.flushes()
    assert watched.shown(post) == 3
    assert comes_true(lambda: watched.flushes() >= flushes + 2)
    assert watched.stored(post) == 3
    watched.visitor().get(f"/post/{post}/")
    assert watched.shown(post) == 4
    assert comes_true(lambda: watched.stored(post) == 4)
    assert watched.live(post) == 4


needs_process_table = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the process table is read from /proc"
)


def check_that_a_signal_ends_everything(demo: Demo, number: signal.Signals, *, least: int) -> None:
    sessions = demo.sessions()
    assert len(sessions) >= least
    assert demo.end(number) == 0
    assert comes_true(lambda: not [each for each in processes() if each.session in sessions])
    assert list(demo.folder.iterdir()) == []


def test_a_command_at_another_terminal_is_on_the_demo_that_runs(
    watched: Watched, post: int
) -> None:
    watched.visitor().get(f"/post/{post}/")
    words = watched.demo.lines["Doctor"].partition(" (")[0].split()
    assert words == ["python3", "manage.py", "readtrack", "doctor"]
    env = environment(watched.demo.folder)

    def doctor() -> list[dict[str, str]]:
        # One flush a second is many, which the doctor would note.
        watched.sql.execute(
            "DELETE FROM readtrack_flushrun WHERE id < (SELECT max(id) - 9 FROM readtrack_flushrun)"
        )
        done = subprocess.run(
            [sys.executable, *words[1:], "--json"],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        return [
            finding for finding in json.loads(done.stdout)["findings"] if finding["level"] != "ok"
        ]

    flushes = watched.flushes()
    assert comes_true(lambda: watched.flushes() > flushes)
    assert comes_true(lambda: doctor() == []), doctor()  # a busy machine may let a PING wait


@needs_process_table
def test_ctrl_c_ends_everything_it_started(watched: Watched) -> None:
    assert watched.demo.lines["Database"].startswith("postgresql:")
    watched.sql.close()
    check_that_a_signal_ends_everything(
        watched.demo, signal.SIGINT, least=8
    )  # so no test after this one can use it


def check_that_the_past_is_on_the_dashboard(demo: Demo) -> None:
    admin, address = Browser(demo.url, AGENT), "/admin/readtrack/dashboard/"
    fields = {"username": "admin", "password": "admin", "next": address}
    admin.submit(admin.get(f"/admin/login/?next={address}"), fields)

    def column(table: str, name: str, period: str = "28", filters: str = "") -> list[Any]:
        parameters = f"period={period}&table={table}&format=json{filters}"
        found = json.loads(admin.get(f"{address}?{parameters}").html)
        place = found["columns"].index(name)
        return [row[place] for row in found["rows"]]

    views, visitors, reads = (
        sum(column("over-time", name)) for name in ("views", "visitors", "reads")
    )
    assert views > visitors > reads > 100
    assert {note for note in column("over-time", "notes", "all") if note}
    assert column("really-read", "median")[0] > 5
    assert len(column("by-country", "country")) > 5
    of_source = "&referrer=duckduckgo.com"
    assert views / 2 > sum(column("over-time", "views", filters=of_source)) > views / 10
    of_posts = column("most-viewed", "views", filters=of_source)
    before = column("most-viewed", "before", filters=of_source)
    assert min(len(of_posts), of_posts[0], sum(before)) > 5
    assert "robot, by its name" in column("not-counted", "reason", "yesterday")
    assert len(set(column("sections", "readers"))) > 3
    assert len(column("trending", "views")) > 5


@needs_process_table
@pytest.mark.skipif(not DEEP, reason="starts another demo, with a year of views: READTRACK_DEEP=1")
def test_the_demo_leaves_other_keys_in_a_redis_that_the_user_named_and_ends_everything_else() -> (
    None
):
    own = {"views:total:blog.post:100": "7", "celery": "x", "readtrack": "y"}
    with Valkey() as valkey, Redis.from_url(valkey.url, decode_responses=True) as redis:
        redis.mset({**own, f"{PREFIX}views:total:blog.post:100": "99"})
        words = ("--redis", "--database", "sqlite")
        with running(*words, has_past=True, redis_url=valkey.url) as demo:
            assert demo.lines["Keys"].startswith(f"{PREFIX}* ")
            assert demo.lines["Database"].startswith("sqlite:")
            before, after = (
                live_views(Browser(demo.url, agent).get("/post/100/")) for agent in (ROBOT, AGENT)
            )
            assert before > 10  # of a year
            check_that_the_past_is_on_the_dashboard(demo)
            assert after == before + 1
            in_redis = redis.get(f"{PREFIX}views:total:blog.post:100")
            assert in_redis in ("1", str(after))  # before or after a flush added SQL's count to it
            assert comes_true(lambda: redis.exists(f"{PREFIX}flush:last") == 1)  # by way of Celery
            assert {key for key in redis.scan_iter() if not key.startswith(PREFIX)} == set(own)
            check_that_a_signal_ends_everything(demo, signal.SIGTERM, least=7)
        assert {key: redis.get(key) for key in redis.scan_iter()} == own
        assert redis.info("keyspace").keys() == {"db0"}


def test_each_step_of_the_start_is_a_line_with_its_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with step("Making a year of views"):
        assert capsys.readouterr().out == "Making a year of views … "
    assert re.fullmatch(r"\d+\.\d s\n", capsys.readouterr().out)
    with pytest.raises(KeyboardInterrupt), step("Starting the servers"):
        raise KeyboardInterrupt
    assert capsys.readouterr().out == "Starting the servers … \n"


@pytest.mark.parametrize("port", ["0", "-1", "65536", "80000000", "http"])
def test_a_number_that_is_no_port_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse(["--port", port])
    assert end.value.code == 2
    assert (
        f"argument --port: {port} is no port: it has to be a number from 1 to 65535"
        in capsys.readouterr().err
    )


def test_a_redis_that_the_user_named_is_not_killed(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse([]).lose_after is None
    assert parse(["--lose-redis"]).lose_after == 30
    with pytest.raises(SystemExit):
        parse(["--lose-redis", "--redis", "redis://127.0.0.1/0"])
    assert "not the Redis of --redis" in capsys.readouterr().err


def test_a_redis_of_ones_own_may_be_named_where_no_other_user_reads_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "redis://:secret@127.0.0.1/0"
    monkeypatch.setenv("REDIS_URL", url)
    assert parse([]).redis_url == ""
    assert parse(["--redis"]).redis_url == url
    monkeypatch.delenv("REDIS_URL")
    with pytest.raises(SystemExit):
        parse(["--redis"])
    assert "REDIS_URL is not set" in capsys.readouterr().err


@pytest.mark.parametrize("port", [1, 65_535])
def test_the_first_and_the_last_port_are_ports(port: int) -> None:
    assert parse(["--port", str(port)]).port == port


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            command(port=port), cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Port {port} is in use; choose another with --port.\n"
