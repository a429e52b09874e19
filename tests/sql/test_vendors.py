"""What databases do differently is in one module, and their statements are whole."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import readtrack
from readtrack.sql import vendors

PACKAGE = Path(readtrack.__file__).parent
# Operations for migrations of PostgreSQL, which their names say.
ELSEWHERE = {"sql/vendors.py", "operations.py"}
FIRST_WORDS = r"(SELECT|WITH|UPDATE|DELETE|INSERT|SET LOCAL|\{insert\}|\{create\})\s"


def test_no_other_module_asks_for_the_vendor() -> None:
    asking = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\.vendor\b", path.read_text(encoding="utf-8"))
    }
    assert asking == ELSEWHERE


@pytest.mark.parametrize("name", vendors.STATEMENTS)
def test_each_file_is_a_whole_statement(name: str) -> None:
    statement = vendors.STATEMENTS[name]
    assert re.match(FIRST_WORDS, statement)
    assert statement.count("(") == statement.count(")")


def test_a_database_that_nobody_has_written_for_takes_the_portable_statements() -> None:
    other: Any = SimpleNamespace(vendor="other")
    vendor = vendors.vendor_of(other)
    assert not vendor.has_arrays
    assert vendors.statement(other, "raise_counts") == vendors.STATEMENTS["raise_counts"]


def test_a_statement_of_a_vendors_own_comes_before_the_portable_one() -> None:
    postgresql: Any = SimpleNamespace(vendor="postgresql")
    statement = vendors.statement(postgresql, "raise_counts")
    assert statement == vendors.STATEMENTS["raise_counts_postgresql"]
