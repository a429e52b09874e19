"""The tables with rows about subjects: those of the core, and those of the installed parts.

What is done with all rows about a subject loops over these tables, so it names none of them.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db.models import Model

from readtrack import parts
from readtrack.conf import cached_setting
from readtrack.models import SubjectRow
from readtrack.sql import databases
from readtrack.subjects import subject_column

Tables = Sequence[type[SubjectRow]]


class Columns(NamedTuple):
    """The names of a table's fields. Of two rows with one key, the higher first value stays."""

    keys: Sequence[str]  # which are unique together
    values: Sequence[str]


@cached_setting("INSTALLED_APPS", maxsize=1)
def every() -> Tables:
    """Returns the models of all tables with rows about subjects."""
    return tuple(model for model in parts.models() if issubclass(model, SubjectRow))


@cached_setting("INSTALLED_APPS")
def columns_of(model: type[Model]) -> Columns:
    """Returns the names of the model's fields, those of the primary key apart. Raises TypeError if
    the subject is none of these, because a row with a new subject would overwrite the old row.
    """
    meta: Any = model._meta
    key_fields = [field.name for field in meta.pk_fields]
    if "subject" not in key_fields:
        raise TypeError(f"The primary key of {meta.label} does not have the subject.")
    names = [field.name for field in meta.concrete_fields]
    return Columns(key_fields, [name for name in names if name not in key_fields])


def prefixes_of(model: type[SubjectRow]) -> list[str]:
    """Returns what the names of subjects in the table begin with; "" is for the plain subject."""
    return ["", *(f"{prefix}:" for prefix in model.prefixes)]


def delete(subjects: Iterable[str], *, kept_with: str) -> None:
    """Deletes the rows about the subjects, under all their names, from the tables that are kept
    with their "counts" or with their "read state". Raises django.db.Error.
    """
    subjects = list(subjects)
    for model in every():
        if model.kept_with != kept_with:
            continue
        columns: list[str] = []
        for prefix in prefixes_of(model):
            columns += [subject_column(prefix + subject) for subject in subjects]
        databases.rows(model).filter(subject__in=columns).delete()
