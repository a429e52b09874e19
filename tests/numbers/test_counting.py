"""Stages and values are counted in hashes that stay small."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, tracker
from readtrack.hits.hit import Hit
from readtrack.hits.visitors import Visitor
from readtrack.numbers import live_counters
from readtrack.script import robots
from readtrack.store import counters, fragments, keys, packed, recording, scripts
from tests.support import factories
from tests.support.depth import examples
from tests.support.waiting import ENOUGH

TOKEN = "site.counted:1"  # its views enter the funnel
STAGES = ("view", "click", "convert")


def step(visitor: Visitor, stage: str) -> bool:
    [call] = recording.calls_of_steps(Hit(visitor, buckets.now(), steps=((TOKEN, stage),)))
    return bool(scripts.run(call))


def view(visitor: Visitor, redis: Redis) -> None:
    redis.delete(*redis.keys("viewed:*"), "-")
    assert tracker.record(factories.hit(TOKEN, visitor=visitor)).counted


def funnel() -> list[int]:
    found = counts("funnel", TOKEN)
    return [found[stage] for stage in STAGES]


def counts(family: str, *subjects: str) -> Counter[str]:
    found = live_counters.live_hashes(subjects, [family]).values()
    return sum((Counter(one.counts) for one in found), Counter[str]())


def test_a_visitor_passes_each_stage_once(redis: Redis) -> None:
    a = Visitor("a")
    view(a, redis)
    assert funnel() == [1, 0, 0]
    assert step(a, "click") is True
    assert step(a, "click") is False
    view(a, redis)
    assert step(a, "convert") is True
    assert step(a, "click") is False
    assert funnel() == [1, 1, 1]


def test_a_later_stage_that_comes_first_brings_the_earlier_ones(redis: Redis) -> None:
    a = Visitor("a")
    assert step(a, "convert")
    assert funnel() == [1, 1, 1]
    assert not step(a, "click")
    view(a, redis)
    assert funnel() == [1, 1, 1]


@pytest.mark.parametrize("key", ["funnel", "changed", "unsettled"])
def test_a_key_of_another_type_keeps_no_step_from_its_page(redis: Redis, key: str) -> None:
    a = Visitor("a")
    names = {
        "funnel": keys.funnel(TOKEN),
        "changed": keys.changed(keys.tag(TOKEN)),
        "unsettled": keys.unsettled(keys.tag(TOKEN)),
    }
    redis.set(names[key], "of somebody else")
    view(a, redis)
    assert step(a, "convert")
    assert not step(a, "click")
    assert funnel() == ([0, 0, 0] if key == "funnel" else [1, 1, 1])


def test_a_pass_ends_an_hour_after_its_latest_new_stage(redis: Redis) -> None:
    a = Visitor("a")
    view(a, redis)
    name = f"funnel:reached:a:{TOKEN}"
    redis.expire(name, 10)
    step(a, "click")
    assert 3_600 - ENOUGH < redis.ttl(name) <= 3_600
    redis.expire(name, 10)
    step(a, "click")
    view(a, redis)
    assert redis.ttl(name) <= 10
    redis.delete(name)
    step(a, "click")
    assert funnel() == [2, 2, 0]


def test_a_visitor_is_the_same_before_and_after_the_cookie(redis: Redis) -> None:
    view(Visitor("cookie1", fallback_id="address"), redis)
    assert step(Visitor("cookie1"), "click")
    view(Visitor("cookie2", fallback_id="address"), redis)  # who refuses the cookie
    assert step(Visitor("cookie3", fallback_id="address"), "click")
    assert not step(Visitor("cookie4", fallback_id="address"), "click")
    assert not step(Visitor("cookie3"), "click")
    assert funnel() == [2, 2, 0]


def test_a_stage_that_is_added_between_two_others_takes_nobody_on_a_second_time(
    redis: Redis, settings: Settings
) -> None:
    a, b = Visitor("a"), Visitor("b")
    step(a, "convert")
    step(b, "click")
    settings.READTRACK = {"NUMBERS": {"funnel": ["view", "click", "cart", "convert"]}}
    assert not step(a, "cart")
    assert not step(a, "convert")
    assert step(b, "convert")
    assert redis.hgetall(f"funnel:{TOKEN}") == dict.fromkeys(
        ("view", "click", "cart", "convert"), "2"
    )


def test_who_was_at_a_stage_that_is_gone_has_come_in(redis: Redis, settings: Settings) -> None:
    a = Visitor("a")
    step(a, "click")
    settings.READTRACK = {"NUMBERS": {"funnel": ["view", "convert"]}}
    assert step(a, "convert")
    assert redis.hgetall(f"funnel:{TOKEN}") == dict.fromkeys(("view", "click", "convert"), "1")


@hypothesis_settings(max_examples=examples(40))
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from(["", "x"]),
            st.sampled_from([*STAGES, "record", "expire"]),
        ),
        max_size=25,
    )
)
def test_no_stage_ever_counts_more_than_the_one_before(
    redis: Redis, settings: Settings, moves: list[tuple[str, str, str]]
) -> None:
    settings.READTRACK = {"RATE": (0, 10)}  # or six moves of one visitor would be too many
    redis.flushdb()
    for who, fallback_id, move in moves:
        if move == "record":
            view(Visitor(who, fallback_id), redis)
        elif move == "expire":
            redis.delete(f"funnel:reached:{who}:{TOKEN}")
        else:
            step(Visitor(who, fallback_id), move)
        found = funnel()
        assert found == sorted(found, reverse=True)


def test_views_enter_a_funnel_only_where_it_is_turned_on(settings: Settings, redis: Redis) -> None:
    tracker.record(factories.hit("site.post:1"))
    assert redis.keys("funnel:*") == []
    settings.READTRACK = {"NUMBERS": {"funnels": True, "funnel": ["seen", "sold"]}}
    tracker.record(factories.hit("site.post:1"))
    assert redis.hgetall("funnel:site.post:1") == {"seen": "1"}
    settings.READTRACK = {"NUMBERS": {"funnels": True, "funnel": []}}
    tracker.record(factories.hit("site.post:2"))
    assert not redis.exists("funnel:site.post:2")


def test_views_are_broken_down_by_every_dimension_of_the_hit(redis: Redis) -> None:
    for device in ("phone", "phone", "desktop"):
        tracker.record(
            factories.hit(
                "site.post:1", "site.post:2", dimensions=(("device", device), ("os", "BSD"))
            )
        )
    assert redis.hgetall("views:device:site.post:1") == {"phone": "2", "desktop": "1"}
    assert counts("views:device", "site.post:1", "site.post:2") == {"phone": 4, "desktop": 2}
    assert counts("views:os", "site.post:1", "site.post:3") == {"BSD": 3}


def test_a_repeat_is_not_broken_down(redis: Redis) -> None:
    hit = factories.hit("site.post:1", dimensions=(("device", "phone"),))
    tracker.record(hit)
    tracker.record(hit)
    assert redis.hgetall("views:device:site.post:1") == {"phone": "1"}


def refer(*values: str) -> Counter[str]:
    """Records a view with each value. Returns the breakdown."""
    for value in values:
        tracker.record(factories.hit("site.post:1", dimensions=(("referrer", value),)))
    return counts("views:referrer", "site.post:1")


def junk(number: int) -> list[str]:
    return [f"{uuid.uuid4()}.example" for _ in range(number)]


def test_up_to_fifty_values_are_counted_exactly() -> None:
    names = junk(50)
    assert refer(*names, names[7]) == {name: 1 + (name == names[7]) for name in names}


@pytest.mark.parametrize("before", [50, 51, 300])
def test_junk_that_came_first_does_not_keep_real_values_out(before: int) -> None:
    refer(*junk(before))
    found = refer(*["real.example", *junk(3)] * 10)
    assert 10 <= found["real.example"] <= 10 + before // 50
    assert (len(found), sum(found.values())) == (50, before + 40)
    assert "other" not in found


@pytest.fixture
def keep(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Returns a function by which the scripts keep that number of values."""

    def forget_sources() -> None:
        cached_functions: list[Any] = [fragments.counting_parts, scripts._source, scripts.digest]
        cached_functions += [packed._forms_at, packed._forms_of_minute]
        for cached in cached_functions:
            cached.cache_clear()

    def keep(number: int) -> None:
        monkeypatch.setattr(counters, "VALUES", number)
        forget_sources()

    yield keep
    forget_sources()


