"""`manage.py readtrack reset`."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from readtrack.doctor.wording import counted
from readtrack.flush import resets
from readtrack.management.subcommands.base import Subcommand, progress_bar
from readtrack.subjects import has_read_state, is_counted, model_with_label


class Reset(Subcommand):
    """Sets the counts of a model to zero."""

    name = "reset"
    help = """\
Sets the counts of all rows of a model to zero, in Redis and in the database, and removes their dots.
It cannot be undone.

  manage.py readtrack reset --model blog.Post

Run it after the table was emptied behind Django's back, as by TRUNCATE … RESTART IDENTITY: otherwise new rows get the
ids, and with them the counts and dots, of old ones. After manage.py flush it is done already.
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--model",
            required=True,
            metavar="APP.MODEL",
            help="the model; its children share its counts",
        )

    def handle(self, *, model: str, verbosity: int, **options: Any) -> str:
        model_class = model_with_label(model)
        if model_class is None or not (is_counted(model_class) or has_read_state(model_class)):
            raise CommandError(
                f"{model!r} is no model with counts or read state. Name it as app_label.ModelName."
            )
        with progress_bar("Resetting", unit=" objects", verbosity=verbosity) as bar:
            count = resets.reset_model(model_class, progress=bar.update)
        return f"Reset {counted(count, 'object')} of {model_class._meta.label}."
