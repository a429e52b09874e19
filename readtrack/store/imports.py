"""Imports: adding a part of a log or table to the counts once, with the position it reaches."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, NamedTuple

from readtrack import buckets
from readtrack.store import keys, scripts, uniques
from readtrack.store.connection import connect
from readtrack.store.counters import MODEL_HOURS
from readtrack.store.scripts import Call

DAY = timedelta(days=1)  # that an hour of a subject is kept; one of a model is kept twice as long
LIFE = 86_400  # seconds that the position of a finished import is kept
ALMOST = timedelta(minutes=1)  # an hour that ends sooner is not begun any more

SPARE = 2  # of the oldest hours in Redis, which may expire before the next flush


def first_hour(at: datetime) -> int:
    """Returns the first hour (since 1970) that an import adds to Redis; earlier ones it adds to history itself."""
    return buckets.hour_index(at) - MODEL_HOURS + 1 + SPARE


class Applied(IntEnum):
    """What became of a part."""

    REFUSED = 0  # it was not announced to this Redis as it is now
    APPLIED = 1
    UNSETTLED = 2  # a counter has yet to get its base


class ImportState(NamedTuple):
    """How far an import was announced and applied; None where this Redis knows nothing of it."""

    begun: int | None
    done: int | None
    totals: list[int]  # of the subjects, right after the part was applied


def state(source: str) -> ImportState:
    """What Redis knows of the import."""
    client: Any = connect(patient=True)
    begun, done, totals = client.hmget(keys.importing(source), ["begun", "done", "totals"])
    begun, done = (None if value is None else int(value) for value in (begun, done))
    return ImportState(begun, done, [int(total) for total in (totals or b"").split()])


def intend(source: str, *, before: int, after: int) -> Call[bool]:
    """Announces the part between those positions; False when another import went further."""
    return Call("intend", [keys.importing(source)], (before, after), bool)


def apply(
    source: str,
    *,
    before: int,
    after: int,
    views: Mapping[str, int],
    hours: Mapping[tuple[str, datetime], int],
    at: datetime,
    since: int,
) -> Call[Applied]:
    """Adds the part's views to counters that have SQL's base; to a model's hours from `since` (since 1970) on."""
    slots = list(_slots(hours, at=at, since=since))
    names = [keys.importing(source), keys.unsettled(), *map(keys.total, views), *(slot[0] for slot in slots)]
    args: list[str | int] = [before, after, len(views)]
    for subject, count in views.items():
        args += (subject, count)
    for _, name, count, ends in slots:
        args += (name, count, int(ends.timestamp()))
    return Call("apply", names, args, Applied)


def _slots(
    hours: Mapping[tuple[str, datetime], int], *, at: datetime, since: int
) -> Iterator[tuple[str, str, int, datetime]]:
    """The keys of the hours that are young enough to be kept, a model's name in `views:unsettled`, views, and ends."""
    models: Counter[tuple[datetime, str]] = Counter()
    present = at.replace(minute=0, second=0, microsecond=0)
    for (subject, hour), count in hours.items():
        start = min(hour, present)  # a log may hold any time
        models[start, subject.partition(":")[0]] += count
        if at + ALMOST < start + DAY:
            yield keys.hour(buckets.hour_bucket(start), subject), "", count, start + DAY
    for (start, label), count in models.items():
        if since <= buckets.hour_index(start):
            name = keys.member(keys.hour_kind(buckets.hour_index(start)), label)
            yield keys.hour(buckets.hour_bucket(start), label), name, count, start + 2 * DAY


def add_visitors(visitors: Mapping[str, Sequence[str]]) -> Iterator[Call[int]]:
    """Adds visitors to subjects whose strategy can, as many calls as it takes; doing so again changes nothing."""
    able = {subject: ids for subject, ids in visitors.items() if uniques.strategy_of(subject).adds}
    for some in scripts.sliced([(subject, visitor) for subject, ids in able.items() for visitor in ids]):
        grouped: dict[str, list[str]] = {}
        for subject, visitor in some:
            grouped.setdefault(subject, []).append(visitor)
        strategies = {subject: uniques.strategy_of(subject) for subject in grouped}
        args: list[str | int] = [
            x for subject, group in grouped.items() for x in (strategies[subject].adds, len(group))
        ]
        args += [visitor for group in grouped.values() for visitor in group]
        yield Call("meet", [strategy.key(subject) for subject, strategy in strategies.items()], args, int)


def finish(source: str) -> None:
    """Lets go of the position: SQL has it."""
    connect(patient=True).expire(keys.importing(source), LIFE)
