"""`manage.py readtrack reset`."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Model

from readtrack.doctor.wording import counted
from readtrack.flush import resets
from readtrack.management.subcommands import confirmation
from readtrack.management.subcommands.base import Subcommand, progress_bar
from readtrack.reports.page_state import page_state
from readtrack.store import read_state, scripts
from readtrack.subjects import has_read_state, is_counted, model_with_label, owner


class Reset(Subcommand):
    """Sets the counts of a model to zero."""

    name = "reset"
    help = """\
Sets the counts of all rows of a model to zero, in Redis and in the database, and removes their
dots. It cannot be undone. On a terminal it says what will be lost, and asks.

  manage.py readtrack reset --model blog.Post
  manage.py readtrack reset --model blog.Post --dry-run     # only says what would be lost
  manage.py readtrack reset --model blog.Post --no-input    # does not ask

Run it after the table was emptied behind Django's back, as by TRUNCATE … RESTART IDENTITY:
otherwise new rows get the ids, and with them the counts and dots, of old ones. After manage.py
flush it is done already.
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--model",
            required=True,
            metavar="APP.MODEL",
            help="the model; its children share its counts",
        )
        confirmation.add_arguments(parser)

    def handle(
        self, *, model: str, dry_run: bool, interactive: bool, verbosity: int, **options: Any
    ) -> str:
        model_class = model_with_label(model)
        if model_class is None or not (is_counted(model_class) or has_read_state(model_class)):
            raise CommandError(
                f"{model!r} is no model with counts or read state. Name it as app_label.ModelName."
            )
        if dry_run:
            return _consequences(model_class)
        # Without a terminal it does not ask.
        confirmation.confirm(lambda: _consequences(model_class), interactive=interactive)
        with progress_bar("Resetting", unit=" objects", verbosity=verbosity) as bar:
            count = resets.reset_model(model_class, progress=bar.update)
        return f"Reset {counted(count, 'object')} of {_names(model_class)}."


def _names(model: type[Model]) -> str:
    """Returns the label of the model that is reset, with that of its child or proxy `model`."""
    owning_model = owner(model)
    if owning_model is model:
        return model._meta.label
    return f"{owning_model._meta.label} (whose counts {model._meta.label} shares)"


def _consequences(model: type[Model]) -> str:
    """Returns what a reset of the model takes away, in numbers."""
    subjects = resets.subjects_of_model(model)
    views = 0
    if is_counted(model):
        for portion in scripts.sliced(subjects):
            state = page_state(counts=dict.fromkeys(portion))
            views += sum(state.views.values())
    marks = 0
    if has_read_state(model):
        marks = sum(read_state.count_readers(subjects, patient=True).values())
    return (
        f"A reset sets {counted(len(subjects), 'object')} of {_names(model)} to zero, in Redis and"
        f" in the database.\nLost for good: {counted(views, 'view')}, with their visitors, reads"
        f" and history, and {counted(marks, 'mark')} of readers."
    )
