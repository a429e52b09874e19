"""The counts of hashes that SQL stores: funnels, reading, and values of dimensions."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import QuerySet

from readtrack.numbers.models import Breakdown
from readtrack.sql import databases
from readtrack.subjects import subject_column

READING = "reading"  # the kind of hash that has how many views of a subject were seen and read
FIELD_LENGTH = 100  # characters of the name of a field; a longer name is cut


def breakdowns(hashes: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, int]]:
    """Returns the stored counts of each of the hashes, by kind and subject, then by field.

    `hashes` are kinds and subjects. A hash that is not stored has no fields.
    """
    counts: dict[tuple[str, str], dict[str, int]] = {name: {} for name in hashes}
    subjects = {subject for _kind, subject in counts}
    subject_by_column = {subject_column(subject): subject for subject in subjects}
    rows = databases.having(databases.rows(Breakdown), "subject", [*subject_by_column])
    for hash_kind, column, field, count in rows.values_list("kind", "subject", "field", "count"):
        # MySQL also returns subjects that differ in case.
        of_hash = counts.get((hash_kind, subject_by_column.get(column, "")))
        if of_hash is not None:
            of_hash[field] = count
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


def delete_fields(name: tuple[str, str], fields: Sequence[str], *, floor: int) -> None:
    """Deletes the rows of these fields of a hash, if they count at most `floor`.

    `name` is the kind of the hash, and the subject.
    """
    hash_kind, subject = name
    rows = databases.rows(Breakdown).filter(subject=subject_column(subject), kind=hash_kind)
    rows.filter(field__in=fields, count__lte=floor).delete()
