"""A schedule that nothing can run is found."""

import pytest
from celery import Celery
from pytest_django import Settings

from readtrack.schedule import readtrack_schedule
from tests.checks.findings import found, the_message


def test_a_schedule_of_celery_in_a_project_without_an_application_is_found(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CELERY_BEAT_SCHEDULE = {"own": {"task": "site.mail", "schedule": 60.0}}
    monkeypatch.setattr("celery._state._tls.current_app", None)
    monkeypatch.setattr("celery._state.default_app", None)  # that of a test with a worker
    assert found() == []
    settings.CELERY_BEAT_SCHEDULE |= readtrack_schedule()
    assert found() == ["readtrack.W088"]
    assert "namespace='CELERY'" in str(the_message("readtrack.W088").hint)
    Celery("site")
    assert found() == []


def test_a_schedule_of_celery_where_it_is_not_installed_is_found(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CELERY_BEAT_SCHEDULE = {**readtrack_schedule()}
    monkeypatch.setattr("readtrack.checks.schedule.find_spec", lambda name: None)
    assert found() == ["readtrack.W089"]
    assert "pip install 'readtrack[celery]'" in str(the_message("readtrack.W089").hint)
