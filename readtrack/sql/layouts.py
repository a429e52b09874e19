"""The layouts that Redis and SQL have, against those that this version knows."""

from contextlib import suppress

from readtrack import layouts, migrated
from readtrack.models import FlushRun
from readtrack.sql import databases
from readtrack.store import flush_notes
from readtrack.store.circuit import SilentError
from readtrack.store.flush_notes import NewerLayoutError


def check() -> None:
    """Raises NewerLayoutError if a newer version of readtrack has changed the keys or the tables so
    that this one does not know them. Also raises redis.RedisError and django.db.Error.
    """
    # While the server of a cluster that has the note is silent, the other servers may be worked on.
    with suppress(SilentError):
        flush_notes.check_keys(flush_notes.known_layout())
    check_tables()


def check_tables() -> None:
    """Raises NewerLayoutError if a newer version has changed the tables so that this one does not
    know them. Also raises django.db.Error.
    """
    alias = databases.of(FlushRun).alias
    layout = migrated.layout_of(migrated.applied(alias, containing="_layout"))
    if layout > layouts.KNOWN:
        raise NewerLayoutError(layouts.sentence("SQL has tables", layout))
