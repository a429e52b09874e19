"""The Tracked model: its counts, which only the flush changes, and the fields that it remembers."""

from typing import Any

import pytest
from django.db.models import F

from readtrack.models import tracked
from tests.site.models import Article, Headline, Page, Post, Product, Review
from tests.support import factories

pytestmark = pytest.mark.django_db


def raise_count(post: Any, views: int) -> None:
    """Writes counts as a flush does."""
    type(post).objects.filter(pk=post.pk).update(view_count=views, visitor_count=views)


def test_a_new_row_starts_at_nothing_or_at_what_it_is_given() -> None:
    assert factories.post().view_count == 0
    assert Post.objects.get(pk=factories.post(view_count=12).pk).view_count == 12


@pytest.mark.parametrize("fields", [None, ["title", "view_count"], ["view_count"]])
def test_saving_a_stale_instance_does_not_write_an_old_count_back(fields: list[str] | None) -> None:
    stale = factories.post()
    raise_count(stale, 9)
    stale.view_count = 4
    stale.save(update_fields=fields)
    stale.refresh_from_db()
    assert (stale.view_count, stale.visitor_count) == (9, 9)


def test_an_instance_is_usable_after_it_was_saved() -> None:
    post = factories.post(view_count=3)
    raise_count(post, 9)
    post.save()
    assert int(post.view_count) in {3, 9}
    assert ">9<" in factories.browser().get("/list/").text
    post.save()
    assert Post.objects.get(pk=post.pk).view_count == 9


@pytest.mark.parametrize("model", [Review, Headline])
def test_children_and_proxies_do_not_write_an_old_count_back_either(model: Any) -> None:
    stale = model.objects.create(title="x")
    raise_count(Post.objects.get(pk=stale.pk), 9)
    stale.title = "y"
    stale.save()
    assert Post.objects.get(pk=stale.pk).view_count == 9
    assert Post.objects.get(pk=stale.pk).title == "y"


def test_rows_known_by_uuid_or_text_are_saved_like_any_other() -> None:
    for stale in (Product.objects.create(name="x"), Page.objects.create(slug="*:{}%é x")):
        raise_count(stale, 9)
        stale.save()
        stale.refresh_from_db()
        assert stale.view_count == 9


def test_an_update_in_bulk_says_what_it_means() -> None:
    posts = [factories.post(), factories.post()]
    for post in posts:
        raise_count(post, 9)
        post.title = "new"
    Post.objects.bulk_update(posts, ["title"])
    Post.objects.update(title=F("title"))
    assert set(Post.objects.values_list("title", "view_count")) == {("new", 9)}


def test_rows_made_in_bulk_start_at_nothing() -> None:
    Post.objects.bulk_create([Post(title="a"), Post(title="b", view_count=2)])
    assert sorted(Post.objects.values_list("view_count", flat=True)) == [0, 2]


def test_rows_come_most_viewed_first() -> None:
    first, second, third = factories.post(view_count=1), factories.post(view_count=5), factories.post(view_count=1)
    assert list(Post.objects.most_viewed()) == [second, third, first]
    assert list(Post.objects.filter(view_count=1).most_viewed()) == [third, first]


def test_a_count_is_no_field_of_a_form() -> None:
    assert not Post._meta.get_field("view_count").editable


def test_a_row_that_was_never_loaded_may_have_changed_in_everything() -> None:
    article = Article(pk=1, title="x")
    assert tracked.changed_fields(article, tracked.field_values(article)) == {"is_published", "title", "category"}


def test_only_what_is_asked_for_is_held_by_field_or_column() -> None:
    article = Article(title="x", category_id=3)
    assert tracked.field_values(article, ["title", "text"]) == {"title": "x"}
    assert (
        tracked.field_values(article, ["category_id"]) == tracked.field_values(article, ["category"]) == {"category": 3}
    )


def test_remembered_fields_add_up() -> None:
    article = Article(title="x")
    tracked.remember_fields(article, {"title": "x", "is_published": True})
    tracked.remember_fields(article, {"category": None})
    assert tracked.changed_fields(article, tracked.field_values(article)) == set()
    article.title = "y"
    assert tracked.changed_fields(article, tracked.field_values(article)) == {"title"}


def test_a_model_without_fields_of_news_remembers_nothing() -> None:
    Product.objects.create(name="x")
    assert tracked.KNOWN not in Product.objects.get().__dict__
