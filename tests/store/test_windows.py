"""Both stores of windows count a view once. The compact one takes a twentieth of the memory."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Barrier

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.hits.visitors import Visitor
from readtrack.store import keys
from tests.support import factories
from tests.support.depth import examples

THREADS, TRIALS = 8, examples(300)

both = pytest.mark.parametrize("form", ["keys", "compact"])


@pytest.fixture
def choose(settings: Settings) -> Callable[..., None]:
    def choose(form: str, **options: object) -> None:
        settings.READTRACK = {"WINDOW_STORE": form, "RATE_LIMIT": 0, "TIMEOUT": 10, **options}

    return choose


@both
def test_eight_identical_requests_at_once_count_once_in_hundreds_of_trials(
    choose: Callable[..., None], redis: Redis, form: str
) -> None:
    choose(form)
    hits = [factories.hit(f"site.post:{trial % 10}") for trial in range(TRIALS)]
    barrier = Barrier(THREADS)

    def record(_: int) -> list[int]:
        barrier.wait()
        return [len(tracker.record(hit).counted) for hit in hits]

    with ThreadPoolExecutor(THREADS) as pool:
        counted = [sum(column) for column in zip(*pool.map(record, range(THREADS)), strict=True)]
    assert counted == [1] * TRIALS
    assert (
        sum(int(redis.get(f"views:total:site.post:{number}") or 0) for number in range(10))
        == TRIALS
    )


@both
def test_different_visitors_and_subjects_count_separately(
    choose: Callable[..., None], form: str
) -> None:
    choose(form)
    a, b = Visitor("a"), Visitor("b")
    for visitor, subject, counts in (
        (a, "1", True),
        (b, "1", True),
        (a, "2", True),
        (a, "1", False),
        (b, "1", False),
    ):
        outcome = tracker.record(factories.hit(f"site.post:{subject}", visitor=visitor))
        assert bool(outcome.counted) is counts
        assert outcome.skipped == ({} if counts else {f"site.post:{subject}": "repeat"})


@both
def test_a_visitor_who_refuses_the_cookie_is_recognised_by_the_fallback_id(
    choose: Callable[..., None], form: str
) -> None:
    choose(form)
    assert tracker.record(
        factories.hit("site.post:1", visitor=Visitor("cookie1", fallback_id="address"))
    ).counted
    assert not tracker.record(factories.hit("site.post:1", visitor=Visitor("cookie1"))).counted
    assert not tracker.record(
        factories.hit("site.post:1", visitor=Visitor("cookie2", fallback_id="address"))
    ).counted
    assert tracker.record(factories.hit("site.post:1", visitor=Visitor("cookie2"))).counted


@both
def test_views_and_reads_share_the_hit(
    choose: Callable[..., None], redis: Redis, form: str
) -> None:
    choose(form)
    hit = factories.hit(
        "site.post:1", "site.post:2", reads=("site.category:1", "site.category:2"), reader=5
    )
    for counts in (2, 0):
        outcome = tracker.record(hit)
        assert len(outcome.counted) == counts
        assert outcome.read == hit.reads
    assert redis.getbit("category:site.category:2:read", 5) == 1


@both
def test_the_rate_limits_what_counts(choose: Callable[..., None], form: str) -> None:
    choose(form, RATE_LIMIT=2)
    visitor = Visitor("a")
    outcomes = [
        tracker.record(factories.hit(f"site.post:{number}", visitor=visitor)) for number in range(3)
    ]
    assert [len(outcome.counted) for outcome in outcomes] == [1, 1, 0]
    assert outcomes[2].skipped == {"site.post:2": "rate"}


@pytest.mark.parametrize(
    ("window", "slices", "late"), [(1800, 4, 450), (1800, 1, 1800), (100, 3, 36), (5, 10, 1)]
)
def test_a_compact_window_is_never_short_and_late_by_a_slice_at_most(
    choose: Callable[..., None], redis: Redis, noon: datetime, window: int, slices: int, late: int
) -> None:
    choose("compact", WINDOW=window, WINDOW_SLICES=slices)
    length, count = keys.slicing()
    assert count * length - window == late
    for offset in range(0, length, max(1, length // 7)):
        redis.flushdb()
        first = factories.hit("site.post:1", at=noon + timedelta(seconds=offset))
        assert tracker.record(first).counted
        for seconds, counts in ((window - 1, False), (window + late, True)):
            later = first._replace(at=first.at + timedelta(seconds=seconds))
            assert bool(tracker.record(later).counted) is counts


def test_a_repeat_never_extends_a_compact_window(
    choose: Callable[..., None], noon: datetime
) -> None:
    choose("compact", WINDOW=100, WINDOW_SLICES=4)
    first = factories.hit("site.post:1", at=noon)
    views = [
        tracker.record(first._replace(at=noon + timedelta(seconds=seconds)))
        for seconds in range(0, 126, 25)
    ]
    assert [len(outcome.counted) for outcome in views] == [1, 0, 0, 0, 0, 1]


def test_a_slice_goes_when_no_window_can_touch_it(
    choose: Callable[..., None], redis: Redis
) -> None:
    choose("compact", WINDOW=100, WINDOW_SLICES=4)
    tracker.record(factories.hit("site.post:1"))
    (name,) = redis.keys("viewed:*")
    assert 120 < redis.ttl(name) <= 125


@pytest.mark.one_server("with partitions, each has a part of the sets")
def test_a_compact_view_takes_less_than_nine_bytes(
    choose: Callable[..., None], redis: Redis, noon: datetime
) -> None:
    choose("compact", WINDOW_SHARDS=4)
    entries = [keys.slices("site.post:1", visitor=f"v{number}", at=noon) for number in range(1_600)]
    for names, member in entries:
        redis.sadd(names[0], member)
    sets = redis.keys("viewed:slice:*")
    assert len(sets) == 4
    assert {redis.object("encoding", name) for name in sets} == {"intset"}
    assert sum(redis.memory_usage(name) or 0 for name in sets) < 9 * len(entries)
