"""The counts of hashes that SQL stores: funnels, reading, and values of dimensions."""

from collections.abc import Collection, Sequence
from typing import Any

from django.db.models import QuerySet

from readtrack.numbers.models import Breakdown
from readtrack.sql import databases
from readtrack.store.counters import Name
from readtrack.subjects import subject_column

READING = "reading"  # the kind of hash that has how many views of a subject were seen and read
FIELD_LENGTH = 100  # characters of the name of a field; a longer name is cut


def breakdowns(hashes: Collection[Name]) -> dict[Name, dict[str, int]]:
    """Returns the stored counts of each of the hashes, by kind and subject, then by field.

    A hash that is not stored has no fields.
    """
    kinds = {hash_kind for hash_kind, _subject in hashes}
    stored = of_subjects({subject for _kind, subject in hashes}, kinds)
    return {name: stored.get(name, {}) for name in hashes}


def of_subjects(subjects: Collection[str], kinds: Collection[str]) -> dict[Name, dict[str, int]]:
    """Returns the stored counts of the subjects' hashes of these kinds, by kind and subject, then
    by field.

    A hash that is not stored is left out. Makes one query.
    """
    subject_by_column = {subject_column(subject): subject for subject in subjects}
    rows = databases.having(databases.rows(Breakdown), "subject", [*subject_by_column])
    counts: dict[Name, dict[str, int]] = {}
    for hash_kind, column, field, count in rows.values_list("kind", "subject", "field", "count"):
        # MySQL also returns subjects that differ in case.
        subject = subject_by_column.get(column)
        if subject is not None and hash_kind in kinds:
            counts.setdefault((hash_kind, subject), {})[field] = count
    return counts


def highest(label: str, *, field: str) -> QuerySet[Any, str]:
    """Returns a queryset of the subjects of a model with the highest counts in this field of their
    hash `reading:…`, highest first. It sorts all objects of the model that have the field.
    """
    rows = databases.rows(Breakdown).filter(kind=READING, field=field)
    of_model = rows.filter(subject__startswith=f"{label}:", count__gt=0)
    subjects: QuerySet[Any, str] = of_model.order_by("-count", "subject").values_list(
        "subject", flat=True
    )
    return subjects


def delete_fields(name: Name, fields: Sequence[str], *, floor: int) -> None:
    """Deletes the rows of these fields of a hash, if they count at most `floor`.

    `name` is the kind of the hash, and the subject.
    """
    hash_kind, subject = name
    rows = databases.rows(Breakdown).filter(subject=subject_column(subject), kind=hash_kind)
    rows.filter(field__in=fields, count__lte=floor).delete()
