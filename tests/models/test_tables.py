"""The app's own models in the admin."""

from datetime import datetime, timedelta

import pytest
from django.db import connection

from readtrack.models import Archive, FlushRun


@pytest.mark.needs_parts("dashboard")
def test_the_apps_models_are_where_django_looks_for_them() -> None:
    from readtrack.dashboard.admin import Dashboard

    assert {model._meta.app_label for model in (Archive, FlushRun, Dashboard)} == {"readtrack"}


def test_a_flush_knows_how_long_it_took(noon: datetime) -> None:
    run = FlushRun(started=noon)
    assert run.took is None
    run.ended = noon + timedelta(seconds=2)
    assert run.took == timedelta(seconds=2)
    assert str(run) == "2026-11-20 12:00:30"


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="others need no index for LIKE")
def test_only_counts_of_other_models_have_an_index_for_the_beginning_of_a_subject() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tablename FROM pg_indexes"
            " WHERE tablename LIKE 'readtrack%%' AND indexdef LIKE '%%(subject %%_pattern_ops%%'"
        )
        tables = {table for (table,) in cursor.fetchall()}
    assert tables == {"readtrack_subjectcount"}
