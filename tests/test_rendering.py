"""How a count or a dot stands in the page."""

from django.utils.translation import override

from readtrack import rendering
from readtrack.placeholders import COUNT


def test_a_count_in_words_is_one_view_or_many() -> None:
    assert rendering.count(1, kind="words") == '<span class="readtrack-count" title="1">1 view</span>'
    assert ">1.2k views<" in rendering.count(1234, kind="words")


def test_a_dot_is_read_aloud_in_the_readers_language() -> None:
    with override("en"):
        dot = rendering.dot(is_unread=True)
    assert '<span class="readtrack-dot__text">unread</span>' in dot
    assert rendering.dot(is_unread=False) == ""


def test_a_short_count_has_the_exact_number_as_its_title() -> None:
    assert rendering.count(12345, kind=COUNT) == '<span class="readtrack-count" title="12,345">12k</span>'
    assert rendering.count(12345, kind="exact") == "12,345"
