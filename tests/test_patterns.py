"""What a SCAN looks for, in the site's own keys only."""

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.store import keys
from tests.support import factories


def test_a_prefix_with_glob_characters_matches_itself_only(redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {"PREFIX": "s[*]?\\:"}
    tracker.record(factories.hit("site.post:1"))
    redis.set("sx1:views:total:site.post:2", 5)
    redis.set("s[many]?\\:views:total:site.post:3", 5)
    assert redis.keys(keys.matching_totals()) == ["s[*]?\\:views:total:site.post:1"]


@pytest.mark.parametrize("prefix", ["", "site:"])
def test_the_kinds_of_a_thing_are_told_apart(prefix: str, redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {"PREFIX": prefix}
    for key in (keys.unique("a.b:1"), keys.bitmap("a.b:1"), keys.state("a.c:1", "read"), keys.state("a.c:1", "seen")):
        redis.set(key, 1)
    assert redis.keys(keys.matching_unique_sets()) == [f"{prefix}views:unique:a.b:1"]
    assert redis.keys(keys.matching_unique_bitmaps()) == [f"{prefix}views:bitmap:a.b:1"]
    assert len(redis.keys(keys.matching_read_state())) == 2
