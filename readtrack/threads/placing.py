"""Placing threads in their boards, after they were moved."""

from django.db import transaction
from django.db.models import Model

from readtrack import subjects
from readtrack.store import scripts
from readtrack.store.circuit import fail_open
from readtrack.threads.boards import boards_of
from readtrack.threads.forms import positions_of


def place_on_commit(thread: Model, *, using: str) -> None:
    """Places a thread in its boards on commit, because it may have been moved to another one."""
    subject = subjects.subject_of(thread)
    positions = positions_of(subject)
    if positions is None:
        return

    def place() -> None:
        boards = boards_of([subject]).get(subject, [])
        fail_open(scripts.run, None, positions.place(subject, boards))

    transaction.on_commit(place, using=using, robust=True)
