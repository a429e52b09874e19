"""Saved rows are news: which of them, for which categories, and when."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core import serializers
from django.db import connection, transaction
from django.db.models.signals import post_save
from pytest_django import DjangoAssertNumQueries

from readtrack import receivers, reports, tracker
from readtrack.models import PendingPublication
from readtrack.models.tracked import news_columns, row_saving
from readtrack.subjects import subject_of
from tests.site.models import Article, Category, Headline, Page, Post, Review, Shelf, Topic
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def is_unread() -> Callable[..., bool]:
    """Returns True if a category that a reader had read is unread after the change."""
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


@pytest.mark.parametrize("model", [Post, Headline, Review])
def test_a_new_post_makes_its_category_unread_and_no_other(
    is_unread: Callable[..., bool], model: Any
) -> None:
    category, other = factories.category(), factories.category()
    assert is_unread(category, lambda: model.objects.create(title="x", category=category))
    assert not is_unread(other, lambda: model.objects.create(title="x", category=category))


def test_an_edit_is_no_news(is_unread: Callable[..., bool]) -> None:
    category = factories.category()
    post = factories.post(category=category)
    assert not is_unread(category, post.save)


def test_a_model_says_itself_what_is_news(is_unread: Callable[..., bool]) -> None:
    section, shelf = factories.category(), Shelf.objects.create(code="A1")
    page = Page(slug="x", section=section, shelf=shelf, is_published=False)
    assert not is_unread(section, page.save)
    page.is_published = True
    assert is_unread(section, page.save)
    assert is_unread(shelf, page.save)


def test_a_fixture_that_is_loaded_is_no_news(is_unread: Callable[..., bool]) -> None:
    category = factories.category()
    fixture = serializers.serialize("json", [Post(pk=1000, title="old", category=category)])

    def load() -> None:
        for obj in serializers.deserialize("json", fixture):
            obj.save()

    assert not is_unread(category, load)
    assert Post.objects.filter(pk=1000).exists()


def test_a_post_without_a_category_is_no_news(is_unread: Callable[..., bool]) -> None:
    assert not is_unread(factories.category(), factories.post)


def test_news_is_news_when_everybody_can_see_it_and_not_before() -> None:
    category, user = factories.category(), factories.user()
    tracker.mark_read(user, [category])
    with transaction.atomic():
        factories.post(category=category)
        assert reports.unread(user, [category]) == set()
    assert reports.unread(user, [category]) == {category}


def test_a_post_that_is_rolled_back_is_no_news() -> None:
    category, user = factories.category(), factories.user()
    tracker.mark_read(user, [category])
    with transaction.atomic():
        factories.post(category=category)
        transaction.set_rollback(True)
    assert reports.unread(user, [category]) == set()


def test_finding_the_category_of_news_costs_no_query(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    category = Category.objects.create(name="x")
    with transaction.atomic(), django_assert_num_queries(2):  # the post, and its row in the outbox
        Post.objects.create(title="x", category_id=category.pk)


def test_a_draft_is_news_when_it_is_published_and_not_before(
    is_unread: Callable[..., bool], category: Category
) -> None:
    assert not is_unread(
        category, lambda: Article.objects.create(category=category, is_published=False)
    )
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


def test_a_post_that_moves_is_news_where_it_comes_to(
    is_unread: Callable[..., bool], category: Category
) -> None:
    old = factories.category()
    article = Article.objects.create(category=old)
    article.category = category
    assert not is_unread(old, article.save)
    article.category = old
    article.save()
    article.category = category
    assert is_unread(category, article.save)


def test_after_a_rollback_the_next_save_is_news_still(
    is_unread: Callable[..., bool], category: Category
) -> None:
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


def test_refreshed_fields_are_remembered(
    is_unread: Callable[..., bool], category: Category
) -> None:
    article = Article.objects.create(category=category)
    Article.objects.update(title="Elsewhere")
    article.refresh_from_db()
    assert not is_unread(category, article.save)


def test_news_is_sent_when_it_is_committed(
    is_unread: Callable[..., bool], category: Category
) -> None:
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


def test_the_author_gets_no_dot_unless_there_was_one_before(category: Category) -> None:
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


def test_a_post_that_carries_dots_itself_is_unread_to_all_but_its_author(settings: Any) -> None:
    settings.READTRACK = {"MODELS": {"site.Article": {"read_state": True}}}
    author, reader = factories.user(), factories.user()
    article = Article.objects.create(author=author)
    assert reports.unread(author, [article]) == set()
    assert reports.unread(reader, [article]) == {article}
    tracker.mark_read(reader, [article])
    article.title = "Corrected"
    article.save()
    assert reports.unread(reader, [article]) == {article}


def test_a_post_that_moves_by_its_foreign_key_is_news_where_it_comes_to(
    is_unread: Callable[..., bool],
) -> None:
    old, new = factories.category(), factories.category()
    post = Post.objects.get(pk=factories.post(category=old).pk)
    post.category = new
    assert is_unread(new, post.save)
    post.category = old
    assert not is_unread(new, post.save)
    post.category = None
    assert not is_unread(old, post.save)


def test_a_key_out_of_a_form_is_no_move(is_unread: Callable[..., bool], category: Category) -> None:
    post = Post.objects.get(pk=factories.post(category=category).pk)
    post.category_id = str(category.pk)
    assert not is_unread(category, post.save)


def test_a_post_that_moves_is_no_news_where_it_stays(
    is_unread: Callable[..., bool], category: Category
) -> None:
    article, topic = Article.objects.create(), Topic.objects.create()
    article.topics.add(topic)
    article.category = category
    assert not is_unread(topic, article.save)


@pytest.mark.parametrize("is_adding", [False, True])
def test_an_instance_that_was_not_loaded_is_compared_with_its_row(
    is_unread: Callable[..., bool], category: Category, *, is_adding: bool
) -> None:
    live = Article.objects.create(category=category, title="Old")

    def publish(title: str) -> None:
        copy = Article(
            pk=live.pk, category=category, title=title, text="As an editor with drafts publishes it"
        )
        copy._state.adding = is_adding
        copy.save()

    assert not is_unread(category, lambda: publish("Old"))
    assert is_unread(category, lambda: publish("New"))
    assert not is_unread(category, lambda: publish("New"))


def test_a_row_with_a_key_of_ones_own_is_news_when_it_is_new(
    is_unread: Callable[..., bool],
) -> None:
    section = factories.category()
    for slug in ("a", "b"):
        assert is_unread(section, Page(slug=slug, section=section).save)


def test_a_field_that_was_not_loaded_is_compared_with_its_row(
    is_unread: Callable[..., bool], category: Category
) -> None:
    Article.objects.create(category=category)
    article = Article.objects.only("text").get()
    article.is_published = True
    assert not is_unread(category, article.save)


@pytest.fixture
def stamped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets the title of a post be news, and set itself when the post is saved."""

    def stamp(instance: Post, add: bool) -> str:
        instance.title = "Now"
        return instance.title

    field = Post._meta.get_field("title")
    monkeypatch.setattr(field, "auto_now", True, raising=False)
    monkeypatch.setattr(field, "pre_save", stamp)
    monkeypatch.setattr(Post, "news_fields", ("title",))
    news_columns.cache_clear()
    yield
    monkeypatch.undo()
    news_columns.cache_clear()


