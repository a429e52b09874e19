"""Records how far an import has come: each batch counts once, after any kill."""
# The steps: docs/explanation/flush.md

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from django.db import transaction

from readtrack import buckets
from readtrack.conf import conf
from readtrack.flush import merging, run
from readtrack.models import Import
from readtrack.sql import databases, history, runs
from readtrack.store import counters, keys, scripts, uniques

VIEWS = 2_000  # in a batch: a script that adds more would keep Redis from serving pages
# The highest total of an object that an import makes. No object has as many views, so a higher
# number is damage. Lua's numbers are exact up to 2^53, and SQL adds the totals of a model up.
MOST_VIEWS = 10**12
NOT_ADDED = -1  # apply.lua's total of a subject that would pass MOST_VIEWS, or that is no number
NAMED_REFUSALS = 20  # in a report, because a damaged table may have millions of such rows
# Answers of apply.lua. Refused: this Redis, as it is now, has no announcement of the batch.
# Unsettled: a counter lacks SQL's count, so settle, then try again.
REFUSED, APPLIED, UNSETTLED = range(3)
Digest = Callable[
    [int], str | None
]  # returns that of a source up to a position, None if the source ends sooner


@dataclass(slots=True)
class Report:
    """Numbers of the lines or rows that were read, and of the views (or reads of categories) that
    were counted.
    """

    read: int = 0
    counted: int = 0
    skipped: Counter[str] = field(
        default_factory=Counter
    )  # by reason: that of a live hit, or one of the import
    not_resolved: Counter[str] = field(default_factory=Counter)  # paths of a log, by pattern
    notes: list[str] = field(default_factory=list)
    _refusals: int = field(default=0, compare=False, repr=False)

    def refuse(self, reason: str, *, views: int = 1) -> None:
        """Counts a row, or views of a log, as refused. Notes the reason of the first ones."""
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
        """Adds one view. A time out of range, which a log may hold, counts in the first hour or in
        the present one.
        """
        self.views[subject] += 1
        self.hours[subject, min(max(buckets.hour_index(at), 0), self.present)] += 1
        self.visitors[subject].add(visitor)


class ImportState(NamedTuple):
    """Positions that an import was announced for and has reached; None where this Redis does not
    know it.
    """

    begun: int | None
    done: int | None
    # Of the last batch's subjects, right after the batch was added. NOT_ADDED for a subject that
    # could not take its views.
    totals: list[int]


def part_of(batch: Batch, *, at: datetime) -> str:
    """Returns the batch as JSON, for the record."""
    # Earlier hours are added to history itself: the two oldest that Redis keeps may expire before
    # the next flush.
    first_live = buckets.hour_index(at) - counters.MODEL_HOURS + 3
    hours = [[*key, count] for key, count in batch.hours.items()]
    return json.dumps({"views": batch.views, "hours": hours, "first_live_hour": first_live})


def states_of(source: str, tags: Collection[str]) -> dict[str, ImportState]:
    """Returns by partition what it knows of the import."""

    def decode(found: list[bytes | None]) -> ImportState:
        begun, done = (None if position is None else int(position) for position in found[:2])
        return ImportState(begun, done, [*map(int, (found[2] or b"").split())])

    calls = [
        scripts.Call("HMGET", [keys.importing(tag, source)], ("begun", "done", "totals"), decode)
        for tag in tags
    ]
    return dict(zip(tags, scripts.run_all(*calls, patient=True), strict=True))


def totals_after(source: str, subjects: Iterable[str], *, position: int) -> dict[str, int]:
    """Returns the totals right after the batch up to that position was added; none of a partition
    that lacks it.
    """
    groups = keys.by_tag(subjects)
    states = states_of(source, groups).items()
    shares = (
        zip(groups[tag], one.totals, strict=True) for tag, one in states if one.done == position
    )
    return dict(chain(*shares))


def intend(
    source: str, subjects: Iterable[str], *, before: int, after: int
) -> list[scripts.Call[bool]]:
    """Announces the batch between the two positions. Answers False if another import has gone
    further.
    """
    args = (before, after, keys.importing.ttl)
    return [
        scripts.Call("intend", [keys.importing(tag, source)], args, bool)
        for tag in keys.by_tag(subjects)
    ]


def apply(source: str, part: str, *, before: int, after: int) -> list[scripts.Call[int]]:
    """Adds the views of the batch to the counters that Redis keeps, in each partition its share."""
    calls, kept = [], json.loads(part)
    views, first_live = kept["views"], kept["first_live_hour"]
    for tag, subjects in keys.by_tag(views).items():
        # Key, name in `views:unsettled` ("" for a subject's hour), views, and end (seconds since
        # 1970; 0 for none).
        found = [(keys.total(subject), subject, views[subject], 0) for subject in subjects]
        models: Counter[tuple[str, int]] = Counter()
        for subject, hour, count in kept["hours"]:
            if keys.tag(subject) == tag:
                models[subject.partition(":")[0], hour] += count
                ends = hour * keys.HOUR + keys.hour.ttl
                if (
                    ends > (first_live + counters.MODEL_HOURS - 3) * keys.HOUR
                ):  # the hour of `part_of`
                    bucket = buckets.hour_bucket(buckets.hour_start(hour))
                    found.append((keys.hour(bucket, subject), "", count, ends))
        for (model, hour), count in models.items():
            if hour >= first_live:
                name, ends = (
                    keys.hour_name(model + tag, hour),
                    hour * keys.HOUR + keys.model_hour.ttl,
                )
                found.append((keys.prefix() + name, name, count, ends))
        names = [keys.importing(tag, source), keys.unsettled(tag), *(key for key, *_ in found)]
        args: list[Any] = [before, after, MOST_VIEWS, *(word for _, *words in found for word in words)]
        calls.append(scripts.Call("apply", names, args, int))
    return calls


