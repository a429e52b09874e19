"""What the tables of the core have about subjects beside their counts: sketches."""

from collections.abc import Iterable
from typing import Any

from readtrack.models import Archive
from readtrack.sql import databases, subject_tables
from readtrack.subjects import subject_column


def archived(subjects: Iterable[str], *fields: str) -> dict[str, Any]:
    """Returns the archived rows of those subjects that have one, by subject.

    A row is a named tuple with the subject and these fields.
    """
    subject_by_column = {subject_column(subject): subject for subject in subjects}
    rows = databases.having(databases.rows(Archive), "subject", [*subject_by_column])
    return {
        subject_by_column[row.subject]: row
        for row in rows.values_list("subject", *fields, named=True)
    }


def sketches(subjects: Iterable[str]) -> dict[str, bytes]:
    """Returns the archived sketch of each subject that has one."""
    return {subject: bytes(row.sketch) for subject, row in archived(subjects, "sketch").items()}


def delete(subjects: Iterable[str]) -> None:
    """Deletes everything that the tables of readtrack have about the counts of the subjects."""
    subject_tables.delete(subjects, kept_with="counts")


def delete_rows(subjects: Iterable[str]) -> None:
    """Deletes the archived rows of the subjects, and nothing else."""
    columns = [*map(subject_column, subjects)]
    databases.rows(Archive).filter(subject__in=columns).delete()
