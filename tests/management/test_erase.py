"""`manage.py readtrack erase`."""

import uuid
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.hits import visitors
from readtrack.store import keys, read_state
from tests.support import factories
from tests.support.factories import BROWSER

pytestmark = pytest.mark.django_db


def erase(*words: object, **options: object) -> str:
    out = StringIO()
    call_command("readtrack", "erase", *map(str, words), stdout=out, **options)
    return out.getvalue()


def test_one_user_is_erased_and_the_others_stay(redis: Redis) -> None:
    post, category = factories.post(), factories.category()
    users = [factories.user() for _ in range(3)]
    for user in users:
        client = Client()
        client.force_login(user)
        for path in (f"/posts/{post.pk}/", f"/categories/{category.pk}/"):
            client.get(path, headers={"User-Agent": BROWSER})
    gone, *stay = (visitors.user_id(user.pk) for user in users)
    said = erase(users[0].pk, by="id")
    assert not redis.keys(f"*{gone}*")
    assert [len(redis.keys(f"*{name}*")) for name in stay] == [2, 2]
    bits = [redis.getbit(f"category:site.category:{category.pk}:read", user.pk) for user in users]
    assert bits == [0, 1, 1]
    assert redis.get(f"views:total:site.post:{post.pk}") == "3"
    assert said.startswith(
        "Erased 2 keys, 0 members of sets, 1 bit of bitmaps, 0 rows in SQL and 0 records of parts.\n"
    )
    assert "HyperLogLog" in said
    assert erase(users[0].username).startswith(
        "Erased 0 keys, 0 members of sets, 0 bits of bitmaps, 0 rows in SQL and 0 records of parts.\n"
    )


def test_a_sketch_of_few_visitors_still_tells_whoever_has_the_key_who_was_there(
    redis: Redis,
) -> None:
    post, user, other = factories.post(), factories.user(), factories.user()
    factories.browser(user).get(f"/posts/{post.pk}/")
    assert "Whoever has the key" in erase(user.username)
    sketch = f"views:hll:site.post:{post.pk}"
    assert [redis.pfadd(sketch, visitors.user_id(one.pk)) for one in (user, other)] == [0, 1]


def test_every_kind_of_key_is_searched(settings: Settings, redis: Redis) -> None:
    settings.READTRACK = {"PREFIX": "si*te:"}
    user = factories.user()
    me, other = visitors.user_id(user.pk), "otherotherother0"
    for key in ("views:unique:site.post:1", "views:unique:day:20261120:site.post:1"):
        redis.sadd(f"si*te:{key}", me, other)
        redis.sadd(f"site:{key}", me)
    redis.set("si*te:views:unique:count:site.post:1", 2)
    redis.set(f"si*te:funnel:reached:{me}:site.post:1", "click")
    for key in ("views:bitmap:site.post:1", "category:x.y:1:read"):
        redis.setbit(f"si*te:{key}", user.pk, 1)
        redis.setbit(f"si*te:{key}", user.pk + 1, 1)
    redis.set("si*te:category:x.y:2:read", b"")
    redis.setbit("si*te:category:x.y:2:read", 1, 0)
    redis.bitfield("si*te:category:x.y:1:seen").set("u32", f"#{user.pk + 1}", 7).set(
        "u32", "#0", 9
    ).execute()
    redis.set("si*te:category:x.y:1:published", "1")
    assert erase(user.pk, by="id").startswith(
        "Erased 1 key, 2 members of sets, 3 bits of bitmaps, 0 rows in SQL and 0 records of parts.\n"
    )
    assert redis.smembers("si*te:views:unique:site.post:1") == {other}
    assert redis.smembers("si*te:views:unique:day:20261120:site.post:1") == {other}
    assert redis.smembers("site:views:unique:site.post:1") == {me}
    assert redis.bitcount("si*te:views:bitmap:site.post:1") == 1
    assert redis.getbit("si*te:category:x.y:1:read", user.pk + 1) == 1
    assert redis.strlen("si*te:category:x.y:2:read") == 1
    assert redis.bitfield("si*te:category:x.y:1:seen").get("u32", "#0").execute() == [9]
    assert redis.bitfield("si*te:category:x.y:1:seen").get("u32", f"#{user.pk + 1}").execute() == [
        0
    ]
    assert redis.get("si*te:category:x.y:1:published") == "3"  # later, for each of its two states


