"""How far an import has come, so that each part of it is counted once, wherever it is killed.

A part is announced to Redis, noted in SQL as intended, added in Redis in one step with its position,
carried into SQL like any count, and noted in SQL as done, in one transaction with its history:

- killed before it was added: Redis has the announcement, not the position; the part is added again;
- killed after it was added: Redis has the position; the part is carried and noted, not added;
- Redis lost its data after the part was noted: SQL's counts have it;
- Redis lost its data in between: nobody can tell whether a flush carried some of the part, so it is
  passed over and reported: at most one batch is missing, and nothing is ever counted twice.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.utils.translation import gettext

from readtrack import buckets
from readtrack.flush.merging import settle
from readtrack.flush.run import flush, write_subjects
from readtrack.imports import backfill
from readtrack.imports.backfill import Batch
from readtrack.models import Import
from readtrack.sql import databases
from readtrack.sql.runs import SqlEpoch
from readtrack.store import imports, scripts


class ImportConflictError(RuntimeError):
    """Another import of the same source came first, or Redis lost its data meanwhile."""


class Resumed(NamedTuple):
    """Where an import goes on, and the size of a part that has to be passed over."""

    position: int
    lost: int = 0


def resume(
    record: Import, *, digest: Callable[[int], str | None] = lambda position: "", dry_run: bool = False
) -> Resumed:
    """Where the import goes on. What was added but not carried is carried; a dry run only looks.

    `digest` tells what is before a position, so that the source is known again; None where it ends sooner.
    """
    if record.pk is None:
        return Resumed(0)
    before, intended = record.position, record.intended
    begun, done, totals = imports.state(record.source)
    if done is not None and done > before:
        if not dry_run and (found := digest(done)) is not None:
            flush()
            # A database restored from a backup may not know of the part any more.
            _confirm(record, done, digest=found, part=record.part if done == intended else "", totals=totals)
        return Resumed(done)
    if intended <= before or (begun, done) == (intended, before):
        return Resumed(before)
    if not dry_run and (found := digest(intended)) is not None:
        _confirm(record, intended, digest=found)
    return Resumed(intended, intended - before)


def add(record: Import, batch: Batch, *, position: int, digest: str = "") -> None:
    """Adds the batch to the counts, which takes the import to that position.

    Raises ImportConflictError, redis.RedisError or django.db.Error; importing again then goes on from there.
    """
    before = record.position
    part = ""
    totals: Sequence[int] = ()
    if batch.views:
        scripts.run_all(
            *imports.add_visitors({subject: list(ids) for subject, ids in batch.visitors.items()}), patient=True
        )
        _check(scripts.run(imports.intend(record.source, before=before, after=position), patient=True))
        at = buckets.now()
        part = backfill.part(batch, at=at)
        _check(_update(record, intended=position, part=part))
        parts: Any = {"views": batch.views, "hours": batch.hours, "since": imports.first_hour(at)}
        call = imports.apply(record.source, before=before, after=position, at=at, **parts)
        while (answer := scripts.run(call, patient=True)) is imports.Applied.UNSETTLED:
            settle(SqlEpoch())
        _check(answer is imports.Applied.APPLIED)
        write_subjects(batch.views)
        _, done, totals = imports.state(record.source)
        _check(done == position)
    _confirm(record, position, digest=digest, part=part, totals=totals)


def _confirm(record: Import, position: int, *, digest: str, part: str = "", totals: Sequence[int] = ()) -> None:
    """Notes the part as done, and brings it into history: both or neither, whoever else tries it."""
    done = {"position": position, "intended": position, "part": "", "digest": digest}

    def confirm() -> None:
        with transaction.atomic(using=connection.alias):
            _check(_update(record, **done, since=record.since, until=record.until))
            if part:
                backfill.fill(part, totals)

    connection = databases.of(Import)
    databases.retried(connection, confirm)
    record.position = record.intended = position


def _update(record: Import, **values: Any) -> bool:
    """Whether the record still had the position that we know, and now has the values."""
    return Import.objects.filter(pk=record.pk, position=record.position).update(**values) == 1


def _check(is_ours: bool) -> None:  # noqa: FBT001 - the answer of a guard
    if not is_ours:
        message = gettext("Another import of this came first, or Redis lost its data meanwhile. Import again.")
        raise ImportConflictError(message)
