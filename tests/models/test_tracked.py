"""The Tracked model: its counts, which only the flush changes, and the fields that it remembers."""

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from django.core import serializers
from django.core.management import call_command
from django.db.migrations.serializer import serializer_factory
from django.db.models import F, Manager
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from readtrack import reports
from readtrack.flush.run import flush
from readtrack.models import TrackedQuerySet, tracked
from tests.site.models import (
    Article,
    Essay,
    Headline,
    Journal,
    Note,
    Page,
    Post,
    Product,
    Publication,
    Review,
)
from tests.support import counts, factories

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
    first, second, third = (
        factories.post(view_count=1),
        factories.post(view_count=5),
        factories.post(view_count=1),
    )
    assert list(Post.objects.most_viewed()) == [second, third, first]
    assert list(Post.objects.filter(view_count=1).most_viewed()) == [third, first]


def test_a_count_is_no_field_of_a_form() -> None:
    assert not Post._meta.get_field("view_count").editable


@pytest.mark.parametrize("only", [["title", "text"], ["category_id"], ["category"]])
def test_only_what_a_save_writes_is_compared_by_field_or_column(only: list[str]) -> None:
    article = Article.objects.create()
    article.title, article.category_id = "x", 3
    stored = tracked.stored_values(article, only, using="default") or {}
    assert tracked.changed_fields(article, stored) == {only[0].removesuffix("_id")}


# Managers and inheritance


def test_tracked_brings_no_manager_and_replaces_none() -> None:
    Note.objects.create(is_hidden=True)
    shown = Note.objects.create()
    assert list(Note.objects.all()) == [shown]
    assert Note._default_manager.get_queryset().count() == 1
    assert type(Article.objects) is Manager
    assert isinstance(Post.objects.all(), TrackedQuerySet)


@pytest.mark.parametrize("model", [Journal, Essay])
def test_a_child_of_a_model_that_is_not_tracked_counts_in_its_own_table_whatever_the_order_of_its_bases(
    model: Any, redis: Redis
) -> None:
    assert counts.stored(model.objects.create(name="Given", view_count=7)) == 7
    model.objects.all().delete()
    child = model.objects.create(name="A")
    counts.view(child, child)
    flush()
    assert counts.stored(child) == 2
    stale = model.objects.get()
    raise_count(stale, 9)
    stale.name = "B"
    stale.save()
    assert (counts.stored(child), Publication.objects.get().name) == (9, "B")
    redis.flushdb()
    counts.view(child)
    flush()
    assert counts.stored(child) == 10


# Copies


def clear_key(post: Post) -> Post:
    """Copies a row as Django's documentation says."""
    post.pk = None
    post._state.adding = True
    post.save(
        force_insert=bool(post.get_deferred_fields())
    )  # which Django 5.2 takes for an update otherwise
    return post


def values_of(post: Post) -> dict[str, Any]:
    return {
        field.attname: getattr(post, field.attname)
        for field in post._meta.concrete_fields
        if field.name != "id"
    }


def pass_values(post: Post) -> Post:
    """Copies a row by the values of its fields."""
    return Post.objects.create(**values_of(post))


def validate(post: Post) -> Post:
    """Copies a row as Wagtail does, which validates the copy before it saves it."""
    twin = Post(**values_of(post))
    twin.full_clean(exclude=["category"])
    twin.save()
    return twin


def copy_in_bulk(post: Post) -> Post:
    twin = copy.copy(post)
    twin.pk = None
    return Post.objects.bulk_create([twin])[0]


def copy_a_pickle(post: Post) -> Post:
    return pass_values(pickle.loads(pickle.dumps(post)))


@pytest.mark.parametrize(
    "duplicate", [clear_key, pass_values, validate, copy_in_bulk, copy_a_pickle]
)
@pytest.mark.parametrize("deferred", [[], ["view_count"]])
def test_a_copy_starts_at_zero(deferred: list[str], duplicate: Callable[[Post], Post]) -> None:
    post = factories.post(view_count=12, visitor_count=7)
    twin = Post.objects.get(pk=duplicate(Post.objects.defer(*deferred).get(pk=post.pk)).pk)
    assert twin.pk != post.pk
    assert (twin.view_count, twin.visitor_count) == (0, 0)
    assert Post.objects.get(pk=post.pk).view_count == 12


def test_a_copy_of_a_row_that_was_just_made_or_saved_starts_at_zero() -> None:
    assert Post.objects.get(pk=clear_key(factories.post(view_count=12)).pk).view_count == 0
    post = factories.post(view_count=12)
    post.save()
    assert clear_key(post).view_count == 0


