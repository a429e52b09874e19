"""The forms of threads and of their boards, by the models that MODELS names."""

from collections.abc import Mapping, Sequence

from django.db.models import Model

from readtrack.conf import cached_setting
from readtrack.registry import registry
from readtrack.store.read_state.forms import Form
from readtrack.store.renaming import Rename
from readtrack.subjects import label_in, label_of, model_with_label
from readtrack.threads import boards, carrying
from readtrack.threads.paths import thread_labels
from readtrack.threads.positions import BoardPositions, Positions


class Threads(Positions):
    """The form of threads, which are in boards by foreign keys in SQL."""

    def loaded_within(self, category: Model) -> list[str] | None:
        return boards.loaded_boards(category)

    def within(self, subjects: Sequence[str]) -> dict[str, list[str]]:
        return boards.boards_of(subjects)


class Boards(BoardPositions):
    """The form of boards, whose names are in keys of their threads."""

    def follow_rename(self, rename: Rename) -> int:
        return sum(carrying.follow_rename(threads.label, rename) for threads in self.threads)


@cached_setting("INSTALLED_APPS")
def positions_by_label() -> Mapping[str, Threads]:
    """Returns the forms of threads that MODELS names, by the label of their model."""
    positions: dict[str, Threads] = {}
    for configured_label, options in registry().items():
        model = model_with_label(configured_label)
        if model is not None and options.read_state == Positions.name:
            label = label_of(model)
            positions[label] = Threads(label)
    return positions


@cached_setting("INSTALLED_APPS")
def forms_by_label() -> Mapping[str, Form]:
    """Returns the forms of threads and of their boards, by the label of the model."""
    forms: dict[str, Form] = {}
    positions = positions_by_label()
    for board_label, labels in thread_labels().items():
        threads = [positions[label] for label in labels if label in positions]
        if threads:
            forms[board_label] = Boards(threads)
    return {**forms, **positions}


def positions_of(label: str) -> Threads | None:
    """Returns the form of the model `label`, or of a subject of it, if its read state is
    kept by reader, else None.
    """
    return positions_by_label().get(label_in(label))


def threads_in(label: str) -> Sequence[Positions]:
    """Returns the forms of the threads that are in boards of the model `label`."""
    form = forms_by_label().get(label)
    return form.threads if isinstance(form, Boards) else ()
