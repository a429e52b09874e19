"""Adding views by the batch, and recording how far an import has come, so that each batch counts
exactly once, even if the import is killed and repeated.

A position is a number of bytes of a log, or a primary key of a table.
"""
# The five steps of a batch: docs/explanation/imports.md

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

from django.db.models import F

from readtrack import buckets
from readtrack.flush import run, settling
from readtrack.imports import added as added_views
from readtrack.imports import keys as import_keys
from readtrack.imports import writing
from readtrack.imports.added import SubjectHour
from readtrack.imports.models import Import, ImportedLines, ImportedViews
from readtrack.numbers import hours_of_models
from readtrack.numbers.counted import counts_days
from readtrack.numbers.flush import day_visitors
from readtrack.numbers.options import numbers_options
from readtrack.numbers.sql import past_hours
from readtrack.numbers.sql.history_lock import lock_history
from readtrack.sql import databases, deletions, epochs
from readtrack.sql.faults import Faults
from readtrack.store import connection as redis_connection
from readtrack.store import keys, scripts, uniques
from readtrack.subjects import label_in

VIEWS = 5_000  # views in a batch: others who write history wait while more are added
COUNTERS = 2_000  # of a batch in Redis: a script that adds to more keeps Redis from serving pages
# The highest total of an object that an import makes. No object has as many views, so a higher
# number comes from damaged data. It also leaves room: Lua's numbers are exact up to 2^53, and SQL
# adds up the totals of a model.
MOST_VIEWS = 10**12
# What apply.lua answers in place of a total, if it would be above MOST_VIEWS or is no number.
NOT_ADDED = -1
NAMED_REFUSALS = 20  # refusals that a report names, because a damaged table may have millions
# The hours of models that an import adds to Redis: the last ones, but not the oldest that Redis
# has, because these may expire before the next flush. All earlier hours are added to SQL's history.
# The command that adds a visitor to a subject's key, by the strategy for unique visitors. The
# others need what a log does not have.
COMMANDS_THAT_ADD = {"hll": "PFADD", "set": "SADD"}
LIVE_HOURS = hours_of_models.MODEL_HOURS - 3

NEVER_RESET = 2**63  # µs; later than any reset

# Answers of apply.lua.
REFUSED = 0  # Redis does not have the announcement of the batch, so it may have lost its data
APPLIED = 1
UNSETTLED = 2  # a counter does not include SQL's count: settle it, then try again

# Returns the digest of a source up to a position, None if the source ends sooner.
Digest = Callable[[int], str | None]


@dataclass(slots=True)
class Report:
    """What an import has done."""

    read: int = 0  # lines of a log, or rows of a table
    counted: int = 0  # views, or categories that were marked as read
    # By reason: one of a live hit, or one of the import.
    skipped: Counter[str] = field(default_factory=Counter)
    not_resolved: Counter[str] = field(default_factory=Counter)  # paths of a log, by pattern
    finished: int = 0  # logs that were imported before and have nothing new
    notes: list[str] = field(default_factory=list)
    # Of a dry run: some lines of a log as they were understood.
    examples: list[str] = field(default_factory=list, compare=False)
    _refusals: int = field(default=0, compare=False, repr=False)

    def refuse(self, reason: str, *, views: int = 1) -> None:
        """Counts a row, or so many views of a log, as refused. Notes the reason, for the first
        refusals.
        """
        self.skipped["refused"] += views
        self._refusals += 1
        if self._refusals <= NAMED_REFUSALS:
            self.notes.append(reason)
        elif self._refusals == NAMED_REFUSALS + 1:
            self.notes.append("More was refused, which is only counted.")


class ImportRefusedError(RuntimeError):
    """The import cannot be done: there is nothing to import, another import of the same source came
    first, or Redis lost its data meanwhile.
    """


