"""What a tag leaves is known again, and nothing else is."""

import pytest
from django.db.models import F

from readtrack.page import placeholders
from readtrack.page.placeholders import COUNT, DOT, Placeholder
from readtrack.subjects import subject_of
from tests.site.models import Category, Page, Post


@pytest.mark.parametrize("kind", [COUNT, DOT])
def test_a_placeholder_is_found_by_its_text(kind: str) -> None:
    ours = Placeholder(kind, "site.post:1", 5)
    assert placeholders.found(f"<p>{ours}</p>{ours}".encode()) == {str(ours).encode(): ours}


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
def test_what_only_looks_like_a_placeholder_passes_unharmed(content: bytes) -> None:
    ours = str(Placeholder(COUNT, "site.post:1")).encode()
    assert placeholders.found(content) == {}
    assert list(placeholders.found(content + ours)) == [ours]


def test_a_long_name_in_another_script_is_found_too() -> None:
    ours = Placeholder.of(COUNT, Page(slug="é" * 100, view_count=5))
    assert list(placeholders.found(str(ours).encode()).values()) == [ours]
    assert ours == (COUNT, subject_of(Page(slug="é" * 100)), 5)


def test_what_sql_stores_rides_along_if_it_was_loaded() -> None:
    assert Placeholder.of(COUNT, Post(pk=1, view_count=7)).stored == 7
    assert Placeholder.of(DOT, Category(pk=1)).stored == 0


def test_a_count_that_is_an_expression_shows_what_is_live() -> None:
    post = Post(pk=1)
    post.view_count = F("view_count") + 1
    assert Placeholder.of(COUNT, post).stored == 0
