"""What a part keeps about subjects and visitors goes with what the core keeps of them.

The part is `tests.likes`. No list of the core names its tables and keys.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test import modify_settings
from pytest_django import Settings
from redis import Redis

from readtrack import buckets
from readtrack.flush import resets
from readtrack.flush.run import flush
from readtrack.hits.visitors import user_id
from readtrack.renames import follow, rename_model, rename_subject
from readtrack.sql import renaming, subject_tables
from readtrack.store import erasure, keys
from readtrack.subjects import subject_of
from tests.likes import keys as rows
from tests.support import factories
from tests.support.counts import view_times

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _part(transactional_db: None, redis: Redis) -> Iterator[None]:
    """Installs the part, and makes its tables."""
    with modify_settings(INSTALLED_APPS={"append": "tests.likes"}):
        models = [*apps.get_app_config("tests_likes").get_models()]
        with connection.schema_editor() as editor:
            for model in models:
                editor.create_model(model)
        yield
        with connection.schema_editor() as editor:
            for model in models:
                editor.delete_model(model)


def hour() -> str:
    return buckets.hour_bucket(buckets.now())


def today() -> str:
    return buckets.local_day_bucket(buckets.now())


def table(name: str) -> Any:
    return apps.get_model("tests_likes", name).objects


def keep(redis: Redis, subject: str, number: int = 1) -> None:
    """Keeps something about the subject in each table and key of the part."""
    table("LikesOfHour").create(subject=subject, hour=9, likes=number, note=subject)
    table("LikesOfHour").create(subject=f"undone:{subject}", hour=9, likes=number)
    table("LikesSeen").create(subject=subject, seen_by=7, times=number)
    redis.set(rows.likes(subject), number)
    redis.set(rows.likes_of_day(today(), subject), number)
    redis.sadd(rows.likers(subject), user_id(number))
    redis.hset(rows.reasons(subject), "fun", number)
    redis.set(rows.seen(subject), number)
    redis.zadd(rows.newest(keys.tag(subject), hour()), {subject: number})


def kept_in_sql() -> dict[str, int]:
    """Returns the likes by the name of the subject, and how often they were seen."""
    likes = table("LikesOfHour").values_list("subject", "likes")
    seen = table("LikesSeen").values_list("subject", "times")
    return {**dict(likes), **{f"seen:{subject}": times for subject, times in seen}}


def all_in_sql(subject: str, number: int) -> dict[str, int]:
    return dict.fromkeys((subject, f"undone:{subject}", f"seen:{subject}"), number)


def counts(redis: Redis, subject: str) -> list[Any]:
    """Returns what Redis has of the subject's likes: in all, today, by whom, and for fun."""
    return [
        redis.get(rows.likes(subject)),
        redis.get(rows.likes_of_day(today(), subject)),
        redis.smembers(rows.likers(subject)),
        redis.hget(rows.reasons(subject), "fun"),
    ]


NOTHING: list[Any] = [None, None, set(), None]


def test_its_tables_and_keys_are_known() -> None:
    names = {model.__name__ for model in subject_tables.every()}
    assert {"Archive", "LikesOfHour", "LikesSeen"} <= names
    assert set(rows.ROWS) <= set(keys.every())
    assert keys.parse(rows.likes("site.post:7")) == (
        rows.likes,
        {"tag": keys.tag("site.post:7"), "subject": "site.post:7"},
    )
    assert "likes:reason" in keys.hash_kinds()


def test_without_the_part_nobody_knows_them() -> None:
    with modify_settings(INSTALLED_APPS={"remove": "tests.likes"}):
        assert not set(rows.ROWS) & set(keys.every())
        modules = {model.__module__ for model in subject_tables.every()}
        assert "tests.likes.models" not in modules
        assert keys.parse(rows.likes("site.post:7")) == (None, {})


@pytest.mark.parametrize("is_of_model", [True, False])
def test_they_follow_a_new_name(redis: Redis, *, is_of_model: bool) -> None:
    before, after = "shop.topic:7", "shop.discussion:7"
    keep(redis, before, 2)
    keep(redis, "shop.topics:7", 5)
    if is_of_model:
        rename_model("shop.topic", "shop.discussion", pks=[7], using=None)
    else:
        rename_subject(before, after, using=None)
    follow()
    assert kept_in_sql() == {**all_in_sql(after, 2), **all_in_sql("shop.topics:7", 5)}
    assert table("LikesOfHour").get(subject=after).note == before
    assert counts(redis, before) == NOTHING
    assert counts(redis, after) == ["2", "2", {user_id(2)}, "2"]
    assert redis.get(rows.seen(after)) == "2"
    newest = redis.zrange(rows.newest(keys.tag(after), hour()), 0, -1, withscores=True)
    assert newest == [(after, 2.0), ("shop.topics:7", 5.0)]
    assert redis.ttl(rows.newest(keys.tag(after), hour())) > 0


