"""A window counts a visitor's view of a subject once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.hits.visitors import Visitor
from tests.support import factories
from tests.support.depth import examples

THREADS, TRIALS = 8, examples(300)


@pytest.fixture(autouse=True)
def _unlimited(settings: Settings) -> None:
    settings.READTRACK = {"RATE": (0, 10), "TIMEOUT": 10}


def test_eight_identical_requests_at_once_count_once_in_hundreds_of_trials(redis: Redis) -> None:
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


def test_different_visitors_and_subjects_count_separately() -> None:
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


def test_a_visitor_who_refuses_the_cookie_is_recognised_by_the_fallback_id() -> None:
    assert tracker.record(
        factories.hit("site.post:1", visitor=Visitor("cookie1", fallback_id="address"))
    ).counted
    assert not tracker.record(factories.hit("site.post:1", visitor=Visitor("cookie1"))).counted
    assert not tracker.record(
        factories.hit("site.post:1", visitor=Visitor("cookie2", fallback_id="address"))
    ).counted
    assert tracker.record(factories.hit("site.post:1", visitor=Visitor("cookie2"))).counted


def test_views_and_reads_share_the_hit(redis: Redis) -> None:
    hit = factories.hit(
        "site.post:1", "site.post:2", reads=("site.category:1", "site.category:2"), reader=5
    )
    for counts in (2, 0):
        outcome = tracker.record(hit)
        assert len(outcome.counted) == counts
        assert outcome.read == hit.reads
    assert redis.getbit("category:site.category:2:read", 5) == 1


def test_the_rate_limits_what_counts(settings: Settings) -> None:
    settings.READTRACK = {"RATE": (2, 10), "TIMEOUT": 10}
    visitor = Visitor("a")
    outcomes = [
        tracker.record(factories.hit(f"site.post:{number}", visitor=visitor)) for number in range(3)
    ]
    assert [len(outcome.counted) for outcome in outcomes] == [1, 1, 0]
    assert outcomes[2].skipped == {"site.post:2": "rate"}
