"""Changes and multiples of counts as text, in the notation of the active language."""

from django.utils.formats import number_format

from readtrack.numerals import exact, sign_of_per_cent

MINUS = "\N{MINUS SIGN}"


def signed(number: int) -> str:
    """Returns `+1,234`, `0`, or a number behind MINUS, which is as wide as the plus."""
    if number > 0:
        return f"+{exact(number)}"
    if number < 0:
        return f"{MINUS}{exact(-number)}"
    return exact(0)


def signed_per_cent(number: float) -> str:
    """Returns a change: `+12%`, `0%`, or per cents behind MINUS."""
    return f"{signed(round(number))}{sign_of_per_cent()}"


def multiple(number: float) -> str:
    """Returns `2.3`, and from 10 on `12`, with the separators of the active language."""
    rounded = round(number, 1)
    if rounded < 10:
        return number_format(rounded, decimal_pos=1)
    return exact(round(number))