@pytest.mark.usefixtures("stamped")
def test_a_field_that_sets_itself_is_news_in_the_transaction_of_its_row(
    is_unread: Callable[..., bool], category: Category
) -> None:
    post, seen = factories.post(category=category), []
    Post.objects.update(title="Old")
    post.refresh_from_db()

    def look(**kwargs: Any) -> Any:
        return lambda **kwargs: seen.append(connection.in_atomic_block)

    row_saving.connect(look, sender=Post)
    try:
        assert is_unread(category, post.save)
    finally:
        row_saving.disconnect(look, sender=Post)
    assert seen == [True]


def test_receivers_of_post_save_see_a_row_that_is_committed(category: Category) -> None:
    seen = []

    def look(**kwargs: Any) -> None:
        seen.append(connection.in_atomic_block)

    post_save.connect(look, sender=Post)
    try:
        factories.post(category=category)
    finally:
        post_save.disconnect(look, sender=Post)
    assert seen == [False]


def test_an_app_that_publishes_rows_itself_is_left_alone_with_them() -> None:
    category = factories.category()
    receivers.leave_publishing_to_app([Post])
    try:
        receivers.connect()
        post = factories.post(category=category)
        post.delete()
        assert not PendingPublication.objects.exists()
    finally:
        receivers.models_published_by_their_app.remove(Post)
        receivers.connect()
    factories.post(category=category)
    assert PendingPublication.objects.get().subject == subject_of(category)
