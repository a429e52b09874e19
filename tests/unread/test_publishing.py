"""Publishing by a call: what becomes unread, for whom, and what happens while Redis is gone."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test import override_settings

from readtrack import reports, tasks, tracker
from readtrack.models import UnsentPublication
from readtrack.store.connection import RedisError
from readtrack.unread.publishing import categories_of
from tests.site.models import Article, Category, Page, Post, Product, Shelf
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)


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
    settings.READTRACK = {"READ_STATE": "sequence"}
    user = factories.user()
    tracker.mark_read(user, [category])
    tracker.publish([Post(pk=number, category=category) for number in (1, 2, 3)])
    assert reports.unread_counts(user, [category]) == {category: 3}


def test_an_author_out_of_bounds_is_passed_over(settings: Any, category: Category) -> None:
    settings.READTRACK = {"MAX_READER": 10}
    author = factories.user(pk=11)
    Article.objects.create(category=category, author=author)


def test_news_that_redis_did_not_hear_of_is_sent_when_it_is_back(category: Category, settings: Any) -> None:
    user = factories.user()
    tracker.mark_read(user, [category])
    with override_settings(CACHES={"default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}}):
        for _ in range(2):
            factories.post(category=category)
        with pytest.raises(RedisError):
            tracker.resend()
    assert reports.unread(user, [category]) == set()
    assert [str(kept) for kept in UnsentPublication.objects.all()] == [f"site.category:{category.pk}"] * 2
    call_command("readtrack", "flush", verbosity=0)
    assert reports.unread(user, [category]) == {category}
    tracker.mark_read(user, [category])
    tasks.flush_views()
    assert reports.unread(user, [category]) == set()
    assert not UnsentPublication.objects.exists()


def test_a_post_is_saved_even_if_its_news_can_neither_be_sent_nor_kept(category: Category, settings: Any) -> None:
    def refuse(execute: Callable[..., Any], sql: str, *args: Any) -> Any:
        if UnsentPublication._meta.db_table in sql:
            raise OperationalError("gone")
        return execute(sql, *args)

    nowhere = {"default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}}
    with override_settings(CACHES=nowhere), connection.execute_wrapper(refuse):
        post = factories.post(category=category)
    assert Post.objects.filter(pk=post.pk).exists()
    assert not UnsentPublication.objects.exists()
