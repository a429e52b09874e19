"""Which of the named fields a row's values differ in from what the database held."""

import pytest

from readtrack.models import tracked
from tests.site.models import Article, Post

pytestmark = pytest.mark.django_db


def test_a_row_that_was_never_loaded_may_have_changed_in_everything() -> None:
    article = Article(pk=1, title="x")
    assert tracked.changed_fields(article, tracked.field_values(article)) == {"is_published", "title", "category"}


def test_only_what_is_asked_for_is_held_by_field_or_column() -> None:
    article = Article(title="x", category_id=3)
    assert tracked.field_values(article, ["title", "text"]) == {"title": "x"}
    assert (
        tracked.field_values(article, ["category_id"]) == tracked.field_values(article, ["category"]) == {"category": 3}
    )


def test_what_is_remembered_adds_up() -> None:
    article = Article(title="x")
    tracked.remember_fields(article, {"title": "x", "is_published": True})
    tracked.remember_fields(article, {"category": None})
    assert tracked.changed_fields(article, tracked.field_values(article)) == set()
    article.title = "y"
    assert tracked.changed_fields(article, tracked.field_values(article)) == {"title"}


def test_a_model_that_names_no_fields_remembers_nothing() -> None:
    Post.objects.create(title="x")
    assert tracked.KNOWN not in Post.objects.get().__dict__
