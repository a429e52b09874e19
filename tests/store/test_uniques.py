"""Unique visitors are counted closely enough, in little room."""

from redis import Redis

from readtrack import tracker
from readtrack.store import scripts, uniques
from readtrack.visitors import Visitor
from tests import factories


def test_a_visitor_is_unique_however_often_they_come(redis: Redis) -> None:
    for visitor in ("a", "b", "a"):
        redis.delete("viewed:a:a.b:1")
        tracker.record(factories.hit("a.b:1", visitor=Visitor(visitor)))
    assert scripts.run(uniques.visitors(["a.b:1", "a.b:2"])) == {"a.b:1": 2, "a.b:2": 0}


def test_thousands_are_told_within_three_percent(redis: Redis) -> None:
    redis.pfadd("views:hll:a.b:1", *range(20_000))
    assert abs(scripts.run(uniques.visitors(["a.b:1"]))["a.b:1"] - 20_000) < 600
