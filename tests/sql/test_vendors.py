"""What databases do differently is in one module, and their statements are whole."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import readtrack
from readtrack.sql import raising, vendors
from tests.site.models import Post
from tests.support import factories
from tests.support.rows import each_row

PACKAGE = Path(readtrack.__file__).parent
# Operations for migrations of PostgreSQL, which their names say, a field's collation, and what only
# PostgreSQL has.
ELSEWHERE = {"sql/vendors.py", "operations.py", "models/fields.py", "row_security.py"}
FIRST_WORDS = r"(SELECT|WITH|UPDATE|DELETE|INSERT|SET LOCAL|\{insert\}|\{create\})\s"


def test_no_other_module_asks_for_the_vendor() -> None:
    asking = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\.vendor\b", path.read_text(encoding="utf-8"))
    }
    assert asking == ELSEWHERE


STATEMENTS = {
    f"{app}: {name}": statement
    for app in ("readtrack", "readtrack.numbers")
    for name, statement in vendors.statements_of(app).items()
}


@each_row("name", STATEMENTS)
def test_each_file_is_a_whole_statement(name: str) -> None:
    statement = STATEMENTS[name]
    assert re.match(FIRST_WORDS, statement)
    assert statement.count("(") == statement.count(")")


def test_a_database_that_nobody_has_written_for_takes_the_portable_statements() -> None:
    other: Any = SimpleNamespace(vendor="other")
    vendor = vendors.vendor_of(other)
    assert not vendor.has_arrays
    assert vendors.statement(other, "raise_counts") == STATEMENTS["readtrack: raise_counts"]


def test_a_statement_of_a_vendors_own_comes_before_the_portable_one() -> None:
    postgresql: Any = SimpleNamespace(vendor="postgresql")
    statement = vendors.statement(postgresql, "raise_counts")
    assert statement == STATEMENTS["readtrack: raise_counts_postgresql"]


def test_mysql_and_mariadb_raise_a_row_only_where_the_first_value_is_lower() -> None:
    end = vendors.VENDORS["mysql"].raise_on_conflict("counts", ["subject"], ["views", "visitors"])
    is_lower = "VALUES(views) > views"
    # MySQL assigns from left to right, so the column that is compared comes last.
    assert end == (
        f"ON DUPLICATE KEY UPDATE visitors = IF({is_lower}, VALUES(visitors), visitors),"
        f" views = IF({is_lower}, VALUES(views), views)"
    )
    replaced = vendors.VENDORS["mariadb"].replace_on_conflict(["subject"], ["views"])
    assert replaced == "ON DUPLICATE KEY UPDATE views = VALUES(views)"


def test_mariadb_is_told_from_mysql() -> None:
    connection: Any = SimpleNamespace(vendor="mysql", mysql_is_mariadb=True)
    assert vendors.vendor_of(connection) is vendors.VENDORS["mariadb"]
    connection.mysql_is_mariadb = False
    assert vendors.vendor_of(connection) is vendors.VENDORS["mysql"]


@pytest.mark.django_db
def test_rows_that_nobody_has_locked_can_be_written() -> None:
    rows = [factories.post().pk for _ in range(2)]
    assert raising._lock_unlocked(Post, rows) == set(rows)


@pytest.mark.needs_parts("numbers")
@pytest.mark.django_db
def test_a_model_without_history_has_nothing_to_add_up() -> None:
    from readtrack.numbers.sql import model_sums

    assert model_sums._add_sums("site.nothing", until=10) is False
