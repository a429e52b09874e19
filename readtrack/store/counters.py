"""Recording a hit; reading, settling and lifting totals and the other counters that SQL keeps."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from readtrack import buckets
from readtrack.store import keys, scripts
from readtrack.store.connection import connect
from readtrack.store.scripts import Call

HOUR_LIFE = 172_800  # seconds that a model's hour lives; record.lua sets it
SCAN_COUNT = 5000  # keys looked at in one SCAN step, 2 ms; redis-py's default of 10 is far slower


class Epoch(NamedTuple):
    """Where a Redis stands in the line of settlings: the number of the last one, and of the one before."""

    current: int
    previous: int


class Settled(NamedTuple):
    """What a settling did: to how many counters, and where Redis stands now."""

    counters: int
    epoch: Epoch


class Stored(NamedTuple):
    """What SQL keeps of one counter: counts by field (a total's only field is ""), and a total's sketch."""

    counts: Mapping[str, int]
    sketch: bytes = b""


StoredCount = int | Stored  # a number is a total without a sketch


class Total(NamedTuple):
    """A live count. One that is not based lacks what SQL counted before Redis lost the key."""

    views: int
    is_settled: bool = True


def totals(subjects: Sequence[str]) -> Call[dict[str, Total]]:
    """The totals that Redis holds, by subject; a subject that it holds nothing of is left out."""
    return _with_marks({subject: keys.total(subject) for subject in subjects})


def model_hours(names: Iterable[str]) -> Call[dict[str, Total]]:
    """The models' hours that Redis holds, by their names in `views:unsettled`."""
    return _with_marks({name: keys.counter(*keys.split_member(name)) for name in names})


def _with_marks(named: Mapping[str, str]) -> Call[dict[str, Total]]:
    """The counters that there are, by their names in `views:unsettled`, which are given with their keys."""

    def decode(answer: list[list[bytes | None]]) -> dict[str, Total]:
        counts, marks = answer if len(answer) == 2 else (answer[0], [None] * len(named))
        return {
            name: Total(int(count), is_settled=mark is None)
            for name, count, mark in zip(named, counts, marks, strict=True)
            if count is not None
        }

    return Call("totals", [keys.unsettled(), *named.values()], list(named), decode)


def settled_totals(subjects: Sequence[str]) -> Call[tuple[int, Sequence[bytes | None]]]:
    """How many of the totals there are, and each in its place: None where it is missing or lacks SQL's base."""
    start = keys.total("")
    return Call("based", [keys.unsettled(), *[start + subject for subject in subjects]], (len(start),), tuple)


def subject_hours(times: Sequence[datetime], *, subject: str) -> list[int]:
    """The views of one subject in each of those hours."""
    if not times:
        return []
    found = connect().mget([keys.hour(buckets.hour_bucket(time), subject) for time in times])
    return [int(count or 0) for count in found]


def scan() -> Iterator[str]:
    """The subjects of all totals, unordered; one may come twice, as SCAN has it."""
    client: Any = connect(patient=True)
    start, pattern, cursor = len(keys.total("")), keys.matching_totals(), None
    while cursor != 0:
        cursor, names = client.scan(cursor or 0, match=pattern, count=SCAN_COUNT)
        yield from [name.decode()[start:] for name in names]


def unsettled(*, until: int) -> list[str]:
    """Some counters that lack SQL's base, marked until then (µs); settling them makes room for the next."""
    client: Any = connect(patient=True)
    found: list[bytes] = client.zrange(keys.unsettled(), "-inf", until, byscore=True, offset=0, num=scripts.SLICE)
    return [member.decode() for member in found]


def settle(bases: Mapping[str, StoredCount], *, head: int) -> Call[Settled]:
    """Adds each counter its base from SQL. `head` is the epoch SQL knew of after it gave the bases."""
    names, args = _settle_args("settle", bases, head)
    return Call("restore", names, args, lambda answer: Settled(answer[0], _epoch(answer[1])))


def epoch() -> Call[Epoch]:
    """Where this Redis stands; zeros for one that was never settled."""
    return Call("epoch", [keys.flush_epoch()], (), _epoch)


def _epoch(answer: bytes) -> Epoch:
    return Epoch(*map(int, answer.split()))


def lift(stored: Mapping[str, StoredCount]) -> Call[int]:
    """Raises the counters that are below what SQL stores; gives how many were."""
    names, args = _settle_args("lift", stored, 0)
    return Call("restore", names, args, lambda answer: int(answer[0]))


def _settle_args(mode: str, bases: Mapping[str, StoredCount], head: int) -> tuple[list[str], list[str | int | bytes]]:
    names = [keys.flush_epoch(), keys.unsettled(), keys.reset()]
    args: list[str | int | bytes] = [mode, head]
    for name, base in bases.items():
        family, subject = keys.split_member(name)
        kept = Stored({"": base}) if isinstance(base, int) else base
        key = keys.counter(family, subject) if family else keys.total(subject)
        names += (key, keys.hll(subject), keys.scratch(subject))
        args += (name, subject, kept.sketch, HOUR_LIFE if keys.is_hour(name) else 0, len(kept.counts))
        for field, count in kept.counts.items():
            args += (field, count)
    return names, args


def clock() -> int:
    """Redis's own time in microseconds."""
    seconds, microseconds = connect(patient=True).time()
    return seconds * 1_000_000 + microseconds


BUCKET_LIFE = 70  # minutes; record.lua sets it
AT_ONCE = 8  # buckets in one round trip: a busy minute has thousands of members


def changed(minutes: Sequence[datetime]) -> Iterator[list[str]]:
    """The subjects viewed in each of those minutes."""
    client: Any = connect(patient=True)
    for start in range(0, len(minutes), AT_ONCE):
        some = minutes[start : start + AT_ONCE]
        with client.pipeline(transaction=False) as pipeline:
            for minute in some:
                pipeline.zrange(keys.trending_bucket(buckets.minute_bucket(minute)), 0, -1)
            answers = pipeline.execute()
        for found in answers:
            yield [member.decode() for member in found]
