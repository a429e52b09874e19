"""Data of subjects beside the counts in their rows: sketches, and the counts of hashes."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Model

from readtrack.models import Archive, Breakdown, History, Popular, SubjectCount
from readtrack.sql import databases
from readtrack.sql.history import of_reads
from readtrack.subjects import subject_column

FIELD_LENGTH = 100
ALL: tuple[type[Model], ...] = (Archive, Breakdown, History, Popular, SubjectCount)


def archived(subjects: Iterable[str], *fields: str) -> dict[str, Any]:
    """Returns the archived rows of subjects, with these fields, by subject."""
    by_column = {subject_column(subject): subject for subject in subjects}
    rows = databases.rows(Archive).filter(subject__in=list(by_column))
    # MySQL also returns keys that differ in case.
    return {
        by_column[row.subject]: row
        for row in rows.values_list("subject", *fields, named=True)
        if row.subject in by_column
    }


def sketches(subjects: Iterable[str]) -> dict[str, bytes]:
    """Returns the archived sketch of each subject that has one."""
    return {subject: bytes(row.sketch) for subject, row in archived(subjects, "sketch").items()}


def breakdowns(hashes: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, int]]:
    """Returns the stored counts of each hash by field. Hashes are named by kind and subject."""
    by_column = {(kind, subject_column(subject)): (kind, subject) for kind, subject in hashes}
    counts: dict[tuple[str, str], dict[str, int]] = {name: {} for name in by_column.values()}
    columns = {column for _, column in by_column}
    rows = databases.rows(Breakdown).filter(subject__in=columns)
    for hash_kind, column, field, count in rows.values_list("kind", "subject", "field", "count"):
        if name := by_column.get((hash_kind, column)):
            counts[name][field] = count
    return counts


def delete_fields(name: tuple[str, str], fields: Sequence[str], *, floor: int) -> None:
    """Deletes those of the hash's fields that count at most `floor`.

    The hash is named by kind and subject.
    """
    hash_kind, subject = name
    rows = databases.rows(Breakdown).filter(subject=subject_column(subject), kind=hash_kind)
    rows.filter(field__in=fields, count__lte=floor).delete()


def delete(subjects: Iterable[str], *, models: Sequence[type[Model]] = ALL) -> None:
    """Deletes what the app's own tables hold of the subjects and of their reads."""
    columns: list[str] = []
    for subject in subjects:
        columns += [subject_column(subject), subject_column(of_reads(subject))]
    for model in models:
        databases.rows(model).filter(subject__in=columns).delete()
