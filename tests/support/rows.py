"""Tables of values: one test goes through all rows, and each row that fails is reported by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import combinations, product
from typing import Any, NamedTuple

import pytest
from pytest_django import Settings

LONGEST_NAME = 120
Test = Callable[..., None]


class Row(NamedTuple):
    """One row of a table."""

    name: str
    values: dict[str, Any]


def each_row(
    names: str | tuple[str, ...], table: Iterable[Any], *, ids: Iterable[str] | None = None
) -> Callable[[Test], Test]:
    """Calls the test with each row of the table, as `pytest.mark.parametrize` does, but as one test.
    Two tables of one test make a row of each combination.

    It is for rows that ask no server: the fixtures of all tests, which empty Redis, run once for the
    table. What a row changes by `settings` or `monkeypatch` ends with the row. Raises ValueError if
    the table is empty.
    """
    columns = (names,) if isinstance(names, str) else names
    rows = [(row,) if isinstance(names, str) else tuple(row) for row in table]
    if not rows:
        raise ValueError("A table without rows guards nothing.")
    row_names = map(_name, rows) if ids is None else ids
    own = [
        Row(name, dict(zip(columns, row, strict=True)))
        for name, row in zip(row_names, rows, strict=True)
    ]

    def decorate(test: Test) -> Test:
        plain = inspect.unwrap(test)
        others: list[Row] = getattr(test, "rows", [])
        combined = [
            Row(f"{row.name}, {other.name}", {**row.values, **other.values})
            for row, other in product(own, others)
        ] or own

        @wraps(plain)
        def go_through(subtests: pytest.Subtests, **fixtures: Any) -> None:
            for name, values in combined:
                try:
                    with _fresh(fixtures) as fresh:
                        plain(**fresh, **values)
                except (Exception, pytest.fail.Exception, pytest.skip.Exception):
                    # Only of a row that fails, because a report takes a millisecond.
                    with subtests.test(name):
                        raise

        signature = _signature(plain, combined[0].values)
        vars(go_through).update(rows=combined, __signature__=signature)
        return go_through

    return decorate


def pairs(*columns: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Returns a table of few rows in which each value of a column meets each value of every other
    column, where all combinations would be too many.
    """
    values = [list(column) for column in columns]
    combined = [tuple(enumerate(row)) for row in product(*(range(len(each)) for each in values))]
    missing = {pair for row in combined for pair in combinations(row, 2)}
    rows = []
    while missing:
        best = max(combined, key=lambda row: len(missing.intersection(combinations(row, 2))))
        missing.difference_update(combinations(best, 2))
        rows.append(tuple(values[column][index] for column, index in best))
    return rows


def _name(row: tuple[Any, ...]) -> str:
    name = ", ".join(map(repr, row))
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def _signature(test: Test, columns: Container[str]) -> inspect.Signature:
    """Returns the signature that pytest sees: the test's own fixtures, and that of subtests."""
    parameters = inspect.signature(test).parameters
    fixtures = [parameters[name] for name in parameters if name not in columns]
    subtests = inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Signature([subtests, *fixtures])


@contextmanager
def _fresh(fixtures: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Gives a row fixtures of its own where they hold what a test has changed, and undoes it."""
    fresh = dict(fixtures)
    settings = Settings(_is_pytest_django=True)
    with pytest.MonkeyPatch.context() as monkeypatch:
        if "settings" in fresh:
            fresh["settings"] = settings
        if "monkeypatch" in fresh:
            fresh["monkeypatch"] = monkeypatch
        if "caplog" in fresh:
            fresh["caplog"].clear()
        try:
            yield fresh
        finally:
            settings._finalize()
