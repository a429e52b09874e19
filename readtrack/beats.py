"""How often the site flushes: what its CELERY_BEAT_SCHEDULE says."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings

from readtrack.schedule import FLUSH_EVERY

FLUSHES = ("readtrack.flush_changed", "readtrack.flush_views")  # tasks
DAY = 1440  # minutes


def interval() -> timedelta:
    """The time between two flushes by the site's schedule; ours where it does not say, as with cron."""
    schedule = getattr(settings, "CELERY_BEAT_SCHEDULE", None)
    entries = schedule.values() if isinstance(schedule, Mapping) else []
    times = [_time(entry.get("schedule")) for entry in entries if entry.get("task") in FLUSHES]
    return min((time for time in times if time), default=timedelta(seconds=FLUSH_EVERY))


def _time(schedule: Any) -> timedelta | None:
    """What one entry says: seconds, a time, or one of Celery's objects; None for a kind we do not know."""
    if isinstance(schedule, int | float):
        return timedelta(seconds=schedule)
    if isinstance(schedule, timedelta):
        return schedule
    if isinstance(every := getattr(schedule, "run_every", None), timedelta):
        return every
    if hasattr(schedule, "minute") and hasattr(schedule, "hour"):
        return _longest(sorted(60 * hour + minute for hour in schedule.hour for minute in schedule.minute))
    return None


def _longest(minutes: list[int]) -> timedelta:
    """The longest wait of a crontab, on a day that it runs on; `minutes` are those of its runs."""
    following = [*minutes[1:], minutes[0] + DAY]
    return timedelta(minutes=max(after - before for before, after in zip(minutes, following, strict=True)))
