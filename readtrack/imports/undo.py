"""Taking back what the import of a file has added, exactly once, even if it is killed and
repeated.
"""
# The steps: docs/explanation/imports.md

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from django.db.models import Q

from readtrack import buckets
from readtrack.doctor.wording import counted
from readtrack.flush import resets, settling
from readtrack.flush.run import flush
from readtrack.imports import keys as import_keys
from readtrack.imports import ledger, logs, totals
from readtrack.imports.added import Added, SubjectHour, unpacked
from readtrack.imports.hosts import printable
from readtrack.imports.models import Import, ImportedViews
from readtrack.imports.stored import stored_of_any
from readtrack.models import Reset
from readtrack.numbers.flush import lowered
from readtrack.numbers.flush.hours import HOURS_KEPT
from readtrack.numbers.sql import past_hours
from readtrack.numbers.sql.history import FOREVER
from readtrack.numbers.sql.history_lock import lock_history
from readtrack.progress import Progress, no_progress
from readtrack.sql import databases, deletions, epochs
from readtrack.sql.faults import Faults
from readtrack.store import keys, scripts
from readtrack.subjects import subject_column, subjects_by_model

NAMED_FILES = 10  # of those that were imported, which an error names
GONE = "the objects were set to zero, deleted or renamed since"
NAMED_OBJECTS = 10  # that a report names

# Answers of take_back.lua.
_REFUSED = 0  # Redis does not have the announcement, so it may have lost its data
_TAKEN = 1
_UNSETTLED = 2  # a counter does not include SQL's count: settle it, then try again
_TAKEN_EARLIER = 3  # by a try that was killed, or whose transaction was


@dataclass(slots=True)
class Undone:
    """What was taken back of a file, or would be."""

    name: str
    views: Counter[str] = field(default_factory=Counter)  # by subject
    # Views that stay, by the reason.
    kept: Counter[str] = field(default_factory=Counter)
    recent: int = 0  # views of hours that the charts of models keep
    since: int = 0  # first and last time of the file's lines (s since 1970); 0 without any
    until: int = 0


class _Taken(NamedTuple):
    """What Redis answered of a partition."""

    answer: int
    hour: int  # in which it was taken back (since 1970)
    time: int  # when (µs)


def undo(path: str, *, dry_run: bool = False, progress: Progress = no_progress) -> Undone:
    """Takes back what all imports of the file have added. It may be imported again then.

    To repeat it, also after a kill, takes nothing back twice. `progress` is told the number of
    views. Raises ImportRefusedError for a file that was not imported, and if Redis lost its data
    meanwhile.
    """
    with ExitStack() as stack:
        log = _opened(path, stack)
        records = _records_of(path, log)
        if not records:
            raise ledger.ImportRefusedError(_hint(path))
        if not dry_run:
            _begin(records, digest=log.digest_at if log else lambda position: "")
    undone = Undone(
        name=path,
        since=min(record.since for record in records),
        until=max(record.until for record in records),
    )
    for record in records:
        batches = ImportedViews.objects.filter(record=record).order_by("-position")
        for pk in [*batches.values_list("pk", flat=True)]:  # a batch may be large
            before = undone.views.total()
            for batch in batches.filter(pk=pk):  # there is none if another undo was quicker
                _take_back(batch, undone, dry_run=dry_run)
            progress(undone.views.total() - before)
        if not dry_run:
            _forget(record)
    return undone


def _opened(path: str, stack: ExitStack) -> logs.LogFile | None:
    """Returns the log at that path; None if there is no such file, or if it is no log."""
    with suppress(FileNotFoundError, ledger.ImportRefusedError):
        return logs.LogFile(stack.enter_context(Path(path).open("rb")))
    return None


def _records_of(path: str, log: logs.LogFile | None) -> list[Import]:
    """Returns the records of the imports of the file: of one with this content, or of this name if
    there is no such file any more.
    """
    if not Path(path).exists():
        return [*Import.objects.filter(name=path[-255:]).order_by("-pk")]
    records = log.records() if log else []
    if not records:
        with suppress(ledger.ImportRefusedError):
            records = totals.records_of(path)
    return records


def _hint(path: str) -> str:
    """Returns why nothing of the file can be taken back, with the names of other files."""
    files = Import.objects.filter(Q(until__gt=0) | Q(source__startswith=totals.SOURCE))
    records = [*files.order_by("-started")[: NAMED_FILES + 1]]
    if not records:
        return f"{path} was not imported. No file was."
    named = [
        f"{printable(record.name)} (imported {record.started:%Y-%m-%d %H:%M} UTC)"
        for record in records[:NAMED_FILES]
    ]
    others = " and others" if len(records) > NAMED_FILES else ""
    return (
        f"{path} was not imported, or has other lines now."
        f" Imported were: {', '.join(named)}{others}."
    )


