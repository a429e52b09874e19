"""What carries dots, and what a post is news for."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from readtrack.models import Tracked
from readtrack.subjects import news_links
from readtrack.unread import categories
from tests.site.models import Category, Manual, Page, Post, Product, Shelf


@pytest.mark.parametrize(
    ("model", "has_dots"), [(Category, True), (Shelf, True), (Manual, False), (Post, False), (User, False)]
)
def test_a_model_has_dots_if_news_belongs_to_it(model: Any, has_dots: bool) -> None:
    assert categories.has_read_state(model) == has_dots


@pytest.mark.parametrize("name", ["site.Manual", "site.manual"])
def test_a_model_has_dots_if_the_site_says_so(settings: Settings, name: str) -> None:
    settings.READTRACK = {"READ_STATE_MODELS": [name]}
    assert categories.has_read_state(Manual)
    assert not categories.has_read_state(User)


@pytest.mark.django_db
def test_news_belongs_to_the_categories_that_are_set() -> None:
    section, shelf = Category.objects.create(name="x"), Shelf.objects.create(code="A1")
    page = Page(pk="x", section=section, shelf=shelf)
    assert list(categories.of(page)) == [f"site.category:{section.pk}", f"site.shelf:{shelf.pk}"]
    assert list(categories.of(Page(pk="x"))) == []
    assert list(categories.of(Product())) == []


def test_only_foreign_keys_lead_to_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Page, "news_for", ("slug", "missing", "section"))
    assert [field.name for field in news_links(Page)] == ["section"]
    assert issubclass(Page, Tracked)
