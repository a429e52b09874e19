"""The jobs of the core, and the schedule for Celery beat:
`CELERY_BEAT_SCHEDULE |= readtrack_schedule(READTRACK)`.

It is plain data, so that a settings module can import it. A task that was not started within its
interval expires, because the next task does its work.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django.conf import settings

from readtrack.conf import DEFAULTS

FULL_FLUSH = 3600.0  # seconds between two flushes of everything
TRENDING = 30.0  # seconds between two refreshes of the trending lists
TASK = "readtrack.run_job"  # of Celery
NOTHING: Mapping[str, Any] = MappingProxyType({})


def intervals(flush_interval: float) -> dict[str, float]:
    """Returns the jobs of the core, and the seconds between two runs of each.

    `scheduled.jobs` has the function of each.
    """
    return {
        "flush-changed": flush_interval,
        "flush-views": FULL_FLUSH,
        "refresh-trending": TRENDING,
    }


def readtrack_schedule(site_settings: Mapping[str, Any] = NOTHING) -> dict[str, dict[str, Any]]:
    """Returns the entries of CELERY_BEAT_SCHEDULE, by name. `site_settings` is READTRACK."""
    flush_interval = site_settings.get("FLUSH_INTERVAL", DEFAULTS["FLUSH_INTERVAL"])
    return {
        f"readtrack-{name}": _entry(name, seconds)
        for name, seconds in intervals(flush_interval).items()
    }


def is_in_beat() -> bool:
    """Returns True if CELERY_BEAT_SCHEDULE has the tasks of readtrack."""
    entries = getattr(settings, "CELERY_BEAT_SCHEDULE", None) or {}
    return any(entry.get("task") == TASK for entry in entries.values())


def _entry(job: str, seconds: float) -> dict[str, Any]:
    """Returns an entry that runs the job every so many seconds."""
    return {"task": TASK, "args": (job,), "schedule": seconds, "options": {"expires": seconds}}
