"""Imports in Redis: adds a batch to the counts once, in the step that moves the import's position."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from itertools import chain
from typing import Any, NamedTuple

from readtrack import buckets
from readtrack.store import keys, scripts
from readtrack.store.counters import MODEL_HOURS
from readtrack.store.scripts import Call
from readtrack.store.uniques import strategy_of

VIEWS = 2_000  # in a batch: a script that adds more would keep Redis from serving pages


@dataclass(slots=True)
class Batch:
    """Views by subject, and by subject and hour (since 1970), and the ids of the visitors."""

    views: Counter[str] = field(default_factory=Counter)
    hours: Counter[tuple[str, int]] = field(default_factory=Counter)
    visitors: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    present: int = field(default_factory=lambda: buckets.hour_index(buckets.now()))

    def add(self, subject: str, *, visitor: str, at: datetime) -> None:
        """Adds one view. A time out of range, which a log may hold, counts in the first hour or in the present one."""
        self.views[subject] += 1
        self.hours[subject, min(max(buckets.hour_index(at), 0), self.present)] += 1
        self.visitors[subject].add(visitor)


class Applied(IntEnum):
    """Result of adding a batch."""

    REFUSED = 0  # this Redis, as it is now, has no announcement of the batch
    APPLIED = 1
    UNSETTLED = 2  # a counter lacks SQL's count: settle, then try again


class ImportState(NamedTuple):
    """Positions that an import was announced for and has reached; None where this Redis does not know it."""

    begun: int | None
    done: int | None
    totals: list[int]  # of the last batch's subjects, right after the batch was added


def first_hour(at: datetime) -> int:
    """Returns the first hour (since 1970) that an import adds to Redis; earlier ones it adds to history itself."""
    return buckets.hour_index(at) - MODEL_HOURS + 3  # without the two oldest, which may expire before the next flush


def states(source: str, tags: Iterable[str]) -> list[ImportState]:
    """Returns what these partitions know of the import."""

    def decode(found: list[bytes | None]) -> ImportState:
        begun, done = (None if position is None else int(position) for position in found[:2])
        return ImportState(begun, done, [*map(int, (found[2] or b"").split())])

    calls = [Call("HMGET", [keys.importing(tag, source)], ("begun", "done", "totals"), decode) for tag in tags]
    return scripts.run_all(*calls, patient=True)


def totals(source: str, subjects: Iterable[str], *, done: int) -> dict[str, int]:
    """Returns the totals right after the batch up to that position was added; none of a partition that lacks it."""
    groups = keys.by_tag(subjects)
    shares = zip(groups.values(), states(source, groups), strict=True)
    return dict(chain(*(zip(some, state.totals, strict=True) for some, state in shares if state.done == done)))


def intend(source: str, subjects: Iterable[str], *, before: int, after: int) -> list[Call[bool]]:
    """Announces the batch between the two positions. Answers False if another import has gone further."""
    args = (before, after, keys.importing.ttl)
    return [Call("intend", [keys.importing(tag, source)], args, bool) for tag in keys.by_tag(subjects)]


def apply(source: str, batch: Batch, *, before: int, after: int, at: datetime) -> list[Call[Applied]]:
    """Adds the views of the batch to the counters that Redis keeps at `at`, in each partition its share."""
    calls = []
    for tag, subjects in keys.by_tag(batch.views).items():
        # Key, name in `views:unsettled` ("" for a subject's hour), views, and end (seconds since 1970; 0 for none).
        found = [(keys.total(subject), subject, batch.views[subject], 0) for subject in subjects]
        models: Counter[tuple[str, int]] = Counter()
        for (subject, hour), count in batch.hours.items():
            if keys.tag(subject) == tag:
                models[subject.partition(":")[0], hour] += count
                if (ends := hour * keys.HOUR + keys.hour.ttl) > at.timestamp():
                    bucket = buckets.hour_bucket(buckets.hour_start(hour))
                    found.append((keys.hour(bucket, subject), "", count, ends))
        for (model, hour), count in models.items():
            if hour >= first_hour(at):
                name, ends = keys.hour_name(model + tag, hour), hour * keys.HOUR + keys.model_hour.ttl
                found.append((keys.prefix() + name, name, count, ends))
        names = [keys.importing(tag, source), keys.unsettled(tag), *(key for key, *_ in found)]
        args: list[Any] = [before, after, *(word for _, *words in found for word in words)]
        calls.append(Call("apply", names, args, Applied))
    return calls


def add_visitors(batch: Batch) -> None:
    """Adds the visitors to the subjects whose strategy can add them later. Idempotent. Raises redis.RedisError."""
    found = [(strategy_of(subject), subject, visitors) for subject, visitors in batch.visitors.items()]
    calls = (Call[int](one.adds, [one.key(subject)], [*visitors]) for one, subject, visitors in found if one.adds)
    scripts.run_all(*calls, patient=True)
