"""The app's own models in the admin."""

from datetime import datetime, timedelta

from readtrack import models
from readtrack.models import tables
from readtrack.models.tables import FlushRun


def test_the_apps_models_are_where_django_looks_for_them() -> None:
    assert models.FlushRun is tables.FlushRun
    assert {model._meta.app_label for model in (tables.Archive, tables.Import, tables.Dashboard)} == {"readtrack"}


def test_a_flush_knows_how_long_it_took(noon: datetime) -> None:
    run = FlushRun(started=noon)
    assert run.took is None
    run.ended = noon + timedelta(seconds=2)
    assert run.took == timedelta(seconds=2)
    assert str(run) == "2026-11-20 12:00:30"
