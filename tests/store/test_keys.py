"""The keys, the table that lists them, and the patterns that find them."""

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.conf import conf
from readtrack.flush.run import flush
from readtrack.store import keys
from readtrack.store.keys import TAG
from tests.support import factories
from tests.support.rows import each_row

# What TYPE says where the table says more.
TYPES = {"HyperLogLog": "string", "bitmap": "string", "sorted set": "zset"}


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
    for key, (kind, ttl) in written.items():
        row, _ = keys.parse(key)
        assert row, key
        assert (
            row.type.replace("HyperLogLog", "string")
            .replace("bitmap", "string")
            .replace("sorted set", "zset")
            == kind
        )
        if isinstance(row.ttl, int):
            assert row.ttl - 60 < ttl <= row.ttl if row.ttl else ttl == -1, key
        else:
            setting = getattr(conf, row.ttl)
            # RATE is hits and seconds.
            seconds = setting[1] if isinstance(setting, tuple) else setting
            assert 0 < ttl <= seconds, key


def kinds_and_lives(redis: Redis) -> dict[str, tuple[str, int]]:
    return {str(key): (str(redis.type(key)), int(redis.ttl(key))) for key in redis.keys("*")}


def test_a_prefix_with_glob_characters_matches_itself_only(
    redis: Redis, settings: Settings
) -> None:
    settings.READTRACK = {"PREFIX": "s[*]?\\:"}
    tracker.record(factories.hit("site.post:1"))
    redis.set("sx1:views:total:site.post:2", 5)
    redis.set("s[many]?\\:views:total:site.post:3", 5)
    assert redis.keys(keys.matching("views:total:*")) == [TAG.sub("", keys.total("site.post:1"))]


@pytest.mark.parametrize("prefix", ["", "site:"])
def test_the_keys_of_each_kind_are_found_by_their_own_pattern(
    prefix: str, redis: Redis, settings: Settings
) -> None:
    settings.READTRACK = {"PREFIX": prefix}
    for key in (
        keys.unique("a.b:1"),
        keys.bitmap("a.b:1"),
        keys.read_bits("a.c:1"),
        keys.seen_counters("a.c:1"),
    ):
        redis.set(key, 1)
    assert redis.keys(keys.matching("views:unique:*")) == [f"{prefix}views:unique:a.b:1"]
    assert redis.keys(keys.matching("views:bitmap:*")) == [f"{prefix}views:bitmap:a.b:1"]
    assert len(redis.keys(keys.matching("category:*"))) == 2


@each_row(
    ("key", "kind"),
    [
        ("views:total:blog.post:a%3Ab", "views:total:{subject}"),
        ("views:hours:blog.post:1", "views:hours:{subject}"),
        ("views:hour:2026112009:blog.post", "views:hour:{hour}:{model}"),
        ("category:blog.category:1:read", "category:{subject}:read"),
        ("readers", "readers"),
        ("key", "other"),
        ("views:total", "other"),
        ("nonsense", "other"),
    ],
)
def test_a_key_is_known_by_the_table(key: str, kind: str) -> None:
    row, _ = keys.parse(key)
    assert (row.pattern if row else "other") == kind


@pytest.mark.needs_parts("cluster")
def test_a_subject_stays_in_its_partition_in_every_process_and_release(settings: Settings) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 64}}
    names = ["blog.post:1", "blog.post:2", "blog.category:d%C3%A9j%C3%A0"]
    assert [keys.tag(name) for name in names] == [
        ":{rt1d}",
        ":{rt27}",
        ":{rt10}",
    ]  # CRC-32 modulo 64
