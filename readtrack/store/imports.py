"""Imports in Redis: adds a batch to the counts once, in the step that moves the import's position."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from itertools import chain
from typing import Any, NamedTuple

from readtrack import buckets
from readtrack.store import keys, scripts
from readtrack.store.connection import connect
from readtrack.store.counters import MODEL_HOURS
from readtrack.store.scripts import Call
from readtrack.store.uniques import strategy_of

VIEWS = 2_000  # in a batch: a script that adds more would keep Redis from serving pages
SPARE = 2  # of the oldest hours in Redis, which may expire before the next flush


@dataclass(slots=True)
class Batch:
    """Views by subject, and by subject and hour (since 1970), and the ids of the visitors."""

    views: Counter[str] = field(default_factory=Counter)
    hours: Counter[tuple[str, int]] = field(default_factory=Counter)
    visitors: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    present: int = field(default_factory=lambda: buckets.hour_index(buckets.now()))

    @property
    def is_full(self) -> bool:
        """Returns True if the batch has to be added before more views come."""
        return self.views.total() >= VIEWS

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
    return buckets.hour_index(at) - MODEL_HOURS + 1 + SPARE


def state(source: str) -> ImportState:
    """Returns what Redis knows of the import."""
    client: Any = connect(patient=True)
    begun, done, totals = client.hmget(keys.importing(source), ["begun", "done", "totals"])
    begun, done = (None if value is None else int(value) for value in (begun, done))
    return ImportState(begun, done, [int(total) for total in (totals or b"").split()])


def intend(source: str, *, before: int, after: int) -> Call[bool]:
    """Announces the batch between the two positions. Returns False if another import has gone further."""
    return Call("intend", [keys.importing(source)], (before, after), bool)


def apply(source: str, batch: Batch, *, before: int, after: int, at: datetime) -> Call[Applied]:
    """Adds the views of the batch to the counters that Redis keeps at `at`."""
    names, args = [keys.importing(source), keys.unsettled()], list[str | int]((before, after))
    totals = ((keys.total(subject), subject, count, 0) for subject, count in batch.views.items())
    for key, name, count, ends in chain(totals, _hours(batch.hours, at=at)):
        names.append(key)
        args += (name, count, ends)
    return Call("apply", names, args, Applied)


def _hours(hours: Mapping[tuple[str, int], int], *, at: datetime) -> Iterator[tuple[str, str, int, int]]:
    """Yields key, name in `views:unsettled` ("" for a subject's hour), views and end (seconds since 1970)."""
    models: Counter[tuple[str, int]] = Counter()
    for (subject, hour), count in hours.items():
        models[subject.partition(":")[0], hour] += count
        if (ends := hour * keys.HOUR + keys.hour.seconds) > at.timestamp():
            yield keys.counter(keys.hour_kind(hour), subject), "", count, ends
    for (model, hour), count in models.items():
        if hour >= first_hour(at):
            kind, ends = keys.hour_kind(hour), hour * keys.HOUR + keys.model_hour.seconds
            yield keys.counter(kind, model), keys.member(kind, model), count, ends


def add_visitors(batch: Batch) -> list[Call[int]]:
    """Adds the visitors to the subjects whose strategy can add them later. Idempotent."""
    found = [
        (strategy.key(subject), strategy.adds, visitor)
        for subject, ids in batch.visitors.items()
        if (strategy := strategy_of(subject)).adds
        for visitor in ids
    ]
    return [
        Call("add_visitors", [key for key, *_ in some], [word for _, *words in some for word in words], int)
        for some in scripts.sliced(found)
    ]


def finish(source: str) -> None:
    """Lets the position expire, because SQL has it."""
    connect(patient=True).expire(keys.importing(source), keys.importing.seconds)