@dataclass(slots=True)
class Batch:
    """Views that are added together, and their visitors."""

    views: Counter[str] = field(default_factory=Counter)  # by subject
    hours: Counter[tuple[str, int]] = field(default_factory=Counter)  # by subject and hour
    # Ids of visitors by subject, and by subject and day of TIME_ZONE.
    visitors: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    day_visitors: defaultdict[tuple[str, date], set[str]] = field(
        default_factory=lambda: defaultdict(set)
    )
    # Start and end of each range of lines that counted, in bytes of the log.
    ranges: list[int] = field(default_factory=list)
    _days: dict[int, date] = field(default_factory=dict)  # by hour, because views share hours
    # The hour (since 1970) in which the batch was begun.
    present_hour: int = field(default_factory=lambda: buckets.hour_index(buckets.now()))

    @property
    def is_full(self) -> bool:
        """True if it should be added before more lines are read."""
        if self.views.total() >= VIEWS:
            return True
        live_hours = {hour for hour in self._days if is_live(hour, present_hour=self.present_hour)}
        counters = len(self.views)
        if live_hours:
            counters += sum(hour in live_hours for _, hour in self.hours)
        return counters >= COUNTERS

    def add(self, subject: str, *, visitor: str, at: datetime) -> None:
        """Adds one view.

        A log may have impossible times. A view before 1970 is added to the first hour, a view in
        the future to the present hour.
        """
        hour = self._hour(at)
        self.views[subject] += 1
        self.hours[subject, hour] += 1
        self.visitors[subject].add(visitor)
        self.day_visitors[subject, self._day(hour)].add(visitor)

    def add_views(self, subject: str, views: int, *, hour: int | None) -> None:
        """Adds views of nobody in particular, of an hour since 1970; None if that is not known."""
        self.views[subject] += views
        if hour is not None:
            self.hours[subject, min(hour, self.present_hour)] += views

    def add_visitor(self, subject: str, *, visitor: str, at: datetime) -> None:
        """Adds a visitor, who may have come before."""
        self.visitors[subject].add(visitor)
        self.day_visitors[subject, self._day(self._hour(at))].add(visitor)

    def _day(self, hour: int) -> date:
        """Returns the day of TIME_ZONE in which the hour (since 1970) begins."""
        day = self._days.get(hour)
        if day is None:
            day = self._days[hour] = buckets.local_day(hour)
        return day

    def _hour(self, at: datetime) -> int:
        """Returns the hour (since 1970) to which a view of `at` is added."""
        return min(max(buckets.hour_index(at), 0), self.present_hour)

    def add_line(self, *, start: int, end: int) -> None:
        """Notes that the line between these positions counted."""
        if self.ranges and self.ranges[-1] == start:
            self.ranges[-1] = end
        else:
            self.ranges += (start, end)


class Part(NamedTuple):
    """The views of a batch, as the record of the import keeps them until the batch is confirmed."""

    views: dict[str, int]  # by subject
    hours: list[SubjectHour]
    # The first hour of models that is added to Redis. Earlier hours are added to SQL's history.
    first_live_hour: int
    ranges: list[int]  # as those of the batch
    # Subjects whose history has the part already: another import filled it in with its own.
    filled: Sequence[str] = ()

    @property
    def present_hour(self) -> int:
        """The hour (since 1970) in which the part was made."""
        return self.first_live_hour + LIVE_HOURS

    @property
    def text(self) -> str:
        """The part as JSON, for the record of the import."""
        return json.dumps(self._asdict(), separators=(",", ":"))


EMPTY = Part({}, [], 0, [])


def part_of(batch: Batch, *, at: datetime) -> Part:
    """Returns the views of the batch, which is added at `at`."""
    hours = [SubjectHour(*key, count) for key, count in batch.hours.items()]
    return Part(batch.views, hours, buckets.hour_index(at) - LIVE_HOURS, batch.ranges)


def part_in(record: Import) -> Part:
    """Returns the part that the record keeps; EMPTY if it has none."""
    if not record.part:
        return EMPTY
    values = json.loads(record.part)
    hours = [SubjectHour(*entry) for entry in values["hours"]]
    return Part(**{**values, "hours": hours})


