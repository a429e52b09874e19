"""The boards that threads are in."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Model

from readtrack import subjects
from readtrack.sql import databases
from readtrack.threads.paths import board_paths, has_private_rows, is_public


def boards_of(names: Iterable[str]) -> dict[str, list[str]]:
    """Returns the subjects of the boards that threads are in, by the subject of the thread.

    Makes one query for each model whose rows are in boards. A thread that only some may see is in
    none. Threads without boards are left out.
    """
    pks_by_model: dict[type[Model], list[Any]] = {}
    for name in dict.fromkeys(names):
        model = subjects.model_with_label(subjects.label_in(name))
        if model is None or not board_paths(model):
            continue
        model_and_pk = subjects.parse_subject(name)
        if model_and_pk is not None:
            _, pk = model_and_pk
            pks_by_model.setdefault(model, []).append(pk)
    boards: dict[str, list[str]] = {}
    for model, pks in pks_by_model.items():
        boards.update(_boards_of_rows(model, pks))
    return boards


def loaded_boards(thread: Model) -> list[str] | None:
    """Returns the subjects of the boards of a loaded thread; None if that takes a query."""
    if not is_public(thread):
        return []
    boards = []
    for path in board_paths(thread.__class__):  # type() of a SimpleLazyObject is no model
        *parents, last = path.split("__")
        row: Any = thread
        for name in parents:
            field: Any = row._meta.get_field(name)
            if not field.is_cached(row):
                return None
            row = getattr(row, name)
            if row is None:
                break
        if row is None:
            continue
        field = row._meta.get_field(last)
        if field.attname not in row.__dict__ or not field.target_field.primary_key:
            return None
        pk = row.__dict__[field.attname]
        if pk is not None:
            boards.append(subjects.subject_of_row(field.related_model, pk))
    return boards


def _boards_of_rows(model: type[Model], pks: Sequence[Any]) -> dict[str, list[str]]:
    """Returns the subjects of the boards of rows, by the subject of the row."""
    paths = board_paths(model)
    rows = databases.rows(model).filter(pk__in=pks)
    if has_private_rows(model):
        pks = [row.pk for row in rows if is_public(row)]
        rows = databases.rows(model).filter(pk__in=pks)
    boards: dict[str, list[str]] = {}
    columns = [f"{path}__pk" for path in paths]
    for pk, *board_pks in rows.values_list("pk", *columns):
        boards[subjects.subject_of_row(model, pk)] = [
            subjects.subject_of_row(board_model, board_pk)
            for board_model, board_pk in zip(paths.values(), board_pks, strict=True)
            if board_pk is not None
        ]
    return boards
