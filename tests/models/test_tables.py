"""The app's own models in the admin."""

from datetime import datetime, timedelta

import pytest
from django.db import connection

from readtrack import parts
from readtrack.models import Archive, FlushRun
from readtrack.models.fields import ExactCharField


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
@pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's own")
def test_exact_texts_are_compared_byte_by_byte_whatever_the_databases_language() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attrelid::regclass::text, attname, collname FROM pg_attribute"
            " JOIN pg_collation ON pg_collation.oid = attcollation"
        )
        collations = {(table, column): name for table, column, name in cursor.fetchall()}
    exact = {
        (model._meta.db_table, field.column)
        for model in parts.models()
        for field in model._meta.local_concrete_fields
        if isinstance(field, ExactCharField)
    }
    assert {collations[column] for column in exact} == {"C"}


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="others need no index for LIKE")
def test_the_primary_key_finds_subjects_by_their_beginning_and_no_second_index_does() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_indexes"
            " WHERE tablename LIKE 'readtrack%%' AND indexdef LIKE '%%(subject %%_pattern_ops%%'"
        )
        assert cursor.fetchall() == [(0,)]
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            "EXPLAIN SELECT * FROM readtrack_subjectcount WHERE subject LIKE 'blog.post:%%'"
        )
        plan = "".join(line for (line,) in cursor.fetchall())
    assert "Index Cond: (((subject)::text >= 'blog.post:'" in plan
