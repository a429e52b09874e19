"""How often flushes are due is read from the site's own schedule."""

from datetime import timedelta
from typing import Any

import pytest
from celery.schedules import crontab, schedule
from pytest_django import Settings

from readtrack.schedule import flush_interval, readtrack_schedule

MINUTE = timedelta(minutes=1)
CHANGED, FULL, OTHER = "readtrack.flush_changed", "readtrack.flush_views", "site.tidy"


@pytest.mark.parametrize(
    ("entries", "interval"),
    [
        ([], MINUTE),
        ([(OTHER, 5)], MINUTE),
        ([(CHANGED, 15)], MINUTE / 4),
        ([(CHANGED, 300.0), (FULL, 3600), (OTHER, 1)], 5 * MINUTE),
        ([(FULL, timedelta(minutes=20))], 20 * MINUTE),
        ([(CHANGED, schedule(30))], MINUTE / 2),
        ([(CHANGED, crontab(minute="*/5"))], 5 * MINUTE),
        ([(CHANGED, crontab(minute="0,50"))], 50 * MINUTE),
        ([(CHANGED, crontab(minute="0", hour="9-17"))], 16 * 60 * MINUTE),
        ([(CHANGED, None)], MINUTE),
    ],
    ids=str,
)
def test_the_schedule_says_how_often(settings: Settings, entries: Any, interval: timedelta) -> None:
    settings.CELERY_BEAT_SCHEDULE = {task: {"task": task, "schedule": every} for task, every in entries}
    assert flush_interval() == interval


def test_our_own_schedule_is_once_a_minute(settings: Settings) -> None:
    settings.CELERY_BEAT_SCHEDULE = {**readtrack_schedule}
    assert flush_interval() == MINUTE


@pytest.mark.parametrize("nonsense", [None, ["readtrack.flush_changed"]])
def test_a_site_without_a_schedule_is_taken_to_flush_once_a_minute(settings: Settings, nonsense: Any) -> None:
    settings.CELERY_BEAT_SCHEDULE = nonsense
    assert flush_interval() == MINUTE