def _begin(records: Iterable[Import], *, digest: ledger.Digest) -> None:
    """Notes that the imports are taken back, and finishes batches that they were killed in.

    `digest` is that of the file.
    """
    flush()  # a Redis that was restored from before the last flush catches up with SQL first
    for record in records:
        if record.undone_since is None:
            ledger.resume(record, digest=digest)
            record.undone_since = buckets.now()
            record.save(update_fields=["undone_since"])


def _forget(record: Import) -> None:
    """Forgets the import, so that the file may be imported again."""
    calls = [
        scripts.Call[int]("UNLINK", [import_keys.position(tag, record.source)])
        for tag in keys.tags()
    ]
    record.delete()
    scripts.run_all(*calls, patient=True)


def _take_back(batch: ImportedViews, undone: Undone, *, dry_run: bool) -> None:
    """Takes the views of a batch back, and adds them to what is undone."""
    added = _without_gone(unpacked(bytes(batch.views)), batch.redis_time, undone)
    oldest_kept = buckets.hour_index(buckets.now()) - HOURS_KEPT
    recent = sum(views for _, hour, views in added.hours if hour >= oldest_kept)
    if dry_run:
        undone.views.update(added.views)
        undone.recent += recent
        return
    if not batch.is_announced:
        _announce(batch, added.views)
    write = partial(_write, batch, added, end_of_models=oldest_kept)
    taken = databases.retried(databases.of(Import), write)
    while any(of_tag.answer == _UNSETTLED for of_tag in taken.values()):
        _settle()
        taken = databases.retried(databases.of(Import), write)
    lower: list[str] = []
    for subject, views in added.views.items():
        if taken[keys.tag(subject)].answer in {_TAKEN, _TAKEN_EARLIER}:
            undone.views[subject] += views
            lower.append(subject)
        else:
            undone.kept["Redis lost them while they were taken back"] += views
    undone.recent += recent
    resets.lower(lower)
    lowered.correct(lower)


def _note_lowering(subjects: Sequence[str], *, time: int) -> None:
    """Notes in SQL that some of the counts of the subjects were taken back at that time of Redis
    (µs).

    The note has a name of its own, and leaves those of resets alone, because the subjects were not
    set to zero.
    """
    rows = [
        (subject_column(deletions.LOWERED + subject), time, subject, False) for subject in subjects
    ]
    fields = ("redis_time", "full_subject", "is_deletion")
    databases.upsert(Reset, ("subject",), fields, rows=rows)


def _without_gone(added: Added, redis_time: int, undone: Undone) -> Added:
    """Returns what was added to those objects that still have it: they were neither reset nor
    deleted since that time (µs). The views of others are counted as kept.
    """
    reset_times = deletions.times_of_resets(added.views)
    was_reset = {subject for subject, time in reset_times.items() if time > redis_time}
    present = _existing(added.views) - was_reset
    views = {subject: count for subject, count in added.views.items() if subject in present}
    kept = sum(added.views.values()) - sum(views.values())
    if kept:
        undone.kept[GONE] += kept
    return Added(views, [entry for entry in added.hours if entry.subject in present])


def _existing(subjects: Iterable[str]) -> set[str]:
    """Returns those of the subjects whose rows exist."""
    existing: set[str] = set()
    for model, subject_by_pk in subjects_by_model(subjects).items():
        stored = stored_of_any(model, [*subject_by_pk])
        existing.update(subject_by_pk[pk] for pk in stored)
    return existing


def _announce(batch: ImportedViews, subjects: Iterable[str]) -> None:
    """Tells Redis, and then SQL, that the batch is about to be taken back.

    So a Redis that has lost its data since can be told from one that has not.
    """
    calls: list[scripts.Call[Any]] = []
    for tag in keys.by_tag(subjects):
        name = import_keys.position(tag, batch.record.source)
        calls.append(scripts.Call("HSET", [name], ("taking", batch.position)))
        calls.append(scripts.Call("EXPIRE", [name], (import_keys.position.ttl,)))
    scripts.run_all(*calls, patient=True)
    ImportedViews.objects.filter(pk=batch.pk).update(is_announced=True)


