"""Records how far an import has come: each batch counts once, after any kill."""
# The steps: docs/explanation/flush.md

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction

from readtrack import buckets
from readtrack.conf import conf
from readtrack.flush import run, settling
from readtrack.models import Import
from readtrack.sql import databases, epochs, past_hours
from readtrack.store import counters, keys, scripts, uniques

VIEWS = 2_000  # in a batch: a script that adds more would keep Redis from serving pages
# The highest total of an object that an import makes. No object has as many views, so a higher
# number is damage. Lua's numbers are exact up to 2^53, and SQL adds the totals of a model up.
MOST_VIEWS = 10**12
NOT_ADDED = -1  # apply.lua's total of a subject that would pass MOST_VIEWS, or that is no number
NAMED_REFUSALS = 20  # in a report, because a damaged table may have millions of such rows
# Hours of models that an import adds to Redis. The two oldest that Redis keeps may expire before
# the next flush, so they are added to history itself, as all earlier ones are.
LIVE_HOURS = counters.MODEL_HOURS - 3

# Answers of apply.lua.
REFUSED = 0  # this Redis, as it is now, has no announcement of the batch
APPLIED = 1
UNSETTLED = 2  # a counter lacks SQL's count, so settle, then try again

# Returns the digest of a source up to a position, None if the source ends sooner.
Digest = Callable[[int], str | None]


@dataclass(slots=True)
class Report:
    """Numbers of the lines or rows that were read, and of the views (or reads of categories) that
    were counted.
    """

    read: int = 0
    counted: int = 0
    # By reason: that of a live hit, or one of the import.
    skipped: Counter[str] = field(default_factory=Counter)
    not_resolved: Counter[str] = field(default_factory=Counter)  # paths of a log, by pattern
    notes: list[str] = field(default_factory=list)
    _refusals: int = field(default=0, compare=False, repr=False)

    def refuse(self, reason: str, *, views: int = 1) -> None:
        """Counts a row, or views of a log, as refused. Notes the reasons of the first refusals."""
        self.skipped["refused"] += views
        self._refusals += 1
        if self._refusals <= NAMED_REFUSALS:
            self.notes.append(reason)
        elif self._refusals == NAMED_REFUSALS + 1:
            self.notes.append("More was refused, which is only counted.")


class ImportRefusedError(RuntimeError):
    """There is nothing to import, another import of the same source came first, or Redis lost its
    data meanwhile.
    """


@dataclass(slots=True)
class Batch:
    """Views by subject, and by subject and hour (since 1970), and the ids of the visitors."""

    views: Counter[str] = field(default_factory=Counter)
    hours: Counter[tuple[str, int]] = field(default_factory=Counter)
    visitors: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    present: int = field(default_factory=lambda: buckets.hour_index(buckets.now()))

    def add(self, subject: str, *, visitor: str, at: datetime) -> None:
        """Adds one view. A log may hold times out of range: before 1970 a view counts in the first
        hour, in the future in the present hour.
        """
        hour = max(buckets.hour_index(at), 0)
        self.views[subject] += 1
        self.hours[subject, min(hour, self.present)] += 1
        self.visitors[subject].add(visitor)


class SubjectHour(NamedTuple):
    """The views of a subject in one hour (since 1970)."""

    subject: str
    hour: int
    views: int


class Part(NamedTuple):
    """The views of a batch, as the record of the import keeps them until the batch is confirmed."""

    views: dict[str, int]
    hours: list[SubjectHour]
    first_live_hour: int  # of a model that is added to Redis; earlier ones go into history

    @property
    def present_hour(self) -> int:
        """The hour in which the part was made, since 1970."""
        return self.first_live_hour + LIVE_HOURS


def part_of(batch: Batch, *, at: datetime) -> str:
    """Returns the batch as JSON, for the record."""
    hours = [SubjectHour(*key, count) for key, count in batch.hours.items()]
    first_live_hour = buckets.hour_index(at) - LIVE_HOURS
    return json.dumps(Part(batch.views, hours, first_live_hour)._asdict())


def _parsed(part: str) -> Part:
    """Returns the part that the record keeps as JSON; an empty one for ""."""
    if not part:
        return Part({}, [], 0)
    values = json.loads(part)
    hours = [SubjectHour(*entry) for entry in values["hours"]]
    return Part(values["views"], hours, values["first_live_hour"])


class ImportState(NamedTuple):
    """The positions that a partition knows of an import: up to where it was announced, and up to
    where it was added. None where this Redis does not know the import.
    """

    begun: int | None
    done: int | None
    # Of the last batch's subjects, right after the batch was added. NOT_ADDED for a subject that
    # could not take its views.
    totals: list[int]


def states_of(source: str, tags: Collection[str]) -> dict[str, ImportState]:
    """Returns the state of the import in each of the partitions, by tag."""
    calls = [
        scripts.Call(
            "HMGET", [keys.importing(tag, source)], ("begun", "done", "totals"), _decoded_state
        )
        for tag in tags
    ]
    return dict(zip(tags, scripts.run_all(*calls, patient=True), strict=True))


