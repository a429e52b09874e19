"""Placeholders of tags are found again, and nothing else is taken for one."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.test.signals import template_rendered
from django.utils.translation import override
from pytest_django import Settings

from readtrack.page import rendering
from readtrack.page.filling import filled
from readtrack.page.placeholders import (
    COUNT,
    DOT,
    EXACT,
    IF,
    UNREAD,
    Placeholder,
    placeholders_in,
)
from readtrack.reports.page_state import PageState
from readtrack.subjects import subject_of
from tests.site.models import Category, Page, Post, Publication


@pytest.fixture
def old() -> bytes:
    """Returns a placeholder that the site has signed, before its key is changed."""
    return str(Placeholder(COUNT, "site.post:1", 5)).encode()


@pytest.mark.parametrize(
    "changed",
    [
        {"SECRET_KEY": "new", "SECRET_KEY_FALLBACKS": ["tests"]},
        {"SECRET_KEY": "newest", "SECRET_KEY_FALLBACKS": ["new", "tests"]},
        {"READTRACK": {"SECRET": "the site's own"}},
        {"SECRET_KEY": b"new", "SECRET_KEY_FALLBACKS": [b"tests"]},
    ],
    ids=["one key later", "two keys later", "a secret of its own", "bytes"],
)
def test_a_placeholder_outlives_a_change_of_the_secret_key(
    settings: Settings, old: bytes, changed: dict[str, Any]
) -> None:
    for name, value in changed.items():
        setattr(settings, name, value)
    assert str(Placeholder(COUNT, "site.post:1", 5)).encode() != old
    assert placeholders_in(old) == {old: (COUNT, "site.post:1", 5, "")}


def test_what_no_key_of_the_site_has_signed_is_removed_and_logged_once(
    settings: Settings, old: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    settings.SECRET_KEY = "new"
    for _ in range(2):
        assert filled(b"<p>" + old + b"</p>", lambda: None) == b"<p></p>"
    [record] = caplog.records
    assert "SECRET_KEY_FALLBACKS" in record.message


@pytest.mark.parametrize("kind", [COUNT, DOT])
def test_a_placeholder_is_found_by_its_text(kind: str) -> None:
    ours = Placeholder(kind, "site.post:1", 5)
    assert placeholders_in(f"<p>{ours}</p>{ours}".encode()) == {str(ours).encode(): ours}


@pytest.mark.parametrize(
    "content",
    [
        b"!rt!count!\xff\xfe!5!AAAAAAAAAAAAAAAA! \x00 !rt!",
        b"!rt!count!site.post:1!!AAAAAAAAAAAAAAAA!",
        b"!rt!count!site.post:1!" + b"9" * 5000 + b"!AAAAAAAAAAAAAAAA!",
        "!rt!count!site.post:1!٣!AAAAAAAAAAAAAAAA!".encode(),
        b"!rt!dot!!1!AAAAAAAAAAAAAAAA!",
    ],
    ids=["binary", "no number", "huge number", "foreign digits", "no subject"],
)
def test_text_that_looks_like_a_placeholder_stays_as_it_is(content: bytes) -> None:
    ours = str(Placeholder(COUNT, "site.post:1")).encode()
    assert placeholders_in(content) == {}
    assert list(placeholders_in(content + ours)) == [ours]


def test_a_long_name_in_another_script_is_found_too() -> None:
    ours = Placeholder.of(COUNT, Page(slug="é" * 100, view_count=5))
    assert list(placeholders_in(str(ours).encode()).values()) == [ours]
    assert ours == (COUNT, subject_of(Page(slug="é" * 100)), 5, "")


def test_the_stored_count_comes_from_the_loaded_row() -> None:
    assert Placeholder.of(COUNT, Post(pk=1, view_count=7)) == (COUNT, "site.post:1", 7, "")
    assert Placeholder.of(DOT, Category(pk=1)) == (DOT, "site.category:1", None, "")


def test_a_count_that_is_an_expression_shows_what_is_live() -> None:
    post = Post(pk=1)
    post.view_count = F("view_count") + 1
    assert Placeholder.of(COUNT, post) == (COUNT, "site.post:1", None, "")


def count(views: int, *, kind: str) -> str:
    """Returns the HTML of a count."""
    return rendering.rendered(
        {b"count": Placeholder(kind, "site.post:1")}, PageState({"site.post:1": views}, {})
    )[b"count"]


def test_a_count_in_words_is_one_view_or_many() -> None:
    assert count(1, kind="words") == '<span class="readtrack-count" title="1">1 view</span>'
    assert ">1.2k views<" in count(1234, kind="words")


def test_a_dot_is_read_aloud_in_the_readers_language() -> None:
    with override("en"):
        dot = rendering.new_items(0)
    assert '<span class="readtrack-dot__text">unread</span>' in dot


def test_a_short_count_has_the_exact_number_as_its_title() -> None:
    assert count(12345, kind=COUNT) == '<span class="readtrack-count" title="12,345">12k</span>'
    assert count(12345, kind="exact") == "12,345"


def test_the_dots_of_a_page_are_rendered_once() -> None:
    subjects = [f"site.category:{number}" for number in range(50)]
    templates: list[str] = []

    def note(template: object, **kwargs: object) -> None:
        templates.append(str(template))

    template_rendered.connect(note)
    waiting = {subject.encode(): Placeholder(DOT, subject) for subject in subjects}
    html = rendering.rendered(
        waiting, PageState({}, {subject: number for number, subject in enumerate(subjects)})
    )
    assert set(html.values()) == {"", rendering.new_items(0)}
    assert len(templates) == 2  # the page's, and ours to compare with


def test_placeholders_that_look_alike_are_filled_in_separately() -> None:
    waiting = {
        b"a": Placeholder(EXACT, "site.post:1", 5),
        b"b": Placeholder(EXACT, "site.post:2", 5),
        b"c": Placeholder(DOT, "site.post:1"),
        b"d": Placeholder(IF, "site.post:1"),
    }
    html = rendering.rendered(waiting, PageState({"site.post:1": 7, "site.post:2": 5}, {}))
    assert html == {b"a": "7", b"b": "5", b"c": "", b"d": ""}


@pytest.mark.parametrize("kind", [DOT, UNREAD, IF])
def test_only_an_object_with_read_state_has_a_dot(kind: str) -> None:
    for obj in (User(pk=1), Publication(pk=1), Post(pk=1), "news", None):
        assert Placeholder.of(kind, obj) is None
    assert Placeholder.of(kind, Category(pk=1)) == (kind, "site.category:1", None, "")


@pytest.mark.parametrize("is_method", [False, True])
@pytest.mark.parametrize("has_news", [False, True])
def test_a_category_that_says_it_is_empty_has_no_dot(*, has_news: bool, is_method: bool) -> None:
    category: Any = Category(pk=1)
    category.has_news = (lambda: has_news) if is_method else has_news
    assert (Placeholder.of(DOT, category) is not None) is has_news
