"""Views that were seen: their page came to life in a browser, as its script reports."""

from itertools import permutations
from random import Random

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.hits.hit import Hit
from readtrack.hits.stages import ENGAGED, READS
from readtrack.hits.visitors import Visitor
from readtrack.numbers.live_counters import hashes
from readtrack.script.reading import Reading
from readtrack.store import keys
from readtrack.store.scripts import run_all
from tests.site.models import Post
from tests.support import factories
from tests.support.depth import examples

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _unlimited(settings: Settings) -> None:
    settings.READTRACK = {"RATE": (0, 10), "TIMEOUT": 10}


def stages(subject: str) -> tuple[int, int, int]:
    """Returns how many views of the subject were seen, engaged and read, as Redis has them."""
    [call] = hashes([subject], ["reading"])
    run_all(call)
    counts = call.result["reading", subject].counts
    return counts.get("seen", 0), counts.get("engaged", 0), counts.get("reads", 0)


def views(redis: Redis, subject: str) -> int:
    return int(redis.get(keys.total(subject)) or 0)


def script_of(visitor: Visitor, subject: str, stand_in: str = "") -> Hit:
    return factories.hit(subject, visitor=visitor, is_report=True, is_seen=True, stand_in=stand_in)


def page_of_newcomer(cookie: str, subject: str) -> Hit:
    visitor = Visitor(cookie, fallback_id="address", new_cookie="new")
    return factories.hit(subject, visitor=visitor)


def test_a_view_is_seen_once_however_often_its_script_reports(redis: Redis) -> None:
    subject, visitor = "site.post:1", Visitor("a")
    tracker.record(factories.hit(subject, visitor=visitor))
    assert stages(subject) == (0, 0, 0)
    for _ in range(3):
        tracker.record(script_of(visitor, subject))
        assert (views(redis, subject), *stages(subject)) == (1, 1, 0, 0)
    redis.delete(*redis.keys("viewed:*"))  # as they end with the window
    tracker.record(script_of(visitor, subject))
    assert (views(redis, subject), *stages(subject)) == (2, 2, 0, 0)


@pytest.mark.parametrize("order", [*permutations(range(4))], ids=str)
def test_a_double_click_of_a_new_visitor_is_seen_once_in_whatever_order_it_arrives(
    redis: Redis, order: tuple[int, ...]
) -> None:
    subject = "site.post:1"
    hits = [
        page_of_newcomer("first", subject),
        page_of_newcomer("last", subject),
        script_of(Visitor("last"), subject, "address"),
        script_of(Visitor("last"), subject, "address"),
    ]
    for place in order:
        tracker.record(hits[place])
    assert (views(redis, subject), *stages(subject)) == (1, 1, 0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_people_who_share_an_address_are_seen_each_in_whatever_order_they_arrive(
    redis: Redis, seed: int
) -> None:
    subject, cookies = "site.post:1", [f"reader {number}" for number in range(8)]
    hits = [page_of_newcomer(cookie, subject) for cookie in cookies]
    hits += [script_of(Visitor(cookie), subject, "address") for cookie in cookies]
    Random(seed).shuffle(hits)
    for hit in hits:
        tracker.record(hit)
    assert (views(redis, subject), *stages(subject)) == (8, 8, 0, 0)


# What a user, a browser with a cookie, and browsers behind one address do, each in several forms.
USER = Visitor("user", fallback_id="cookie", kind="user")
OTHER_DEVICE = Visitor("user", fallback_id="tablet", kind="user")
VISITORS = (
    USER,
    OTHER_DEVICE,
    Visitor("cookie"),
    Visitor("tablet"),
    Visitor("address", kind="address"),
    *(Visitor(f"new {n}", fallback_id="address", new_cookie="new") for n in range(3)),
    *(Visitor(f"new {n}") for n in range(3)),
)
ACTS = ("page", "script", "engaged", "read", "reset", "flush", "lose", "window")


@pytest.mark.needs_parts("numbers")
@given(
    acts=st.lists(
        st.tuples(st.sampled_from(ACTS), st.integers(0, len(VISITORS) - 1)), min_size=5, max_size=40
    )
)
@hypothesis.settings(
    max_examples=examples(60),
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
    deadline=None,
)
def test_no_stage_counts_more_than_the_one_before_it_whatever_happens(
    redis: Redis, acts: list[tuple[str, int]]
) -> None:
    from readtrack.numbers import reports as numbers_reports

    redis.flushdb()
    post = factories.post()
    for act, number in acts:
        happen(act, VISITORS[number], post, redis)
        found = numbers_reports.reading(post)
        assert found.views >= found.seen >= found.engaged >= found.reads >= 0, (act, found)
    flush()
    post.refresh_from_db()
    stored = numbers_reports.reading(post)
    assert post.view_count == stored.views >= stored.seen >= stored.engaged >= stored.reads


def happen(act: str, visitor: Visitor, post: Post, redis: Redis) -> None:
    subject = f"site.post:{post.pk}"
    stand_in = "address" if visitor.id.startswith("new") and not visitor.new_cookie else ""
    told = {"visitor": visitor, "stand_in": stand_in, "is_report": True}
    if act == "page":
        tracker.record(factories.hit(subject, visitor=visitor))
    elif act == "script":
        tracker.record(factories.hit(subject, is_seen=True, **told))
    elif act in {"engaged", "read"}:
        text = Reading(subject, 5, 9, READS if act == "read" else ENGAGED)
        tracker.record(factories.hit(part_record=text, **told))
    elif act == "reset":
        tracker.reset_views(post)
    elif act == "flush":
        flush()
    elif act == "lose":
        redis.flushdb()
    elif windows := redis.keys("viewed:*"):
        redis.delete(*windows)
