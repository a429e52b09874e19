"""The different visitors of objects and models in any period."""

import random
from collections import defaultdict
from collections.abc import Iterable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from django.utils.timezone import override
from pytest_django import DjangoAssertNumQueries, Settings
from redis import Redis

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.flush import day_visitors
from readtrack.numbers.models import DayVisitors
from readtrack.numbers.sql import day_visitors as days_in_sql
from readtrack.numbers.sql import thinning
from readtrack.store import keys
from readtrack.store.connection import connect
from readtrack.store.uniques import UniquesError
from readtrack.subjects import subject_of
from tests.site.models import Post, Product
from tests.support import factories
from tests.support.interference import dump, restore
from tests.support.people import add_people
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

SIGMA = 0.0081  # the standard error of Redis's HyperLogLog


def today() -> date:
    return buckets.local_day(buckets.hour_index(buckets.now()))


def noon_of(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 12, tzinfo=timezone.utc)


def view(obj: Any, *visitors: str, day: date | None = None) -> None:
    """Records a view of each visitor, in a window of its own."""
    at = noon_of(day) if day else buckets.now()
    for visitor in visitors:
        connect().delete(keys.window(visitor, subject_of(obj)))
        tracker.record(factories.hit(subject_of(obj), visitor=Visitor(visitor), at=at))


def store(*objs: Any, days: Iterable[date]) -> None:
    """Stores days that are too long ago for a flush to look at them."""
    day_visitors.store([subject_of(obj) for obj in objs], days=list(days))


@pytest.fixture(autouse=True)
def _no_windows(settings: Settings) -> None:
    settings.READTRACK = {"RATE": (0, 10)}


def test_a_person_who_reads_several_posts_on_several_days_is_one_visitor() -> None:
    one, two = factories.post(), factories.post()
    days = [today() - number * buckets.DAY for number in range(3)]
    for day in days:
        view(one, "ann", day=day)
        view(two, "ann", "bob", day=day)
    flush(must_archive=True)
    assert numbers_reports.visitors([one, two], days=3) == {one: 1, two: 2}
    assert numbers_reports.visitors_together([one, two], days=3) == 2
    assert numbers_reports.visitors_together(Post, days=3) == 2
    assert numbers_reports.visitors_together(days=3) == 2


def test_a_period_is_whole_days_and_its_end_is_exclusive() -> None:
    post = factories.post()
    first, second, third = (today() - number * buckets.DAY for number in (2, 1, 0))
    view(post, "a", day=first)
    view(post, "b", day=second)
    view(post, "c", day=third)
    for since, until, expected in (
        (first, None, 3),
        (first, third, 2),
        (second, third, 1),
        (noon_of(first), noon_of(second), 2),
        (noon_of(first), noon_of(second) - timedelta(hours=12), 1),
    ):
        assert numbers_reports.visitors([post], since=since, until=until) == {post: expected}
    assert numbers_reports.visitors([post], days=2) == {post: 2}
    for period in ({"days": 0}, {"until": third}, {"days": 1, "since": first}):
        with pytest.raises(ValueError, match="A period is days=7"):
            numbers_reports.visitors([post], **period)
    with pytest.raises(ValueError, match="A period is days=7"):
        numbers_reports.visitors_together(Post)


def test_a_day_is_one_of_the_sites_time_zone(settings: Settings, redis: Redis) -> None:
    settings.TIME_ZONE = "Asia/Kolkata"  # five and a half hours ahead
    post = factories.post()
    for visitor, hour, minute in (("a", 18, 0), ("b", 18, 50), ("c", 19, 0)):
        at = datetime(2026, 11, 20, hour, minute, tzinfo=timezone.utc)
        tracker.record(factories.hit(subject_of(post), visitor=Visitor(visitor), at=at))
    # Midnight is at 18:30, where hours of history begin as well.
    assert redis.pfcount(f"views:hll:day:20261120:site.post:{post.pk}") == 1
    assert redis.pfcount(f"views:hll:day:20261121:site.post:{post.pk}") == 2
    store(post, days=[date(2026, 11, 20), date(2026, 11, 21)])
    with override("America/New_York"):  # an editor's own zone changes nothing
        twentieth = date(2026, 11, 20)
        assert numbers_reports.visitors([post], since=twentieth, until=date(2026, 11, 21)) == {
            post: 1
        }