def _write(batch: ImportedViews, added: Added, *, end_of_models: int) -> dict[str, _Taken]:
    """Takes the batch back in Redis and in SQL's history, and forgets it, in one transaction.

    Returns what Redis answered, by partition. If a counter is unsettled, SQL stays as it was.
    """
    with databases.own_transaction(databases.of(Import)):
        lock_history()  # the other writers of history wait
        if not ImportedViews.objects.filter(pk=batch.pk).exists():
            return {tag: _Taken(_REFUSED, 0, 0) for tag in keys.by_tag(added.views)}
        calls = _calls(batch, added)
        scripts.run_all(*calls.values(), patient=True)
        taken = {tag: call.result for tag, call in calls.items()}
        if any(of_tag.answer == _UNSETTLED for of_tag in taken.values()):
            return taken
        ends = _ends_of_history(added.views, taken)
        for tag, subjects in keys.by_tag(ends).items():
            _note_lowering(subjects, time=taken[tag].time)
        if batch.is_in_history:
            past_hours.lower_hours(added.hours, ends, end_of_models=end_of_models)
        # The rows since a batch was taken back earlier. In the transaction, because whoever repeats
        # an undo that was killed after it finds no batch any more.
        lowered.correct([subject for subject, end in ends.items() if end != FOREVER])
        ImportedViews.objects.filter(pk=batch.pk).delete()
    return taken


def _ends_of_history(subjects: Iterable[str], taken: Mapping[str, _Taken]) -> dict[str, int]:
    """Returns the hour at which rows of history no longer have the views, by subject.

    Subjects whose partition has lost the batch are left out.
    """
    ends: dict[str, int] = {}
    for subject in subjects:
        of_tag = taken[keys.tag(subject)]
        if of_tag.answer == _TAKEN:
            ends[subject] = FOREVER
        elif of_tag.answer == _TAKEN_EARLIER:
            # Flushes since then may have written lower totals already.
            ends[subject] = of_tag.hour
    return ends


def _calls(batch: ImportedViews, added: Added) -> dict[str, scripts.Call[_Taken]]:
    """Returns the calls that take the batch back in Redis, by partition."""

    def decode(answer: Sequence[Any]) -> _Taken:
        return _Taken(*(int(value or 0) for value in answer))

    hours_by_tag: defaultdict[str, list[SubjectHour]] = defaultdict(list)
    present_hour = buckets.hour_index(buckets.now())
    for entry in added.hours:
        if ledger.is_live(entry.hour, present_hour=present_hour):
            hours_by_tag[keys.tag(entry.subject)].append(entry)
    calls = {}
    for tag, subjects in keys.by_tag(added.views).items():
        key_names = [
            import_keys.position(tag, batch.record.source),
            keys.unsettled(tag),
            keys.reset(tag),
        ]
        arguments: list[Any] = [batch.position, present_hour]
        for subject in subjects:
            key_names.append(keys.total(subject))
            arguments += (subject, added.views[subject], "")
        for subject, hour, views in hours_by_tag[tag]:
            bucket = buckets.bucket_of_hour(hour)
            key_names.append(keys.hours(subject))
            arguments += ("", views, bucket)
        calls[tag] = scripts.Call("readtrack.imports/take_back", key_names, arguments, decode)
    return calls


def _settle() -> None:
    """Settles what is unsettled. Raises ImportRefusedError if the database cannot be read."""
    faults = Faults()
    settling.settle(epochs.SqlEpoch(), faults)
    if faults.failed:
        raise ledger.ImportRefusedError(f"Counts cannot be read from the database:\n{faults}")


def text_of(undone: Undone, *, dry_run: bool) -> tuple[list[str], list[str]]:
    """Returns what was undone as lines of text, and notes on what stays."""
    verb = "Would take back" if dry_run else "Took back"
    views = counted(undone.views.total(), "view")
    lines = [
        f"{verb} {views} of {counted(len(undone.views), 'object')} that {undone.name} had added."
    ]
    if undone.until:
        first, last = (
            datetime.fromtimestamp(at, timezone.utc) for at in (undone.since, undone.until)
        )
        lines.append(f"Its lines were of {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC.")
    lines += [
        f"{views:>12,}  {subject}" for subject, views in undone.views.most_common(NAMED_OBJECTS)
    ]
    notes = [
        f"Not taken back: {counted(views, 'view')}, because {reason}."
        for reason, views in undone.kept.items()
    ]
    if undone.recent:
        notes.append(
            f"{counted(undone.recent, 'view')} of the last three days stay in the charts of models"
            " and of the site, which Redis counts. They are gone from the counts and charts of"
            " objects."
        )
    if undone.views:
        notes.append(
            "Unique visitors stay as they are, because no visitor can be taken out of a sketch."
        )
    return lines, notes