class CountedRange(NamedTuple):
    """Lines of a log that have counted."""

    start: int  # bytes from the start of the log
    end: int
    redis_time: int  # when they were added (µs)


def counted_ranges(record: Import, *, until: int = 0) -> Iterator[CountedRange]:
    """Yields which lines of the log have counted by that import, in their order.

    Lines between the import's position and `until`, where it would go on, are among them: they may
    have counted.
    """
    batches = ImportedLines.objects.filter(record=record).order_by("position")
    position = 0
    while batch := batches.filter(position__gt=position).first():
        numbers = iter(accumulate(json.loads(batch.ranges)))
        for start, end in zip(numbers, numbers, strict=True):
            yield CountedRange(start, end, batch.redis_time)
        position = batch.position
    if until > record.position:
        yield CountedRange(record.position, until, redis_time=NEVER_RESET)


class ImportState(NamedTuple):
    """What a partition of Redis knows of an import. Positions are None if it knows nothing."""

    begun: int | None  # the position up to which batches were announced
    done: int | None  # the position up to which batches were added
    # Of each subject of the last batch, right after the batch was added. NOT_ADDED for a subject
    # whose views could not be added.
    totals: list[int]
    done_time: int  # when the last batch was added (µs); 0 if none was


def states_of(source: str, tags: Collection[str]) -> dict[str, ImportState]:
    """Returns the state of the import in each of these partitions, by tag."""
    fields = ("begun", "done", "totals", "done_time")
    calls = []
    for tag in tags:
        key = import_keys.position(tag, source)
        calls.append(scripts.Call("HMGET", [key], fields, _decoded_state))
    return dict(zip(tags, scripts.run_all(*calls, patient=True), strict=True))


def _decoded_state(values: Sequence[bytes | None]) -> ImportState:
    """Returns the state of an import by the values of its hash."""
    begun, done, totals, done_time = values
    return ImportState(
        begun=None if begun is None else int(begun),
        done=None if done is None else int(done),
        totals=[int(total) for total in (totals or b"").split()],
        done_time=int(done_time or 0),
    )


class Applied(NamedTuple):
    """What Redis has of a batch. Subjects of a partition that does not have it are left out."""

    totals: dict[str, int]  # of each subject, right after the batch was added
    times: dict[str, int]  # when it was added (µs), by subject


NOT_APPLIED = Applied({}, {})


def applied_to(source: str, subjects: Iterable[str], *, position: int) -> Applied:
    """Returns what Redis has of the batch that ends at the position and has these subjects."""
    subjects_by_tag = keys.by_tag(subjects)
    applied = Applied({}, {})
    for tag, state in states_of(source, subjects_by_tag).items():
        if state.done == position:
            subjects_of_tag = subjects_by_tag[tag]
            applied.totals.update(zip(subjects_of_tag, state.totals, strict=True))
            applied.times.update(dict.fromkeys(subjects_of_tag, state.done_time))
    return applied


def intend(
    source: str, subjects: Iterable[str], *, before: int, after: int
) -> list[scripts.Call[bool]]:
    """Returns the calls that announce the batch between the two positions, one for each partition.

    The result of a call is False if another import of the source has gone further.
    """
    args = (before, after, import_keys.position.ttl)
    return [
        scripts.Call("readtrack.imports/intend", [import_keys.position(tag, source)], args, bool)
        for tag in keys.by_tag(subjects)
    ]


class _Increment(NamedTuple):
    """Views to add to one counter in Redis."""

    key: str
    name: str  # in `views:unsettled`; "" for the hour of a subject, which SQL does not have
    views: int
    end: int  # when the counter expires (s since 1970); 0 for a total, which does not
    field: str = ""  # the hour of a subject in its hash of hours