def test_a_model_is_renamed_before_the_part_is_migrated(redis: Redis) -> None:
    keep(redis, "shop.topic:7")
    model = table("LikesSeen").model
    with connection.schema_editor() as editor:
        editor.delete_model(model)
    assert renaming.has_tables()
    rename_model("shop.topic", "shop.discussion", pks=[7], using=None)
    with connection.schema_editor() as editor:
        editor.create_model(model)
    assert kept_in_sql() == {"shop.discussion:7": 1, "undone:shop.discussion:7": 1}


def test_of_two_the_row_says_what_becomes(redis: Redis) -> None:
    keep(redis, "shop.topic:7", 2)
    keep(redis, "shop.topic:8", 3)
    redis.zadd("views:unsettled", {keys.member("likes:reason", "shop.topic:8"): 1})
    rename_subject("shop.topic:7", "shop.topic:8", using=None)
    follow()
    assert kept_in_sql() == all_in_sql("shop.topic:8", 3)
    assert counts(redis, "shop.topic:8") == ["5", "5", {user_id(2), user_id(3)}, "5"]
    assert redis.get(rows.seen("shop.topic:8")) == "3"  # the one that has the name stays
    assert redis.zscore("views:unsettled", keys.member("likes:reason", "shop.topic:8")) is None


def test_they_are_deleted_with_the_object(redis: Redis) -> None:
    post, category = factories.post(), factories.category()
    counted, read = subject_of(post), subject_of(category)
    keep(redis, counted)
    keep(redis, read)
    post.delete()
    category.delete()
    assert counts(redis, counted) == NOTHING
    assert not redis.exists(rows.seen(read))
    # Posts of the tests have no read state, and categories have no counts.
    likes = {read: 1, f"undone:{read}": 1}
    assert kept_in_sql() == {f"seen:{counted}": 1, **likes}


def test_a_reset_sets_counts_to_zero_and_leaves_what_was_seen(redis: Redis) -> None:
    subject = subject_of(factories.post())
    keep(redis, subject)
    resets.reset([subject])
    assert kept_in_sql() == {f"seen:{subject}": 1}
    assert counts(redis, subject) == NOTHING
    assert redis.exists(rows.seen(subject))


@pytest.mark.needs_parts("numbers")
def test_a_hash_that_settles_is_stored_as_those_of_the_core_are(redis: Redis) -> None:
    from readtrack.numbers.models import Breakdown

    post = factories.post()
    subject = subject_of(post)
    view_times(post)
    keep(redis, subject, 2)
    redis.zadd("views:unsettled", {keys.member("likes:reason", subject): 1})
    flush()
    stored = Breakdown.objects.get(kind="likes:reason")
    assert (stored.subject, stored.field, stored.count) == (subject, "fun", 2)


def test_a_visitor_is_erased(redis: Redis) -> None:
    subject = "site.post:7"
    keep(redis, subject)
    redis.sadd(rows.likers(subject), user_id(2))
    redis.set(rows.unlike(user_id(1), subject), 1)
    redis.set(rows.unlike(user_id(2), subject), 1)
    assert erasure.erase(1)[:2] == (1, 1)
    assert redis.smembers(rows.likers(subject)) == {user_id(2)}
    assert not redis.exists(rows.unlike(user_id(1), subject))
    assert redis.exists(rows.unlike(user_id(2), subject))


@pytest.mark.needs_parts("cluster")
@pytest.mark.one_server("begins without partitions, which a cluster refuses")
def test_keys_move_to_other_partitions(settings: Settings, redis: Redis) -> None:
    from readtrack.cluster import repartitioning

    settings.READTRACK = {"CLUSTER": {"partitions": 1}}
    subjects = ["site.post:1", "site.post:2", "site.post:3"]
    for number, subject in enumerate(subjects, 1):
        keep(redis, subject, number)
    redis.set(rows.switch(""), 1)
    settings.READTRACK = {"CLUSTER": {"partitions": 16}}
    repartitioning.move(1)
    assert len({*map(keys.tag, subjects)}) > 1
    for number, subject in enumerate(subjects, 1):
        tag = keys.tag(subject)
        text = str(number)
        assert counts(redis, subject) == [text, text, {user_id(number)}, text]
        assert redis.zscore(rows.newest(tag, hour()), subject) == number
        assert redis.get(rows.switch(tag)) == "1"
    assert not redis.exists("likes:total:site.post:1", "likes:switch", f"likes:newest:{hour()}")


@pytest.mark.needs_parts("metrics")
def test_the_budget_weighs_them() -> None:
    from readtrack.metrics import budget

    projected = budget.budget(posts=10, active=1.0, visitors=50, views=2400).projected
    assert projected[rows.likes.pattern].keys == 10
    assert projected[rows.likers.pattern].each > 50 * 16
