"""What SQL keeps of a subject beside its row's counts: its sketch, and the counts out of its hashes."""

from collections.abc import Mapping, Sequence

from readtrack import subjects
from readtrack.conf import conf
from readtrack.models import Archive, Breakdown
from readtrack.sql import databases, epochs
from readtrack.sql.archive import FIELD_LENGTH, Known, archived_counts, breakdowns, sketches
from readtrack.sql.row_counts import Snapshot
from readtrack.store import counters, keys, lifecycle, scripts
from readtrack.store.counters import Epoch, Kept
from readtrack.store.lifecycle import Held

HOURS = 24


def keep_breakdowns(tokens: Sequence[str]) -> None:
    """Stores the counts of the subjects' hashes."""
    for some in scripts.sliced(tokens):
        _store(*lifecycle.held(some, with_sketches=False))


def _store(held: Mapping[str, Held], epoch: Epoch) -> None:
    """Raises SQL's counts to those of the hashes, and the hashes to what SQL turns out to hold more of.

    Nothing is stored of an epoch that SQL cannot follow: the next flush settles first.
    """
    if not epochs.follow(epoch.current, previous=epoch.previous):
        return
    rows = (
        (subjects.column(token), family, field[:FIELD_LENGTH], count)
        for token, one in held.items()
        for family, counts in one.hashes.items()
        for field, count in counts.items()
    )
    databases.upsert(Breakdown, ("subject", "family", "field"), ("count",), rows=rows)
    live = {keys.member(family, token): counts for token, one in held.items() for family, counts in one.hashes.items()}
    ahead = {
        name: Kept(counts)
        for name, kept in breakdowns(live).items()
        if (counts := {field: count for field, count in kept.counts.items() if count > live[name].get(field, 0)})
    }
    if ahead:
        scripts.run(counters.lift(ahead), patient=True)


def archive(live: Mapping[str, Snapshot], *, hour: int) -> None:
    """Stores sketches and breakdowns of those subjects that changed, and drops from Redis what is long idle.

    `live` is what their rows already store, `hour` the present hour since 1970.
    """
    for some in scripts.sliced(list(live)):
        known = archived_counts(some)
        changed = [token for token in some if token not in known or known[token].views != live[token].views]
        # A sketch that Redis lost alone would be archived in place of a fuller one.
        _merge([token for token in changed if token in known and known[token].visitors > live[token].visitors])
        held, epoch = lifecycle.held(changed, with_sketches=True)
        rows = ((subjects.column(token), *live[token], one.sketch, hour) for token, one in held.items())
        _store(held, epoch)
        databases.upsert(Archive, ("subject",), ("views", "visitors", "sketch", "hour"), rows=rows)
        _drop_idle([token for token in some if token not in held], live, known, until=hour - conf.IDLE_DAYS * HOURS)


def _merge(tokens: Sequence[str]) -> None:
    if tokens:
        scripts.run(
            counters.lift({token: Kept({}, sketch) for token, sketch in sketches(tokens).items()}), patient=True
        )


def _drop_idle(tokens: Sequence[str], live: Mapping[str, Snapshot], known: Mapping[str, Known], *, until: int) -> None:
    idle = [token for token in tokens if known[token].hour <= until]
    if not conf.IDLE_DAYS or not idle:
        return
    held, epoch = lifecycle.held(idle, with_sketches=False)
    _store(held, epoch)  # a funnel may move on without a view
    stored = {
        token: (live[token].views, {family: sum(counts.values()) for family, counts in held[token].hashes.items()})
        for token in idle
    }
    scripts.run(lifecycle.remove_idle(stored), patient=True)
