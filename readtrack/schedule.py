"""The schedule for Celery beat: `CELERY_BEAT_SCHEDULE = {**readtrack_schedule}`.

Plain data, for a settings module to import. A tick that waits for as long as its interval expires,
because the next tick does its work.
"""

from typing import Any


def _entry(task: str, seconds: float) -> dict[str, Any]:
    """Returns an entry that runs the task every so many seconds."""
    return {"task": task, "schedule": seconds, "options": {"expires": seconds}}


readtrack_schedule: dict[str, dict[str, Any]] = {
    "readtrack-flush-changed": _entry("readtrack.flush_changed", 60.0),
    "readtrack-flush-views": _entry("readtrack.flush_views", 3600.0),
    "readtrack-refresh-trending": _entry("readtrack.refresh_trending", 30.0),
}