def resume(
    record: Import, *, digest: Digest = lambda position: "", dry_run: bool = False
) -> tuple[int, int]:
    """Finishes a batch that Redis has; a dry run only looks.

    Returns where to go on, and how much of the source was passed over because its batch is lost.
    """
    if record.pk is None:
        return 0, 0
    before, intended = record.position, record.intended
    states = states_of(record.source, keys.tags())
    views: dict[str, int] = json.loads(record.part)["views"] if record.part else {}
    shares = [states[tag] for tag in keys.by_tag(views) or states]
    done = max(before, *(one.done or 0 for one in states.values()))
    if done > before:
        lost = 0
        if not dry_run and (found := digest(done)) is not None:
            # A database that was restored from a backup may not know the batch any more.
            part = record.part if done == intended else ""
            is_partial = part and any(
                one.done != done for one in shares
            )  # killed between two of several partitions
            if is_partial and not _add_to_redis(record.source, part, before=before, after=done):
                lost = done - before
            run.flush()
            totals = totals_after(record.source, views, position=done) if part else {}
            _confirm(record, done, digest=found, part=part, totals=totals)
        return done, lost
    is_lost = intended > before and any(
        (one.begun, one.done) != (intended, before) for one in shares
    )
    if is_lost and not dry_run and (found := digest(intended)) is not None:
        _confirm(record, intended, digest=found)
    return (intended, intended - before) if is_lost else (before, 0)


def add(record: Import, batch: Batch, *, position: int, digest: str = "") -> dict[str, int]:
    """Adds the batch to the counts and moves the import there. After any error, importing again
    goes on from there.

    Returns the views that were not added, by subject, because the total would pass MOST_VIEWS.
    """
    source, before, part, totals = record.source, record.position, "", dict[str, int]()
    if batch.views:
        # To the subjects whose strategy can add them later; it adds each once.
        found = [
            (uniques.strategy_of(subject), subject, visitors)
            for subject, visitors in batch.visitors.items()
        ]
        calls = (
            scripts.Call[int](one.adds, [one.key(name)], [*visitors])
            for one, name, visitors in found
            if one.adds
        )
        scripts.run_all(*calls, patient=True)
        _check(
            all(
                scripts.run_all(
                    *intend(source, batch.views, before=before, after=position), patient=True
                )
            )
        )
        part = part_of(batch, at=buckets.now())
        _check(
            Import.objects.filter(pk=record.pk, position=before).update(
                intended=position, part=part
            )
        )
        _check(_add_to_redis(source, part, before=before, after=position))
        run.write_subjects(batch.views)
        totals = totals_after(source, batch.views, position=position)
        _check(len(totals) == len(batch.views))
    _confirm(record, position, digest=digest, part=part, totals=totals)
    return {
        subject: batch.views[subject] for subject, total in totals.items() if total == NOT_ADDED
    }


def _add_to_redis(source: str, part: str, *, before: int, after: int) -> bool:
    """Adds the batch to the counts of all its partitions that lack it. Returns False if one refuses
    it.
    """
    calls = apply(source, part, before=before, after=after)
    while UNSETTLED in (answers := scripts.run_all(*calls, patient=True)):
        merging.settle(runs.SqlEpoch())
    return REFUSED not in answers


def _confirm(
    record: Import, position: int, *, digest: str, part: str = "", totals: Mapping[str, int] = {}
) -> None:
    """Moves the position and fills in the history in one transaction, once, whoever else tries it."""
    moved = {"position": position, "intended": position, "part": "", "digest": digest}

    def confirm() -> None:
        with transaction.atomic(using=connection.alias):
            known = Import.objects.filter(pk=record.pk, position=record.position)
            _check(known.update(**moved, since=record.since, until=record.until))
            if part and conf.HISTORY:
                found = json.loads(part)
                limits = {
                    subject: total for subject, total in totals.items() if total != NOT_ADDED
                }
                history.raise_hours(found["hours"], limits, first_live=found["first_live_hour"])

    connection = databases.of(Import)
    databases.retried(connection, confirm)
    record.position = record.intended = position


def _check(is_ours: object) -> None:
    if not is_ours:
        raise ImportRefusedError(
            "Another import of this came first, or Redis lost its data meanwhile. Import again."
        )
