"""What SQL keeps of a subject beside its row's counts: its sketch, and the counts out of its hashes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db.models import Model

from readtrack.models import Archive, Breakdown, History
from readtrack.sql import databases
from readtrack.store import keys
from readtrack.store.counters import Stored
from readtrack.subjects import subject_column

FIELD_LENGTH = 100
OWN: tuple[type[Model], ...] = (Archive, Breakdown)


class Known(NamedTuple):
    """What the archive has of one subject: its counts, and the hour in which its views were seen to change."""

    views: int
    visitors: int
    hour: int


def archived_counts(subjects: Sequence[str]) -> dict[str, Known]:
    """What is archived, by subject."""
    columns = {subject_column(subject): subject for subject in subjects}
    rows = Archive.objects.using(databases.of(Archive).alias).filter(subject__in=list(columns))
    found = rows.values_list("subject", "views", "visitors", "hour")
    return {columns[column]: Known(*values) for column, *values in found}


def sketches(subjects: Iterable[str]) -> dict[str, bytes]:
    """The archived sketches by subject."""
    columns = {subject_column(subject): subject for subject in subjects}
    rows = Archive.objects.using(databases.of(Archive).alias).filter(subject__in=list(columns))
    return {columns[column]: bytes(sketch) for column, sketch in rows.values_list("subject", "sketch")}


def breakdowns(names: Iterable[str]) -> dict[str, Stored]:
    """The stored counts of hashes, by their names in `views:unsettled`."""
    wanted = {
        (family, subject_column(subject)): keys.member(family, subject)
        for family, subject in map(keys.split_member, names)
    }
    counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
    rows = Breakdown.objects.using(databases.of(Breakdown).alias).filter(subject__in={column for _, column in wanted})
    for column, family, field, count in rows.values_list("subject", "family", "field", "count"):
        if (family, column) in wanted:
            counts[wanted[family, column]][field] = count
    return {name: Stored(counts.get(name, {})) for name in wanted.values()}


def delete(subjects: Iterable[str], *, models: Sequence[type[Model]] = (*OWN, History)) -> None:
    """Deletes what the app's own tables hold of the subjects."""
    columns = [subject_column(subject) for subject in subjects]
    for model in models:
        rows: Any = model._default_manager.using(databases.of(model).alias)
        rows.filter(subject__in=columns).delete()
