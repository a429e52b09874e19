"""The models: `Tracked`, which a site's own model extends, and the tables of the app."""

from readtrack.models.tables import (
    Archive,
    Breakdown,
    Dashboard,
    FlushRun,
    History,
    Import,
    KnownEpoch,
    Popular,
    ReaderHistory,
    Reset,
    SubjectCount,
    UnsentPublication,
)
from readtrack.models.tracked import CountField, Tracked, TrackedQuerySet

__all__ = [
    "Archive",
    "Breakdown",
    "CountField",
    "Dashboard",
    "FlushRun",
    "History",
    "Import",
    "KnownEpoch",
    "Popular",
    "ReaderHistory",
    "Reset",
    "SubjectCount",
    "Tracked",
    "TrackedQuerySet",
    "UnsentPublication",
]
