"""The app's own models in the admin."""

from datetime import datetime, timedelta

import pytest

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
