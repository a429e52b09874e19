"""The models of the boards that threads are in, by the foreign keys that `boards` in MODELS
names.
"""

from collections.abc import Iterator, Sequence

from django.core.exceptions import FieldDoesNotExist
from django.db.models import ForeignKey, Model
from django.utils.module_loading import import_string

from readtrack.conf import cached_setting, says_true
from readtrack.registry import registry
from readtrack.subjects import label_of, model_with_label, option_of


def named_paths(label: str) -> Sequence[str]:
    """Returns the paths that `boards` in MODELS names for the model `label`, in small
    letters. Values of other types are left out; a check reports them.
    """
    options = registry().get(label)
    paths = options.of_parts.get("boards") if options else None
    if not isinstance(paths, (list, tuple)):
        return ()
    return [path for path in paths if isinstance(path, str)]


def board_paths(model: type[Model]) -> dict[str, type[Model]]:
    """Returns the models of the boards that the model's rows are in, by the path that leads there.

    The paths are those of `boards` in MODELS, as in {"board": Board, "board__forum": Forum}. A path
    that leads nowhere is left out; a check reports it.
    """
    boards: dict[str, type[Model]] = {}
    for path in named_paths(model._meta.label_lower):
        board = _model_at(model, path)
        if board is not None:
            boards[path] = board
    return boards


def _model_at(model: type[Model], path: str) -> type[Model] | None:
    """Returns the model that a path of foreign keys leads to; None for any other path."""
    model_on_path = model
    for name in path.split("__"):
        try:
            field = model_on_path._meta.get_field(name)
        except FieldDoesNotExist:
            return None
        if not isinstance(field, ForeignKey):
            return None
        model_on_path = field.related_model
    return model_on_path


def models_in_boards() -> Iterator[type[Model]]:
    """Yields the models of this site whose rows are in boards."""
    for label in registry():
        model = model_with_label(label)
        if model is not None and board_paths(model):
            yield model


@cached_setting("INSTALLED_APPS")
def thread_labels() -> dict[str, list[str]]:
    """Returns the labels of the models whose rows are in boards, by the label of the boards'
    model.
    """
    labels: dict[str, list[str]] = {}
    for model in models_in_boards():
        for board in board_paths(model).values():
            labels_of_board = labels.setdefault(label_of(board), [])
            if label_of(model) not in labels_of_board:
                labels_of_board.append(label_of(model))
    return labels


def is_public(row: Model) -> bool:
    """Returns True unless MODELS names a function that says that not everybody may see the row."""
    path = _function_of(row.__class__)  # type() of a SimpleLazyObject is no model
    if not path:
        return True
    return says_true(
        path, lambda: import_string(path)(row), otherwise="the row gives its boards no dot"
    )


def has_private_rows(model: type[Model]) -> bool:
    """Returns True if MODELS names a function that says which rows everybody may see."""
    return bool(_function_of(model))


def _function_of(model: type[Model]) -> str:
    """Returns the path of `is_public` of the model, or of its nearest parent that has one; else
    "".
    """
    path = option_of(model, "is_public")
    return path if isinstance(path, str) else ""
