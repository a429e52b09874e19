"""What SQL keeps of a subject beside its row's counts: its sketch, and the counts out of its hashes."""

from collections.abc import Mapping, Sequence

from readtrack.conf import conf
from readtrack.models import Archive, Breakdown
from readtrack.sql import databases, epochs
from readtrack.sql.archive import FIELD_LENGTH, Known, archived_counts, breakdowns, sketches
from readtrack.sql.row_counts import RowCounts
from readtrack.store import counters, keys, lifecycle, scripts
from readtrack.store.counters import Epoch, Stored
from readtrack.store.lifecycle import LiveCounts
from readtrack.subjects import subject_column

HOURS = 24


def store_breakdowns(subjects: Sequence[str]) -> None:
    """Stores the counts of the subjects' hashes."""
    for some in scripts.sliced(subjects):
        _store_hashes(*lifecycle.live_counts(some, with_sketches=False))


def _store_hashes(held: Mapping[str, LiveCounts], epoch: Epoch) -> None:
    """Raises SQL's counts to those of the hashes, and the hashes to what SQL turns out to hold more of.

    Nothing is stored of an epoch that SQL cannot follow: the next flush settles first.
    """
    if not epochs.advance(epoch.current, previous=epoch.previous):
        return
    rows = (
        (subject_column(subject), family, field[:FIELD_LENGTH], count)
        for subject, one in held.items()
        for family, counts in one.hashes.items()
        for field, count in counts.items()
    )
    databases.upsert(Breakdown, ("subject", "family", "field"), ("count",), rows=rows)
    live = {
        keys.member(family, subject): counts for subject, one in held.items() for family, counts in one.hashes.items()
    }
    ahead = {
        name: Stored(counts)
        for name, kept in breakdowns(live).items()
        if (counts := {field: count for field, count in kept.counts.items() if count > live[name].get(field, 0)})
    }
    if ahead:
        scripts.run(counters.lift(ahead), patient=True)


def archive(live: Mapping[str, RowCounts], *, hour: int) -> None:
    """Stores sketches and breakdowns of those subjects that changed, and drops from Redis what is long idle.

    `live` is what their rows already store, `hour` the present hour since 1970.
    """
    for some in scripts.sliced(list(live)):
        known = archived_counts(some)
        changed = [subject for subject in some if subject not in known or known[subject].views != live[subject].views]
        # A sketch that Redis lost alone would be archived in place of a fuller one.
        _merge(
            [subject for subject in changed if subject in known and known[subject].visitors > live[subject].visitors]
        )
        held, epoch = lifecycle.live_counts(changed, with_sketches=True)
        rows = ((subject_column(subject), *live[subject], one.sketch, hour) for subject, one in held.items())
        _store_hashes(held, epoch)
        databases.upsert(Archive, ("subject",), ("views", "visitors", "sketch", "hour"), rows=rows)
        _drop_idle(
            [subject for subject in some if subject not in held], live, known, until=hour - conf.IDLE_DAYS * HOURS
        )


def _merge(subjects: Sequence[str]) -> None:
    if subjects:
        scripts.run(
            counters.lift({subject: Stored({}, sketch) for subject, sketch in sketches(subjects).items()}), patient=True
        )


def _drop_idle(
    subjects: Sequence[str], live: Mapping[str, RowCounts], known: Mapping[str, Known], *, until: int
) -> None:
    idle = [subject for subject in subjects if known[subject].hour <= until]
    if not conf.IDLE_DAYS or not idle:
        return
    held, epoch = lifecycle.live_counts(idle, with_sketches=False)
    _store_hashes(held, epoch)  # a funnel may move on without a view
    stored = {
        subject: (
            live[subject].views,
            {family: sum(counts.values()) for family, counts in held[subject].hashes.items()},
        )
        for subject in idle
    }
    scripts.run(lifecycle.remove_idle(stored), patient=True)
