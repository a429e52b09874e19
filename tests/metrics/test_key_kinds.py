"""The memory of keys is estimated by kind."""

from typing import Any

import pytest
from django.test.utils import override_settings
from redis import Redis

from readtrack import tracker
from readtrack.metrics import memory
from readtrack.store import keys, scripts
from tests.support import factories


@pytest.mark.parametrize("prefix", ["", "site[*]:"])
@pytest.mark.usefixtures("new_redis")
def test_every_key_is_weighed_by_its_kind(redis: Redis, prefix: str) -> None:
    with override_settings(READTRACK={"PREFIX": prefix}):
        for _ in range(3):
            tracker.record(factories.hit(*factories.subjects("site.post", 2)))
        redis.set("a cache's own", "x" * 1000)
        redis.set(":1:views.decorators.cache.cache_page.x", "somebody else's")
        kinds = memory.key_kinds()
    assert {name: kind.keys for name, kind in kinds.items()} == {
        "views:total:{subject}": 2,
        "views:hours:{subject}": 2,
        "views:hour:{hour}:{model}": 1,
        "views:hll:{subject}": 2,
        "views:hll:day:{date}:{subject}": 2,
        "views:unsettled": 1,
        "views:changed": 1,
        "viewed:{visitor}:{subject}": 6,
        "rate:{visitor}": 3,
        "trending:bucket:{minute}": 1,
        "visitors:minute:{minute}:{model}": 1,
        "other": 2,
    }
    assert kinds["other"].total > 1000
    assert 50 < kinds["views:total:{subject}"].each < 150
    assert next(iter(kinds)) == "other"
    assert [kind.total for kind in kinds.values()] == sorted(
        (kind.total for kind in kinds.values()), reverse=True
    )


@pytest.mark.usefixtures("new_redis")
def test_a_sample_of_the_keys_stands_for_all_of_them(redis: Redis) -> None:
    redis.mset({f"views:total:site.post:{number}": 1 for number in range(20_000)})
    for limit in (500, 2500, 9999, 50_000):
        [(name, kind)] = memory.key_kinds(limit).items()
        assert (name, kind.keys) == ("views:total:{subject}", 20_000), limit
        assert 30 * 20_000 < kind.total < 400 * 20_000, limit


def test_kinds_in_a_sample_have_their_shares(redis: Redis) -> None:
    redis.mset({f"views:total:site.post:{number}": 1 for number in range(8000)})
    redis.mset({f"rate:v{number}": 1 for number in range(2000)})
    kinds = memory.key_kinds(2000)
    assert kinds["views:total:{subject}"].keys == pytest.approx(8000, rel=0.1)
    assert kinds["rate:{visitor}"].keys == pytest.approx(2000, rel=0.3)


@pytest.mark.usefixtures("new_redis")
def test_an_empty_redis_has_no_kinds() -> None:
    assert memory.key_kinds() == {}


@pytest.mark.usefixtures("new_redis")
def test_a_key_that_is_gone_weighs_nothing(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    def expired(*calls: Any, run_all: Any = scripts.run_all, **named: Any) -> list[Any]:
        redis.flushdb()
        found: list[Any] = run_all(*calls, **named)
        return found

    redis.set("gone", 1)
    monkeypatch.setattr(scripts, "run_all", expired)
    assert memory.key_kinds() == {"other": memory.KeyKind(1, 0, 0)}


@pytest.mark.usefixtures("new_redis")
def test_the_measured_size_equals_that_of_a_new_key_and_no_key_remains(redis: Redis) -> None:
    wanted = {keys.unique: 20_000, keys.hll: 20_000, keys.bitmap: 8_000_000, keys.total: 1}
    visitors, sketch, bitmap, total = (
        memory.weigh(row, length=30, members=count) for row, count in wanted.items()
    )
    assert 30 < visitors / 20_000 < 120
    assert 12_288 < sketch < 20_000
    assert 1_000_000 < bitmap < 2_200_000
    assert 60 < total < 120
    assert redis.keys() == []
