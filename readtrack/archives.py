"""What SQL keeps of a subject beside its row's counts: its sketch, and the counts out of its hashes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import Model

from readtrack import databases, keys, lineage, subjects
from readtrack.conf import conf
from readtrack.models import Archive, Breakdown, History
from readtrack.snapshots import Snapshot
from readtrack.store import counters, scripts, upkeep
from readtrack.store.counters import Epoch, Kept
from readtrack.store.upkeep import Held

HOURS = 24
FIELD_LENGTH = 100
OWN: tuple[type[Model], ...] = (Archive, Breakdown)


class Known(NamedTuple):
    """What the archive has of one subject: its counts, and the hour in which its views were seen to change."""

    views: int
    visitors: int
    hour: int


def keep_breakdowns(tokens: Sequence[str]) -> None:
    """Stores the counts of the subjects' hashes."""
    for some in scripts.sliced(tokens):
        _store(*upkeep.held(some, with_sketches=False))


def _store(held: Mapping[str, Held], epoch: Epoch) -> None:
    """Raises SQL's counts to those of the hashes, and the hashes to what SQL turns out to hold more of.

    Nothing is stored of an epoch that SQL cannot follow: the next flush settles first.
    """
    if not lineage.follow(epoch.current, previous=epoch.previous):
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
        known = _known(some)
        changed = [token for token in some if token not in known or known[token].views != live[token].views]
        # A sketch that Redis lost alone would be archived in place of a fuller one.
        _merge([token for token in changed if token in known and known[token].visitors > live[token].visitors])
        held, epoch = upkeep.held(changed, with_sketches=True)
        rows = ((subjects.column(token), *live[token], one.sketch, hour) for token, one in held.items())
        _store(held, epoch)
        databases.upsert(Archive, ("subject",), ("views", "visitors", "sketch", "hour"), rows=rows)
        _drop_idle([token for token in some if token not in held], live, known, until=hour - conf.IDLE_DAYS * HOURS)


def _merge(tokens: Sequence[str]) -> None:
    if tokens:
        scripts.run(
            counters.lift({token: Kept({}, sketch) for token, sketch in sketches(tokens).items()}), patient=True
        )


def _known(tokens: Sequence[str]) -> dict[str, Known]:
    """What is archived, by token."""
    columns = {subjects.column(token): token for token in tokens}
    rows = Archive.objects.using(databases.of(Archive).alias).filter(subject__in=list(columns))
    found = rows.values_list("subject", "views", "visitors", "hour")
    return {columns[subject]: Known(*values) for subject, *values in found}


def _drop_idle(tokens: Sequence[str], live: Mapping[str, Snapshot], known: Mapping[str, Known], *, until: int) -> None:
    idle = [token for token in tokens if known[token].hour <= until]
    if not conf.IDLE_DAYS or not idle:
        return
    held, epoch = upkeep.held(idle, with_sketches=False)
    _store(held, epoch)  # a funnel may move on without a view
    stored = {
        token: (live[token].views, {family: sum(counts.values()) for family, counts in held[token].hashes.items()})
        for token in idle
    }
    scripts.run(upkeep.remove_idle(stored), patient=True)


def sketches(tokens: Iterable[str]) -> dict[str, bytes]:
    """The archived sketches by token."""
    columns = {subjects.column(token): token for token in tokens}
    rows = Archive.objects.using(databases.of(Archive).alias).filter(subject__in=list(columns))
    return {columns[subject]: bytes(sketch) for subject, sketch in rows.values_list("subject", "sketch")}


def breakdowns(names: Iterable[str]) -> dict[str, Kept]:
    """The stored counts of hashes, by their names in `views:unbased`."""
    wanted = {
        (family, subjects.column(token)): keys.member(family, token) for family, token in map(keys.split_member, names)
    }
    counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
    rows = Breakdown.objects.using(databases.of(Breakdown).alias).filter(subject__in={subject for _, subject in wanted})
    for subject, family, field, count in rows.values_list("subject", "family", "field", "count"):
        if (family, subject) in wanted:
            counts[wanted[family, subject]][field] = count
    return {name: Kept(counts.get(name, {})) for name in wanted.values()}


def forget(tokens: Iterable[str], *, models: Sequence[type[Model]] = (*OWN, History)) -> None:
    """Deletes what the app's own tables hold of the subjects."""
    columns = [subjects.column(token) for token in tokens]
    for model in models:
        rows: Any = model._default_manager.using(databases.of(model).alias)
        rows.filter(subject__in=columns).delete()
