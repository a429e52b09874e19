"""Options of a site are recorded with the view: in one round trip, with every key declared."""

from typing import Any

import pytest
from pytest_django import Settings

from readtrack import buckets, tracker
from readtrack.hits.visitors import Visitor
from readtrack.store import counters, keys, read_state, recording, scripts
from readtrack.store.counting import count_views
from tests.support import factories
from tests.support.wire import Wire

EVERYTHING: dict[str, Any] = {
    "NUMBERS": {"funnels": True, "dimensions": ["device", "browser", "os", "country", "referrer"]},
}
VALUES = (
    ("device", "phone"),
    ("browser", "Firefox"),
    ("os", "Android"),
    ("country", "DE"),
    ("referrer", "a.example"),
)


@pytest.mark.parametrize("strategy", ["hll", "set", "daily", "bitmap"])
@pytest.mark.parametrize("fallback_id", ["", "address"])
def test_with_everything_on_a_hit_is_one_round_trip_and_declares_its_keys(
    wire: Wire, settings: Settings, redis: Any, strategy: str, fallback_id: str
) -> None:
    settings.READTRACK = {**EVERYTHING, "UNIQUE": strategy, "PREFIX": "site:"}
    hit = factories.hit(
        "site.post:1",
        "site.counted:2",
        visitor=Visitor("a", fallback_id),
        reads=("site.category:1",),
        reader=3,
        dimensions=VALUES,
    )
    tracker.record(factories.hit("site.post:9"))  # makes the connection
    redis.flushdb()
    read_state.begin(0)
    with wire.counted() as trips:
        outcome = tracker.record(hit)
    assert trips == [1]
    assert outcome.counted == ("site.post:1", "site.counted:2")
    assert outcome.read == ("site.category:1",)
    [mark] = read_state.marks(1, hit.reads)
    assert set(redis.keys()) <= {*count_views(hit).keys, *mark.keys}
    assert all(key.startswith("site:") for key in redis.keys("*"))
    assert not tracker.record(hit).counted


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize("prefix", ["site:", "café:"])  # Redis counts bytes
@pytest.mark.one_server("each partition has a list of its own")
def test_what_changed_is_named_without_the_prefix(
    prefix: str, settings: Settings, redis: Any
) -> None:
    from readtrack.numbers import hours_of_models

    settings.READTRACK = {"PREFIX": prefix}
    hit = factories.hit("site.post:1")
    tracker.record(hit)
    hour = hours_of_models.hour_name("site.post", buckets.hour_index(hit.at))
    named = redis.zrange(keys.unsettled(""), 0, -1)
    assert {name for name in named if not name.startswith("epoch")} == {"site.post:1", hour}
    assert scripts.run(counters.settled_totals(["site.post:1"])) == (1, [None])


@pytest.mark.needs_parts("numbers")
def test_by_default_a_hit_has_eleven_keys_and_no_options() -> None:
    hit = factories.hit("site.post:1", at=buckets.now())
    call = count_views(hit)
    assert (len(call.keys), call.args[-1]) == (11, "site.post:1")


@pytest.mark.one_server("with partitions no script runs for it")
def test_reading_alone_takes_the_short_way_whatever_is_on(settings: Settings) -> None:
    settings.READTRACK = EVERYTHING
    hit = factories.hit(reads=("site.category:1",), reader=1)
    assert recording.by_partition(hit) == []


@pytest.mark.parametrize("row", [keys.changed, keys.unsettled], ids=["changed", "unsettled"])
def test_a_list_of_another_type_keeps_no_view_from_being_counted(redis: Any, row: Any) -> None:
    subject = "site.post:1"
    redis.set(row(keys.tag(subject)), "of somebody else")
    for visitor in ("ann", "bob"):
        hit = factories.hit(subject, visitor=Visitor(visitor), is_seen=True)
        assert tracker.record(hit).counted == (subject,)
    assert scripts.run(counters.totals([subject]))[subject].views == 2
    number_of_totals, _ = scripts.run(counters.settled_totals([subject]))
    assert number_of_totals == 1