@hypothesis_settings(max_examples=examples(20))
@given(st.lists(st.integers(0, 30), min_size=20, max_size=120), st.integers(1, 12))
def test_counts_add_up_and_a_value_with_more_than_its_share_is_never_lost(
    redis: Redis, keep: Callable[[int], None], values: list[int], kept: int
) -> None:
    keep(kept)
    redis.flushdb()
    real, found = Counter(map(str, values)), refer(*map(str, values))
    assert sum(found.values()) == len(values)
    assert len(found) <= kept
    for value, count in real.items():
        assert found[value] >= count or count * kept <= len(values)
    # Too much is at most a share of the views (Metwally et al., 2005, lemma 4).
    assert all((count - real[value]) * kept <= len(values) for value, count in found.items())


def test_values_that_a_settling_left_over_become_other(redis: Redis) -> None:
    redis.hset(
        "views:referrer:site.post:1",
        mapping={"other": 1, **{f"old{number}": 5 for number in range(80)}},
    )
    found = refer("old7", "new")
    assert (len(found), found["other"], found["new"]) == (51, 1 + 30 * 5, 6)
    assert sum(found.values()) == 80 * 5 + 1 + 2


@pytest.mark.one_server("the script of a step does not see the rate of another partition")
def test_a_robot_of_the_honeypot_takes_no_step() -> None:
    robots.mark_robots(["a", "address"])
    assert not step(Visitor("a"), "click")
    assert not step(Visitor("b", fallback_id="address"), "click")
    assert funnel() == [0, 0, 0]
