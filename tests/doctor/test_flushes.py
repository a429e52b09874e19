"""The doctor sees when flushes do not run, or do not end well."""

from typing import Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from readtrack.doctor.report import examine
from tests.doctor.conftest import found, levels, run

pytestmark = pytest.mark.django_db


def test_a_database_with_every_migration_is_well() -> None:
    assert set(levels("migrations")) == {"ok"}


def test_a_migration_that_was_not_applied_is_an_error() -> None:
    MigrationRecorder(connection).record_unapplied("readtrack", "0001_initial")
    [finding] = [one for one in found("migrations") if one.level == "error"]
    assert "readtrack.0001_initial" in finding.message
    assert finding.hint == "Run: manage.py migrate --database default"


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="a file does not go away")
def test_a_database_that_is_gone_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "PORT", 1)
        assert levels("migrations") == ["error"]
        assert found("flushes") == found("drift") == []
        assert levels("scripts") == levels("unsettled") == ["ok"]
    connection.close()


def test_missing_tables_are_named_once() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE readtrack_flushrun CASCADE")
    MigrationRecorder(connection).record_unapplied("readtrack", "0001_initial")
    wrong = [one for one in examine(sample=1) if one.level == "error"]
    assert [(one.name, one.hint) for one in wrong] == [("migrations", "Run: manage.py migrate --database default")]


def test_flushes_are_as_many_as_the_interval_says(settings: Settings) -> None:
    for number in range(28):
        run(ago=15 * number)
    assert levels("flushes") == ["ok", "note"]
    settings.READTRACK = {"FLUSH_INTERVAL": 15}
    assert levels("flushes") == ["ok"]


def test_a_flush_is_late_by_the_interval(settings: Settings) -> None:
    run(ago=600)
    assert levels("flushes") == ["error"]
    settings.READTRACK = {"FLUSH_INTERVAL": 300}
    assert levels("flushes") == ["ok"]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([], [("warning", "No flush has run yet.")]),
        ([{"ago": 60}], [("ok", "began 6")]),
        ([{"ago": 600}], [("error", "began 10 min ago")]),
        ([{"ago": 3 * 86_400}], [("error", "began 3 days ago")]),
        ([{"ago": 30, "took": None}], [("error", "No flush has succeeded yet.")]),
        (
            [{"ago": 90}, {"ago": 30, "error": "OperationalError: gone"}],
            [("error", "OperationalError: gone"), ("ok", "90")],
        ),
        ([{"ago": 100, "took": 80}], [("ok", "100 s ago"), ("warning", "80 s, longer than the interval of 60 s")]),
        (
            [{"ago": 20 * n} for n in range(28)],
            [("ok", "0 s ago"), ("note", "28 flushes began in the last 10 min; one every 60 s is enough.")],
        ),
        ([{"ago": -86_400}], [("ok", "0 s ago")]),
    ],
    ids=["none", "well", "late", "days late", "never ended", "failed", "slow", "two beats", "clock a day ahead"],
)
def test_flushes_are_judged_by_their_records(runs: list[dict[str, Any]], expected: list[tuple[str, str]]) -> None:
    for values in runs:
        run(**values)
    findings = found("flushes")
    assert [finding.level for finding in findings] == [level for level, _ in expected]
    for finding, (level, words) in zip(findings, expected, strict=True):
        assert words in finding.message
        assert bool(finding.hint) == (level != "ok")
