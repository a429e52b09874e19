"""The keys, the table that lists them, and the patterns that find them."""

import re

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.flush.run import flush
from readtrack.store import keys
from tests.support import factories


@pytest.mark.django_db
def test_the_table_lists_every_key_that_is_ever_written(redis: Redis) -> None:
    category, user = factories.category(), factories.user()
    post, browser = factories.post(), factories.browser(factories.user())
    factories.browser().get(f"/posts/{post.pk}/")
    browser.get(f"/categories/{category.pk}/")
    tracker.mark_read(user, [category])
    tracker.mark_unread([category])
    reports.trending()
    written = kinds_and_lives(redis)
    flush()
    written |= kinds_and_lives(redis)
    rows = table()
    for key, (kind, ttl) in written.items():
        pattern, (listed, life) = next((row for row in rows.items() if re.fullmatch(row[0], key)), (None, ("", "")))
        assert pattern, f"{key} is not in the table"
        assert listed.replace("HyperLogLog", "string").replace("bitmap", "string").replace("sorted set", "zset") == kind
        assert (ttl == -1) == (life == "none"), key


def kinds_and_lives(redis: Redis) -> dict[str, tuple[str, int]]:
    return {str(key): (str(redis.type(key)), int(redis.ttl(key))) for key in redis.keys("*")}


def table() -> dict[str, tuple[str, str]]:
    """Type and TTL by a pattern of the key, out of the docstring."""
    assert keys.__doc__
    rows = {}
    for line in keys.__doc__.splitlines():
        cells = re.split(r"\s{2,}", re.sub(r"(HyperLogLog|sorted set) ", r"\1  ", line.strip()))
        if len(cells) >= 4 and ":" in cells[0]:
            rows[re.sub(r"\\\{\w+\\\}", "[^:]+(?::[^:]+)?", re.escape(cells[0]))] = (cells[1], cells[2])
    return rows


def test_a_prefix_with_glob_characters_matches_itself_only(redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {"PREFIX": "s[*]?\\:"}
    tracker.record(factories.hit("site.post:1"))
    redis.set("sx1:views:total:site.post:2", 5)
    redis.set("s[many]?\\:views:total:site.post:3", 5)
    assert redis.keys(keys.total.matching) == ["s[*]?\\:views:total:site.post:1"]


@pytest.mark.parametrize("prefix", ["", "site:"])
def test_the_kinds_of_a_thing_are_told_apart(prefix: str, redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {"PREFIX": prefix}
    for key in (keys.unique("a.b:1"), keys.bitmap("a.b:1"), keys.state("a.c:1", "read"), keys.state("a.c:1", "seen")):
        redis.set(key, 1)
    assert redis.keys(keys.unique.matching) == [f"{prefix}views:unique:a.b:1"]
    assert redis.keys(keys.bitmap.matching) == [f"{prefix}views:bitmap:a.b:1"]
    assert len(redis.keys(keys.read_bits.matching)) == 2
