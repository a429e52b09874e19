"""Every kind of key, model and database comes to the same."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.db.models import Model
from django.test.utils import override_settings
from redis import Redis

from readtrack import archives, databases, history, snapshots, subjects, tracker
from readtrack.flush import flush
from readtrack.models import Archive, Breakdown, History, Tracked
from readtrack.snapshots import Snapshot
from tests import factories
from tests.site.models import Headline, Journal, Page, Post, Product, Profile, Review

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "lite"])

KINDS: dict[str, Callable[[], Tracked]] = {
    "whole number": factories.post,
    "child of a tracked model": lambda: Review.objects.create(title="A"),
    "proxy": lambda: Headline.objects.create(title="A"),
    "UUID": lambda: Product.objects.create(id=uuid.uuid4()),
    "text": lambda: Page.objects.create(slug="a:b*/%?é"),
    "tracked child": lambda: Journal.objects.create(name="A"),
    "another's key, another column": lambda: Profile.objects.create(user=User.objects.create(username="a")),
}


class Lite:
    """Everything on SQLite."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        return "lite"

    db_for_write = db_for_read


class Apart:
    """The site's rows on one database, the app's on the other."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        return "lite" if model._meta.app_label == "readtrack" else "default"

    db_for_write = db_for_read


ROUTERS = pytest.mark.parametrize(
    "router", [[], ["tests.test_databases.Lite"], ["tests.test_databases.Apart"]], ids=["default", "lite", "apart"]
)


def view(obj: Tracked, times: int = 1) -> None:
    for _ in range(times):
        tracker.record(factories.hit(subjects.token(obj)))


@ROUTERS
@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())
def test_every_kind_is_written_settled_lifted_and_reset(
    make: Callable[[], Tracked], router: list[str], redis: Redis
) -> None:
    with override_settings(DATABASE_ROUTERS=router):
        obj = make()

        def stored() -> tuple[int, int]:
            obj.refresh_from_db()
            return obj.view_count, obj.visitor_count

        view(obj, 3)
        flush()
        assert stored() == (3, 3)
        redis.flushdb()
        view(obj, 2)
        flush(only_changed=True)
        assert stored()[0] == 5
        redis.set(f"views:total:{subjects.token(obj)}", 1)
        assert flush().lifted == 1
        assert redis.get(f"views:total:{subjects.token(obj)}") == "5"
        tracker.reset_views(obj)
        assert stored() == (0, 0)


@ROUTERS
def test_the_apps_own_rows_are_upserts(router: list[str]) -> None:
    with override_settings(DATABASE_ROUTERS=router):
        for views in (5, 3, 7):
            history.keep({"a": Snapshot(views, views), "b": Snapshot(1, 1)}, hour=1)
        assert list(History.objects.order_by("subject").values_list("subject", "views", "visitors")) == [
            ("a", 7, 7),
            ("b", 1, 1),
        ]
        rows = [("a", views, 1, bytes([views]), 1) for views in (2, 9)]
        for row in [*rows, *rows]:
            databases.upsert(Archive, ("subject",), ("views", "visitors", "sketch", "hour"), rows=[row])
        assert archives.sketches(["a", "b"]) == {"a": b"\x09"}
        databases.upsert(Breakdown, ("subject", "family", "field"), ("count",), rows=[])
        assert not Breakdown.objects.exists()


@ROUTERS
def test_rows_that_are_missing_or_ahead_are_told(router: list[str]) -> None:
    with override_settings(DATABASE_ROUTERS=router):
        low, high = factories.post(), factories.post()
        Post.objects.filter(pk=high.pk).update(view_count=9)
        written = snapshots.write(Post, {low.pk: Snapshot(2, 1), high.pk: Snapshot(5, 0), 10**9: Snapshot(1, 1)})
        assert (list(written.raised), written.ahead, list(written.missing)) == ([low.pk], {high.pk: 9}, [10**9])
        assert snapshots.write(Post, {high.pk: Snapshot(5, 3)}).ahead == {high.pk: 9}


@pytest.mark.parametrize("failures", [1, 2])
def test_a_lost_conflict_is_tried_twice_more(failures: int) -> None:
    left = [OperationalError("database is locked")] * failures

    def write() -> int:
        if left:
            raise left.pop()
        return 1

    assert databases.retried(connection, write) == 1


@pytest.mark.parametrize(("error", "is_conflict"), [((1213, "Deadlock"), True), (("gone",), False), ((), False)])
def test_only_conflicts_are_worth_another_try(error: tuple[Any, ...], is_conflict: bool) -> None:
    assert databases.is_conflict(OperationalError(*error)) == is_conflict


def test_a_conflict_that_lasts_is_told() -> None:
    def write() -> None:
        raise OperationalError("database is locked")

    with pytest.raises(OperationalError):
        databases.retried(connection, write)


# Deleting


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())
def test_what_a_deleted_row_had_goes_with_it(make: Callable[[], Tracked], redis: Redis) -> None:
    obj, other = make(), factories.post()
    token = subjects.token(obj)
    view(obj, 2)
    view(other)
    redis.hset(f"funnel:{token}", "view", 1)
    redis.zadd("views:unbased", {f"funnel:{token}": 1})
    flush()
    view(obj)
    flush(only_changed=True)
    assert History.objects.filter(subject=token).exists()
    obj.delete()
    lasting = [f"views:total:{token}", f"views:hll:{token}", f"funnel:{token}"]
    assert redis.exists(*lasting) == 0
    assert not History.objects.filter(subject=token).exists()
    assert not Breakdown.objects.exists()
    assert flush().orphans == 0
    assert redis.exists(f"views:total:{subjects.token(other)}")


def test_a_child_that_leaves_its_parent_leaves_the_counts(redis: Redis) -> None:
    review = Review.objects.create(title="A")
    view(review)
    token = subjects.token(review)
    review.delete(keep_parents=True)
    assert redis.get(f"views:total:{token}") == "1"


def test_a_deletion_that_is_rolled_back_takes_nothing(redis: Redis) -> None:
    post = factories.post()
    view(post)
    with transaction.atomic():
        post.delete()
        transaction.set_rollback(True)
    assert redis.get(f"views:total:{subjects.token_of(Post, Post.objects.get().pk)}") == "1"