def apply(source: str, batch: Part, *, before: int, after: int) -> list[scripts.Call[int]]:
    """Returns the calls that add the views of the batch to the counters in Redis, one for each
    partition. The result of a call is REFUSED, APPLIED or UNSETTLED.

    The batch is what the source has between the two positions.
    """
    hours_by_tag: defaultdict[str, list[SubjectHour]] = defaultdict(list)
    for subject_hour in batch.hours:
        hours_by_tag[keys.tag(subject_hour.subject)].append(subject_hour)
    calls = []
    for tag, subjects in keys.by_tag(batch.views).items():
        hours = hours_by_tag[tag]
        # The totals come first, because the script stores them in the order of the subjects.
        increments = [
            _Increment(keys.total(subject), subject, batch.views[subject], end=0)
            for subject in subjects
        ]
        increments += _subject_increments(hours, present_hour=batch.present_hour)
        increments += _model_increments(hours, tag, first_live=batch.first_live_hour)
        script_keys = [import_keys.position(tag, source), keys.unsettled(tag)]
        script_keys += [increment.key for increment in increments]
        args: list[Any] = [before, after, MOST_VIEWS]
        for increment in increments:
            args += (increment.name, increment.views, increment.end, increment.field)
        calls.append(scripts.Call("readtrack.imports/apply", script_keys, args, int))
    return calls


def _start(hour: int) -> int:
    """Returns when the hour (since 1970) began (s since 1970)."""
    return int(buckets.hour_start(hour).timestamp())


def _subject_increments(hours: Iterable[SubjectHour], *, present_hour: int) -> list[_Increment]:
    """Returns the increments for the hours of subjects that have not expired in the present hour.

    Hours are since 1970.
    """
    increments = []
    end = _start(present_hour) + keys.hours.ttl
    for subject, hour, views in hours:
        if is_live(hour, present_hour=present_hour):
            field = buckets.bucket_of_hour(hour)
            increments.append(_Increment(keys.hours(subject), "", views, end, field))
    return increments


def is_live(hour: int, *, present_hour: int) -> bool:
    """Returns True if Redis keeps the views of subjects in that hour, in the present hour."""
    hours_kept: int = keys.hours.ttl // keys.HOUR
    return present_hour - hour < hours_kept


def _model_increments(
    hours: Iterable[SubjectHour], tag: str, *, first_live: int
) -> list[_Increment]:
    """Returns the increments for the hours of models in that partition, from `first_live` on.

    All subjects in `hours` are of that partition. Hours are since 1970.
    """
    views_by_model: Counter[tuple[str, int]] = Counter()  # by label and hour
    for subject, hour, views in hours:
        if hour >= first_live:
            views_by_model[label_in(subject), hour] += views
    increments = []
    for (label, hour), views in views_by_model.items():
        name = hours_of_models.hour_name(label + tag, hour)
        end = _start(hour) + keys.model_hour.ttl
        increments.append(_Increment(keys.prefix() + name, name, views, end))
    return increments


class Resumed(NamedTuple):
    """Where an import goes on."""

    position: int
    # How much of the source before the position is passed over, because its batch may or may not
    # have been counted: Redis has lost it.
    lost: int


def subjects_of_unfinished_imports() -> frozenset[str]:
    """Returns the subjects of batches that imports have begun to add and whose hours history has
    not got yet.
    """
    begun = databases.rows(Import).filter(intended__gt=F("position")).exclude(part="")
    parts = begun.values_list("part", flat=True)
    return frozenset(chain.from_iterable(json.loads(part)["views"] for part in parts))


