"""Changes of counts as text."""

from django.utils.translation import override

from readtrack.numbers.changes import signed_per_cent
from tests.support.rows import each_row


@each_row(
    ("language", "change"),
    [
        ("en", "\N{MINUS SIGN}1,234%"),
        ("pt-br", "\N{MINUS SIGN}1.234%"),
        ("ja", "\N{MINUS SIGN}1,234%"),
        ("de", "\N{MINUS SIGN}1.234\N{NO-BREAK SPACE}%"),
    ],
)
def test_a_change_has_the_sign_and_the_space_of_the_language(language: str, change: str) -> None:
    with override(language):
        assert signed_per_cent(-1_234) == change
        assert signed_per_cent(0.4).startswith("0")
        assert signed_per_cent(7).startswith("+7")
