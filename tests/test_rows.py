"""Tables of values: each row is tried, and each that fails is reported by its name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations, product
from typing import Any

import pytest
from pytest_django import Settings

from tests.support.rows import each_row, pairs


class Reports:
    """Takes down which rows failed, in place of pytest."""

    def __init__(self) -> None:
        self.failed: dict[str, BaseException] = {}

    @contextmanager
    def test(self, name: str) -> Iterator[None]:
        try:
            yield
        except BaseException as failure:
            self.failed[name] = failure


def test_every_row_is_tried_and_each_that_fails_is_reported_by_name() -> None:
    tried = []

    @each_row(("number", "limit"), [(1, 2), (3, 2), (2, 2), (5, 2)])
    def is_small(number: int, limit: int) -> None:
        tried.append(number)
        if number == 5:
            pytest.fail("too much")
        assert number <= limit

    reports = Reports()
    is_small(reports)
    assert tried == [1, 3, 2, 5]
    assert [*reports.failed] == ["3, 2", "5, 2"]


def test_in_pairs_each_value_meets_each_of_the_other_columns() -> None:
    columns: list[list[Any]] = [["a", "b", "c"], [1, 2], [[], {}, None, "x"]]
    table = pairs(*columns)
    assert len(table) == 12  # of 24 combinations
    for (first, ones), (second, others) in combinations(enumerate(columns), 2):
        met = [(row[first], row[second]) for row in table]
        assert all(both in met for both in product(ones, others))


def test_two_tables_make_a_row_of_each_combination() -> None:
    seen = []

    @each_row("letter", "ab", ids=["first", "second"])
    @each_row("number", [1, 2])
    def see(letter: str, number: int) -> None:
        seen.append(f"{letter}{number}")
        assert number == 1

    reports = Reports()
    see(reports)
    assert seen == ["a1", "a2", "b1", "b2"]
    assert [*reports.failed] == ["first, 2", "second, 2"]


@each_row("word", ["one", "two"])
@pytest.mark.parametrize("name", ["WORD"])
def test_what_a_row_changes_ends_with_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str, word: str
) -> None:
    assert not hasattr(settings, name)
    assert name not in os.environ
    setattr(settings, name, word)
    monkeypatch.setenv(name, word)


def test_a_long_row_is_named_by_its_beginning() -> None:
    @each_row("text", ["x" * 100_000])
    def fail(**values: Any) -> None:
        raise ValueError

    reports = Reports()
    fail(reports)
    [name] = reports.failed
    assert len(name) < 200


def test_a_table_has_rows() -> None:
    with pytest.raises(ValueError, match="guards nothing"):
        each_row("word", [])