def resume(
    record: Import, *, digest: Digest = lambda position: "", dry_run: bool = False
) -> Resumed:
    """Returns where the import goes on. First finishes a batch that was added to Redis and is not
    confirmed yet, which a dry run does not do.
    """
    if record.pk is None:  # a new import
        return Resumed(0, lost=0)
    if record.undone_since is not None:
        raise ImportRefusedError(
            f"{record.name} is half taken back. Finish that first: import --undo {record.name}"
        )
    states = states_of(record.source, keys.tags())
    done = max(record.position, *(state.done or 0 for state in states.values()))
    if done > record.position:
        lost = 0 if dry_run else _finish(record, states, done=done, digest=digest)
        return Resumed(done, lost)
    if not _is_lost(record, states):
        return Resumed(record.position, lost=0)
    resumed = Resumed(record.intended, lost=record.intended - record.position)
    if not dry_run:
        new_digest = digest(resumed.position)
        if new_digest is not None:  # None for an older copy of the log, which ends sooner
            # Its lines may have counted, so they do not count if the log is judged again.
            passed_over = [record.position, resumed.position]
            _confirm(record, resumed.position, digest=new_digest, ranges=passed_over)
    return resumed


def _states_of_batch(record: Import, states: Mapping[str, ImportState]) -> list[ImportState]:
    """Returns the states of those partitions that have subjects of the announced batch.

    If the record does not know its subjects, it returns the states of all partitions.
    """
    tags = keys.by_tag(part_in(record).views) or states
    return [states[tag] for tag in tags]


def _is_lost(record: Import, states: Mapping[str, ImportState]) -> bool:
    """Returns True if a batch was announced to a Redis that has lost its data since then."""
    if record.intended <= record.position:
        return False
    return any(
        state.begun != record.intended or state.done != record.position
        for state in _states_of_batch(record, states)
    )


def _finish(record: Import, states: Mapping[str, ImportState], *, done: int, digest: Digest) -> int:
    """Finishes the batch up to the position `done`, which Redis has and SQL has not confirmed.

    Adds it to the partitions that do not have it, writes the totals to SQL, and confirms it.
    Returns how much of the source is lost, because a partition has lost its part of the batch.
    """
    new_digest = digest(done)
    if new_digest is None:  # this log ends before that position, so it is an older copy
        return 0
    before = record.position
    # If the database was restored from a backup, the record has no batch, or an older one.
    part = part_in(record) if done == record.intended else EMPTY
    lost = 0
    applied = NOT_APPLIED
    # The import may have been killed after it had added the batch to some of the partitions.
    is_partial = part.views and any(
        state.done != done for state in _states_of_batch(record, states)
    )
    if is_partial and not _add_to_redis(record.source, part, before=before, after=done):
        lost = done - before
    run.flush()
    if part.views:
        applied = applied_to(record.source, part.views, position=done)
    ranges = part.ranges if part.views else [before, done]
    _confirm(record, done, digest=new_digest, part=part, ranges=ranges, applied=applied)
    return lost


def add(record: Import, batch: Batch, *, position: int, digest: str = "") -> dict[str, int]:
    """Adds the batch to the counts, and moves the import to the position.

    `digest` is that of the source up to the position. After any error, the next import goes on from
    the right position. Returns the views by subject that were not added, because the total would be
    above MOST_VIEWS. Raises ImportRefusedError if another import of the source came first, or if
    Redis lost its data.
    """
    if not batch.views:
        _confirm(record, position, digest=digest)
        return {}
    before = record.position
    _add_visitors(batch.visitors)
    _add_day_visitors(batch.day_visitors)
    # 1. Redis announces the batch.
    announcements = intend(record.source, batch.views, before=before, after=position)
    _check(all(scripts.run_all(*announcements, patient=True)))
    # 2. SQL notes the batch.
    part = part_of(batch, at=buckets.now())
    unchanged = Import.objects.filter(pk=record.pk, position=before)
    _check(unchanged.update(intended=position, part=part.text))
    # 3. Redis adds the views.
    _check(_add_to_redis(record.source, part, before=before, after=position))
    # 4. SQL's counts are raised.
    writing.write_subjects(batch.views)
    applied = applied_to(record.source, batch.views, position=position)
    _check(len(applied.totals) == len(batch.views))
    # 5. SQL moves the position, and fills in the history.
    _confirm(record, position, digest=digest, part=part, ranges=batch.ranges, applied=applied)
    not_added = [subject for subject, total in applied.totals.items() if total == NOT_ADDED]
    return {subject: batch.views[subject] for subject in not_added}


