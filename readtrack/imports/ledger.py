"""Records how far an import has come: each batch counts once, after any kill (steps: docs/explanation/flush.md)."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from readtrack import buckets
from readtrack.conf import conf
from readtrack.flush import merging, run
from readtrack.models import Import
from readtrack.sql import databases, history, runs
from readtrack.store import imports, keys, scripts
from readtrack.store.imports import Batch, first_hour


@dataclass(slots=True)
class Report:
    """Numbers of the lines or rows that were read, and of the views (or reads of categories) that were counted."""

    read: int = 0
    counted: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # by reason: that of a live hit, or one of the import
    not_resolved: Counter[str] = field(default_factory=Counter)  # paths of a log, by pattern
    notes: list[str] = field(default_factory=list)


class ImportRefusedError(RuntimeError):
    """There is nothing to import, another import of the same source came first, or Redis lost its data meanwhile."""


def part_of(batch: Batch, *, at: datetime) -> str:
    """Returns the batch as JSON, for the record."""
    hours = [[*key, count] for key, count in batch.hours.items()]
    return json.dumps({"views": batch.views, "hours": hours, "first_live_hour": first_hour(at)})


def resume(
    record: Import, *, digest: Callable[[int], str | None] = lambda position: "", dry_run: bool = False
) -> tuple[int, int]:
    """Finishes a batch that was added in Redis. Returns where the import goes on, and the size of a batch passed over.

    `digest` is that of the source up to a position, None if the source ends sooner. A dry run only looks.
    """
    if record.pk is None:
        return 0, 0
    before, intended = record.position, record.intended
    states = dict(zip(keys.tags(), imports.states(record.source, keys.tags()), strict=True))
    batch, at = Batch(), buckets.now()
    if record.part:
        kept = json.loads(record.part)
        batch.views.update(kept["views"])
        batch.hours.update({(subject, hour): count for subject, hour, count in kept["hours"]})
        at -= (first_hour(at) - kept["first_live_hour"]) * buckets.HOUR  # a time for which Redis keeps the same hours
    shares = [states[tag] for tag in keys.by_tag(batch.views) or states]
    done = max(before, *(one.done or 0 for one in states.values()))
    if done > before:
        lost = 0
        if not dry_run and (found := digest(done)) is not None:
            # A database that was restored from a backup may not know the batch any more.
            part = record.part if done == intended else ""
            is_partial = part and any(one.done != done for one in shares)  # killed between two of several partitions
            if is_partial and not _apply(record.source, batch, before=before, after=done, at=at):
                lost = done - before
            run.flush()
            totals = imports.totals(record.source, batch.views, done=done) if part else {}
            _confirm(record, done, digest=found, part=part, totals=totals)
        return done, lost
    is_lost = intended > before and any((one.begun, one.done) != (intended, before) for one in shares)
    if is_lost and not dry_run and (found := digest(intended)) is not None:
        _confirm(record, intended, digest=found)
    return (intended, intended - before) if is_lost else (before, 0)


def add(record: Import, batch: Batch, *, position: int, digest: str = "") -> None:
    """Adds the batch to the counts and moves the import there. After any error, importing again goes on from there."""
    source, before, part, totals = record.source, record.position, "", dict[str, int]()
    if batch.views:
        imports.add_visitors(batch)
        _check(all(scripts.run_all(*imports.intend(source, batch.views, before=before, after=position), patient=True)))
        at = buckets.now()
        part = part_of(batch, at=at)
        _check(Import.objects.filter(pk=record.pk, position=before).update(intended=position, part=part))
        _check(_apply(source, batch, before=before, after=position, at=at))
        run.write_subjects(batch.views)
        totals = imports.totals(source, batch.views, done=position)
        _check(len(totals) == len(batch.views))
    _confirm(record, position, digest=digest, part=part, totals=totals)


def _apply(source: str, batch: Batch, *, before: int, after: int, at: datetime) -> bool:
    """Adds the batch to the counts of all its partitions that lack it. Returns False if one refuses it."""
    calls = imports.apply(source, batch, before=before, after=after, at=at)
    while imports.Applied.UNSETTLED in (answers := scripts.run_all(*calls, patient=True)):
        merging.settle(runs.SqlEpoch())
    return imports.Applied.REFUSED not in answers


def _confirm(record: Import, position: int, *, digest: str, part: str = "", totals: Mapping[str, int] = {}) -> None:
    """Moves the position and fills in the history in one transaction, once, whoever else tries it."""
    moved = {"position": position, "intended": position, "part": "", "digest": digest}

    def confirm() -> None:
        with transaction.atomic(using=connection.alias):
            known = Import.objects.filter(pk=record.pk, position=record.position)
            _check(known.update(**moved, since=record.since, until=record.until))
            if part and conf.HISTORY:
                found = json.loads(part)
                history.raise_hours(found["hours"], totals, first_live=found["first_live_hour"])

    connection = databases.of(Import)
    databases.retried(connection, confirm)
    record.position = record.intended = position


def _check(is_ours: object) -> None:
    if not is_ours:
        raise ImportRefusedError("Another import of this came first, or Redis lost its data meanwhile. Import again.")
