"""Counts what the tests look at, in the environment of the tests: functions, the cases that pytest
makes of them, and the rows of their tables. Pytest gets all words.

python -m tests.count
python -m tests.count tests/hits -k robots
"""

import sys
from collections.abc import Sequence

import pytest


class Counting:
    """A pytest plugin: takes down the numbers once the tests are collected."""

    def __init__(self) -> None:
        self.functions = 0
        self.cases = 0
        self.rows = 0  # a case without a table is one row

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        names = {item.nodeid.partition("[")[0] for item in session.items}
        self.functions = len(names)
        self.cases = len(session.items)
        self.rows = sum(map(rows_of, session.items))


def rows_of(item: pytest.Item) -> int:
    """Returns the number of rows that the test goes through."""
    rows = getattr(getattr(item, "function", None), "rows", None)
    return len(rows) if rows else 1


def main(words: Sequence[str]) -> int:
    """Prints the numbers. Returns pytest's exit status."""
    counting = Counting()
    options = ["--collect-only", "-qq", "-n", "0", "--no-summary"]
    status = pytest.main([*options, *words], plugins=[counting])
    print(  # noqa: T201 - that is what it is for
        f"{counting.functions:,} functions, {counting.cases:,} cases, {counting.rows:,} rows"
    )
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