def _add_visitors(visitors_by_subject: Mapping[str, Collection[str]]) -> None:
    """Adds the visitors to those subjects whose strategy can count visitors of the past.

    Each visitor counts once, so this may be repeated.
    """
    calls: list[scripts.Call[int]] = []
    for subject, visitors in visitors_by_subject.items():
        strategy = uniques.strategy_of(subject)
        if strategy.name in COMMANDS_THAT_ADD:
            command = COMMANDS_THAT_ADD[strategy.name]
            calls.append(scripts.Call(command, [strategy.key(subject)], [*visitors]))
    scripts.run_all(*calls, patient=True)


def _add_day_visitors(visitors: Mapping[tuple[str, date], Collection[str]]) -> None:
    """Adds the visitors of days to SQL. Redis has sketches of the last days, and gets these, too.

    Each visitor counts once, so this may be repeated.
    """
    recent_days = day_visitors.all_days(buckets.now())
    past: dict[tuple[str, date], Collection[str]] = {}
    subjects_by_day: defaultdict[date, list[str]] = defaultdict(list)
    calls: list[scripts.Call[int]] = []
    for (subject, day), ids in visitors.items():
        if day not in recent_days:
            past[subject, day] = ids
        elif counts_days(label_in(subject)):
            subjects_by_day[day].append(subject)
            name = keys.day_visitors(buckets.day_bucket(day), subject)
            calls += (
                scripts.Call("PFADD", [name], [*ids]),
                scripts.Call("EXPIRE", [name], (keys.day_visitors.ttl,)),
            )
    scripts.run_all(*calls, patient=True)
    for day, subjects in subjects_by_day.items():
        day_visitors.store(subjects, days=[day])
    day_visitors.add(past)


def _add_to_redis(source: str, part: Part, *, before: int, after: int) -> bool:
    """Adds the batch to the counts in each partition that does not have it yet.

    Returns False if a partition refuses it, because Redis lost its data.
    """
    calls = apply(source, part, before=before, after=after)
    answers = scripts.run_all(*calls, patient=True)
    while UNSETTLED in answers:
        faults = Faults()
        settling.settle(epochs.SqlEpoch(), faults)
        answers = scripts.run_all(*calls, patient=True)
        if faults.failed and UNSETTLED in answers:
            raise ImportRefusedError(f"Counts cannot be read from the database:\n{faults}")
    return REFUSED not in answers


def _confirm(
    record: Import,
    position: int,
    *,
    digest: str,
    part: Part = EMPTY,
    ranges: Sequence[int] = (),
    applied: Applied = NOT_APPLIED,
) -> None:
    """Moves the position, notes which lines counted and fills in the history, in one transaction.

    `part` is the batch, `ranges` are those of its lines, and `applied` is what Redis has of it. The
    time that is noted is that of step 3, because a reset since then took the views away. Raises
    ImportRefusedError if another import has moved the position meanwhile.
    """
    columns = {
        "position": position,
        "intended": position,
        "part": "",
        "digest": digest,
        "since": record.since,
        "until": record.until,
        "times": record.times,
    }
    redis_time = min(applied.times.values(), default=0)
    if ranges and not redis_time:
        redis_time = redis_connection.server_time(patient=True)
    distances = [end - start for start, end in pairwise([0, *ranges])]
    added = {subject: total for subject, total in applied.totals.items() if total != NOT_ADDED}
    fills_history = bool(part.hours and numbers_options().history)
    connection = databases.of(Import)

    def confirm() -> None:
        with databases.own_transaction(connection):
            if fills_history:
                # First, because two imports that wait for each other's rows would wait for ever.
                lock_history()
            filled = _filled(record)
            unchanged = Import.objects.filter(pk=record.pk, position=record.position)
            _check(unchanged.update(**columns))
            if ranges:
                ImportedLines.objects.create(
                    record=record,
                    position=position,
                    ranges=json.dumps(distances, separators=(",", ":")),
                    redis_time=redis_time,
                )
            if added:
                ImportedViews.objects.create(
                    record=record,
                    position=position,
                    redis_time=redis_time,
                    views=added_views.packed(part.views, part.hours, of=added),
                    is_in_history=bool(numbers_options().history),
                )
            if fills_history:
                open_subjects = added.keys() - filled
                _fill_history(record, part, _limits(applied, open_subjects))

    databases.retried(connection, confirm)
    record.position = record.intended = position