def test_an_erased_reader_leaves_a_number_that_no_other_reader_gets(redis: Redis) -> None:
    name, readers = str(uuid.uuid4()), keys.readers(keys.tag("x.y:1"))
    redis.hset(readers, mapping={"a": 0, str(read_state.field(name)): 1, "b": 2})
    redis.bitfield("category:x.y:1:seen:ordinal").set("u32", "#2", 3).execute()
    for reader in range(3):
        redis.setbit("category:x.y:1:read:ordinal", reader, 1)
        redis.setbit("category:x.y:1:read", reader, 1)
    numbered = redis.hgetall(readers)
    would_erase = tracker.erase(uuid.UUID(name), is_dry_run=True)
    assert redis.hgetall(readers) == numbered
    erased = tracker.erase(uuid.UUID(name))
    assert erased == would_erase
    assert (erased.keys, erased.members, erased.bits) == (0, 0, 2)
    assert [redis.getbit("category:x.y:1:read:ordinal", reader) for reader in range(3)] == [1, 0, 1]
    assert redis.bitcount("category:x.y:1:read") == 3
    assert redis.hgetall(readers) == {"a": "0", "b": "2", "!1": "1"}


@pytest.mark.parametrize("number", [8, 2**27, 2**32, 2**70, -1])
def test_a_number_beyond_all_bits_allocates_nothing(redis: Redis, number: int) -> None:
    redis.set("category:x.y:1:read", "x")
    redis.set("category:x.y:1:seen", "x")
    assert tracker.erase(number).bits == 0
    assert (redis.strlen("category:x.y:1:read"), redis.strlen("category:x.y:1:seen")) == (1, 1)


@pytest.mark.usefixtures("new_redis")
def test_thousands_of_keys_are_worked_through_in_portions(redis: Redis) -> None:
    user = factories.user()
    me = visitors.user_id(user.pk)
    with redis.pipeline() as pipeline:
        for number in range(5000):
            pipeline.set(f"viewed:{me}:site.post:{number}", 1)
            pipeline.sadd(f"views:unique:site.post:{number}", me)
        pipeline.execute()
    looked_at: list[int] = []
    erased = tracker.erase(user.pk, progress=looked_at.append)
    assert (erased.keys, erased.members) == (5000, 5000)
    assert redis.dbsize() == 0
    assert len(looked_at) > 8
    assert sum(looked_at) == 1000 * len(looked_at)


def test_a_deleted_account_is_erased_by_its_id(redis: Redis) -> None:
    redis.set(f"viewed:{visitors.user_id(4242)}:site.post:1", 1)
    with pytest.raises(CommandError, match="no user '4242'"):
        erase(4242)
    assert erase(4242, by="id").startswith("Erased 1 key, ")


@pytest.mark.usefixtures("new_redis")
def test_a_name_that_is_also_an_id_is_taken_for_the_name(redis: Redis) -> None:
    user = factories.user()
    namesake = factories.user(username=str(user.pk))
    for one in (user, namesake):
        redis.set(f"viewed:{visitors.user_id(one.pk)}:site.post:1", 1)
    erase(user.pk)
    assert redis.keys() == [f"viewed:{visitors.user_id(user.pk)}:site.post:1"]


def test_the_command_says_that_it_knows_no_such_user() -> None:
    with pytest.raises(CommandError, match="no user 'nobody'"):
        erase("nobody")
    with pytest.raises(CommandError, match="not the id"):
        erase("nobody", by="id")


def test_silence_is_kept_on_demand() -> None:
    assert erase(factories.user().username, verbosity=0) == ""


def test_the_command_says_that_redis_fails(settings: Settings) -> None:
    user = factories.user()
    settings.CACHES = {
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": "redis://127.0.0.1:1/0",
        },
    }
    with pytest.raises(
        CommandError, match=r"(?s)Redis failed.*\nWhat was done stays. Run it again.$"
    ):
        erase(user.username)


@pytest.mark.needs_parts("digest")
def test_when_a_user_got_the_last_digest_is_erased_and_that_it_is_stopped_stays() -> None:
    from readtrack.digest.models import DigestReader

    user, stopped = factories.user(), factories.user()
    DigestReader.objects.create(user=str(user.pk))
    DigestReader.objects.create(user=str(stopped.pk), is_stopped=True)
    assert "1 record of parts" in erase(user.username, dry_run=True)
    assert "1 record of parts" in erase(user.username)
    assert "0 records of parts" in erase(stopped.username)
    assert [row.user for row in DigestReader.objects.all()] == [str(stopped.pk)]
