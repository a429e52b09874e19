"""`manage.py readtrack reset`"""

from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from readtrack.doctor.findings import counted
from readtrack.flush.resets import reset_model
from readtrack.subjects import has_read_state, is_counted, model_with_label

after_failure = "What was reset stays reset. Start again."

arguments = {"--model": {"required": True, "metavar": "APP.MODEL", "help": "the model; its children share its counts"}}


def run(command: BaseCommand, *, bar: Callable[..., Any], model: str, verbosity: int, **options: Any) -> None:
    """Resets, and prints how many objects had counts or dots."""
    found = model_with_label(model)
    if found is None or not (is_counted(found) or has_read_state(found)):
        raise CommandError(f"{model!r} is no model with counts or read state. Name it as app_label.ModelName.")
    with bar(desc="Resetting", unit=" objects") as shown:
        done = reset_model(found, progress=shown.update)
    if verbosity:
        command.stdout.write(f"Reset {counted(done, 'object')} of {found._meta.label}.")