def test_a_copy_of_a_child_and_of_a_row_with_another_key_starts_at_zero() -> None:
    review = Review.objects.create(title="x", view_count=5)
    review.pk = review.id = None
    review._state.adding = True
    review.save()
    assert sorted(Review.objects.values_list("view_count", flat=True)) == [0, 5]
    page = Page.objects.create(slug="a", view_count=5)
    page.slug = "b"
    page._state.adding = True
    page.save()
    assert Page.objects.get(slug="b").view_count == 0


def test_a_row_may_be_given_a_number_on_purpose() -> None:
    old = Post.objects.get(pk=factories.post(view_count=12).pk)
    assert Post.objects.get(pk=factories.post(view_count=int(old.view_count)).pk).view_count == 12


@pytest.mark.django_db(databases=["default", "lite"])
def test_a_row_that_moves_to_another_database_keeps_its_count() -> None:
    post = Post.objects.get(pk=factories.post(view_count=12).pk)
    post.save(using="lite")
    assert Post.objects.using("lite").get(pk=post.pk).view_count == 12


# Fixtures


@pytest.mark.parametrize("stored", [3, 50])
def test_loading_a_fixture_lowers_no_count(stored: int, tmp_path: Any) -> None:
    post = factories.post(title="Old", view_count=12, visitor_count=12)
    fixture = tmp_path / "posts.json"
    call_command("dumpdata", "site.post", output=str(fixture), verbosity=0)
    raise_count(post, stored)
    Post.objects.update(title="New")
    call_command("loaddata", str(fixture), verbosity=0)
    row = Post.objects.get()
    assert (row.title, row.view_count, row.visitor_count) == (
        "Old",
        max(12, stored),
        max(12, stored),
    )


def test_a_fixture_from_before_the_counts_lowers_none_either() -> None:
    post = factories.post(view_count=12)
    text = f'[{{"model": "site.post", "pk": {post.pk}, "fields": {{"title": "Old"}}}}]'
    for row in serializers.deserialize("json", io.StringIO(text)):
        row.save()
    assert Post.objects.values_list("title", "view_count").get() == ("Old", 12)


def test_a_fixture_of_rows_that_are_gone_brings_their_counts() -> None:
    post = factories.post(view_count=12)
    text = serializers.serialize("json", [post])
    post.delete()
    for row in serializers.deserialize("json", text):
        row.save()
    assert Post.objects.get().view_count == 12


# Rows that do not carry their count


@pytest.mark.parametrize(
    "deferred", [lambda: Post.objects.only("title"), lambda: Post.objects.defer("view_count")]
)
def test_deferred_counts_of_many_rows_take_one_query(
    deferred: Any, django_assert_num_queries: DjangoAssertNumQueries, redis: Redis
) -> None:
    for number in range(3):
        factories.post(view_count=10 + number)
    rows = list(deferred().order_by("pk"))
    with django_assert_num_queries(1):
        assert list(reports.views(rows).values()) == [10, 11, 12]
    counts.view(rows[0])  # Redis does not know of the other ten
    with django_assert_num_queries(2):  # one more, because the count began anew
        assert list(reports.views(rows).values()) == [11, 11, 12]
    flush()
    with django_assert_num_queries(1):
        assert list(reports.views(rows).values()) == [11, 11, 12]
    counts.view(*rows[1:])
    flush()
    with django_assert_num_queries(1):
        assert list(reports.views(rows).values()) == [11, 12, 13]


@pytest.mark.needs_parts("numbers")
def test_deferred_numbers_of_visitors_take_one_query(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    from readtrack.numbers import reports as numbers_reports

    for number in range(3):
        factories.post(visitor_count=10 + number)
    rows = list(Post.objects.only("title").order_by("pk"))
    with django_assert_num_queries(1):
        assert list(reports.visitors(rows).values()) == [10, 11, 12]
    with django_assert_num_queries(1):
        assert numbers_reports.visitors_together(rows) == 12


@pytest.mark.parametrize(("model", "name"), [(Post, "view_count"), (Article, "visitor_count")])
def test_a_migration_names_a_field_of_djangos_own(model: Any, name: str) -> None:
    """So a site that removes readtrack need not change its old migrations."""
    written, imports = serializer_factory(model._meta.get_field(name)).serialize()
    assert written.startswith("models.PositiveBigIntegerField(db_default=0, default=0, ")
    assert imports == {"from django.db import models"}


def test_a_field_of_djangos_own_in_a_migration_is_no_change() -> None:
    call_command("makemigrations", "site", check_changes=True, dry_run=True, verbosity=0)