def test_every_days_key_expires_whatever_the_zone(settings: Settings, redis: Redis) -> None:
    for number, zone in enumerate(("UTC", "Asia/Kolkata", "Asia/Kathmandu")):
        settings.TIME_ZONE = zone
        post = factories.post()
        for minutes in range(0, 24 * 60, 10):
            at = datetime(2026, 11, 20 + number, tzinfo=timezone.utc) + minutes * buckets.MINUTE
            tracker.record(factories.hit(subject_of(post), visitor=Visitor(str(minutes)), at=at))
    names = redis.keys("views:hll:day:*")
    assert len(names) == 5
    assert all(redis.ttl(name) > 0 for name in names)


def test_an_emptied_redis_loses_no_visitor_that_was_flushed(redis: Redis) -> None:
    post = factories.post()
    view(post, "a", "b")
    flush(only_changed=True)
    redis.flushdb()
    view(post, "b", "c")
    assert numbers_reports.visitors([post], days=1) == {post: 3}  # both together, before any flush
    flush(only_changed=True)
    assert numbers_reports.visitors([post], days=1) == {post: 3}
    redis.flushdb()
    assert numbers_reports.visitors([post], days=1) == {post: 3}
    assert numbers_reports.visitors_together(Post, days=1) == 3


def test_a_restored_snapshot_takes_nothing_away(redis: Redis) -> None:
    post = factories.post()
    view(post, "a")
    snapshot = dump(redis)
    view(post, "b", "c")
    flush()
    restore(redis, snapshot)
    view(post, "d")
    flush()
    flush()
    assert numbers_reports.visitors([post], days=1) == {post: 4}
    assert numbers_reports.visitors_together(days=1) == 4


