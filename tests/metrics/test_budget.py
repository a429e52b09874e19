"""`manage.py readtrack budget`: the memory of Redis now, of a site of another size, and the advice."""

import json
import re
from datetime import date, timedelta
from random import Random
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import override_settings
from pytest_django import Settings
from redis import Redis

from demo_project.engines.process import free_port
from readtrack import buckets, tracker
from readtrack.hits.hit import Hit
from readtrack.hits.visitors import Visitor
from readtrack.metrics import budget
from readtrack.metrics.budget import SiteSize
from readtrack.numbers.models import DayBreakdown
from readtrack.numbers.sql import day_breakdowns
from readtrack.store import keys, read_state
from readtrack.store.trending import refresh_trending
from readtrack.subjects import counted_models
from tests.conftest import Start
from tests.site.models import Post
from tests.support import factories
from tests.support.depth import some

pytestmark = pytest.mark.django_db


def found(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    call_command("readtrack", "budget", "--json", *words)
    return json.loads(capsys.readouterr().out)


def test_a_site_is_known_by_its_rows() -> None:
    assert budget.site_size() == SiteSize(0, 0.0, 0, 0, 0, 0)
    for views, visitors in ((0, 0), (10, 4), (10, 8), (0, 0)):
        factories.post(view_count=views, visitor_count=visitors)
    user = factories.user()
    factories.category()
    tracker.record(factories.hit("site.post:1", "site.category:1"))
    assert budget.site_size() == SiteSize(4, 0.5, 6, user.pk, views=1, categories=1)
    assert budget.site_size().viewed == 2


@pytest.mark.parametrize(
    ("visitors", "readers", "anonymous", "advised"),
    [
        (5, 1000, "none", "set"),
        (100_000, 10_000_000, "none", "hll"),
        (100_000, 1_000_000, "none", "hll"),
        (900, 1000, "none", "bitmap"),
        (900, 1000, "cookie", "hll"),
        (900, 1000, "hash", "hll"),
        (5, 1000, "cookie", "set"),
        (0, 0, "none", ""),
        (0, 1000, "none", ""),
    ],
)
def test_the_advice_follows_the_numbers_and_who_is_counted(
    capsys: pytest.CaptureFixture[str], visitors: int, readers: int, anonymous: str, advised: str
) -> None:
    numbers = [
        "--posts=1000",
        "--active=0.05",
        f"--visitors={visitors}",
        f"--readers={readers}",
        "--views=7",
    ]
    with override_settings(READTRACK={"ANONYMOUS": anonymous}):
        budget = found(capsys, *numbers)
    assert budget["advised"] == advised
    sizes = {
        "posts": 1000,
        "active": 0.05,
        "visitors": visitors,
        "readers": readers,
        "views": 7,
        "categories": 0,
        "threads": 0,
    }
    assert budget["numbers"] == sizes


@pytest.mark.usefixtures("new_redis")
def test_a_new_site_reads_that_there_is_nothing_to_measure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    factories.post()
    call_command("readtrack", "budget")
    text = capsys.readouterr().out
    assert "For 1 post, 0.0 % of them viewed, by 0 visitors each, " in text
    assert "there is nothing to measure yet. Give numbers, such as --posts" in text
    assert "Advice" not in text
    assert "In Redis now:\n  no keys\n" in text


def test_posts_of_a_new_site_are_reckoned_with_as_viewed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert found(capsys, "--posts", "1000", "--visitors", "300")["numbers"]["active"] == 1
    assert found(capsys, "--posts", "1000")["numbers"]["active"] == 0
    factories.post(view_count=1)
    factories.post()
    assert found(capsys, "--posts", "1000", "--visitors", "300")["numbers"]["active"] == 0.5


@pytest.mark.parametrize(
    ("posts", "visitors", "words"),
    [(1, 1, "For 1 post, 50.0 % of them viewed, by 1 visitor each, "), (2, 2, "For 2 posts, ")],
)
def test_one_is_in_the_singular(
    capsys: pytest.CaptureFixture[str], posts: int, visitors: int, words: str
) -> None:
    call_command(
        "readtrack", "budget", f"--posts={posts}", "--active=0.5", f"--visitors={visitors}"
    )
    assert words in capsys.readouterr().out


def test_the_strategies_describe_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    budget = found(
        capsys,
        "--posts=1000",
        "--active=0.05",
        "--visitors=100000",
        "--readers=80000000",
        "--views=50000",
    )
    ways = budget["strategies"]
    textbook = {
        "set": 50 * 100_000,
        "daily": 50 * 2 * 1000,
        "hll": 12_288,
        "bitmap": 80_000_000 // 8,
    }
    assert all(0.6 < ways[name]["each"] / size < 2.4 for name, size in textbook.items())
    assert ways["hll"]["total"] == pytest.approx(50 * ways["hll"]["each"], rel=0.001)


def test_it_reads_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    tracker.record(factories.hit("site.post:1"))
    call_command(
        "readtrack", "budget", "--posts=20", "--active=0.5", "--visitors=3", "--readers=1000"
    )
    text = capsys.readouterr().out
    assert (
        "For 20 posts, 50.0 % of them viewed, by 3 visitors each, 1 view a day; readers with numbers"
        in text
    )
    assert re.search(r"^  views:total:\{subject\} +1 +\d+ B +\d+ B$", text, re.MULTILINE)
    assert re.search(
        r"^  hll +\S+ \S+ +\S+ \S+  within 0.81 %, any posts together$", text, re.MULTILINE
    )
    assert "Advice: READTRACK['UNIQUE'] = 'set', because a post has few visitors" in text


@pytest.mark.parametrize(
    ("options", "used", "unused"),
    [
        (
            {},
            ["viewed:{visitor}:{subject}", "category:{subject}:read"],
            ["readers"],
        ),
        ({"DOTS": {"form": "sequence"}}, ["category:{subject}:seen"], ["category:{subject}:read"]),
        (
            {"DOTS": {"readers": "ordinal"}},
            ["category:{subject}:read:ordinal", "readers"],
            ["category:{subject}:read"],
        ),
        ({}, ["views:hll:day:{date}:{subject}"], []),
        ({"NUMBERS": {"history": False}}, [], ["views:hll:day:{date}:{subject}"]),
        ({"UNIQUE": "set"}, ["views:unique:{subject}"], []),
        ({"DOTS": {"anonymous": 1_000_000}}, ["readers:anonymous:{generation}"], []),
    ],
)
def test_kinds_of_keys_that_the_settings_leave_out_are_not_weighed(
    settings: Settings, options: dict[str, Any], used: list[str], unused: list[str]
) -> None:
    settings.READTRACK = options
    projected = budget.budget(posts=10, visitors=5, views=100, categories=3, readers=1000).projected
    assert set(used) <= projected.keys()
    assert projected.keys().isdisjoint(unused)


def test_a_site_without_funnels_has_no_keys_of_funnels(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keys.funnel.pattern in budget.budget(posts=10, visitors=5).projected
    monkeypatch.setattr("readtrack.metrics.budget.counted_models", lambda: [Post])
    assert keys.funnel.pattern not in budget.budget(posts=10, visitors=5).projected


def test_visitors_of_a_minute_are_those_of_a_whole_model() -> None:
    each = [
        budget.budget(posts=10, active=1.0, visitors=1, views=views).projected
        for views in (1440, 10**8)
    ]
    kinds = [one[keys.minute_visitors.pattern] for one in each]
    assert kinds[0].keys == kinds[1].keys == 6 * len(counted_models())
    assert (kinds[0].each < 300, kinds[1].each > 12_000) == (True, True)


def test_a_row_that_is_added_to_the_key_table_is_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (
        keys.Key("views:likes:{subject}", "set", 0, "new"),
        keys.Key("views:seconds:{hour}:{subject}", "string", keys.DAY, "new"),
        keys.Key("views:lately:{visitor}", "hash", keys.HOUR, "new"),
    )
    table = (*keys.every(), *rows)
    monkeypatch.setattr(keys, "every", lambda: table)
    projected = budget.budget(posts=10, active=1.0, visitors=50, views=2400).projected
    assert [projected[row.pattern].keys for row in rows] == [10, 240, 100]
    assert projected["views:likes:{subject}"].each > 50 * 16


ALL_ELSE = {
    "UNIQUE": "set",
    "DOTS": {"form": "sequence", "readers": "ordinal"},
    "NUMBERS": {"funnels": True, "dimensions": ["tests.metrics.test_budget.colour"]},
}


POSTS, VISITORS, READERS, CATEGORIES = 200, 20, 4_000, 5


def colour(request: Any) -> str:
    raise NotImplementedError


@pytest.mark.parametrize("options", some([{}], deep=[ALL_ELSE]), ids=str)
def test_the_estimate_is_within_a_fifth_of_what_the_server_takes(
    start_redis: Start, settings: Settings, options: dict[str, Any]
) -> None:
    """Plays a day of a site, in which windows and rates last as long, so that all of them are there
    at its end.
    """
    settings.READTRACK = {"WINDOW": keys.DAY, "RATE": (5, keys.DAY), **options}
    client: Any = Redis.from_url(start_redis().url)
    read_state.begin(0)
    end = buckets.now()
    views, chance = POSTS * VISITORS, Random(1)
    for number in range(views):
        hit = Hit(
            Visitor(f"{number:016}"),
            end - timedelta(seconds=keys.DAY * (views - 1 - number) / views),
            views=(f"site.post:{chance.randrange(POSTS)}",),
            dimensions=(("colour", str(number)),) if options else (),
        )
        assert tracker.record(hit).counted
        if number % (views // 24) == 0:  # these expire in the course of a day
            client.unlink(
                "none",
                *sorted(client.keys("*trending:bucket:*"))[:-70],
                *client.keys("*funnel:reached:*"),
            )
    reads = tuple(f"site.category:{number}" for number in range(CATEGORIES))
    for reader in range(READERS):
        tracker.record(
            Hit(Visitor("reader"), end, reads=reads, reader=f"{reader}" if options else reader)
        )
    refresh_trending(at=end)
    client.unlink(keys.reads_changed(""), keys.readers_new(""))  # as a flush does
    took = used_memory(client)
    client.execute_command("FLUSHALL", "SYNC")  # what is left are buffers and scripts
    took -= used_memory(client)
    size: dict[str, Any] = {"posts": POSTS, "active": 1.0, "visitors": VISITORS, "views": views}
    estimate = budget.budget(**size, readers=READERS, categories=CATEGORIES)
    assert sum(kind.total for kind in estimate.projected.values()) == pytest.approx(took, rel=0.2)


def used_memory(client: Redis) -> int:
    """Returns the memory that the server uses for data (bytes)."""
    info: Any = client.info("memory")
    return int(info["used_memory"]) - int(info["mem_clients_normal"])


@pytest.mark.parametrize(
    "words",
    [
        ["--posts", "-1"],
        ["--posts", "many"],
        ["--posts", "9" * 14],
        ["--active", "2"],
        ["--active", "half"],
    ],
)
def test_odd_numbers_are_refused(words: list[str]) -> None:
    with pytest.raises(CommandError, match="is no"):
        call_command("readtrack", "budget", *words)


def test_the_command_says_that_redis_is_gone() -> None:
    cache = {
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": f"redis://127.0.0.1:{free_port()}",
        }
    }
    with override_settings(CACHES=cache), pytest.raises(CommandError, match="Redis failed"):
        call_command("readtrack", "budget")


def test_the_rows_that_objects_get_on_a_day_are_estimated_by_those_of_the_newest_day(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device", "referrer"]}}
    size: dict[str, Any] = {"posts": 1_000, "active": 1.0, "visitors": 10, "views": 1_000_000}
    guess = budget.budget(**size).day_rows
    assert (guess.rows, guess.total) == (1_000 * (2 * 3 + 1), guess.rows * guess.each)
    for age, values in ((1, ["a", "b", "c", "d"]), (0, ["a", "b"])):
        for value in values:
            DayBreakdown.objects.create(
                subject="site.post:1",
                kind="views:device",
                day=date(2026, 11, 20) - timedelta(days=age),
                field=value,
                count=1,
            )
    assert budget.budget(**size).day_rows.rows == 1_000 * (2 * 2 + 1)
    call_command("readtrack", "budget", posts=1_000, active=1.0, visitors=10, views=1_000_000)
    assert "by value and day: 5,000 rows a day, 1.0 MB." in capsys.readouterr().out
    numbers = settings.READTRACK["NUMBERS"]
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {**numbers, "history": False}}
    assert budget.budget(**size).day_rows.rows == 0


@pytest.mark.skipif(connection.vendor != "postgresql", reason="asks PostgreSQL for sizes")
@pytest.mark.django_db(transaction=True)
def test_a_row_of_a_day_is_as_large_as_estimated() -> None:
    gains = {
        (f"site.post:{pk}", f"views:{dimension}", field): 3
        for pk in range(1_000)
        for dimension in ("referrer", "country", "device")
        for field in ("www.google.com", "direct", "DE")
    }
    for age in range(4):
        with transaction.atomic():
            day_breakdowns.add_gains(gains, day=date(2026, 11, 20) - timedelta(days=age))
    table = DayBreakdown._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_total_relation_size(%s)", [table])
        [size] = cursor.fetchone()
    assert pytest.approx(size / (4 * len(gains)), rel=0.25) == budget.BYTES_OF_DAY_ROW


def test_settings_that_name_no_redis_are_said_in_words(settings: Settings) -> None:
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": "127.0.0.1:6379"}}
    with pytest.raises(CommandError, match=r"CACHES\['default'\] names no Redis: "):
        call_command("readtrack", "budget")
