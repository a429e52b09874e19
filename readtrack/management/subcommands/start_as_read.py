"""`manage.py readtrack start-as-read`."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Model

from readtrack.doctor.wording import counted, size
from readtrack.management.subcommands.base import Subcommand, progress_bar
from readtrack.sql import databases
from readtrack.subjects import (
    has_read_state,
    is_derived,
    model_with_label,
    owner,
    read_state_models,
)
from readtrack.unread import starting


class StartAsRead(Subcommand):
    """Marks everything read for everybody."""

    name = "start-as-read"
    help = """\
Puts out the dots of every user there is. For the day on which a site with users and posts adds
dots: otherwise everybody has a dot at everything.

  manage.py readtrack start-as-read
  manage.py readtrack start-as-read --model forum.Forum

What is published while it runs keeps its dots, and so does everything for accounts made later. It
fills the read state of each object up to the highest user, and prints the memory that this takes. A
model whose read state is kept by reader takes one write, and no memory.
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--model",
            action="append",
            metavar="APP.MODEL",
            help="a model with read state (default: all of them)",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="only print the memory that it would take",
        )

    def handle(
        self, *, model: list[str] | None, dry_run: bool, verbosity: int, **options: Any
    ) -> str:
        models = read_state_models()
        if model:
            models = [_model(label) for label in model]
        models = [model_class for model_class in models if not is_derived(model_class)]
        count = 0
        total = 0  # bytes
        for model_class in models:
            rows = databases.rows(model_class).count()
            count += rows
            total += rows * starting.size_of_start(model_class)
        if not dry_run:
            with progress_bar("Marking", unit=" objects", total=count, verbosity=verbosity) as bar:
                count = sum(
                    starting.start_as_read(model_class, progress=bar.update)
                    for model_class in models
                )
        verb = "Marked"
        if dry_run:
            verb = "It would mark"
        return (
            f"{verb} {counted(count, 'object')} read,"
            f" {size(total / max(1, count))} each, {size(total)} in all."
        )


def _model(label: str) -> type[Model]:
    """Returns the model `label`, or its parent that owns the read state.

    Raises CommandError for a model without read state.
    """
    model_class = model_with_label(label)
    if model_class is None or not has_read_state(model_class):
        labels = [model._meta.label for model in read_state_models()]
        raise CommandError(
            f"{label!r} is no model with read state. This site has: {', '.join(labels) or 'none'}."
        )
    return owner(model_class)
