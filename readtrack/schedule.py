"""The schedule for Celery beat: `CELERY_BEAT_SCHEDULE = {**readtrack_schedule}`.

Plain data, for a settings module to import. A tick that is late by its interval expires: the next
one does its work.
"""

from typing import Any

readtrack_schedule: dict[str, dict[str, Any]] = {
    f"readtrack-{job.replace('_', '-')}": {
        "task": f"readtrack.{job}",
        "schedule": every,
        "options": {"expires": every},
    }
    for job, every in {
        "flush_changed": 60.0,
        "flush_views": 3600.0,
        "refresh_trending": 30.0,
    }.items()
}
