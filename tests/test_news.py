"""What a save makes unread, and when."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction
from django.test import override_settings
from pytest_django import DjangoAssertNumQueries

from readtrack import reports, tasks, tracker
from readtrack.models import UnsentNews
from readtrack.store.connection import RedisError
from tests import factories
from tests.site.models import Article, Category, Post, Topic

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def is_unread() -> Callable[..., bool]:
    """Whether something that a reader had read is unread after the change."""
    user = factories.user()

    def check(category: Any, change: Callable[[], Any]) -> bool:
        tracker.mark_read(user, [category])
        assert not reports.unread(user, [category])
        change()
        return bool(reports.unread(user, [category]))

    return check


@pytest.fixture
def category() -> Category:
    return factories.category()


def test_a_draft_is_news_when_it_is_published_and_not_before(
    is_unread: Callable[..., bool], category: Category
) -> None:
    assert not is_unread(category, lambda: Article.objects.create(category=category, is_published=False))
    article = Article.objects.get()
    article.text = "More of it"
    assert not is_unread(category, article.save)
    article.is_published = True
    assert is_unread(category, article.save)
    assert not is_unread(category, article.save)


@pytest.mark.parametrize(("field", "is_news"), [("title", True), ("text", False)])
def test_an_edit_is_news_if_it_matters(
    field: str, is_unread: Callable[..., bool], category: Category, *, is_news: bool
) -> None:
    article = Article.objects.create(category=category)
    setattr(article, field, "Corrected")
    assert is_unread(category, article.save) is is_news


def test_a_post_that_moves_is_news_where_it_comes_to(is_unread: Callable[..., bool], category: Category) -> None:
    old = factories.category()
    article = Article.objects.create(category=old)
    article.category = category
    assert not is_unread(old, article.save)
    article.category = old
    article.save()
    article.category = category
    assert is_unread(category, article.save)


def test_after_a_rollback_the_next_save_is_news_still(is_unread: Callable[..., bool], category: Category) -> None:
    article = Article.objects.create(category=category, is_published=False)
    article.is_published = True

    def fail() -> None:
        with transaction.atomic():
            article.save()
            transaction.set_rollback(True)

    assert not is_unread(category, fail)
    assert is_unread(category, article.save)


def test_a_field_that_a_save_leaves_out_is_news_when_it_is_saved(
    is_unread: Callable[..., bool], category: Category
) -> None:
    article = Article.objects.create(category=category, is_published=False)
    article.is_published = True
    article.save(update_fields=["text"])
    assert is_unread(category, lambda: article.save(update_fields=["is_published"]))


def test_a_deferred_field_that_is_loaded_later_hides_no_change(
    is_unread: Callable[..., bool], category: Category
) -> None:
    Article.objects.create(category=category, is_published=False)
    article = Article.objects.defer("title").get()
    article.is_published = True
    assert article.title == "Title"
    assert is_unread(category, article.save)


def test_what_was_loaded_anew_is_known(is_unread: Callable[..., bool], category: Category) -> None:
    article = Article.objects.create(category=category)
    Article.objects.update(title="Elsewhere")
    article.refresh_from_db()
    assert not is_unread(category, article.save)


def test_news_is_sent_when_it_is_committed(is_unread: Callable[..., bool], category: Category) -> None:
    with transaction.atomic():
        assert not is_unread(category, lambda: factories.post(category=category))
        user = factories.user()
        tracker.mark_read(user, [category])
    assert reports.unread(user, [category]) == {category}


def test_a_post_put_into_a_topic_is_news_there(is_unread: Callable[..., bool]) -> None:
    topic, other, article = Topic.objects.create(), Topic.objects.create(), Article.objects.create()
    assert is_unread(topic, lambda: article.topics.add(topic))
    assert not is_unread(topic, lambda: article.topics.add(topic))
    assert not is_unread(topic, lambda: article.topics.add(other))
    assert not is_unread(topic, lambda: article.topics.remove(topic))
    assert is_unread(topic, lambda: topic.articles.add(article))
    article.title = "Corrected"
    assert is_unread(topic, article.save)


def test_a_draft_put_into_a_topic_is_no_news(is_unread: Callable[..., bool]) -> None:
    topic, article = Topic.objects.create(), Article.objects.create(is_published=False)
    assert not is_unread(topic, lambda: article.topics.add(topic))
    article.topics.clear()
    assert not is_unread(topic, lambda: topic.articles.add(article))


def test_a_post_taken_out_of_a_rolled_back_topic_is_no_news(is_unread: Callable[..., bool]) -> None:
    topic, article = Topic.objects.create(), Article.objects.create()

    def fail() -> None:
        with transaction.atomic():
            article.topics.add(topic)
            transaction.set_rollback(True)

    assert not is_unread(topic, fail)


def test_the_author_gets_no_dot_unless_there_was_one(category: Category) -> None:
    author, reader = factories.user(), factories.user()
    for user in (author, reader):
        tracker.mark_read(user, [category])
    topic = Topic.objects.create()
    tracker.mark_read(author, [topic])
    article = Article.objects.create(category=category, author=author)
    article.topics.add(topic)
    assert reports.unread(author, [category, topic]) == set()
    assert reports.unread(reader, [category]) == {category}
    Article.objects.create(category=category, author=reader)
    assert reports.unread(author, [category]) == reports.unread(reader, [category]) == {category}


def test_what_several_people_wrote_is_news_to_all_of_them(category: Category) -> None:
    users = [factories.user(), factories.user()]
    for user in users:
        tracker.mark_read(user, [category])
    tracker.publish(Article(pk=user.pk, category=category, author=user) for user in users)
    assert all(reports.unread(user, [category]) for user in users)


def test_rows_written_in_bulk_are_published_by_a_call(is_unread: Callable[..., bool], category: Category) -> None:
    posts = [Post(title="x", category=category) for _ in range(3)]
    assert not is_unread(category, lambda: Post.objects.bulk_create(posts))
    assert is_unread(category, lambda: tracker.publish(posts))


def test_a_call_counts_the_rows(category: Category, settings: Any) -> None:
    settings.READTRACK = {"READ_STATE": "sequence"}
    user = factories.user()
    tracker.mark_read(user, [category])
    tracker.publish([Post(pk=number, category=category) for number in (1, 2, 3)])
    assert reports.unread_counts(user, [category]) == {category: 3}


def test_a_post_that_carries_dots_itself_is_unread_to_all_but_its_author(settings: Any) -> None:
    settings.READTRACK = {"CATEGORIES": ["site.Article"]}
    author, reader = factories.user(), factories.user()
    article = Article.objects.create(author=author)
    assert reports.unread(author, [article]) == set()
    assert reports.unread(reader, [article]) == {article}
    tracker.mark_read(reader, [article])
    article.title = "Corrected"
    article.save()
    assert reports.unread(reader, [article]) == {article}


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
    assert [str(kept) for kept in UnsentNews.objects.all()] == [f"site.category:{category.pk}"] * 2
    call_command("readtrack", "flush", verbosity=0)
    assert reports.unread(user, [category]) == {category}
    tracker.mark_read(user, [category])
    tasks.flush_views()
    assert reports.unread(user, [category]) == set()
    assert not UnsentNews.objects.exists()


def test_what_is_remembered_of_a_row_costs_no_query(
    category: Category, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    Article.objects.create(category=category)
    with django_assert_num_queries(1):
        list(Article.objects.all())
    with django_assert_num_queries(1):
        list(Article.objects.only("text"))
