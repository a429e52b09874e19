"""The strategies for unique visitors give the same numbers, as exactly as each of them can."""

from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.hits.visitors import Visitor
from readtrack.store import scripts, uniques
from readtrack.store.scripts import Call
from readtrack.store.uniques import UniquesError
from tests.site.models import Post
from tests.support import factories
from tests.support.partitions import asked

ALL = ["hll", "set", "daily", "bitmap"]


def use(settings: Settings, strategy: str) -> None:
    settings.READTRACK = {"UNIQUE": strategy, "RATE": (0, 10)}


def come(redis: Redis, subject: str, *visitors: int, **values: Any) -> None:
    """Lets each of the visitors view the subject, each in a window of its own."""
    for number in visitors:
        redis.delete(*redis.keys("viewed:*"), "-")
        tracker.record(
            factories.hit(subject, visitor=Visitor(f"v{number}"), reader=number, **values)
        )


def count(*subjects: str) -> list[int]:
    return list(asked(uniques.visitors, subjects).values())


@pytest.mark.parametrize("strategy", ALL)
def test_a_visitor_is_unique_however_often_they_come(
    settings: Settings, redis: Redis, strategy: str
) -> None:
    use(settings, strategy)
    come(redis, "site.post:1", 1, 2, 1, 3, 1)
    assert count("site.post:1", "site.post:2") == [3, 0]
    assert redis.get("views:total:site.post:1") == "5"


@pytest.mark.parametrize("strategy", ALL)
def test_a_view_that_does_not_count_has_no_visitor(
    settings: Settings, redis: Redis, strategy: str
) -> None:
    use(settings, strategy)
    hit = factories.hit("site.post:1", "site.post:2", reader=1)
    tracker.record(hit)
    redis.delete(*redis.keys("views:*"))
    tracker.record(hit)
    assert redis.keys("views:*") == []


OF_DAY = "views:hll:day:20261120:site.post:1"


@pytest.mark.parametrize(
    ("strategy", "name", "day"),
    [
        ("hll", "views:hll:site.post:1", ""),
        ("set", "views:unique:site.post:1", ""),
        ("daily", "views:daily:site.post:1", "views:unique:day:20261120:site.post:1"),
        ("bitmap", "views:bitmap:site.post:1", ""),
    ],
)
def test_each_strategy_has_keys_of_its_own(
    settings: Settings, redis: Any, noon: Any, strategy: str, name: str, day: str
) -> None:
    use(settings, strategy)
    come(redis, "site.post:1", 1, 2, at=noon)
    own = {
        key
        for key in redis.keys("views:*")
        if key.split(":")[1] not in {"total", "hour", "hours", "unsettled", "changed"}
    }
    own.discard(OF_DAY)
    assert own == {name, day} - {""}
    assert redis.ttl(name) == -1
    assert not day or 172_700 < redis.ttl(day) <= 172_800


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize("strategy", ["hll", "set", "daily", "bitmap"])
def test_the_visitors_of_a_day_are_a_sketch_whatever_the_strategy(
    settings: Settings, redis: Any, noon: Any, strategy: str
) -> None:
    use(settings, strategy)
    come(redis, "site.post:1", 1, 2, at=noon)
    assert redis.pfcount(OF_DAY) == 2
    assert 259_100 < redis.ttl(OF_DAY) <= 259_200


def test_the_model_chooses_before_the_site(settings: Settings, redis: Redis) -> None:
    use(settings, "set")
    come(redis, "site.counted:1", 1, 2)
    come(redis, "site.post:1", 1)
    come(redis, "gone.model:1", 1, 2, 3)
    assert redis.bitcount("views:bitmap:site.counted:1") == 2
    assert redis.scard("views:unique:site.post:1") == 1
    assert count("site.counted:1", "site.post:1", "gone.model:1") == [2, 1, 3]


