"""Counts as text, in the notation of the active language: `1,234` in full, `1.2k` in short."""

from django.utils.formats import number_format
from django.utils.translation import get_language, pgettext

#: Languages that have a space before "%", by CLDR.
WITH_SPACE = {"cs", "da", "de", "es", "fi", "fr", "nb", "ru", "sk", "sv", "uk"}


def exact(number: int) -> str:
    """Returns `1,234`, with the separators of the active language."""
    return number_format(number, force_grouping=True)


def per_cent(number: float) -> str:
    """Returns `12%`, or `12 %` with a space that does not break in languages that have one."""
    return f"{exact(round(number))}{sign_of_per_cent()}"


def share(number: float) -> str:
    """Returns a share (0 to 100 per cent) as `12%`. A share above 0 that would be rounded to 0 is
    `<1%`.
    """
    if 0 < number < 0.5:
        return f"<{per_cent(1)}"
    return per_cent(number)


def sign_of_per_cent() -> str:
    """Returns "%", behind a space where the active language has one."""
    language, _, _ = (get_language() or "").partition("-")
    if language in WITH_SPACE:
        return "\N{NO-BREAK SPACE}%"
    return "%"


def short(number: int) -> str:
    """Returns `999`, `1.2k`, `12k`, `3.4M`, `5B`: rounded down, so it never shows more than there
    is.
    """
    if number < 1000:
        return str(number)
    suffixes = (pgettext("thousands", "k"), pgettext("millions", "M"), pgettext("billions", "B"))
    power = min((len(str(number)) - 1) // 3, len(suffixes))
    suffix = suffixes[power - 1]
    tenths = number * 10 // 1000**power
    if tenths < 100 and tenths % 10:
        return number_format(tenths / 10, decimal_pos=1) + suffix
    return number_format(tenths // 10, decimal_pos=0) + suffix
