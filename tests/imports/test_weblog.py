"""The import of logs: which lines count, which do not, and that no line counts twice."""

import gzip
import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext, override_settings
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, reports, tracker
from readtrack.flush.run import flush
from readtrack.imports import pages, weblog
from readtrack.imports.ledger import Report
from readtrack.imports.models import Import
from readtrack.imports.weblog import OTHER_PATTERNS, Importer, Recent
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import DayVisitors
from tests.imports import weblogs
from tests.imports.conftest import Write
from tests.imports.weblogs import START, line
from tests.site.models import Manual, Post
from tests.support import factories
from tests.support.depth import some
from tests.support.factories import BROWSER
from tests.support.interference import dump, restore

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def post() -> Post:
    return factories.post(pk=1)


def take(*paths: str, **options: Any) -> Report:
    return Importer(**options).run(paths)


def stored() -> dict[int, tuple[int, int]]:
    return {
        pk: (views, visitors)
        for pk, views, visitors in Post.objects.values_list("pk", "view_count", "visitor_count")
    }


@pytest.mark.usefixtures("post")
def test_a_path_is_looked_up_once_in_an_import(write: Write) -> None:
    path = write(line(), line(after=1), line("/posts/2/"), line(after=2), line("/posts/2/"))
    with CaptureQueriesContext(connection) as queries:
        take(path, dry_run=True)
    assert sum('FROM "site_post"' in query["sql"] for query in queries) == 2


@pytest.mark.usefixtures("post")
def test_every_line_is_judged_as_a_live_hit(write: Write) -> None:
    path = write(
        line(),
        line(after=60),
        line(after=1800),
        line(address="192.0.2.2"),
        line(address="192.0.2.2", agent=BROWSER + " other"),
        line(agent=weblogs.ROBOT),
        line(
            agent="Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0"
        ),
        line(agent="-"),
        line(method="HEAD"),
        line(status=301),
        line(after=3600, status=304),
        line("/posts/2/"),
        line("/manuals/1/"),
        line("/static/app.12.js"),
        line("/static/app.3456.js"),
        line("/x\x1b[31m/"),
        "nonsense",
    )
    report = take(path)
    assert (report.read, report.counted) == (17, 5)
    assert report.skipped == {
        "repeat": 1,
        "bot": 2,
        "agent": 1,
        "method": 1,
        "status": 1,
        "no such object": 1,
        "malformed": 1,
    }
    assert report.not_resolved == {"/static/app.….js": 2, "/manuals/…/": 1, "/x?[…m/": 1}
    assert stored() == {1: (5, 3)}


def test_a_hurried_visitor_counts_five_times(write: Write) -> None:
    posts = [factories.post() for _ in range(8)]
    report = take(
        write(*(line(f"/posts/{post.pk}/", after=number) for number, post in enumerate(posts)))
    )
    assert (report.counted, report.skipped) == (5, {"rate": 3})


@pytest.mark.usefixtures("post")
def test_lines_that_the_site_leaves_out_do_not_count(write: Write) -> None:
    factories.post(pk=2)
    with override_settings(
        READTRACK={"EXCLUDE": {"networks": ["192.0.2.0/30"], "paths": ["^/posts/1/$"]}}
    ):
        report = take(write(line(), line("/posts/2/"), line("/posts/2/", address="198.51.100.1")))
    assert (report.counted, report.skipped) == (1, {"excluded": 2})


# The beginnings of lines that 1,000 visitors leave, and what of their 1,000 views counts
BEGINNINGS: dict[str, tuple[Callable[[int], str], int, str]] = {
    "address": (lambda n: f"198.51.{n // 250}.{n % 250 + 1} - -", 1000, ""),
    "host name": (lambda n: f"host-{n}.example.net - -", 1000, ""),
    "address and port": (lambda n: f"198.51.{n // 250}.{n % 250 + 1}:49152 - -", 1000, ""),
    "IPv6 and port": (lambda n: f"[2001:db8:{n:x}::1]:49152 - -", 1000, ""),
    "vhost_combined": (
        lambda n: f"www.example.com:443 198.51.{n // 250}.{n % 250 + 1} - -",
        1000,
        "",
    ),
    "vhost_combined with names": (
        lambda n: f"www.example.com:443 host-{n}.example.net - -",
        1000,
        "",
    ),
    "masked": (lambda n: f"198.{n // 250}.{n % 250}.xxx - -", 1000, ""),
    "masked by 0": (lambda n: f"198.{n // 250}.{n % 250}.0 - -", 1000, ""),
    "no address": (lambda n: "- - -", 0, ""),
    "Unix socket": (lambda n: "unix: - -", 0, ""),
    "proxy": (lambda n: "10.0.0.1 - -", 10, "1,000 lines of 10.0.0.1 and of no other address. "),
}


