"""A window counts a visitor's view of a subject once."""

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from random import Random
from threading import Barrier

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.hits.hit import Hit
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


def page_of(cookie: str) -> Hit:
    """Returns the hit of a page by a new visitor, whose address and browser many share."""
    visitor = Visitor(cookie, fallback_id="address", new_cookie="new")
    return factories.hit("site.post:1", visitor=visitor)


def script_of(cookie: str) -> Hit:
    """Returns what the script of such a page tells, once the browser has the cookie."""
    visitor = Visitor(cookie)
    return factories.hit("site.post:1", visitor=visitor, is_report=True, stand_in="address")


def counted(hits: list[Hit]) -> int:
    return sum(len(tracker.record(hit).counted) for hit in hits)


DOUBLE_CLICK = [page_of("first"), page_of("last"), script_of("last"), script_of("last")]


@pytest.mark.parametrize("order", [*permutations(range(4))], ids=str)
def test_a_double_click_of_a_new_visitor_counts_once_in_whatever_order_it_arrives(
    redis: Redis, order: tuple[int, ...]
) -> None:
    assert counted([DOUBLE_CLICK[place] for place in order]) == 1
    assert redis.get("views:total:site.post:1") == "1"


@pytest.mark.parametrize("seed", range(20))
def test_people_who_share_an_address_count_each_in_whatever_order_they_arrive(seed: int) -> None:
    cookies = [f"reader {number}" for number in range(8)]
    hits = [*map(page_of, cookies), *map(script_of, cookies)]
    Random(seed).shuffle(hits)
    assert counted(hits) == 8


def test_a_window_that_a_script_opens_for_the_stand_in_ends_with_the_other(redis: Redis) -> None:
    assert counted([script_of("first")]) == 1
    lives = [redis.ttl(f"viewed:{name}:site.post:1") for name in ("first", "address")]
    assert all(1700 < life <= 1800 for life in lives)
