"""Counts as text."""

from django.utils.translation import override

from readtrack import numerals
from tests.support.rows import each_row


@each_row(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1k"),
        (1049, "1k"),
        (1234, "1.2k"),
        (9999, "9.9k"),
        (12_345, "12k"),
        (999_999, "999k"),
        (1_000_000, "1M"),
        (3_456_789, "3.4M"),
        (5_000_000_000, "5B"),
        (1_234_567_890_123, "1,234B"),
    ],
)
def test_a_short_number_never_shows_more_than_there_is(number: int, text: str) -> None:
    assert numerals.short(number).replace(",", "") == text.replace(",", "")


def test_an_exact_number_has_the_readers_own_separators() -> None:
    with override("en"):
        assert numerals.exact(1_234_567) == "1,234,567"
    with override("de"):
        assert numerals.exact(1_234_567) == "1.234.567"
        assert numerals.short(1234) == "1,2\u00a0Tsd."


@each_row(
    ("language", "share"),
    [
        ("en", "<1%"),
        ("pt-br", "<1%"),
        ("ja", "<1%"),
        ("de", "<1\N{NO-BREAK SPACE}%"),
        ("fr-ca", "<1\N{NO-BREAK SPACE}%"),
    ],
)
def test_a_per_cent_has_the_space_of_the_language(language: str, share: str) -> None:
    with override(language):
        assert numerals.share(0.3) == share
        assert numerals.share(0).startswith("0")