def test_one_hit_may_view_subjects_of_several_strategies(redis: Redis) -> None:
    outcome = tracker.record(
        factories.hit("site.counted:1", "site.post:1", "site.counted:2", reader=7)
    )
    assert len(outcome.counted) == 3
    assert count("site.counted:1", "site.post:1", "site.counted:2") == [1, 1, 1]
    assert redis.getbit("views:bitmap:site.counted:2", 7) == 1


def test_changing_the_strategy_begins_anew_and_harms_nothing(
    settings: Settings, redis: Redis
) -> None:
    for strategy in [*ALL, *ALL]:
        use(settings, strategy)
        come(redis, "site.post:1", 1, 2)
        assert count("site.post:1") == [2] or strategy == "daily"
    assert {"views:hll:site.post:1", "views:unique:site.post:1", "views:bitmap:site.post:1"} <= set(
        redis.keys()
    )


def test_an_unknown_strategy_is_the_default(settings: Settings, redis: Redis) -> None:
    use(settings, "guess")
    come(redis, "site.post:1", 1)
    assert redis.exists("views:hll:site.post:1")


def test_an_anonymous_visitor_is_not_counted_in_a_bitmap(settings: Settings, redis: Redis) -> None:
    use(settings, "bitmap")
    tracker.record(factories.hit("site.post:1"))
    assert count("site.post:1") == [0]
    assert redis.get("views:total:site.post:1") == "1"


def test_the_daily_count_adds_up_days(settings: Settings, redis: Redis, noon: Any) -> None:
    use(settings, "daily")
    for day in (20, 20, 21):
        come(redis, "site.post:1", 1, at=noon.replace(day=day))
    assert count("site.post:1") == [2]


