"""Counts as text, in the notation of the active language: `1,234` in full, `1.2k` in short."""

from django.utils.formats import number_format
from django.utils.translation import pgettext


def exact(number: int) -> str:
    """Returns `1,234`, with the separators of the active language."""
    return number_format(number, force_grouping=True)


def multiple(number: float) -> str:
    """Returns `2.3`, and from 10 on `12`, with the separators of the active language."""
    rounded = round(number, 1)
    if rounded < 10:
        return number_format(rounded, decimal_pos=1)
    return exact(round(number))


def whole(number: float) -> str:
    """Returns a number that is known roughly as `1,234`. It is `< 1` in place of 0, which would say
    that there is nothing.
    """
    rounded = round(number)
    return exact(rounded) if rounded else "< 1"


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
