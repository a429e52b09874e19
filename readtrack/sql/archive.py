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
    """Returns these fields of the archived rows of subjects, by subject."""
    columns = {subject_column(subject): subject for subject in subjects}
    found = (
        databases.rows(Archive)
        .filter(subject__in=list(columns))
        .values_list("subject", *fields, named=True)
    )
    # MySQL takes keys that differ in case for one.
    return {columns[row.subject]: row for row in found if row.subject in columns}


def sketches(subjects: Iterable[str]) -> dict[str, bytes]:
    """Returns the archived sketch of each subject that has one."""
    return {subject: bytes(row.sketch) for subject, row in archived(subjects, "sketch").items()}


def breakdowns(hashes: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, int]]:
    """Returns the stored counts of hashes by field; the hashes are named by kind and subject."""
    wanted = {(kind, subject_column(subject)): (kind, subject) for kind, subject in hashes}
    found: dict[tuple[str, str], dict[str, int]] = {name: {} for name in wanted.values()}
    rows = databases.rows(Breakdown).filter(subject__in={column for _, column in wanted})
    for column, kind, field, count in rows.values_list("subject", "kind", "field", "count"):
        if (kind, column) in wanted:
            found[wanted[kind, column]][field] = count
    return found


def delete_fields(name: tuple[str, str], fields: Sequence[str], *, floor: int) -> None:
    """Deletes those of the hash's fields that count at most `floor`. The hash is named by kind and
    subject.
    """
    kind, subject = name
    found = databases.rows(Breakdown).filter(
        subject=subject_column(subject), kind=kind, field__in=fields
    )
    found.filter(count__lte=floor).delete()


def delete(subjects: Iterable[str], *, models: Sequence[type[Model]] = ALL) -> None:
    """Deletes what the app's own tables hold of the subjects."""
    columns = [
        subject_column(name) for subject in subjects for name in (subject, of_reads(subject))
    ]
    for model in models:
        databases.rows(model).filter(subject__in=columns).delete()
