"""Which numbers are too small to say anything, because they may have come by chance."""

from math import sqrt

LEAST_VIEWS = 30  # of a time, below which nothing but their number is said of it
# The views of a day scatter by about the root of their number, and so does the difference of two
# days by that of their sum. A difference of twice as much comes by chance on one day of twenty.
LEAST_SCATTER = 2


def are_too_few(number: float, before: float) -> bool:
    """Returns True if two counts of views are so small that one says nothing beside the other."""
    return max(number, before) < LEAST_VIEWS


def may_be_chance(number: float, before: float) -> bool:
    """Returns True if the difference of two counts of views is too small to be told."""
    if are_too_few(number, before):
        return True
    return abs(number - before) < LEAST_SCATTER * sqrt(number + before)