@pytest.mark.parametrize("visitors", [10, 1_000, 100_000])
def test_estimates_are_as_close_as_they_claim_and_the_rest_is_exact(
    redis: Redis, visitors: int
) -> None:
    pipeline = redis.pipeline(transaction=False)
    for start in range(0, visitors, 1_000):
        members = [f"v{number:015}" for number in range(start, min(start + 1_000, visitors))]
        pipeline.pfadd("views:hll:a.b:1", *members)
        pipeline.sadd("views:unique:a.b:1", *members)
    pipeline.setrange("views:bitmap:a.b:1", 0, b"\xff" * (visitors // 8))
    pipeline.execute()
    exact = redis.scard("views:unique:a.b:1")
    assert exact == visitors
    assert abs(count("a.b:1")[0] - exact) <= 3 * 0.0081 * exact
    assert (redis.memory_usage("views:hll:a.b:1") or 0) < 16_000
    assert redis.bitcount("views:bitmap:a.b:1") == visitors // 8 * 8


@pytest.mark.parametrize("strategy", ["hll", "set", "bitmap"])
def test_a_visitor_of_several_objects_is_one_visitor_of_all_together(
    settings: Settings, redis: Redis, strategy: str
) -> None:
    use(settings, strategy)
    come(redis, "site.post:1", 1, 2, 3)
    come(redis, "site.post:2", 2, 3, 4)
    before = set(redis.keys())
    assert uniques.visitors_together(["site.post:1", "site.post:2", "site.post:3"]) == 4
    assert uniques.visitors_together([]) == 0
    assert set(redis.keys()) == before


def test_many_bitmaps_of_any_length_are_counted_together(settings: Settings, redis: Redis) -> None:
    use(settings, "bitmap")
    for subject, reader in enumerate((0, 8_000_003, 8_000_003, *range(9, 50))):
        redis.setbit(f"views:bitmap:site.post:{subject}", reader, 1)
    assert uniques.visitors_together([f"site.post:{subject}" for subject in range(50)]) == 43


def test_sets_too_large_to_be_looked_at_are_refused(
    settings: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(settings, "set")
    monkeypatch.setattr(uniques, "UNION_LIMIT", 3)
    redis.sadd("views:unique:site.post:1", 1, 2)
    redis.sadd("views:unique:site.post:2", 1)
    assert uniques.visitors_together(["site.post:1", "site.post:2"]) == 2
    redis.sadd("views:unique:site.post:2", 2)
    with pytest.raises(UniquesError, match="more than 3 members"):
        uniques.visitors_together(["site.post:1", "site.post:2"])


def test_a_question_that_a_strategy_cannot_answer_is_an_error(settings: Settings) -> None:
    use(settings, "daily")
    with pytest.raises(UniquesError, match="'daily' cannot tell"):
        uniques.visitors_together(["site.post:1"])
    with pytest.raises(UniquesError, match=r"different ways \(bitmap, daily\)"):
        uniques.visitors_together(["site.post:1", "site.counted:1"])


@pytest.mark.needs_parts("numbers")
def test_a_site_may_count_no_visitors(settings: Settings, redis: Any) -> None:
    settings.READTRACK = {"UNIQUE": "none"}
    come(redis, "site.post:1", 1, 2)
    assert redis.get("views:total:site.post:1") == "2"
    assert count("site.post:1") == [0]
    kinds = {key.split(":")[1] for key in redis.keys("views:*")}
    assert kinds == {"total", "hour", "hours", "unsettled", "changed"}


def test_a_model_may_count_no_visitors(
    settings: Settings, redis: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Post, "unique_strategy", "none")
    settings.READTRACK = {}
    come(redis, "site.post:1", 1, 2)
    come(redis, "site.product:1", 1, 2)
    assert count("site.post:1", "site.product:1") == [0, 2]
    assert redis.keys("views:hll:*site.post*") == []
    assert redis.exists("views:hll:site.product:1")


def sketch_of(key: str) -> bytes:
    sketch: bytes = scripts.run(Call("GET", [key]))
    return sketch


@pytest.mark.one_server("its keys are of no partition")
def test_a_union_passes_over_what_is_no_sketch(redis: Redis) -> None:
    redis.pfadd("one", "a", "b")
    redis.pfadd("live", "b", "c")
    redis.set("broken", "no sketch")
    one = sketch_of("one")
    for sketches in ([one], [one, b"junk"], [b"", one]):
        assert scripts.run(uniques.union(sketches, tag="", live=["live", "gone"])).visitors == 3
    assert scripts.run(uniques.union([one], tag="", live=["broken"])).visitors == 2
    assert scripts.run(uniques.union([], tag="")).visitors == 0
    assert redis.get("broken") == "no sketch"


@pytest.mark.one_server("its keys are of no partition")
@pytest.mark.parametrize(("people", "is_small"), [(200, True), (5_000, False)])
def test_a_union_is_what_redis_makes_of_the_sketches(
    redis: Redis, people: int, *, is_small: bool
) -> None:
    redis.pfadd("one", *range(people))
    redis.pfadd("two", *range(people // 2, people + people // 2))
    sketches = [sketch_of("one"), sketch_of("two")]
    redis.pfmerge("both", "one", "two")
    number = redis.pfcount("both")  # and keeps it in the sketch, as the union does
    assert scripts.run(uniques.union(sketches, tag="")) == (number, b"")
    assert scripts.run(uniques.union(sketches, tag="", wants_sketch=True)) == (
        number,
        sketch_of("both"),
    )
    assert (len(sketch_of("both")) < 3_000) is is_small


@pytest.mark.one_server("it starts its own")
def test_a_union_writes_nothing_into_the_append_only_file(start_redis: Any) -> None:
    client = start_redis(appendonly="yes").client()
    client.pfadd("one", *range(5000))
    one = sketch_of("one")
    size = client.info("persistence")["aof_current_size"]
    assert scripts.run(uniques.union([one] * 20, tag="")).visitors > 4000
    client.set("x", "1")  # so that the file is written
    assert client.info("persistence")["aof_current_size"] - size < 1000
    assert set(client.keys()) == {b"one", b"x"}
