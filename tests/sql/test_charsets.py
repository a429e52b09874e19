"""Texts that a database cannot hold, and names that differ in case only."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import override_settings
from pytest_django import Settings

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.imports.stored import stored_of_any
from readtrack.imports.weblog import Importer
from readtrack.models import Archive, SubjectCount
from readtrack.numbers.models import Breakdown, BreakdownHistory, DayBreakdown, History, Popular
from readtrack.numbers.sql import popular
from readtrack.sql import vendors
from tests.imports import weblogs
from tests.site.models import Page
from tests.support import factories
from tests.support.counts import stored, view

pytestmark = pytest.mark.django_db(transaction=True)
TABLES: list[tuple[Any, dict[str, Any]]] = [
    (Archive, {"views": 1, "visitors": 1, "sketch": b"", "hour": 1}),
    (SubjectCount, {"view_count": 1, "visitor_count": 1}),
    (History, {"hour": 1, "views": 1, "visitors": 1}),
    (Popular, {"days": 1, "since": 1, "until": 1, "views": 1}),
    (Breakdown, {"kind": "views:source", "field": "a", "count": 1}),
]


@pytest.mark.parametrize(
    ("model", "values"), TABLES, ids=lambda value: getattr(value, "__name__", "")
)
@pytest.mark.parametrize(
    "other", ["site.page:abc", "site.page:AB\N{LATIN SMALL LETTER C WITH CEDILLA}"]
)
def test_names_that_differ_in_case_or_accents_are_two(
    model: Any, values: dict[str, Any], other: str
) -> None:
    for subject in ("site.page:ABC", other):
        model.objects.create(subject=subject, **values)
    assert model.objects.filter(subject="site.page:ABC").count() == 1


def test_values_of_a_breakdown_that_differ_in_case_are_two() -> None:
    for field in ("Newsletter", "newsletter", "n\N{LATIN SMALL LETTER E WITH ACUTE}wsletter"):
        Breakdown.objects.create(subject="site.post:1", kind="views:source", field=field, count=1)
    assert Breakdown.objects.count() == 3


@pytest.mark.skipif(connection.vendor != "mysql", reason="others tell the two apart anyway")
def test_full_flushes_end_well_with_keys_that_differ_in_case() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE site_page MODIFY slug varchar(100) COLLATE utf8mb4_bin NOT NULL"
        )
        try:
            pages = [Page.objects.create(slug=slug) for slug in ("AbC", "abc")]
            view(pages[0], *pages)
            flush()
            flush(must_archive=True)
            assert [stored(page) for page in pages] == [2, 1]
            assert Popular.objects.filter(days=popular.EVER).count() == 2
        finally:
            Page.objects.all().delete()
            cursor.execute("ALTER TABLE site_page MODIFY slug varchar(100) NOT NULL")


@pytest.fixture
def latin() -> Iterator[BaseDatabaseWrapper]:
    """Makes the site's texts of keys latin1, the whole database's in PostgreSQL."""
    if connection.vendor == "mysql":
        with connection.cursor() as cursor:
            cursor.execute(
                "ALTER TABLE site_page MODIFY slug varchar(100) CHARACTER SET latin1 NOT NULL"
            )
            yield connection
            cursor.execute("ALTER TABLE site_page MODIFY slug varchar(100) NOT NULL")
        return
    name = f"{connection.settings_dict['NAME']}_latin"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name}")
        cursor.execute(
            f"CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
        own = connections["default"]
        latin = own.copy()
        latin.settings_dict = {**own.settings_dict, "NAME": name}
        connections["default"] = latin
        try:
            call_command("migrate", verbosity=0)
            yield latin
        finally:
            latin.close()
            connections["default"] = own
            cursor.execute(f"DROP DATABASE {name}")


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite holds every text")
@pytest.mark.usefixtures("latin")
@override_settings(ROOT_URLCONF="tests.imports.urls")
def test_a_text_that_no_row_can_have_ends_no_import(tmp_path: Path) -> None:
    page = Page.objects.create(slug="caf\N{LATIN SMALL LETTER E WITH ACUTE}")
    lines = [
        weblogs.line("/pages/%F0%9F%92%A9/"),
        weblogs.line("/pages/%E6%97%A5%E6%9C%AC/", after=1),
        weblogs.line("/pages/caf%C3%A9/", after=2),
    ]
    report = Importer().run([weblogs.write(tmp_path / "access.log", lines)])
    assert (report.read, report.counted) == (3, 1)
    assert stored(page) == 1
    asked = ["caf\N{LATIN SMALL LETTER E WITH ACUTE}", "\N{PILE OF POO}", "b"]
    assert list(stored_of_any(Page, asked)) == asked[:1]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="MySQL's tables of the app hold it")
@pytest.mark.usefixtures("latin")
def test_a_value_that_the_database_lacks_costs_only_itself(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer"]}}
    post = factories.post()
    subject = f"site.post:{post.pk}"
    held = "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
    for value in (held, "\N{PILE OF POO}", "plain"):
        assert tracker.record(factories.hit(subject, dimensions=(("referrer", value),))).counted
    for _ in range(2):
        assert (flush(must_archive=True).failed, stored(post)) == (0, 3)
        for model in (Breakdown, BreakdownHistory, DayBreakdown):
            rows = model.objects.filter(kind="views:referrer").values_list("field", "count")
            assert dict(rows) == {held: 1, "plain": 1}


@pytest.mark.parametrize("encoding", ["UTF8", "SQL_ASCII", "LATIN1", "KOI8R"])
def test_what_a_postgresql_of_that_encoding_can_hold(encoding: str) -> None:
    server: Any = SimpleNamespace(
        connection=SimpleNamespace(info=SimpleNamespace(parameter_status=lambda name: encoding))
    )
    vendor = vendors.VENDORS["postgresql"]
    assert vendor.can_hold(server, "plain")
    assert vendor.can_hold(server, "\N{PILE OF POO}") == (encoding in {"UTF8", "SQL_ASCII"})