@pytest.mark.parametrize("name", BEGINNINGS)
@pytest.mark.usefixtures("post")
def test_visitors_are_told_apart_or_the_report_says_why_not(
    name: str, write: Write, settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = ["www.example.com"]
    beginning, counted, note = BEGINNINGS[name]
    lines = [line(after=n / 10, agent=f"{BROWSER}.{n % 10}") for n in range(1000)]
    report = take(
        write(*(text.replace("192.0.2.1 - -", beginning(n), 1) for n, text in enumerate(lines)))
    )
    assert report.counted == counted
    assert [found[: len(note)] for found in report.notes] == [note] * bool(note)
    assert report.skipped["no address"] == (0 if counted else 1000)
    assert stored()[1][0] == counted


@pytest.mark.parametrize(
    ("options", "counted"), [({}, 100), ({"PROXIES": 1}, 100), ({"PROXIES": 0}, 1)]
)
@pytest.mark.usefixtures("post")
def test_visitors_behind_a_proxy_are_told_apart_by_the_rules_of_live_hits(
    write: Write, options: dict[str, Any], counted: int
) -> None:
    lines = [f'{line(address="10.0.0.1", after=20 * n)} "198.51.100.{n + 1}"' for n in range(100)]
    with override_settings(READTRACK={**options, "WINDOW": 9999}):
        report = take(write(*lines))
    assert report.counted == counted


@pytest.mark.parametrize(
    ("allowed", "options", "hosts", "counted"),
    [
        (["www.example.com"], {}, [], 1),
        ([".example.com"], {}, [], 2),
        (["www.example.com"], {"NUMBERS": {"own_hosts": ["shop.example.com"]}}, [], 2),
        (["*"], {}, [], 4),
        ([], {}, [], 4),
        (["*"], {}, ["example.net"], 1),
        (["www.example.com"], {}, ["www.example.com", "example.net"], 2),
    ],
)
@pytest.mark.usefixtures("post")
def test_lines_of_other_hosts_do_not_count_and_are_told(
    write: Write,
    settings: Settings,
    allowed: list[str],
    options: dict[str, Any],
    hosts: list[str],
    counted: int,
) -> None:
    settings.ALLOWED_HOSTS = allowed
    settings.READTRACK = options
    asked = ["www.example.com:443", "shop.example.com:443", "example.net:80", "EXAMPLE.ORG:80"]
    path = write(*(line(address=f"{host} 192.0.2.{n}") for n, host in enumerate(asked)))
    report = take(path, hosts=hosts)
    others = 4 - counted
    assert (report.counted, report.skipped["other host"]) == (counted, others)
    assert len(report.notes) == bool(others)
    if others:
        assert " of other hosts did not count: " in report.notes[0]
        assert "example.org (1)" in report.notes[0]


@pytest.mark.usefixtures("post")
def test_names_of_other_hosts_are_bounded(
    write: Write, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.imports.hosts.MOST_HOSTS", 6)
    settings.ALLOWED_HOSTS = ["www.example.com"]
    [note] = take(write(*(line(f"http://{n}.example.net/") for n in range(9)))).notes
    assert note.startswith("9 lines of other hosts did not count: 0.example.net (1), ")
    assert "4.example.net (1) and others." in note


@pytest.mark.usefixtures("post")
def test_a_log_whose_server_leaves_agents_out_is_one_without_agents(write: Write) -> None:
    lines = [line(address=f"192.0.2.{n}", agent="-") for n in range(9)]
    path = write(*lines)
    report = take(path, dry_run=True)
    assert (report.counted, report.skipped) == (0, {"no agent": 9})
    assert [note.partition(": ")[2] for note in report.notes] == [
        "no line has a user agent, so that robots cannot be told from people."
        " --count-robots counts all lines."
    ]
    report = take(write(*lines, line(), name="other.log"), count_robots=True, dry_run=True)
    assert (report.counted, report.skipped) == (1, {"bot": 9})  # which send none
    assert report.notes == []
    report = take(path, count_robots=True)
    assert (report.counted, report.notes) == (9, [])


@pytest.mark.usefixtures("post")
def test_a_file_that_is_all_of_robots_is_told_as_suspicious(write: Write) -> None:
    lines = [line(agent="nonsense", address=f"192.0.2.{n}") for n in range(3)]
    lines.append(line(method="POST"))
    (note,) = take(write(*lines), write(line(), name="other.log")).notes
    assert "access.log: all of 3 lines that could count are of robots" in note


@pytest.mark.usefixtures("post")
def test_the_entries_of_an_array_count_as_lines_do(write: Write) -> None:
    entries = [json.loads(weblogs.nginx(remote_addr=f"192.0.2.{n}")) for n in range(7)]
    path = write(json.dumps(entries, indent=1))
    assert take(path).counted == 7
    assert take(path) == Report(finished=1)
    assert take(write(json.dumps(entries, indent=1), packed=True)) == Report(finished=1)


@pytest.mark.usefixtures("post")
def test_pieces_of_a_line_of_a_container_count_as_one_line(write: Write) -> None:
    lines = [line(f"/posts/1/?{'x' * 9000}", address=f"192.0.2.{n}") for n in range(4)]
    pieces: list[str] = []
    for text in lines:
        for tag, piece in (("P", text[:8000]), ("F", text[8000:])):
            pieces.append(f"2026-03-01T12:00:00.123456789Z stdout {tag} {piece}")
    assert take(write(*pieces[:5])).counted == 2
    report = take(write(*pieces))
    assert (report.counted, report.skipped) == (2, {"imported before": 2})
    assert take(write(*pieces)) == Report(finished=1)
    assert take(write(*pieces), again=True).counted == 0
    assert stored()[1][0] == 4


@pytest.mark.usefixtures("post")
def test_people_in_a_network_of_their_own_are_no_proxies(write: Write) -> None:
    report = take(
        write(*(line(address=f"10.0.0.{number % 20}", after=number) for number in range(1000)))
    )
    assert (report.counted, report.notes) == (20, [])


@pytest.mark.usefixtures("post")
def test_robots_are_not_imported_from_a_log_without_user_agents(write: Write) -> None:
    path = write(
        *(weblogs.nginx(http_user_agent=None, remote_addr=f"192.0.2.{n}") for n in range(9)),
        weblogs.nginx(),
    )
    report = take(path, form="json", dry_run=True)
    assert (report.counted, report.skipped) == (1, {"no agent": 9})
    assert report.notes == []
    report = take(path, form="json", count_robots=True)
    assert (report.counted, report.notes) == (10, [])


def test_one_bad_line_does_not_end_the_import(write: Write) -> None:
    factories.post(pk=1)
    lines = [weblogs.nginx(remote_addr=f"192.0.2.{number}") for number in range(3)]
    lines.insert(1, weblogs.nginx(request_uri="/titles/\ud800/"))
    with override_settings(ROOT_URLCONF="tests.imports.urls"):
        report = take(write(*lines), form="json")
    assert (report.counted, report.skipped) == (3, {"malformed": 1})


def broken(path: str, **kwargs: str) -> Post:
    """Finds an object as a site's function with a mistake does: some paths raise errors."""
    errors: dict[str, Exception] = {
        "2": RuntimeError("no\x1b[31m luck\nat all"),
        "3": OperationalError("illegal mix of collations"),
        "4": KeyError("slug"),
    }
    if str(kwargs["pk"]) in errors:
        raise errors[str(kwargs["pk"])]
    return Post.objects.get(pk=kwargs["pk"])


def test_no_error_of_a_sites_function_ends_the_import(post: Post, write: Write) -> None:
    lines = [
        line(f"/posts/{pk}/function/", address=f"192.0.2.{number}")
        for number, pk in enumerate([1, 2, 3, 4, 2, 1])
    ]
    with override_settings(
        READTRACK={"IMPORTS": {"views": {"tests.site.views.post_page": broken}}}
    ):
        report = take(write(*lines))
    assert (report.counted, report.skipped) == (2, {"lookup failed": 4})
    assert [note.partition(". A function")[0] for note in report.notes] == [
        "/posts/2/function/ could not be looked up: RuntimeError: no?[31m luck",
        "/posts/3/function/ could not be looked up: OperationalError: illegal mix of collations",
        "/posts/4/function/ could not be looked up: KeyError: 'slug'",
    ]


def test_a_detail_view_that_finds_its_object_itself_does_not_end_the_import(
    post: Post, write: Write
) -> None:
    paths = ["/posts/1/", "/own/a/", "/own/b/", "/members/1/"]
    lines = [line(path, address=f"192.0.2.{number}") for number, path in enumerate(paths)]
    with override_settings(ROOT_URLCONF="tests.imports.urls"):
        report = take(write(*lines))
    assert (report.counted, report.skipped) == (2, {"lookup failed": 2})
    (note,) = report.notes
    assert note.startswith("/own/a/ could not be looked up: FieldError: ")


def test_a_database_that_is_gone_ends_the_import(
    post: Post, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(path: str) -> str:
        monkeypatch.setattr(Import, "objects", Gone())
        raise OperationalError("gone")

    class Gone:
        def exists(self) -> bool:
            raise OperationalError("still gone")

    monkeypatch.setattr(pages, "subject_at", gone)
    with pytest.raises(OperationalError, match="still gone"):
        pages.look_up("/posts/1/")


def test_an_object_that_is_deleted_meanwhile_does_not_end_the_import(write: Write) -> None:
    here, gone = factories.post(), factories.post()

    def find(path: str, pk: int) -> Post:
        post = Post.objects.get(pk=pk)
        if pk == gone.pk:
            Post.objects.get(pk=pk).delete()
        return post

    lines = [
        line(f"/posts/{post.pk}/function/", address=f"192.0.2.{n}")
        for n in range(5)
        for post in (gone, here)
    ]
    with override_settings(READTRACK={"IMPORTS": {"views": {"tests.site.views.post_page": find}}}):
        assert take(write(*lines)).counted == 10
        assert (
            take(write(*lines, line(f"/posts/{here.pk}/function/", address="192.0.2.9"))).counted
            == 1
        )
    flush()
    assert stored() == {here.pk: (6, 6)}


def test_a_log_is_imported_whose_pages_are_all_found_by_path_under_one_url(write: Write) -> None:
    """Wagtail has such a URL. Its pages know their path from the root of the tree, which the URL
    leaves out.
    """
    home, news, story, _ = [
        Manual.objects.create(title=f"/home/{rest}") for rest in ("", "news/", "news/story/", "x/")
    ]

    def page_of(path: str, rest: str) -> Manual | None:
        return Manual.objects.filter(title=f"/home/{rest}").first()

    paths = ["/", "/news/", "/news/?page=2", "/news/story/", "/gone/", "/x/y/", "/x"]
    log = write(*(line(path, address=f"192.0.2.{number}") for number, path in enumerate(paths)))
    rules = {"MODELS": {"site.Manual": {"counted": True}}, "IMPORTS": {"views": {"any": page_of}}}
    with override_settings(READTRACK=rules, ROOT_URLCONF="tests.imports.urls"):
        report = take(log)
        assert report.counted == 4
        assert set(report.not_resolved) == {"/gone/", "/x/y/", "/x"}
        assert reports.views([home, news, story]) == {home: 1, news: 2, story: 1}


def test_imported_views_are_added_to_those_counted_live(post: Post, write: Write) -> None:
    Post.objects.filter(pk=post.pk).update(view_count=100)
    tracker.record(factories.hit("site.post:1"))
    take(write(line(), line(address="192.0.2.2")))
    tracker.record(factories.hit("site.post:1"))
    assert reports.views([post])[post] == 104 - 100 + post.view_count + 100
    flush()
    assert stored()[1][0] == 104


def test_a_site_that_does_not_count_anonymous_visitors_imports_none(
    post: Post, write: Write
) -> None:
    with override_settings(READTRACK={"ANONYMOUS": "none"}):
        assert take(write(line())).skipped == {"anonymous": 1}
    assert stored() == {post.pk: (0, 0)}


def test_visitors_without_a_cookie_are_others_each_day_but_have_one_window(
    post: Post, write: Write
) -> None:
    midnight = START.replace(hour=0)
    path = write(*(line(start=midnight, after=after) for after in (-60, 60, 3600)))
    with override_settings(READTRACK={"ANONYMOUS": "hash"}):
        assert take(path).skipped == {"repeat": 1}
    assert stored() == {post.pk: (2, 2)}


def test_an_imported_visitor_is_another_than_the_live_one_whose_key_is_random(
    post: Post, write: Write, client: Any
) -> None:
    with override_settings(READTRACK={"COOKIE": {"name": ""}}):
        client.get("/posts/1/", headers={"User-Agent": BROWSER}, REMOTE_ADDR="192.0.2.1")
        today = buckets.now().replace(hour=0, minute=0, second=0, microsecond=0)
        seen = ((0, "192.0.2.1"), (9999, "192.0.2.1"), (0, "192.0.2.9"))
        take(write(*(line(start=today, after=after, address=address) for after, address in seen)))
    assert stored()[1] == (4, 3)


@pytest.mark.parametrize(
    ("strategy", "key", "visitors"),
    [
        ("hll", "views:hll:site.post:1", 2),
        ("set", "views:unique:site.post:1", 2),
        ("daily", "", 0),
        ("bitmap", "", 0),
    ],
)
@pytest.mark.usefixtures("post")
def test_visitors_are_added_where_the_strategy_can(
    write: Write, redis: Redis, strategy: str, key: str, visitors: int
) -> None:
    path = write(line(), line(after=1, address="192.0.2.2"), line(after=9999))
    with override_settings(READTRACK={"UNIQUE": strategy}):
        take(path)
    assert stored() == {1: (3, visitors)}
    assert {*redis.keys("views:*")} - {key} == {"views:total:site.post:1", "views:unsettled"}


@pytest.mark.parametrize("strategy", ["hll", "bitmap"])
@pytest.mark.usefixtures("post")
def test_the_visitors_of_each_day_of_a_log_are_stored(
    write: Write, settings: Any, strategy: str
) -> None:
    settings.READTRACK = {"UNIQUE": strategy}
    day_later = 86_400
    take(
        write(
            line(),
            line(after=1, address="192.0.2.2"),
            line(after=day_later, address="192.0.2.2"),
            line(after=day_later + 1, address="192.0.2.3"),
        )
    )
    post = Post.objects.get()
    days = sorted(DayVisitors.objects.filter(subject="site.post").values_list("day", flat=True))
    first, second = days
    for since, until, visitors in ((first, second, 2), (second, None, 2), (first, None, 3)):
        assert numbers_reports.visitors([post], since=since, until=until) == {post: visitors}
        assert numbers_reports.visitors_together(Post, since=since, until=until) == visitors


@pytest.mark.usefixtures("post")
@pytest.mark.usefixtures("new_redis")
def test_old_views_leave_no_trace_in_trends_or_hours(write: Write, redis: Redis) -> None:
    take(write(line()))
    own = {
        "views:unsettled",
        "flush:full",
        "flush:last",
        "flush:layout",
        "reads:began",
        f"import:{Import.objects.get().source}",
    }
    assert {*redis.keys()} - own == {"views:total:site.post:1", "views:hll:site.post:1"}
    assert 29 * 86_400 < redis.ttl(f"import:{Import.objects.get().source}") <= 30 * 86_400
    assert reports.trending() == []


@pytest.mark.usefixtures("post")
def test_young_hours_are_filled_and_live_as_long_as_those_of_views(
    write: Write, redis: Redis
) -> None:
    now = buckets.now()
    live = factories.hit("site.post:1", at=now - timedelta(hours=2))
    tracker.record(live)
    model_hour = f"views:hour:{buckets.hour_bucket(live.at)}:site.post"
    for name in ("views:hours:site.post:1", model_hour):
        redis.expire(name, 1000)
    ages = (50, 30, 22, 2, 0)
    take(write(*(line(start=now - timedelta(hours=age), address=f"192.0.2.{age}") for age in ages)))
    hours = {age: f"views:hour:{buckets.hour_bucket(now - timedelta(hours=age))}" for age in ages}
    assert [redis.get(f"{hours[age]}:site.post") for age in ages] == [None, "1", "1", "2", "1"]
    names = [buckets.hour_bucket(now - timedelta(hours=age)) for age in ages]
    assert redis.hmget("views:hours:site.post:1", names) == ["1", "1", "1", "2", "1"]
    assert redis.ttl("views:hours:site.post:1") > 70 * 3600
    assert redis.ttl(model_hour) <= 1000
    assert sum(point.views for point in numbers_reports.series(hours=48)) == 5
    assert [trend.views for trend in reports.trending()] == []


@pytest.fixture
def pks() -> list[int]:
    return [factories.post().pk for _ in range(20)]


def same(pks: Sequence[int], log: Sequence[str], tmp_path: Path) -> dict[int, tuple[int, int]]:
    """Returns the result of a single import of the whole log, to compare others with."""
    take(weblogs.write(tmp_path / "whole.log", log))
    expected = stored()
    assert sum(views for views, _ in expected.values()) > 300
    Post.objects.update(view_count=0, visitor_count=0)
    Import.objects.all().delete()
    return expected


def test_a_log_is_recognised_under_another_name_and_compressed_or_not(
    pks: list[int], tmp_path: Path, redis: Redis
) -> None:
    log = list(weblogs.day(pks, lines=1500))
    expected = same(pks, log, tmp_path)
    redis.flushdb()
    first = take(weblogs.write(tmp_path / "access.log", log))
    again = take(weblogs.write(tmp_path / "access.log.1.gz", log, packed=True))
    assert stored() == expected
    assert (first.counted, first.read) == (sum(views for views, _ in expected.values()), len(log))
    assert again == Report(finished=1)
    assert Import.objects.count() == 1


@pytest.mark.parametrize("cuts", some([(1, 2, 499, 500, 501, 1250)], deep=[(1,), (500,)]))
def test_a_growing_log_is_counted_as_the_whole_one(
    pks: list[int],
    tmp_path: Path,
    redis: Redis,
    cuts: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(weblog, "LINES_UNTIL_SAVED", 250)
    log = list(weblogs.day(pks, lines=1500))
    expected = same(pks, log, tmp_path)
    redis.flushdb()
    for cut in (*cuts, 1500):
        take(weblogs.write(tmp_path / "access.log", log[:cut]))
    assert stored() == expected
    take(weblogs.write(tmp_path / "access.log", log[:250]))  # an older copy
    assert stored() == expected


def test_logs_without_new_lines_are_named_among_the_others(post: Post, tmp_path: Path) -> None:
    days = [timedelta(days=day) // timedelta(seconds=1) for day in range(3)]
    paths = [
        weblogs.write(tmp_path / f"{day}.log", [line(after=day), line("/x/", after=day)])
        for day in days
    ]
    take(*paths[:2])
    report = take(*paths)
    # The last known one is read along, as its windows reach into the next.
    assert (report.read, report.skipped, report.counted) == (4, {"imported before": 2}, 1)
    assert report.finished == 1
    assert take(*paths) == Report(finished=3)


def test_a_redis_restored_from_an_old_snapshot_catches_up_first(
    post: Post, tmp_path: Path, redis: Redis
) -> None:
    lines = [line(address=f"192.0.2.{number}") for number in range(30)]
    path = tmp_path / "access.log"
    take(weblogs.write(path, lines[:10]))
    snapshot = dump(redis)
    take(weblogs.write(path, lines[:20]))
    restore(redis, snapshot)
    take(weblogs.write(path, lines))
    assert stored()[post.pk][0] == 30


def test_a_line_being_written_comes_with_the_next_import(post: Post, tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    whole = line() + "\n" + line(address="192.0.2.2") + "\n"
    for start in (whole[:30], whole[:-30]):
        path.write_text(start)
        report = take(str(path))
        assert report.counted == start.count("\n")
        assert report.notes == [f"{path}: the last line has no end yet. The next import takes it."]
    path.write_text(whole)
    report = take(str(path))
    assert (report.counted, report.notes) == (1, [])
    assert stored() == {1: (2, 2)}


def test_rotated_logs_are_read_in_the_order_of_their_times(
    pks: list[int], tmp_path: Path, redis: Redis
) -> None:
    log = list(weblogs.day(pks, lines=1500))
    expected = same(pks, log, tmp_path)
    redis.flushdb()
    log = [
        text for text in log if text.startswith("192")
    ]  # a rotated log begins with noise at random: not here
    pieces = [
        weblogs.write(tmp_path / "access.log", log[1000:]),
        weblogs.write(tmp_path / "access.log.1", log[500:1000]),
        weblogs.write(tmp_path / "access.log.2.gz", log[:500], packed=True),
    ]
    assert take(*pieces).counted == sum(views for views, _ in expected.values())
    assert stored() == expected
    assert take(*pieces) == Report(finished=3)
    assert stored() == expected


@pytest.mark.usefixtures("post")
def test_another_log_with_the_same_first_line_is_another_log(write: Write) -> None:
    take(write(line(), line(address="192.0.2.2")))
    report = take(write(line(), line(address="192.0.2.3"), line(address="192.0.2.4")))
    assert (report.counted, Import.objects.count()) == (3, 2)


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.usefixtures("post")
def test_files_whose_times_overlap_are_noticed(write: Write, *, dry_run: bool) -> None:
    lines = [line(address=f"192.0.2.{number}", after=10 * number) for number in range(30)]
    one, two = write(*lines[:20], name="one.log"), write(*lines[10:], name="two.log")
    report = take(one, two, dry_run=dry_run)
    assert report.notes == [
        f"{two} and {one} both have lines of 2026-03-01 12:01 to 2026-03-01 12:03 UTC. "
        "If they are pieces of one log, lines count twice; --since and --until leave times out."
    ]
    assert report.counted == 40 - 10  # one run sees the windows of both


@pytest.mark.usefixtures("post")
def test_a_file_whose_times_were_imported_before_is_noticed(write: Write) -> None:
    lines = [line(address=f"192.0.2.{number}", after=10 * number) for number in range(30)]
    take(write(*lines[:20], name="one.log"))
    two = write(*lines[10:], name="two.log")
    assert [note[:70] for note in take(two, dry_run=True).notes] == [f"{two} and "[:70]]
    assert len(take(two).notes) == 1
    assert take(two) == Report(finished=1)


@pytest.mark.usefixtures("post")
def test_a_note_names_a_few_of_many_files_whose_times_overlap(write: Write) -> None:
    lines = [line(address=f"192.0.2.{number}", after=10 * number) for number in range(30)]
    names = [f"{number}.log" for number in range(6)]
    paths = [write(line("/x/", address=name), *lines, name=name) for name in names]
    (note,) = take(*paths).notes
    assert note.count(" both have lines of ") == 3
    assert "So have 12 other pairs of logs." in note
    assert note.count("If they are pieces of one log") == 1


@pytest.mark.parametrize(("proxies", "is_noted"), [("auto", True), (0, False), (1, False)])
@pytest.mark.usefixtures("post")
def test_the_report_says_that_forwarded_addresses_are_not_believed(
    write: Write, proxies: object, *, is_noted: bool
) -> None:
    path = write(
        *(f'{line(address="203.0.113.9", after=9999 * n)} "198.51.100.{n}"' for n in range(9)),
        line(address="203.0.113.9", after=99_999),
    )
    with override_settings(READTRACK={"PROXIES": proxies}):
        notes = take(path, dry_run=True).notes
    assert [note.partition(".")[0] for note in notes] == [
        "9 lines with another address in X-Forwarded-For, which is not believed"
    ] * is_noted


@pytest.mark.usefixtures("post")
def test_pieces_that_follow_each_other_are_not_mentioned(write: Write) -> None:
    lines = [line(address=f"192.0.2.{number}", after=10 * number) for number in range(30)]
    assert (
        take(
            write(*lines[:20], name="one.log"), write(*lines[15:], name="two.log"), dry_run=True
        ).notes
        == []
    )
    assert take(write("nonsense", name="three.log")).notes == []


@pytest.mark.usefixtures("post")
def test_times_can_be_left_out(write: Write) -> None:
    lines = [line(address=f"192.0.2.{number}", after=number) for number in range(10)]
    report = take(
        write(*lines), since=START + timedelta(seconds=2), until=START + timedelta(seconds=5)
    )
    assert (report.counted, report.skipped["outside the times"]) == (3, 7)


@pytest.mark.usefixtures("post")
@pytest.mark.usefixtures("new_redis")
def test_a_dry_run_says_the_same_and_writes_nothing(write: Write, redis: Redis) -> None:
    path = write(line(), line(), line(address="192.0.2.2"))
    dry = take(path, dry_run=True)
    assert (redis.keys(), Import.objects.count(), stored()) == ([], 0, {1: (0, 0)})
    assert take(path) == dry
    assert take(path, dry_run=True) == Report(finished=1)


@pytest.mark.usefixtures("post")
def test_the_report_warns_of_views_that_were_counted_live(write: Write) -> None:
    flush()
    path = write(line(start=datetime.now(timezone.utc) + timedelta(minutes=1)))
    (note,) = take(path, dry_run=True).notes
    assert "--until" in note
    assert take(path, dry_run=True, until=START).notes == []


@pytest.mark.usefixtures("post")
def test_a_damaged_log_counts_as_far_as_it_is_sound(tmp_path: Path) -> None:
    packed = gzip.compress(
        "".join(line(address=f"10.0.{n >> 8}.{n & 255}") + "\n" for n in range(6_000)).encode()
    )
    path = tmp_path / "access.log.gz"
    path.write_bytes(packed[: len(packed) // 2])
    report = take(str(path))
    assert report.counted > 1000
    assert report.notes == [f"{path} is damaged after what was read."]
    path.write_bytes(packed)
    take(str(path))
    assert stored()[1][0] == 6_000


@pytest.mark.usefixtures("post")
def test_the_report_says_that_visitors_were_forgotten(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weblog, "MOST_WINDOWS", 1)
    report = take(write(*(line(address=f"192.0.2.{number}") for number in range(4))))
    assert "forgotten" in report.notes[0]


def test_a_line_that_is_a_little_late_begins_a_window_that_ends_first() -> None:
    recent = Recent(60.0)
    assert [
        recent.hit(name, at=at) for name, at in (("a", 1000), ("b", 990), ("b", 1050), ("a", 1050))
    ] == [1, 1, 1, 2]


def test_patterns_are_bounded(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weblog, "MOST_PATTERNS", 10)
    report = take(
        write(*(line(f"/{letter}/{'x' * 100}") for letter in "abcdefghijklmnopqrstuvwxyz"))
    )
    assert len(report.not_resolved) == 10 + 1
    assert report.not_resolved[OTHER_PATTERNS] == 26 - 10
    assert {len(pattern) for pattern in report.not_resolved} == {80, len(OTHER_PATTERNS)}


@pytest.mark.usefixtures("post")
def test_a_log_with_a_head_counts(write: Write) -> None:
    fields = "#Fields: date time cs-method cs-uri-stem c-ip cs(User-Agent) sc-status"
    agent = BROWSER.replace(" ", "+")
    newer = [f"2026-03-02 12:00:{n:02} GET /posts/1/ 192.0.2.{n} {agent} 200" for n in range(5)]
    older = [text.replace("03-02", "03-01") for text in newer]
    paths = [write("#Version: 1.0", fields, *newer), write(fields, *older, name="older.log")]
    report = take(*paths)
    assert (report.counted, report.skipped) == (10, {"comment": 3})
    records = {Path(record.name).name: record for record in Import.objects.all()}
    assert records["older.log"].pk < records["access.log"].pk  # in the order of their times
    assert take(write("#Version: 1.0", fields, *newer, newer[0].replace("GET", "POST"))).read == 8


def test_empty_logs_are_passed_over(write: Write) -> None:
    malformed = Report(read=1, skipped=Counter(malformed=1))
    assert take(write(), write("nonsense", name="b.log")) == malformed
    assert take(write("x" * 70_000, name="c.log")) == malformed
