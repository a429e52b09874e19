"""Archiving sketches and hashes once a day, and removing subjects that were idle for long."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

from readtrack.conf import conf
from readtrack.flush import breakdowns
from readtrack.models import Archive
from readtrack.sql import archive, databases, epochs
from readtrack.sql.row_counts import RowCounts
from readtrack.store import counters, removal, scripts, uniques
from readtrack.store.counters import Stored
from readtrack.subjects import subject_column


def archive_changed(live: Mapping[str, RowCounts], epoch: epochs.SqlEpoch, *, hour: int) -> int:
    """Archives the subjects that changed since they were archived, and removes idle ones.

    `live` has what the subjects' rows store, `hour` is the present one (since 1970). Returns the
    number of lost sketches that came back to Redis.
    """
    restored = 0
    for subjects in scripts.sliced(list(live)):
        archived = archive.archived(subjects, "views", "visitors", "hour")
        unchanged = {
            subject: row for subject, row in archived.items() if row.views == live[subject].views
        }
        changed = [subject for subject in subjects if subject not in unchanged]
        # A sketch that Redis alone has lost must not replace a fuller one.
        poorer = [
            subject for subject in changed if _is_fuller(archived.get(subject), live[subject])
        ]
        restored += _restore_sketches(poorer)
        _archive(changed, live, epoch, hour=hour)
        if conf.IDLE_DAYS:
            _remove_idle(unchanged, live, epoch, hour=hour)
    return restored


def _is_fuller(row: Any, live: RowCounts) -> bool:
    """Returns True if the archived row has more visitors than Redis. None is for no row."""
    return row is not None and row.visitors > live.visitors


def _restore_sketches(subjects: Sequence[str]) -> int:
    """Merges the archived sketches into those in Redis. Returns the number of sketches."""
    sketches = archive.sketches(subjects)
    fuller = {subject: Stored({}, sketch) for subject, sketch in sketches.items() if sketch}
    scripts.run_all(*counters.lift(fuller), patient=True)
    return len(fuller)


def _archive(
    subjects: Sequence[str], live: Mapping[str, RowCounts], epoch: epochs.SqlEpoch, *, hour: int
) -> None:
    """Stores the hashes and the sketches of the subjects."""
    breakdowns.store(subjects, epoch, hour=hour)
    calls = [counters.sketches(portion) for portion in scripts.parted(subjects)]
    sketches = ChainMap(*scripts.run_all(*calls, patient=True))
    rows = (
        (subject_column(subject), *live[subject], sketches[subject] or b"", hour)
        for subject in subjects
    )
    databases.upsert(Archive, ("subject",), ("views", "visitors", "sketch", "hour"), rows=rows)


def _remove_idle(
    archived: Mapping[str, Any], live: Mapping[str, RowCounts], epoch: epochs.SqlEpoch, *, hour: int
) -> None:
    """Removes subjects from Redis that were archived IDLE_DAYS ago, by the archived rows.

    Subjects stay if SQL could not give their visitors back.
    """
    until = hour - conf.IDLE_DAYS * 24
    idle = [
        subject
        for subject, row in archived.items()
        if row.hour <= until and not uniques.strategy_of(subject).is_exact
    ]
    # The hashes are stored first, because a funnel may gain steps without a view.
    hashes = breakdowns.store(idle, epoch, hour=hour)
    calls = []
    for portion in scripts.parted(idle):
        views = {subject: live[subject].views for subject in portion}
        calls.append(removal.remove_idle(views, hashes))
    scripts.run_all(*calls, patient=True)
