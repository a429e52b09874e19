"""SQL's side of flushes: the record of each, the newest epoch of Redis, and resets."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

from django.db.models import F, Max, QuerySet

from readtrack.conf import conf
from readtrack.models import FlushRun, KnownEpoch, Note
from readtrack.sql import databases
from readtrack.store import keys
from readtrack.store.counters import Epoch

LOCK = 0  # origin of the row of KnownEpoch that is no list's


class SqlEpoch:
    """The newest epochs of some partitions in SQL, as one flush knows them: SQL's number only moves
    forward.
    """

    def __init__(self, part: str = "") -> None:
        number, parts = map(int, part.split("/")) if part else (1, 1)
        self.tags = keys.tags()[number - 1 :: parts]
        self._names: dict[str, int] = {}  # by tag

    def known(self, epochs: Iterable[Epoch]) -> dict[str, Epoch]:
        """Returns what SQL knows of the lists of these epochs, by the tags of their partitions."""
        rows, origins = databases.rows(KnownEpoch), {epoch.tag: epoch.origin for epoch in epochs}
        found: dict[str, Epoch] = {}
        if any(origins.values()):
            named = rows.filter(origin__in=[*filter(None, origins.values())])
            for tag, origin, epoch, until in named.values_list("tag", "origin", "epoch", "until"):
                if origins.get(tag) == origin:
                    found[tag] = Epoch(origin, epoch, until=until, tag=tag)
        if not all(origins.values()):
            # These lists lost their epochs. What they hold may be as old as anything that was
            # settled.
            for tag, until in rows.values_list("tag").annotate(newest=Max("until")):
                if origins.get(tag) == 0 and until:
                    found[tag] = Epoch(current=-1, until=until, tag=tag)
        self._names.update((tag, epoch.current) for tag, epoch in found.items())
        return found

    def advance(self, epochs: Iterable[Epoch]) -> bool:
        """Tells SQL of epochs that follow the newest it knows. Returns False if Redis has to be
        settled first.
        """
        is_known, rows = True, databases.rows(KnownEpoch)
        for epoch in epochs:
            if epoch.current == self._names.get(epoch.tag, -1):
                continue
            named = rows.filter(tag=epoch.tag, origin=epoch.origin)
            values = {"epoch": epoch.current, "until": epoch.until}
            if epoch.current:
                row, is_new = named.get_or_create(
                    tag=epoch.tag, origin=epoch.origin, defaults=values
                )
                is_told = (
                    is_new
                    or row.epoch == epoch.current
                    or named.filter(epoch=epoch.previous).update(**values)
                )
            else:  # nothing was settled in it yet
                is_told = epoch.origin and not named.exists()
            if is_told:
                self._names[epoch.tag] = epoch.current
            else:
                is_known = False
        return is_known


def flush_and_notes(
    since: date, until: date
) -> tuple[FlushRun | None, list[tuple[date, str]], int]:
    """Returns the last flush that ended, the notes of these days by day, and until when (µs) a full
    flush has read.
    """
    names = {"runs": FlushRun._meta.db_table, "notes": Note._meta.db_table}
    rows: Any = [
        *FlushRun.objects.raw(
            databases.STATEMENTS["flush_and_notes"].format(**names), [since, until]
        )
    ]
    # Databases without dates give text.
    notes = [(date.fromisoformat(str(row.note_day)), row.note_text) for row in rows if row.note_day]
    return (rows[0] if rows[0].pk else None), notes, rows[0].full_until or 0


def lock_epoch() -> None:
    """Locks a row until the transaction ends; other writers of history wait."""
    lock = databases.rows(KnownEpoch).filter(origin=LOCK)
    if not lock.update(epoch=F("epoch")):
        databases.rows(KnownEpoch).get_or_create(origin=LOCK)
        lock.update(epoch=F("epoch"))


def last_good() -> FlushRun | None:
    """Returns the oldest of the flushes that are the newest good ones of a partition; None if one
    was never flushed.
    """
    last = ended_well().order_by().values("part").annotate(last=Max("pk")).values("last")
    newest: dict[str, FlushRun] = {}
    for run in ended_well(pk__in=last):
        newest = dict.fromkeys(SqlEpoch(run.part).tags, run) | newest
    return (
        min(newest.values(), key=lambda run: run.started)
        if len(newest) == len(keys.tags())
        else None
    )


def ended_well(**of: Any) -> "QuerySet[FlushRun]":
    """Returns the flushes (of these partitions) that ended without an error, newest first."""
    return databases.rows(FlushRun).filter(ended__isnull=False, error="", **of)


def late_after() -> timedelta:
    """Returns the age after which a flush is late: three intervals, because one tick may be
    dropped.
    """
    return timedelta(seconds=3 * conf.FLUSH_INTERVAL)
