"""Archiving sketches once a day, and removing subjects that were idle for long."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

from readtrack.conf import conf
from readtrack.flush.steps import Steps
from readtrack.models import Archive
from readtrack.sql import archive, databases
from readtrack.sql.row_counts import RowCounts
from readtrack.store import counters, removal, scripts, uniques
from readtrack.store.counters import Name, Stored
from readtrack.subjects import subject_column


def archive_changed(live: Mapping[str, RowCounts], steps: Sequence[Steps], *, hour: int) -> int:
    """Archives the subjects that changed since they were archived, and removes idle ones.

    `live` has the counts by subject, which are the same in Redis and in the subjects' rows. `hour`
    is the present hour (since 1970). Returns the number of lost sketches that came back to Redis.
    """
    restored_sketches = 0
    for subjects in scripts.sliced(list(live)):
        archived = archive.archived(subjects, "views", "visitors", "hour")
        unchanged: dict[str, Any] = {}  # archived rows by subject
        changed: list[str] = []
        with_lost_visitors: list[str] = []
        for subject in subjects:
            row = archived.get(subject)
            if row is not None and row.views == live[subject].views:
                unchanged[subject] = row
                continue
            changed.append(subject)
            if row is not None and row.visitors > live[subject].visitors:
                with_lost_visitors.append(subject)
        # If Redis lost a sketch, the archived one is fuller. It is merged into Redis first, so that
        # it is not replaced by a sketch with fewer visitors.
        restored_sketches += _restore_sketches(with_lost_visitors)
        _archive(changed, live, steps, hour=hour)
        if conf.IDLE_DAYS:
            _remove_idle(unchanged, live, steps, hour=hour)
    return restored_sketches


def _restore_sketches(subjects: Sequence[str]) -> int:
    """Merges the archived sketches into the sketches in Redis. Returns the number of sketches."""
    sketches = archive.sketches(subjects)
    stored = {subject: Stored({}, sketch) for subject, sketch in sketches.items() if sketch}
    scripts.run_all(*counters.lift(stored), patient=True)
    return len(stored)


def _archive(
    subjects: Sequence[str],
    live: Mapping[str, RowCounts],
    steps: Sequence[Steps],
    *,
    hour: int,
) -> None:
    """Stores the counts and the sketches of the subjects in SQL's archive, and before them what
    parts store of the subjects.
    """
    counts_of_subjects = {subject: live[subject] for subject in subjects}
    for step in steps:
        step.before_archive(counts_of_subjects)
    calls = [counters.sketches(portion) for portion in scripts.parted(subjects)]
    sketches = ChainMap(*scripts.run_all(*calls, patient=True))
    values = ("views", "visitors", "sketch", "hour")
    rows = []
    for subject, counts in counts_of_subjects.items():
        sketch = sketches[subject] or b""
        rows.append((subject_column(subject), counts.views, counts.visitors, sketch, hour))
    databases.upsert(Archive, ("subject",), values, rows=rows)


def _remove_idle(
    unchanged: Mapping[str, Any],
    live: Mapping[str, RowCounts],
    steps: Sequence[Steps],
    *,
    hour: int,
) -> None:
    """Removes those subjects from Redis that had no view for IDLE_DAYS.

    `unchanged` has the archived rows by subject, of subjects without a view since then. Subjects
    with an exact strategy for unique visitors stay, because SQL does not store who their visitors
    were.
    """
    last_idle_hour = hour - conf.IDLE_DAYS * 24
    idle_subjects = [
        subject
        for subject, row in unchanged.items()
        if row.hour <= last_idle_hour and not uniques.strategy_of(subject).is_exact
    ]
    hashes: dict[Name, Mapping[str, int]] | None = None
    for step in steps:
        hashes_of_step = step.hashes_of_idle(idle_subjects)
        if hashes_of_step is None:
            return
        hashes = {**(hashes or {}), **hashes_of_step}
    calls = []
    for portion in scripts.parted(idle_subjects):
        views = {subject: live[subject].views for subject in portion}
        calls.append(removal.remove_idle(views, hashes))
    scripts.run_all(*calls, patient=True)
