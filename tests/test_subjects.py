"""What is viewed or read has one name, whatever its primary key is."""

import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from readtrack import subjects
from readtrack.models import Tracked
from tests.site.models import (
    Article,
    Category,
    Counted,
    Headline,
    Journal,
    Manual,
    Page,
    Post,
    Product,
    Profile,
    Review,
    Shelf,
)

ID = uuid.UUID("12345678-1234-5678-1234-567812345678")
AWKWARD = ["a b", "*", "a:b", "{x}", "%", "é", "a/b?c#d", "\\[x]", "a!b", "\n", "!rt!"]


@pytest.mark.parametrize(
    ("obj", "token"),
    [
        (Post(pk=42), "site.post:42"),
        (Headline(pk=42), "site.post:42"),
        (Review(pk=42), "site.post:42"),
        (Product(pk=ID), f"site.product:{ID}"),
        (Page(pk="about"), "site.page:about"),
        (Page(pk="*:{}%é /"), "site.page:%2A%3A%7B%7D%25%C3%A9%20%2F"),
        (Category(pk=7), "site.category:7"),
        (Post(pk=-1), "site.post:-1"),
    ],
)
def test_a_token_names_its_row(obj: Any, token: str) -> None:
    assert subjects.token(obj) == token


@pytest.mark.parametrize("slug", AWKWARD)
def test_a_token_leads_back_to_its_row_and_has_nothing_to_break_a_key_with(slug: str) -> None:
    token = subjects.token(Page(pk=slug))
    assert subjects.parse(token) == (Page, slug)
    assert not set(token.removeprefix("site.page:")) & set("*?[]{}: !\\\n")


def test_a_uuid_leads_back_to_itself() -> None:
    assert subjects.parse(f"site.product:{ID}") == (Product, ID)


@pytest.mark.parametrize(
    "token",
    ["", "x", "site.post", "site.nothing:1", "nowhere.post:1", "site.post:x", "site.product:no-uuid", "a.b.c:1"],
)
def test_what_this_site_does_not_have_is_none(token: str) -> None:
    assert subjects.parse(token) is None


def test_an_unsaved_object_has_no_name_yet() -> None:
    with pytest.raises(ValueError, match="save it before"):
        subjects.token(Post())


def test_tracked_models_are_those_with_counts_of_their_own() -> None:
    assert subjects.tracked_models() == [Post, Product, Page, Article, Counted, Journal, Profile]


@pytest.mark.parametrize(
    ("model", "has_dots"), [(Category, True), (Shelf, True), (Manual, False), (Post, False), (User, False)]
)
def test_a_model_has_dots_if_news_belongs_to_it(model: Any, has_dots: bool) -> None:
    assert subjects.has_read_state(model) == has_dots


@pytest.mark.parametrize("name", ["site.Manual", "site.manual"])
def test_a_model_has_dots_if_the_site_says_so(settings: Settings, name: str) -> None:
    settings.READTRACK = {"CATEGORIES": [name]}
    assert subjects.has_read_state(Manual)
    assert not subjects.has_read_state(User)


@pytest.mark.django_db
def test_news_belongs_to_the_categories_that_are_set() -> None:
    section, shelf = Category.objects.create(name="x"), Shelf.objects.create(code="A1")
    page = Page(pk="x", section=section, shelf=shelf)
    assert list(subjects.categories_of(page)) == [f"site.category:{section.pk}", f"site.shelf:{shelf.pk}"]
    assert list(subjects.categories_of(Page(pk="x"))) == []
    assert list(subjects.categories_of(Product(pk=ID))) == []


def test_only_foreign_keys_lead_to_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Page, "news_for", ("slug", "missing", "section"))
    assert [field.name for field in subjects.news_links(Page)] == ["section"]
    assert issubclass(Page, Tracked)