def test_a_flush_that_another_one_overtook_stores_both(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = factories.post(), factories.post()
    view(one, "a")
    view(two, "b")
    raise_days = days_in_sql.raise_days

    def be_late(*args: Any, **values: Any) -> Any:
        monkeypatch.setattr(days_in_sql, "raise_days", raise_days)
        day_visitors.store([subject_of(two)], days=[today()])  # raises the row of the model, too
        return raise_days(*args, **values)

    monkeypatch.setattr(days_in_sql, "raise_days", be_late)
    day_visitors.store([subject_of(one)], days=[today()])
    assert numbers_reports.visitors_together(Post, days=1) == 2
    assert numbers_reports.visitors([one, two], days=1) == {one: 1, two: 1}


def test_a_flush_without_new_visitors_writes_no_day(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    post = factories.post()
    view(post, "a")
    flush()
    with django_assert_num_queries(1):  # it reads the rows
        day_visitors.store([subject_of(post)], days=[today()])


def test_a_flush_stores_what_earlier_flushes_missed(redis: Redis) -> None:
    post = factories.post()
    view(post, "a", day=today() - 2 * buckets.DAY)
    redis.delete(*redis.keys("trending:*"))
    flush()
    assert {row.subject for row in DayVisitors.objects.all()} >= {"site.post", subject_of(post)}


def test_days_go_with_the_years_of_history(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"days": 90, "years": 1}}
    post = factories.post()
    now = buckets.now()
    for age in (1, 364, 367):
        day = buckets.local_day(buckets.hour_index(now - age * buckets.DAY))
        view(post, "a", day=day)
        store(post, days=[day])
    thinning.thin(at=now)
    ages = {(today() - row.day).days for row in DayVisitors.objects.all()}
    assert ages == {1, 364}


def test_a_deleted_object_leaves_no_days_to_a_new_one_with_its_key(
    redis: Redis, django_capture_on_commit_callbacks: Any
) -> None:
    post = factories.post()
    view(post, "a", "b")
    flush()
    pk = post.pk
    with django_capture_on_commit_callbacks(execute=True):
        post.delete()
    assert not redis.keys("views:hll:day:*")
    again = factories.post(pk=pk)
    view(again, "c")
    flush()
    assert numbers_reports.visitors([again], days=1) == {again: 1}
    assert numbers_reports.visitors_together(Post, days=1) == 3  # people who came stay counted


@pytest.mark.parametrize("options", [{"UNIQUE": "none"}, {"NUMBERS": {"history": False}}])
def test_without_days_a_period_is_an_error_that_says_why(
    settings: Settings, redis: Redis, options: dict[str, Any]
) -> None:
    settings.READTRACK = options
    post = factories.post()
    view(post, "a")
    flush()
    assert not redis.keys("views:hll:day:*")
    assert not DayVisitors.objects.exists()
    for ask in (numbers_reports.visitors, numbers_reports.visitors_together):
        with pytest.raises(UniquesError, match="Visitors of a period are not counted"):
            ask([post], days=7)
    with pytest.raises(UniquesError, match="Visitors of a period are not counted"):
        numbers_reports.most_viewed(Post, days=7, by="visitors")


def test_while_redis_is_down_a_period_has_at_least_its_best_day(settings: Settings) -> None:
    post = factories.post()
    view(post, "a", "b")
    view(post, "a", "b", "c", day=today() - buckets.DAY)
    flush()
    flush(must_archive=True)
    settings.CACHES = {
        "default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    }
    assert numbers_reports.visitors([post], days=7) == {post: 3}
    assert list(numbers_reports.most_viewed(Post, since=today(), by="visitors")) == [post]


def test_with_sets_a_period_with_all_views_is_exact(settings: Settings) -> None:
    settings.READTRACK = {"UNIQUE": "set", "RATE": (0, 10)}
    young, old = factories.post(), factories.post()
    people = [f"v{number}" for number in range(500)]  # whom a sketch takes for 502
    view(young, *people)
    view(old, "earlier", day=today() - 2 * buckets.DAY)
    flush()
    view(old, *people)
    flush()
    for _ in range(2):
        assert numbers_reports.visitors([young], days=1) == {young: 500}
    assert numbers_reports.visitors([old], days=1)[old] == pytest.approx(500, rel=3 * SIGMA)
    assert numbers_reports.visitors([old], days=7) == {old: 501}


def test_a_hundred_objects_take_a_query_and_a_round_trip(
    wire: Wire, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    posts = factories.neighbours(100)
    view(posts[0], "a")
    flush()
    with django_assert_num_queries(1), wire.counted() as trips:
        assert sum(numbers_reports.visitors(posts, days=90).values()) == 1
    assert trips == [1]


@pytest.mark.parametrize(("seed", "number_of_people"), [(1, 40), (2, 700), (3, 6000)])
def test_random_histories_are_right_within_three_standard_errors(
    redis: Redis, seed: int, number_of_people: int
) -> None:
    chance = random.Random(seed)
    posts = [factories.post() for _ in range(3)] + [Product.objects.create(name="x")]
    days = [today() - number * buckets.DAY for number in range(5)]
    came: defaultdict[tuple[Any, date], set[str]] = defaultdict(set)
    for day in days:
        for obj in posts:
            number = chance.randrange(number_of_people // 2)
            came[obj, day] = {f"p{chance.randrange(number_of_people)}" for _ in range(number)}
            with redis.pipeline(transaction=False) as pipeline:
                name = f"views:hll:day:{day:%Y%m%d}:{subject_of(obj)}"
                for person in came[obj, day]:
                    pipeline.pfadd(name, person)
                pipeline.execute()
        store(*posts, days=[day])
        if chance.random() < 0.5:
            redis.flushdb()
    for first in range(5):
        for last in range(first, 5):
            chosen = days[first : last + 1]
            period: Any = {"since": chosen[-1], "until": chosen[0] + buckets.DAY}
            found = numbers_reports.visitors(posts, **period)
            for obj in posts:
                exact = len(set().union(*(came[obj, day] for day in chosen)))
                assert found[obj] == pytest.approx(exact, rel=3 * SIGMA, abs=1)
            everybody: set[str] = set().union(*(came[obj, day] for obj in posts for day in chosen))
            site = numbers_reports.visitors_together(**period)
            assert site == pytest.approx(len(everybody), rel=3 * SIGMA, abs=1)
            assert numbers_reports.visitors_together(posts, **period) == pytest.approx(site, abs=1)


def test_the_most_visited_are_those_with_most_people_not_with_most_views() -> None:
    reread, read_by_many, of_before = (factories.post() for _ in range(3))
    for _ in range(3):
        for number in range(2):
            view(reread, f"a{number}")
    view(read_by_many, "a", "b", "c")
    view(of_before, "a", "b", "c", "d", day=today() - 2 * buckets.DAY)
    flush()
    flush(must_archive=True)
    ranked: Any = numbers_reports.most_viewed(Post, days=1, by="visitors")
    assert [(row, row.in_period) for row in ranked] == [(read_by_many, 3), (reread, 2)]
    all_ranked: Any = numbers_reports.most_viewed(
        Post.objects.exclude(pk=reread.pk), since=today() - 2 * buckets.DAY, by="visitors"
    )
    assert [row.in_period for row in all_ranked] == [4, 3]


def blocks() -> list[tuple[date, int]]:
    rows = DayVisitors.objects.filter(length__gt=1, subject="site.post")
    return sorted(rows.values_list("day", "length"))


def fill_days(number_of_days: int, monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Stores that many days of the model and rolls them up day by day, as archives would have.

    Returns the people of each day, today first.
    """
    monkeypatch.setattr(day_visitors, "MANY", 3)
    chance = random.Random(number_of_days)
    came = []
    for age in range(number_of_days):
        people = {f"p{chance.randrange(60)}" for _ in range(chance.randrange(1, 6))}
        add_people(["site.post"], people, day=today() - age * buckets.DAY)
        came.append(people)
    for age in reversed(range(number_of_days)):
        day_visitors.roll_up(at=buckets.now() - age * buckets.DAY)
    return came


def test_any_period_is_the_same_with_blocks_of_days(monkeypatch: pytest.MonkeyPatch) -> None:
    came = fill_days(150, monkeypatch)
    lengths = {length for _, length in blocks()}
    assert lengths == {4, 16, 64}
    chance = random.Random(3)
    for _ in range(40):
        newest, oldest = sorted(chance.sample(range(150), 2))
        since, until = today() - oldest * buckets.DAY, today() - (newest - 1) * buckets.DAY
        exact = len(set().union(*came[newest : oldest + 1]))
        assert numbers_reports.visitors_together(Post, since=since, until=until) == exact


def test_a_long_period_takes_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(day_visitors, "MANY", 1)
    fill_days(150, monkeypatch)
    for last in (today(), today() - 7 * buckets.DAY):
        asked = days_in_sql.AskedDays(["site.post"], last - 89 * buckets.DAY, last)
        assert len(days_in_sql.stored(asked)) <= 24
        assert len(days_in_sql.stored(asked._replace(has_blocks=False))) == 90


def test_days_of_few_visitors_have_no_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for age in range(40):
        add_people(["site.post"], ["a", "b"], day=today() - age * buckets.DAY)
        day_visitors.roll_up(at=buckets.now())
    assert blocks() == []


def test_a_day_that_is_raised_later_counts_beside_its_block(
    monkeypatch: pytest.MonkeyPatch, redis: Redis
) -> None:
    post = factories.post()
    came = fill_days(40, monkeypatch)
    day = blocks()[-1][0]
    newest = (today() - day).days
    redis.pfadd(f"views:hll:day:{day:%Y%m%d}:{subject_of(post)}", "late")  # as an import does
    store(post, days=[day])
    exact = len(set().union(*came[newest - 3 : newest + 1], {"late"}))
    since, until = day, day + 4 * buckets.DAY
    assert numbers_reports.visitors_together(Post, since=since, until=until) == exact


def test_parts_that_changed_since_they_were_read_make_no_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(day_visitors, "MANY", 3)
    for age in range(12):
        add_people(["site.post"], ["a", "b", "c"], day=today() - age * buckets.DAY)
    add_blocks = days_in_sql.add_blocks

    def be_late(*args: Any, read: int, **values: Any) -> None:
        add_blocks(*args, read=read - 1, **values)

    monkeypatch.setattr(days_in_sql, "add_blocks", be_late)
    day_visitors.roll_up(at=buckets.now())
    assert blocks() == []
    monkeypatch.setattr(days_in_sql, "add_blocks", add_blocks)
    flush(must_archive=True)
    assert blocks()


def test_a_period_with_a_block_whose_first_days_are_forgotten_keeps_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    came = fill_days(40, monkeypatch)
    first = next(day for day, length in blocks() if length == 4)
    cut = first + 2 * buckets.DAY
    days_in_sql.delete_before(cut)
    exact = len(set().union(*came[: (today() - cut).days + 1]))
    assert numbers_reports.visitors_together(Post, since=first - buckets.DAY) == exact
