"""Which of equal ones comes first in a list, so that pages, files and answers have one order.

Without a rule it would be the order in which SQL happens to find the rows, another one each time.
"""

from collections import Counter

from readtrack.subjects import key_in, label_in


def place_among_equals(subject: str) -> tuple[int, str, str]:
    """Returns the key by which subjects with the same number are sorted, the first one highest.

    The highest primary key comes first, as by `-pk` in SQL. Mostly that is the newest object.
    """
    key = key_in(subject)
    return len(key), key, label_in(subject)  # the longer one of two whole numbers is higher


def most_first(counts: Counter[str]) -> list[tuple[str, int]]:
    """Returns the values with their counts, the most frequent first, and equal ones by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
