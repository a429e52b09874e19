"""The demo's settings read DATABASE_URL."""

import pytest

from demo_project.settings import BASE_DIR, database


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("sqlite:///db.sqlite3", f"{BASE_DIR}/db.sqlite3"),
        ("sqlite:////var/tmp/demo.sqlite3", "/var/tmp/demo.sqlite3"),
    ],
)
def test_sqlite_paths_are_relative_to_the_checkout_or_absolute(url: str, name: str) -> None:
    assert str(database(url)["NAME"]) == name


def test_a_postgresql_url_has_every_part() -> None:
    parsed = database("postgresql://me%40home:s%3Acret@db.example:5433/site?sslmode=require")
    assert (parsed["USER"], parsed["PASSWORD"], parsed["HOST"]) == (
        "me@home",
        "s:cret",
        "db.example",
    )
    assert (parsed["PORT"], parsed["NAME"], parsed["OPTIONS"]) == (
        5433,
        "site",
        {"sslmode": "require"},
    )


def test_a_postgresql_url_may_name_a_socket() -> None:
    parsed = database("postgresql:///site?host=/var/run/postgresql")
    assert (parsed["HOST"], parsed["OPTIONS"]) == ("", {"host": "/var/run/postgresql"})