def _decoded_state(values: Sequence[bytes | None]) -> ImportState:
    begun, done, totals = values
    return ImportState(
        begun=None if begun is None else int(begun),
        done=None if done is None else int(done),
        totals=[int(total) for total in (totals or b"").split()],
    )


def totals_after(source: str, subjects: Iterable[str], *, position: int) -> dict[str, int]:
    """Returns the totals right after the batch up to that position was added. Subjects of a
    partition that lacks the batch are left out.
    """
    subjects_by_tag = keys.by_tag(subjects)
    totals: dict[str, int] = {}
    for tag, state in states_of(source, subjects_by_tag).items():
        if state.done == position:
            totals.update(zip(subjects_by_tag[tag], state.totals, strict=True))
    return totals


def intend(
    source: str, subjects: Iterable[str], *, before: int, after: int
) -> list[scripts.Call[bool]]:
    """Returns the calls that announce the batch between the two positions, one for each partition.
    Each answers False if another import of the source has gone further.
    """
    args = (before, after, keys.importing.ttl)
    return [
        scripts.Call("intend", [keys.importing(tag, source)], args, bool)
        for tag in keys.by_tag(subjects)
    ]


class _Increment(NamedTuple):
    """Views to add to one counter in Redis."""

    key: str
    name: str  # in `views:unsettled`; "" for the hour of a subject, which SQL does not keep
    views: int
    end: int  # when the counter expires (s since 1970); 0 for a total, which does not


def apply(source: str, part: str, *, before: int, after: int) -> list[scripts.Call[int]]:
    """Returns the calls that add the views of the batch to the counters in Redis, one for each
    partition. Each answers REFUSED, APPLIED or UNSETTLED.
    """
    batch = _parsed(part)
    hours_by_tag: defaultdict[str, list[SubjectHour]] = defaultdict(list)
    for entry in batch.hours:
        hours_by_tag[keys.tag(entry.subject)].append(entry)
    calls = []
    for tag, subjects in keys.by_tag(batch.views).items():
        # The totals come first, because the script answers with them in the order of subjects.
        increments = [
            _Increment(keys.total(subject), subject, batch.views[subject], end=0)
            for subject in subjects
        ]
        increments += _subject_increments(hours_by_tag[tag], present=batch.present_hour)
        increments += _model_increments(hours_by_tag[tag], tag, first_live=batch.first_live_hour)
        script_keys = [keys.importing(tag, source), keys.unsettled(tag)]
        script_keys += [increment.key for increment in increments]
        args: list[Any] = [before, after, MOST_VIEWS]
        for increment in increments:
            args += (increment.name, increment.views, increment.end)
        calls.append(scripts.Call("apply", script_keys, args, int))
    return calls


def _subject_increments(hours: Iterable[SubjectHour], *, present: int) -> list[_Increment]:
    """Returns the increments of hours of subjects, of those hours that have not expired."""
    increments = []
    for subject, hour, views in hours:
        end = hour * keys.HOUR + keys.hour.ttl
        if end > present * keys.HOUR:
            bucket = buckets.hour_bucket(buckets.hour_start(hour))
            increments.append(_Increment(keys.hour(bucket, subject), "", views, end))
    return increments


def _model_increments(
    hours: Iterable[SubjectHour], tag: str, *, first_live: int
) -> list[_Increment]:
    """Returns the increments of hours of models in that partition, from the first live hour on."""
    views_by_model: Counter[tuple[str, int]] = Counter()
    for subject, hour, views in hours:
        if hour >= first_live:
            model = subject.partition(":")[0]
            views_by_model[model, hour] += views
    increments = []
    for (model, hour), views in views_by_model.items():
        name = keys.hour_name(model + tag, hour)
        end = hour * keys.HOUR + keys.model_hour.ttl
        increments.append(_Increment(keys.prefix() + name, name, views, end))
    return increments


class Resumed(NamedTuple):
    """Where an import goes on."""

    position: int
    lost: int  # how much of the source before the position is passed over: its batch is lost


def resume(
    record: Import, *, digest: Digest = lambda position: "", dry_run: bool = False
) -> Resumed:
    """Finishes a batch that Redis has, and returns where to go on. A dry run only looks."""
    if record.pk is None:
        return Resumed(0, lost=0)
    states = states_of(record.source, keys.tags())
    done = max(record.position, *(state.done or 0 for state in states.values()))
    if done > record.position:
        lost = 0 if dry_run else _finish(record, states, done=done, digest=digest)
        return Resumed(done, lost)
    if not _is_lost(record, states):
        return Resumed(record.position, lost=0)
    resumed = Resumed(record.intended, lost=record.intended - record.position)
    if not dry_run:
        digest_there = digest(resumed.position)
        if digest_there is not None:
            _confirm(record, resumed.position, digest=digest_there)
    return resumed


