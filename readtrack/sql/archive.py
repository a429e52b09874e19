"""What SQL keeps of a subject beside its row's counts: its sketch, and the counts out of its hashes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db.models import Model

from readtrack import subjects
from readtrack.models import Archive, Breakdown, History
from readtrack.sql import databases
from readtrack.store import keys
from readtrack.store.counters import Kept

FIELD_LENGTH = 100
OWN: tuple[type[Model], ...] = (Archive, Breakdown)


class Known(NamedTuple):
    """What the archive has of one subject: its counts, and the hour in which its views were seen to change."""

    views: int
    visitors: int
    hour: int


def archived_counts(tokens: Sequence[str]) -> dict[str, Known]:
    """What is archived, by token."""
    columns = {subjects.column(token): token for token in tokens}
    rows = Archive.objects.using(databases.of(Archive).alias).filter(subject__in=list(columns))
    found = rows.values_list("subject", "views", "visitors", "hour")
    return {columns[subject]: Known(*values) for subject, *values in found}


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


def delete(tokens: Iterable[str], *, models: Sequence[type[Model]] = (*OWN, History)) -> None:
    """Deletes what the app's own tables hold of the subjects."""
    columns = [subjects.column(token) for token in tokens]
    for model in models:
        rows: Any = model._default_manager.using(databases.of(model).alias)
        rows.filter(subject__in=columns).delete()
