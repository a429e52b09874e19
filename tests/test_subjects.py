"""A subject has one name, for every kind of primary key."""

import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils.functional import SimpleLazyObject
from pytest_django import Settings

from readtrack import subjects
from readtrack.models import Tracked
from readtrack.subjects import has_read_state, news_links, parse_subject, subject_of, tracked_models
from tests.site.models import (
    Article,
    Category,
    Counted,
    Department,
    Essay,
    Headline,
    Instruction,
    Journal,
    Manual,
    Note,
    Page,
    Post,
    Product,
    Profile,
    Review,
    Shelf,
)
from tests.support.rows import each_row

ID = uuid.UUID("12345678-1234-5678-1234-567812345678")
AWKWARD = ["a b", "*", "a:b", "{x}", "%", "é", "a/b?c#d", "\\[x]", "a!b", "\n", "!rt!"]


@each_row(
    ("obj", "subject"),
    [
        (Post(pk=42), "site.post:42"),
        (Headline(pk=42), "site.post:42"),
        (Review(pk=42), "site.post:42"),
        (Product(pk=ID), f"site.product:{ID}"),
        (Page(pk="about"), "site.page:about"),
        (Page(pk="*:{}%é /"), "site.page:%2A%3A%7B%7D%25%C3%A9%20%2F"),
        (Category(pk=7), "site.category:7"),
        (Department(pk=7), "site.category:7"),
        (Instruction(pk=7), "site.instruction:7"),
        (Post(pk=-1), "site.post:-1"),
    ],
)
def test_a_token_names_its_row(obj: Any, subject: str) -> None:
    assert subject_of(obj) == subject


def test_a_child_has_the_dots_of_a_parent_that_a_setting_names(settings: Settings) -> None:
    settings.READTRACK = {"MODELS": {"site.Manual": {"read_state": True}}}
    assert subject_of(Instruction(pk=7)) == "site.manual:7"
    assert has_read_state(Instruction)
    settings.READTRACK = {
        "MODELS": {"site.Manual": {"read_state": True}, "site.Instruction": {"read_state": True}}
    }
    assert subject_of(Instruction(pk=7)) == "site.instruction:7"


def test_an_object_that_is_loaded_lazily_has_its_own_name() -> None:
    lazy: Any = SimpleLazyObject(lambda: Review(pk=42))
    assert subject_of(lazy) == "site.post:42"


@each_row("slug", AWKWARD)
def test_a_token_leads_back_to_its_row_and_has_nothing_to_break_a_key_with(slug: str) -> None:
    subject = subject_of(Page(pk=slug))
    assert parse_subject(subject) == (Page, slug)
    assert not set(subject.removeprefix("site.page:")) & set("*?[]{}: !\\\n")


def test_a_uuid_leads_back_to_itself() -> None:
    assert parse_subject(f"site.product:{ID}") == (Product, ID)


@each_row(
    "subject",
    [
        "",
        "x",
        "site.post",
        "site.nothing:1",
        "nowhere.post:1",
        "site.post:x",
        "site.product:no-uuid",
        "a.b.c:1",
    ],
)
def test_a_name_of_nothing_on_this_site_is_no_subject(subject: str) -> None:
    assert parse_subject(subject) is None


def test_an_unsaved_object_has_no_name_yet() -> None:
    with pytest.raises(ValueError, match="save it before"):
        subject_of(Post())


def test_tracked_models_are_those_with_counts_of_their_own() -> None:
    assert tracked_models() == [
        Post,
        Product,
        Page,
        Article,
        Counted,
        Journal,
        Essay,
        Note,
        Profile,
    ]


@pytest.mark.parametrize(
    ("model", "has_dots"),
    [(Category, True), (Shelf, True), (Manual, False), (Post, False), (User, False)],
)
def test_a_model_has_dots_if_news_belongs_to_it(model: Any, has_dots: bool) -> None:
    assert has_read_state(model) == has_dots


@pytest.mark.parametrize("name", ["site.Manual", "site.manual"])
def test_a_model_has_dots_if_the_site_says_so(settings: Settings, name: str) -> None:
    settings.READTRACK = {"MODELS": {name: {"read_state": True}}}
    assert has_read_state(Manual)
    assert not has_read_state(User)


def test_only_foreign_keys_lead_to_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Page, "news_for", ("slug", "missing", "section"))
    assert [field.name for field in news_links(Page)] == ["section"]
    assert issubclass(Page, Tracked)


@pytest.fixture
def linked_to(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Makes news of every Tracked model belong to that model."""

    def link(model: Any) -> None:
        monkeypatch.setattr(
            subjects, "news_links", lambda _: [SimpleNamespace(related_model=model)]
        )
        settings.READTRACK = {}  # clears what depends on it, now and at the end

    return link


@pytest.mark.parametrize("model", [Headline, Review, Post])
def test_a_link_to_a_proxy_or_a_child_gives_dots_to_the_model_that_counts(
    linked_to: Any, model: Any
) -> None:
    linked_to(model)
    assert [has_read_state(kind) for kind in (Post, Headline, Review, Category)] == [
        True,
        True,
        True,
        False,
    ]
