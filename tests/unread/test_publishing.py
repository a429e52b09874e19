"""Publishing by a call: what becomes unread, for whom, and what happens while Redis is gone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection, connections, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from redis import Redis

from readtrack import reports, scheduled, tracker
from readtrack.models import PendingPublication
from readtrack.store import keys, scripts
from readtrack.store.connection import RedisError
from readtrack.unread.publishing import categories_of
from tests.site.models import Article, Category, Page, Post, Product, Shelf
from tests.support import factories
from tests.support.bounds import set_most_bits

pytestmark = pytest.mark.django_db(transaction=True)


def nowhere(settings: Any) -> Any:
    """Returns CACHES in which Redis is gone."""
    return {"default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}}


@contextmanager
def refusing(verb: str) -> Iterator[None]:
    """Makes the database refuse such statements about the outbox."""

    def refuse(execute: Callable[..., Any], sql: str, *args: Any) -> Any:
        if sql.startswith(verb) and PendingPublication._meta.db_table in sql:
            raise OperationalError("gone")
        return execute(sql, *args)

    with connection.execute_wrapper(refuse):
        yield


class Killed(BaseException):
    """The death of the process."""


@contextmanager
def crash_after_commit(alias: str = "default") -> Iterator[None]:
    """Ends the block like a process that dies between a commit and what comes after it."""

    def die() -> None:
        connections[alias].run_on_commit = []
        raise Killed

    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        patch.setattr(connections[alias], "run_and_clear_commit_hooks", die)
        yield
        pytest.fail("nothing was committed")


@pytest.fixture
def category() -> Category:
    return factories.category()


def test_news_belongs_to_the_categories_that_are_set() -> None:
    section, shelf = Category.objects.create(name="x"), Shelf.objects.create(code="A1")
    page = Page(pk="x", section=section, shelf=shelf)
    assert list(categories_of(page)) == [f"site.category:{section.pk}", f"site.shelf:{shelf.pk}"]
    assert list(categories_of(Page(pk="x"))) == []
    assert list(categories_of(Product())) == []


def test_posts_of_several_authors_are_news_to_each_of_them(category: Category) -> None:
    users = [factories.user(), factories.user()]
    for user in users:
        tracker.mark_read(user, [category])
    tracker.publish(Article(pk=user.pk, category=category, author=user) for user in users)
    assert all(reports.unread(user, [category]) for user in users)


def test_rows_written_in_bulk_are_published_by_a_call(category: Category) -> None:
    user, posts = factories.user(), [Post(title="x", category=category) for _ in range(3)]
    tracker.mark_read(user, [category])
    Post.objects.bulk_create(posts)
    assert reports.unread(user, [category]) == set()
    tracker.publish(posts)
    assert reports.unread(user, [category]) == {category}


def test_a_call_counts_the_rows(category: Category, settings: Any) -> None:
    settings.READTRACK = {"DOTS": {"form": "sequence"}}
    user = factories.user()
    tracker.mark_read(user, [category])
    tracker.publish([Post(pk=number, category=category) for number in (1, 2, 3)])
    assert reports.unread_counts(user, [category]) == {category: 3}


def test_an_author_out_of_bounds_is_passed_over(category: Category) -> None:
    set_most_bits(10)
    author = factories.user(pk=11)
    Article.objects.create(category=category, author=author)


def test_news_that_redis_did_not_hear_of_is_sent_when_it_is_back(
    category: Category, settings: Any
) -> None:
    user = factories.user()
    tracker.mark_read(user, [category])
    with override_settings(CACHES=nowhere(settings)):
        for _ in range(2):
            factories.post(category=category)
        if not keys.is_divided():
            with pytest.raises(RedisError):
                tracker.resend()
        else:  # silent servers of a cluster are left for the next time
            assert tracker.resend() == 0
    assert reports.unread(user, [category]) == set()
    assert [str(row) for row in PendingPublication.objects.all()] == [
        f"site.category:{category.pk}"
    ] * 2
    call_command("readtrack", "flush", verbosity=0)
    assert reports.unread(user, [category]) == {category}
    tracker.mark_read(user, [category])
    scheduled.flush_views()
    assert reports.unread(user, [category]) == set()
    assert not PendingPublication.objects.exists()


@pytest.mark.parametrize(
    "run",
    [
        scheduled.flush_views,
        scheduled.flush_changed,
        lambda: call_command("readtrack", "flush", changed=True),
    ],
)
def test_every_flush_sends_what_is_waiting(category: Category, run: Callable[[], Any]) -> None:
    user = factories.user()
    tracker.mark_read(user, [category])
    PendingPublication.objects.create(subject=f"site.category:{category.pk}")
    run()
    assert reports.unread(user, [category]) == {category}
    assert not PendingPublication.objects.exists()


def test_a_post_and_its_news_are_committed_together(category: Category, redis: Redis) -> None:
    user = factories.user()
    tracker.mark_read(user, [category])
    with crash_after_commit():
        factories.post(category=category)
    assert Post.objects.count() == PendingPublication.objects.count() == 1
    assert reports.unread(user, [category]) == set()
    scheduled.flush_changed()
    assert reports.unread(user, [category]) == {category}


def test_news_is_sent_although_the_answer_to_its_commit_is_lost(
    category: Category, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, commit = factories.user(), connections["default"]._commit  # type: ignore[attr-defined]
    tracker.mark_read(user, [category])

    def lose_the_answer() -> None:
        commit()
        raise OperationalError("the connection was closed")

    monkeypatch.setattr(connection, "_commit", lose_the_answer)
    with pytest.raises(OperationalError):
        factories.post(category=category)
    monkeypatch.undo()
    assert Post.objects.count() == 1
    scheduled.flush_changed()
    assert reports.unread(user, [category]) == {category}


def test_a_post_is_not_committed_without_its_news(category: Category) -> None:
    with pytest.raises(OperationalError), refusing("INSERT"):
        factories.post(category=category)
    assert Post.objects.count() == 0


def test_news_whose_commit_failed_is_gone_with_its_post(category: Category) -> None:
    with transaction.atomic():
        factories.post(category=category)
        transaction.set_rollback(True)
    assert Post.objects.count() == PendingPublication.objects.count() == 0


def test_a_new_post_costs_one_insert_and_one_update_more(category: Category) -> None:
    with CaptureQueriesContext(connection) as queries:
        Post.objects.create(title="x", category=category)
    kinds = [
        query["sql"].split()[0] for query in queries if query["sql"] not in {"BEGIN", "COMMIT"}
    ]
    assert kinds == ["INSERT", "INSERT", "UPDATE"]


def test_an_edit_that_is_no_news_takes_one_query_to_know_that(
    category: Category, django_assert_num_queries: Any
) -> None:
    post = factories.post(category=category)
    with django_assert_num_queries(2):
        post.save()
    with django_assert_num_queries(1):
        post.save(update_fields=["title"])


def test_a_new_post_that_was_rolled_back_is_news_when_it_is_saved_again(category: Category) -> None:
    user = factories.user()
    tracker.mark_read(user, [category])
    with transaction.atomic():
        post = Post.objects.create(title="x", category=category)
        transaction.set_rollback(True)
    assert reports.unread(user, [category]) == set()
    post.save()
    assert reports.unread(user, [category]) == {category}


def test_each_post_of_a_transaction_that_was_not_sent_is_counted(
    category: Category, settings: Any
) -> None:
    settings.READTRACK = {"DOTS": {"form": "sequence"}}
    user = factories.user()
    tracker.mark_read(user, [category])
    with crash_after_commit(), transaction.atomic():
        for _ in range(5):
            factories.post(category=category)
    scheduled.flush_changed()
    assert reports.unread_counts(user, [category]) == {category: 5}


def test_a_row_that_a_savepoint_took_back_is_written_again(category: Category) -> None:
    user = factories.user()
    tracker.mark_read(user, [category])
    with crash_after_commit(), transaction.atomic():
        with transaction.atomic():
            factories.post(category=category)
            transaction.set_rollback(True)
        factories.post(category=category)
    tracker.resend()
    assert reports.unread(user, [category]) == {category}


def test_in_a_test_of_the_site_only_the_captured_news_is_sent(
    category: Category, django_capture_on_commit_callbacks: Any
) -> None:
    user, other = factories.user(), factories.category()
    tracker.mark_read(user, [category, other])
    with transaction.atomic():
        factories.post(category=other)
        factories.post(category=category)
        with django_capture_on_commit_callbacks(execute=True):
            factories.post(category=category)
        assert reports.unread(user, [category, other]) == {category}
        tracker.mark_read(user, [category])
        with django_capture_on_commit_callbacks(execute=True):
            factories.post(category=category)
        assert reports.unread(user, [category, other]) == {category}


def test_many_posts_are_all_counted_while_redis_is_gone(category: Category, settings: Any) -> None:
    settings.READTRACK = {"DOTS": {"form": "sequence"}}
    user = factories.user()
    tracker.mark_read(user, [category])
    with override_settings(CACHES=nowhere(settings)), transaction.atomic():
        for _ in range(3):
            factories.post(category=category)
    scheduled.flush_changed()
    assert reports.unread_counts(user, [category]) == {category: 3}


def test_news_that_is_sent_again_after_a_crash_is_counted_once(
    category: Category, settings: Any
) -> None:
    settings.READTRACK = {"DOTS": {"form": "sequence"}}
    user = factories.user()
    tracker.mark_read(user, [category])
    with refusing("UPDATE"):
        factories.post(category=category)
    assert PendingPublication.objects.count() == 1
    assert reports.unread_counts(user, [category]) == {category: 1}
    scheduled.flush_changed()
    assert reports.unread_counts(user, [category]) == {category: 1}
    assert not PendingPublication.objects.exists()


def test_news_sent_later_still_leaves_its_author_without_a_dot(category: Category) -> None:
    author, reader = factories.user(), factories.user()
    for user in (author, reader):
        tracker.mark_read(user, [category])
    with crash_after_commit():
        Article.objects.create(category=category, author=author)
    tracker.resend()
    assert reports.unread(author, [category]) == set()
    assert reports.unread(reader, [category]) == {category}


def test_news_by_an_author_whom_the_user_model_does_not_know_any_more_is_sent(
    category: Category,
) -> None:
    user = factories.user()
    tracker.mark_read(user, [category])
    PendingPublication.objects.create(
        subject=f"site.category:{category.pk}", author="2b0d7b3d-3d5c"
    )
    assert tracker.resend() == 1
    assert reports.unread(user, [category]) == {category}


def test_more_than_one_portion_is_sent_at_once(
    category: Category, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "SLICE", 2)
    for _ in range(5):
        PendingPublication.objects.create(subject=f"site.category:{category.pk}")
    assert tracker.resend() == 5
    assert not PendingPublication.objects.filter(sent=None).exists()


def in_both_databases() -> Category:
    category = Category.objects.create(name="x")
    Category(pk=category.pk, name="x").save(using="lite")
    return category


@pytest.mark.django_db(transaction=True, databases=["default", "lite"])
def test_the_outbox_is_in_the_database_of_the_post(settings: Any) -> None:
    settings.DATABASE_ROUTERS = ["tests.support.routers.PostsInLite"]
    category = in_both_databases()
    user = factories.user()
    tracker.mark_read(user, [category])
    with crash_after_commit("lite"):
        Post.objects.create(title="x", category_id=category.pk)
    assert PendingPublication.objects.using("lite").count() == 1
    scheduled.flush_changed()
    assert reports.unread(user, [category]) == {category}
    assert not PendingPublication.objects.using("lite").exists()


@pytest.fixture
def no_outbox(settings: Any) -> Iterator[None]:
    """Keeps posts in a database that lacks the table."""
    settings.DATABASE_ROUTERS = ["tests.support.routers.PostsInLite"]
    with connections["lite"].schema_editor() as editor:
        editor.delete_model(PendingPublication)
    yield
    with connections["lite"].schema_editor() as editor:
        editor.create_model(PendingPublication)


@pytest.mark.django_db(transaction=True, databases=["default", "lite"])
@pytest.mark.usefixtures("no_outbox")
def test_a_database_without_an_outbox_leaves_it_to_the_apps_own(settings: Any) -> None:
    category = in_both_databases()
    user = factories.user()
    tracker.mark_read(user, [category])
    with override_settings(CACHES=nowhere(settings)):
        Post.objects.create(title="x", category_id=category.pk)
    Post.objects.create(title="y", category_id=category.pk)
    tracker.mark_read(user, [category])
    sent = PendingPublication.objects.using("default").values_list("sent", flat=True)
    assert [time is not None for time in sent.order_by("written")] == [False, True]
    scheduled.flush_changed()
    assert reports.unread(user, [category]) == {category}


def test_a_post_is_saved_even_if_its_row_cannot_be_updated(category: Category) -> None:
    with refusing("DELETE"):
        post = factories.post(category=category)
    assert Post.objects.filter(pk=post.pk).exists()
    assert PendingPublication.objects.exists()
