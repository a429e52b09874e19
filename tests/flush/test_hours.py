"""Hours of models and of the whole site, with every loss of Redis. test_machine.py interleaves
flushes of them.
"""

from datetime import datetime, timedelta
from itertools import count

import pytest
from django.test.utils import override_settings
from pytest_django import DjangoAssertNumQueries, Settings
from redis import Redis

from readtrack import buckets, reports
from readtrack.flush.run import flush
from readtrack.imports import ledger
from readtrack.imports.ledger import Batch
from readtrack.imports.models import Import
from readtrack.models import KnownEpoch
from readtrack.numbers import hours_of_models
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.flush import hours
from readtrack.numbers.models import History
from readtrack.numbers.sql import thinning
from readtrack.store import keys, scripts
from readtrack.subjects import subject_of
from tests.conftest import use_redis
from tests.site.models import Post, Product
from tests.support import factories
from tests.support.counts import view_times as view
from tests.support.depth import STRIDE
from tests.support.interference import at_step, dump, restore
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


def shown(of: Post | type[Post] | None = None) -> int:
    """Returns the sum of the chart. A test may run into the next hour."""
    return sum(point.views for point in numbers_reports.series(of, until=buckets.now() + HOUR))


def name(at: datetime, post: Post) -> str:
    """Returns the name of the model's hour in `views:unsettled`, in the partition of the post."""
    return hours_of_models.hour_name(
        f"site.post{keys.tag(subject_of(post))}", buckets.hour_index(at)
    )


def rows() -> list[int]:
    """Returns the rows of the model, all of whose posts are in one partition."""
    found = History.objects.filter(subject__in=[f"site.post{tag}" for tag in keys.tags()])
    return list(found.order_by("hour").values_list("views", flat=True))


def agreed() -> int:
    """Returns the number that all charts and totals show, and checks that they agree."""
    posts = list(Post.objects.all())
    totals = sum(reports.views(posts).values())
    assert (
        totals
        == sum(map(shown, posts))
        == shown(Post)
        == shown()
        == sum(point.views for point in numbers_reports.series())
    )
    return totals


def test_charts_go_on_where_redis_lost_its_data(redis: Redis) -> None:
    first, second = factories.neighbours(2)
    view(first, 10)
    flush(only_changed=True)
    flush()
    redis.flushdb()
    assert agreed() == 10
    view(first, 3)
    assert agreed() == 13  # ahead of any flush
    flush()
    assert agreed() == sum(Post.objects.values_list("view_count", flat=True)) == 13
    redis.flushdb()
    view(second, 12)
    assert agreed() == 25
    flush(only_changed=True)
    assert agreed() == rows()[-1] == 25


def test_the_site_is_the_sum_of_its_models(redis: Redis) -> None:
    post, product = factories.post(), Product.objects.create(name="x")
    for flushed in (False, True):
        view(post, 2)
        view(product)
        if flushed:
            flush()
    assert (shown(Post), shown()) == (4, 6)
    assert rows() == [4]
    assert not History.objects.filter(subject="").exists()


def test_a_view_of_an_earlier_hour_raises_the_later_rows_with_it(redis: Redis) -> None:
    post, now = factories.post(), buckets.now()
    view(post, 5, at=now - 3 * HOUR)
    view(post, 2, at=now - HOUR)
    flush()
    assert rows() == [5, 7]
    view(post, 1, at=now - 2 * HOUR)
    view(post, 1, at=now - 3 * HOUR)
    flush()
    assert rows() == [6, 7, 9]
    assert flush().written == 0
    assert [point.views for point in numbers_reports.series(hours=4, until=now)] == [6, 1, 2, 0]


