"""The lock of all writers of history, of whom one writes at a time."""

from django.db.models import F

from readtrack.models import KnownEpoch
from readtrack.sql import databases
from readtrack.sql.epochs import LOCK


def lock_history() -> None:
    """Locks the same row for all writers of history until the transaction ends."""
    lock = databases.rows(KnownEpoch).filter(origin=LOCK)
    # An UPDATE that changes nothing also locks in SQLite, which has no SELECT FOR UPDATE.
    locked_rows = lock.update(epoch=F("epoch"))
    if not locked_rows:
        databases.rows(KnownEpoch).get_or_create(origin=LOCK)
        lock.update(epoch=F("epoch"))