def _shares(record: Import, states: Mapping[str, ImportState]) -> list[ImportState]:
    """Returns the states of the partitions that have subjects of the announced batch, or of all."""
    tags = keys.by_tag(_parsed(record.part).views) or states
    return [states[tag] for tag in tags]


def _is_lost(record: Import, states: Mapping[str, ImportState]) -> bool:
    """Returns True if a batch was announced to a Redis that has lost its data since."""
    if record.intended <= record.position:
        return False
    announced = (record.intended, record.position)
    return any((state.begun, state.done) != announced for state in _shares(record, states))


def _finish(record: Import, states: Mapping[str, ImportState], *, done: int, digest: Digest) -> int:
    """Confirms a batch that Redis has. Returns how much of the source is lost, because a partition
    lost its share of the batch.
    """
    digest_there = digest(done)
    if digest_there is None:
        return 0
    before = record.position
    # A database that was restored from a backup may not know the batch any more.
    part = record.part if done == record.intended else ""
    lost = 0
    totals: dict[str, int] = {}
    # An import may have been killed between two of several partitions.
    is_partial = part and any(state.done != done for state in _shares(record, states))
    if is_partial and not _add_to_redis(record.source, part, before=before, after=done):
        lost = done - before
    run.flush()
    if part:
        totals = totals_after(record.source, _parsed(part).views, position=done)
    _confirm(record, done, digest=digest_there, part=part, totals=totals)
    return lost


def add(record: Import, batch: Batch, *, position: int, digest: str = "") -> dict[str, int]:
    """Adds the batch to the counts and moves the import to the position. After any error,
    importing again goes on from there.

    Returns the views that were not added, by subject, because the total would pass MOST_VIEWS.
    Raises ImportRefusedError if another import of the source came first, or Redis lost its data.
    """
    if not batch.views:
        _confirm(record, position, digest=digest)
        return {}
    before = record.position
    _add_visitors(batch.visitors)
    announced = intend(record.source, batch.views, before=before, after=position)
    _check(all(scripts.run_all(*announced, patient=True)))
    part = part_of(batch, at=buckets.now())
    unchanged = Import.objects.filter(pk=record.pk, position=before)
    _check(unchanged.update(intended=position, part=part))
    _check(_add_to_redis(record.source, part, before=before, after=position))
    run.write_subjects(batch.views)
    totals = totals_after(record.source, batch.views, position=position)
    _check(len(totals) == len(batch.views))
    _confirm(record, position, digest=digest, part=part, totals=totals)
    not_added = [subject for subject, total in totals.items() if total == NOT_ADDED]
    return {subject: batch.views[subject] for subject in not_added}


def _add_visitors(visitors_by_subject: Mapping[str, Collection[str]]) -> None:
    """Adds the visitors of subjects whose strategy can add them later. It adds each visitor once,
    so this may be repeated.
    """
    calls: list[scripts.Call[int]] = []
    for subject, visitors in visitors_by_subject.items():
        strategy = uniques.strategy_of(subject)
        if strategy.adds:
            calls.append(scripts.Call(strategy.adds, [strategy.key(subject)], [*visitors]))
    scripts.run_all(*calls, patient=True)


def _add_to_redis(source: str, part: str, *, before: int, after: int) -> bool:
    """Adds the batch to the counts of each partition that lacks it. Returns False if a partition
    refuses it.
    """
    calls = apply(source, part, before=before, after=after)
    answers = scripts.run_all(*calls, patient=True)
    while UNSETTLED in answers:
        settling.settle(epochs.SqlEpoch())
        answers = scripts.run_all(*calls, patient=True)
    return REFUSED not in answers


def _confirm(
    record: Import, position: int, *, digest: str, part: str = "", totals: Mapping[str, int] = {}
) -> None:
    """Moves the position and fills in the history in one transaction, once, whoever else tries it.
    Raises ImportRefusedError if another import has moved the position.
    """
    columns = {
        "position": position,
        "intended": position,
        "part": "",
        "digest": digest,
        "since": record.since,
        "until": record.until,
    }
    batch = _parsed(part)
    added = {subject: total for subject, total in totals.items() if total != NOT_ADDED}
    connection = databases.of(Import)

    def confirm() -> None:
        with transaction.atomic(using=connection.alias):
            unchanged = Import.objects.filter(pk=record.pk, position=record.position)
            _check(unchanged.update(**columns))
            if part and conf.HISTORY:
                past_hours.raise_hours(batch.hours, added, first_live=batch.first_live_hour)

    databases.retried(connection, confirm)
    record.position = record.intended = position


def _check(is_ours: object) -> None:
    """Raises ImportRefusedError for False and for no rows."""
    if not is_ours:
        raise ImportRefusedError(
            "Another import of this came first, or Redis lost its data meanwhile. Import again."
        )