def test_flushing_again_writes_no_row(
    redis: Redis, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    view(factories.post(), 5)
    flush()
    with django_assert_max_num_queries(7) as queries:
        assert hours.store_hours(buckets.hour_index(buckets.now())) == {}
    assert not [query for query in queries.captured_queries if "INSERT" in query["sql"]]


def test_an_hour_of_which_redis_has_less_takes_nothing_from_later_ones(redis: Redis) -> None:
    post, now = factories.post(), buckets.now()
    view(post, 5, at=now - HOUR)
    view(post, at=now)
    flush()
    redis.set(name(now - HOUR, post), 2)  # as in an old snapshot
    view(post, 3, at=now)
    assert list(hours.store_hours(buckets.hour_index(now)) or ()) == [name(now - HOUR, post)]
    assert rows() == [5, 9]


@pytest.mark.parametrize("is_full", [False, True])
def test_an_hour_without_its_base_waits_and_others_do_not(redis: Redis, is_full: bool) -> None:
    post, now = factories.post(), buckets.now()
    for age in (2, 1):
        view(post, 5, at=now - age * HOUR)
    flush()
    redis.delete(name(now - 2 * HOUR, post))  # evicted
    view(post, 7, at=now - 2 * HOUR)
    view(post, at=now - HOUR)
    assert hours.store_hours(buckets.hour_index(now)) == {}
    assert rows() == [5, 11]
    assert shown() == 18
    flush(only_changed=not is_full)
    assert rows() == [12, 18]
    assert redis.get(name(now - 2 * HOUR, post)) == "12"


def test_an_hour_that_ended_before_it_was_settled_still_ends(redis: Redis) -> None:
    post, now = factories.post(), buckets.now()
    view(post, 5)
    flush()
    redis.delete(name(now, post))
    redis.zadd(
        keys.unsettled(keys.tag(subject_of(post))), {name(now, post): int(now.timestamp() * 1e6)}
    )
    flush()
    assert redis.get(name(now, post)) == "5"
    assert keys.model_hour.ttl - 800 < redis.ttl(name(now, post)) <= keys.model_hour.ttl


def test_settling_and_lifting_leave_an_hour_its_life(redis: Redis) -> None:
    post, now = factories.post(), buckets.now()
    view(post, 5)
    redis.expire(name(now, post), 1000)
    flush()
    redis.set(name(now, post), 3, keepttl=True)
    assert flush().lifted == 1
    assert redis.get(name(now, post)) == "5"
    assert 0 < redis.ttl(name(now, post)) <= 1000


def test_a_mark_that_comes_back_with_a_snapshot_adds_nothing_twice(redis: Redis) -> None:
    post = factories.post()
    view(post, 10)
    flush()
    redis.flushdb()
    view(post, 3)
    snapshot = dump(redis)
    flush()
    restore(redis, snapshot)
    flush()
    assert agreed() == 13


def test_a_snapshot_that_is_older_is_lifted(redis: Redis) -> None:
    post, now = factories.post(), buckets.now()
    view(post, 4)
    flush()
    snapshot = dump(redis)
    view(post, 6)
    flush()
    restore(redis, snapshot)
    assert flush().lifted == 2  # the total and the hour
    assert redis.get(name(now, post)) == "10"
    view(post)
    assert agreed() == 11


def test_nothing_is_stored_of_a_redis_that_sql_cannot_follow(redis: Redis) -> None:
    first, second = factories.neighbours(2)
    view(first, 4)
    flush()
    KnownEpoch.objects.update(epoch=2**53)
    view(second, 4)
    assert hours.store_hours(buckets.hour_index(buckets.now())) is None
    assert rows() == [4]
    flush()
    assert rows() == [8]


def test_with_redis_gone_charts_show_what_sql_has(redis: Redis, settings: Settings) -> None:
    view(factories.post(), 4)
    flush()
    use_redis(settings, "redis://127.0.0.1:1/0")
    assert shown() == shown(Post) == 4


def test_without_history_hours_are_redis_s(redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"history": False}}
    view(factories.post(), 4)
    flush()
    assert (shown(), rows(), redis.zcount("views:unsettled", "-inf", "(+inf")) == (4, [], 0)


def test_an_import_adds_to_hours_with_their_base_and_is_kept_at_once(redis: Redis) -> None:
    post, now = factories.post(), buckets.now()
    view(post, 5)
    flush()
    redis.flushdb()
    batch = Batch()
    for number, at in enumerate((now, now, now + 5 * HOUR)):  # one by a clock that is ahead
        batch.add(subject_of(post), visitor=str(number), at=at)
    ledger.add(Import.objects.create(source="test"), batch, position=100)
    assert (rows(), redis.get(name(now, post))) == ([8], "8")
    assert 0 < redis.ttl(name(now, post)) <= keys.model_hour.ttl
    redis.flushdb()
    assert agreed() == 8


def test_a_redis_that_is_emptied_at_any_step_of_a_flush_makes_no_chart_count_twice(
    wire: Wire, redis: Redis
) -> None:
    post, acknowledged = factories.post(), 0
    for trip in count(1, STRIDE):
        view(post)
        acknowledged += 1
        with at_step(wire, trip, "request", redis.flushdb) as done:
            flush()
        least = max(rows(), default=0)
        view(post)
        acknowledged += 1
        flush()
        assert least < rows()[-1] <= acknowledged
        assert rows()[-1] == shown() == shown(Post)
        if not done:
            break
    assert trip > 8


@override_settings(READTRACK={"NUMBERS": {"days": 0}})
def test_days_that_redis_knows_the_hours_of_are_not_thinned(redis: Redis) -> None:
    post, now = factories.post(), buckets.now()
    for age in (47, 40, 30):
        view(post, at=now - age * HOUR)
    for _ in range(2):
        flush()
        thinning.thin(at=now)
    assert rows() == [1, 2, 3]


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_hours_are_read_in_slices(redis: Redis, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(scripts, "SLICE", size)
    post, now = factories.post(), buckets.now()
    for age in range(3):
        view(post, at=now - age * HOUR)
    flush()
    for age in range(3):
        redis.set(name(now - age * HOUR, post), 0, keepttl=True)
    assert flush().lifted == 3
    assert shown() == 3
