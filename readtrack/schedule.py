"""What Celery beat has to do: `CELERY_BEAT_SCHEDULE = {**readtrack_schedule}`.

Plain data without Celery or settings, for a settings module to import. A tick that could not be
delivered within its interval expires: the next one does its work.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings

FLUSHES = ("readtrack.flush_changed", "readtrack.flush_views")  # tasks
DAY_MINUTES = 1440  # minutes


def flush_interval() -> timedelta:
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
    following = [*minutes[1:], minutes[0] + DAY_MINUTES]
    return timedelta(minutes=max(after - before for before, after in zip(minutes, following, strict=True)))


FLUSH_EVERY = 60.0  # seconds
FLUSH_ALL_EVERY = 3600.0  # seconds
TREND_EVERY = 30.0  # seconds

readtrack_schedule: dict[str, dict[str, Any]] = {
    "readtrack-flush-changed": {
        "task": "readtrack.flush_changed",
        "schedule": FLUSH_EVERY,
        "options": {"expires": FLUSH_EVERY},
    },
    "readtrack-flush-views": {
        "task": "readtrack.flush_views",
        "schedule": FLUSH_ALL_EVERY,
        "options": {"expires": FLUSH_ALL_EVERY},
    },
    "readtrack-refresh-trending": {
        "task": "readtrack.refresh_trending",
        "schedule": TREND_EVERY,
        "options": {"expires": TREND_EVERY},
    },
}
