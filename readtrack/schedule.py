"""The schedule for Celery beat: `CELERY_BEAT_SCHEDULE = {**readtrack_schedule}`.

Plain data without Celery or settings, for a settings module to import. A tick that could not be
delivered within its interval expires: the next one does its work.
"""

from typing import Any

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
