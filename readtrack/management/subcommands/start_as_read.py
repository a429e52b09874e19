"""`manage.py readtrack start-as-read`"""

from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Model

from readtrack.doctor.findings import counted, size
from readtrack.sql import databases
from readtrack.subjects import has_read_state, model_with_label, owner, read_state_models
from readtrack.unread import starting

after_failure = "What was marked stays marked. Start again."

arguments = {
    "--model": {"action": "append", "metavar": "APP.MODEL", "help": "a model with read state (default: all of them)"},
    "--dry-run": {"action": "store_true", "help": "only print the memory that it would take"},
}


def run(command: BaseCommand, *, bar: Callable[..., Any], dry_run: bool, verbosity: int, **options: Any) -> None:
    """Marks everything read, and prints how much that was."""
    models = list(map(_model, options["model"] or ())) or read_state_models()
    rows = sum(databases.rows(one).count() for one in models)
    each = starting.size_of(starting.highest_position())
    if not dry_run:
        with bar(desc="Marking", unit=" objects", total=rows) as shown:
            rows = sum(starting.start_as_read(one, progress=shown.update) for one in models)
    if verbosity:
        verb = "It would mark" if dry_run else "Marked"
        command.stdout.write(f"{verb} {counted(rows, 'object')} read, {size(each)} each, {size(each * rows)} in all.")


def _model(label: str) -> type[Model]:
    found = model_with_label(label)
    if found is None or not has_read_state(found):
        known = ", ".join(one._meta.label for one in read_state_models())
        raise CommandError(f"{label!r} is no model with read state. This site has: {known or 'none'}.")
    return owner(found)