def _filled(record: Import) -> frozenset[str]:
    """Returns the subjects of the present part whose history another import has filled in."""
    current = Import.objects.filter(pk=record.pk).first()
    return frozenset(part_in(current).filled if current else ())


def _limits(applied: Applied, subjects: Iterable[str]) -> dict[str, int]:
    """Returns which rows of the subjects' history lack what was added: those with fewer views than
    the limit of the subject.

    It is the total right after the batch was added; MODELS_ONLY for a subject that was reset since.
    """
    limits = {subject: applied.totals[subject] for subject in subjects}
    for subject, time in deletions.times_of_resets(limits).items():
        if time > applied.times[subject]:
            limits[subject] = past_hours.MODELS_ONLY
    return limits


class _Addition(NamedTuple):
    """What was added to some subjects of a part."""

    part: Part
    limits: Mapping[str, int]  # by subject, see `_limits`


def _fill_history(record: Import, part: Part, limits: Mapping[str, int]) -> None:
    """Adds the hours of the part to the history of the subjects that have a limit, and those of
    parts of other imports that are not confirmed. Call it in a transaction that has locked the
    epoch.

    A row of history with a higher total than that right after a part was added is taken for one
    that has the part. So the parts of a subject are filled in as Redis got them: if the later one
    came first, it could raise a row above the total of the earlier one.
    """
    additions = [_Addition(part, limits), *_additions_of_others(record, limits)]
    for addition in _in_order(additions):
        past_hours.raise_hours(
            addition.part.hours, addition.limits, first_live=addition.part.first_live_hour
        )


def _additions_of_others(record: Import, subjects: Collection[str]) -> Iterator[_Addition]:
    """Yields what parts of other imports have added to these subjects, if Redis has it and history
    does not. Notes that history has it.
    """
    others = Import.objects.filter(intended__gt=F("position")).exclude(part="")
    for other in others.exclude(pk=record.pk):
        part = part_in(other)
        open_subjects = {*part.views} & {*subjects} - {*part.filled}
        if not open_subjects or not part.hours:
            continue
        applied = applied_to(other.source, part.views, position=other.intended)
        added = {
            subject
            for subject, total in applied.totals.items()
            if subject in open_subjects and total != NOT_ADDED
        }
        noted = part._replace(filled=[*part.filled, *added])
        unchanged = Import.objects.filter(
            pk=other.pk, position=other.position, intended=other.intended
        )
        if unchanged.update(part=noted.text):
            yield _Addition(part, _limits(applied, added))


def _in_order(additions: Sequence[_Addition]) -> Iterator[_Addition]:
    """Yields the additions in pieces, so that those to each subject come as Redis got them."""
    by_subject: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)  # limit, and index
    for index, addition in enumerate(additions):
        for subject, limit in addition.limits.items():
            by_subject[subject].append((limit, index))
    pieces: defaultdict[tuple[int, int], dict[str, int]] = defaultdict(dict)  # by turn and index
    for subject, limits in by_subject.items():
        for turn, (limit, index) in enumerate(sorted(limits)):
            pieces[turn, index][subject] = limit
    for turn_and_index in sorted(pieces):
        _turn, index = turn_and_index
        yield _Addition(additions[index].part, pieces[turn_and_index])


def _check(succeeded: object) -> None:
    """Raises ImportRefusedError unless a step succeeded: for False, and for an update of no row."""
    if not succeeded:
        raise ImportRefusedError(
            "Another import of this came first, or Redis lost its data meanwhile. Import again."
        )
