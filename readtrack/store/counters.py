"""Totals, hours of models and hashes of counts (funnels, reading, dimensions): reading, settling
and lifting them.
"""

import json
import re
from collections import ChainMap, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from secrets import randbits
from typing import Any, NamedTuple

from readtrack import buckets
from readtrack.store import keys, scripts, uniques
from readtrack.store.cluster import Cluster
from readtrack.store.connection import connect, server_time
from readtrack.store.scripts import Call

Name = tuple[str, str]  # of a hash: its kind, and the subject
Hours = dict[tuple[str, int], "Total"]  # by model and hour since 1970

MODEL_HOURS: int = keys.model_hour.ttl // keys.HOUR  # hours that Redis keeps
SCAN_COUNT = 5000  # keys looked at in one SCAN step, 2 ms; redis-py's default of 10 is far slower
is_number = re.compile(rb"[0-9]{1,18}").fullmatch  # of a counter; all databases store it
VALUES = 50  # values of a dimension that a subject keeps, beside "other"
SETTLE_ARGUMENTS = 6  # of settle.lua, before the sketches
BUCKETS_AT_ONCE = 8  # in one round trip, because a busy minute has thousands of members


class Epoch(NamedTuple):
    """The epoch of a Redis: names, drawn when they began, and 0 for none. See settle.lua."""

    origin: int = 0  # of the list of unsettled counters
    current: int = 0  # of the last settling
    previous: int = 0  # of the one before
    until: int = 0  # when the newest counter began that was ever settled (µs)
    tag: str = ""  # of the partition


class Stored(NamedTuple):
    """The stored counts of one counter by field (a total has one, ""), and a total's sketch and
    number of visitors.
    """

    counts: Mapping[str, int]
    sketch: bytes = b""
    visitors: int = 0


class Total(NamedTuple):
    """A live count. An unsettled one lacks what SQL had counted before Redis lost the key."""

    views: int
    is_settled: bool = True


class Hash(NamedTuple):
    """Live counts by field. An unsettled hash lacks what SQL had stored before Redis lost the key."""

    counts: Mapping[str, int]
    is_settled: bool = True

    @property
    def floor(self) -> int:
        """The highest count that a value may have had which record.lua replaced; 0 before it
        replaces any.
        """
        values = [count for value, count in self.counts.items() if value != "other"]
        return min(values) if len(values) >= VALUES else 0


def totals(subjects: Sequence[str]) -> Call[dict[str, Total]]:
    """Reads totals that are numbers, by subject. All calls of this module take subjects of one
    partition.
    """
    wanted = {subject: subject for subject in subjects}
    return _totals_by_name(keys.tag(subjects[0]), wanted, map(keys.total, wanted))


def _totals_by_name(
    tag: str, wanted: Mapping[str, Any], names: Iterable[str]
) -> Call[dict[Any, Total]]:
    """Reads the totals that `wanted` has by their names in `views:unsettled`, from the keys `names`.

    Leaves out counters that are missing or no numbers.
    """

    def decode(answer: Sequence[Sequence[Any]]) -> dict[Any, Total]:
        counts, marks = _with_marks(answer, len(wanted))
        rows = zip(wanted.values(), counts, marks, strict=True)
        return {
            item: Total(int(count), is_settled=mark is None)
            for item, count, mark in rows
            if is_number(count or b"")
        }

    return Call("totals", [keys.unsettled(tag), *names], [*wanted], decode, absent={})


def _hashes_by_name(tag: str, wanted: Mapping[str, Name]) -> Call[dict[Name, Hash]]:
    """Reads the hashes that `wanted` has by their names in `views:unsettled`."""

    def decode(answer: Sequence[Sequence[Any]]) -> dict[Name, Hash]:
        fields, marks = _with_marks(answer, len(wanted))
        rows = zip(wanted.values(), fields, marks, strict=True)
        return {
            name: Hash(dict(scripts.pairs(counts)), is_settled=mark is None)
            for name, counts, mark in rows
        }

    names = [keys.unsettled(tag), *(keys.prefix() + name for name in wanted)]
    return Call("hashes", names, [*wanted], decode, absent={})


def _with_marks(
    answer: Sequence[Sequence[Any]], number: int
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Returns the counters of an answer, and their marks in `views:unsettled`, None for settled.

    A script leaves out the marks where there are none, and hashes as well.
    """
    counters = answer[0] if len(answer) > 0 else [()] * number
    marks = answer[1] if len(answer) > 1 else [None] * number
    return counters, marks


def settled_totals(subjects: Sequence[str]) -> Call[tuple[int, Sequence[bytes | None]]]:
    """Reads the number of totals that exist, and each total in its place: None for a missing or
    unsettled one.
    """
    tag = keys.tag(subjects[0])
    start = keys.prefix() + keys.total.template % (tag, "")
    names = [keys.unsettled(tag), *[start + one for one in subjects]]
    return Call("settled_totals", names, (len(start.encode()),), tuple)


def model_hours(
    models: Sequence[str], hours: Sequence[int], *, tags: Sequence[str] = ()
) -> list[Call[Hours]]:
    """Reads the views of models by hour, by partition: of `tags`, here and below, or of all."""
    calls: list[Call[Hours]] = []
    for tag in tags or keys.tags():
        counted = [(f"{model}{tag}", hour) for model in models for hour in hours]
        for portion in scripts.sliced(counted):
            wanted = {keys.hour_name(model, hour): (model, hour) for model, hour in portion}
            names = [keys.prefix() + name for name in wanted]
            calls.append(_totals_by_name(tag, wanted, names))
    return calls


def by_model(answers: Iterable[Hours]) -> defaultdict[str, dict[int, Total]]:
    """Returns the answers to `model_hours` by model, then by hour."""
    totals: defaultdict[str, dict[int, Total]] = defaultdict(dict)
    for answer in answers:
        for (model, hour), total in answer.items():
            totals[model][hour] = total
    return totals


def sketches(subjects: Sequence[str]) -> Call[dict[str, bytes | None]]:
    """Reads the sketches of unique visitors; None for a subject without one."""

    def decode(answer: Sequence[bytes | None]) -> dict[str, bytes | None]:
        return dict(zip(subjects, answer, strict=True))

    return Call("MGET", [keys.hll(subject) for subject in subjects], (), decode)


def have_hashes(subjects: Sequence[str]) -> bool:
    """Returns True if any of the subjects has a funnel or a breakdown. Raises redis.RedisError."""
    reads = hashes(subjects, keys.hash_kinds())
    calls: list[Call[bool]] = [Call("EXISTS", read.keys[1:], (), bool) for read in reads]
    return any(scripts.run_all(*calls, patient=True))


def subject_hours(hours: Sequence[int], *, subject: str) -> list[int]:
    """Returns the views of one subject in each of those hours (since 1970).

    Raises redis.RedisError.
    """
    if not hours:
        return []
    names = [keys.hour(buckets.hour_bucket(buckets.hour_start(hour)), subject) for hour in hours]

    def decode(counts: Sequence[bytes | None]) -> list[int]:
        return [int(count or 0) for _, count in zip(names, counts, strict=True)]

    return scripts.run(Call("MGET", names, (), decode))


def scan(*, tags: Sequence[str] = ()) -> Iterator[str]:
    """Yields the subjects of all totals, unordered; SCAN may give one twice."""
    client: Any = connect(patient=True)
    wanted = frozenset(tags)
    start = len(keys.prefix() + keys.total.family)
    pattern = keys.matching(f"{keys.total.family}:*")
    cursor: Any = 0
    if wanted and isinstance(client, Cluster):
        cursor = client.scan_of([keys.unsettled(tag) for tag in tags])
    while True:
        cursor, found = client.scan(cursor, match=pattern, count=SCAN_COUNT)
        for key in found:
            name = key.decode()
            tag = keys.tag_in(name)  # of more than 256 partitions not all are as long
            if not wanted or tag in wanted:
                yield name[start + len(tag) + 1 :]
        if not cursor:
            return


def changed(minutes: Sequence[str], *, tags: Sequence[str] = ()) -> Iterator[list[str]]:
    """Yields the subjects in each of those minute buckets in each partition."""
    for portion in scripts.sliced(minutes, BUCKETS_AT_ONCE):
        calls = []
        for minute in portion:
            for tag in tags or keys.tags():
                bucket = keys.trending_bucket(tag, minute)
                calls.append(Call("ZRANGE", [bucket], (0, -1), scripts.names))
        yield from scripts.run_all(*calls, patient=True)


def change(subjects: Iterable[str]) -> None:
    """Enters the subjects into the present minute's bucket with no further view.

    So the next flush finds them.
    """
    minute = buckets.minute_bucket(buckets.time_of(server_time(patient=True)))
    for portion in scripts.parted([*subjects]):
        scores: list[str | int] = []
        for subject in portion:
            scores += (0, subject)
        bucket = keys.trending_bucket(keys.tag(portion[0]), minute)
        arguments = (keys.trending_bucket.ttl, "ZADD", "NX", *scores)
        scripts.run(Call[int]("write", [bucket], arguments), patient=True)


def unsettled(*, until: int, tags: Sequence[str]) -> list[tuple[list[str], Epoch]]:
    """Returns the next counters to settle that began until then (µs), and the epoch, of each
    partition.
    """
    limit = max(1, scripts.SLICE // len(tags))
    arguments = ("-inf", until, "BYSCORE", "LIMIT", 0, limit)
    lists = [Call("ZRANGE", [keys.unsettled(tag)], arguments, scripts.names) for tag in tags]
    epochs = [epoch(tag) for tag in tags]
    scripts.run_all(*lists, *epochs, patient=True)
    return [(names.result, answer.result) for names, answer in zip(lists, epochs, strict=True)]


def settle(
    stored: Mapping[str, Stored], *, epoch: Epoch, known: Epoch | None
) -> Call[tuple[int, Epoch]]:
    """Adds SQL's counts to unsettled counters. Answers how many, and the epoch.

    `known` is the epoch that SQL has of their list.
    """
    current, until = ("", 0) if known is None else (known.current, known.until)
    asked = (epoch.origin, current, until)

    def decode(answer: Sequence[Any]) -> tuple[int, Epoch]:
        return answer[0], _epoch(epoch.tag, answer[1])

    return Call("settle", *_restored("settle", epoch.tag, stored, asked), decode)


def lift(stored: Mapping[str, Stored]) -> list[Call[int]]:
    """Raises the settled counters that are below SQL's counts; the answers are how many were."""

    def tag_of(name: str) -> str:
        return keys.tag_in(name) or keys.tag(name)

    def decode(answer: Sequence[Any]) -> int:
        return int(answer[0])

    calls: list[Call[int]] = []
    for tag, names in keys.by_tag(stored, tag_of).items():
        for portion in scripts.sliced(names):
            counts = {name: stored[name] for name in portion}
            calls.append(Call("settle", *_restored("lift", tag, counts, (0, "", 0)), decode))
    return calls


def _restored(
    mode: str, tag: str, stored: Mapping[str, Stored], epoch: Sequence[Any]
) -> tuple[list[str], list[Any]]:
    """Returns the keys and arguments of settle.lua."""
    names = [keys.unsettled(tag), keys.reset(tag)]
    counters: list[dict[str, Any]] = []
    sketches: list[bytes] = []
    for name, counts in stored.items():
        kind, subject = keys.split_member(name)
        strategy = uniques.strategy_of(subject)
        if kind:
            names += [keys.prefix() + name] * 3  # a kind has no visitors
        else:
            visitors_row = keys.scratch if strategy.has_sketch else keys.earlier
            names += (keys.total(subject), strategy.key(subject), visitors_row(subject))
        counter: dict[str, Any] = {
            "name": name,
            "subject": subject,
            "life": keys.model_hour.ttl if kind == "hour" else 0,
            "counts": [(field, str(count)) for field, count in counts.counts.items()],
        }
        if counts.visitors and not strategy.has_sketch:
            counter["visitors"] = (counts.visitors, strategy.command)
        elif counts.sketch and strategy.has_sketch:
            sketches.append(counts.sketch)
            counter["sketch"] = SETTLE_ARGUMENTS + len(sketches)
        counters.append(counter)
    return names, [mode, randbits(62), *epoch, json.dumps(counters), *sketches]


def epoch(tag: str) -> Call[Epoch]:
    """Reads the epoch of a partition."""

    def decode(answer: Sequence[bytes]) -> Epoch:
        return _epoch(tag, answer[0] if answer else b"")

    return Call("ZRANGE", [keys.unsettled(tag)], ("inf", "inf", "BYSCORE"), decode)


def _epoch(tag: str, text: bytes) -> Epoch:
    if not text:
        return Epoch(tag=tag)
    _, origin, current, previous, until = text.split()
    return Epoch(int(origin), int(current), int(previous), int(until), tag)


def live_hashes(subjects: Sequence[str], kinds: Sequence[str]) -> dict[Name, Hash]:
    """Returns the hashes of these kinds by kind and subject, in one round trip.

    Raises redis.RedisError.
    """
    by_name = ChainMap(*scripts.run_all(*hashes(subjects, kinds)))
    return {name: counts for name, counts in by_name.items() if counts.counts}


def hashes(subjects: Sequence[str], kinds: Sequence[str]) -> list[Call[dict[Name, Hash]]]:
    """Reads the hashes of these kinds by kind and subject; a missing one has no counts."""
    calls = []
    for portion in scripts.parted(subjects, scripts.SLICE // len(kinds)):
        wanted = {
            keys.member(kind, subject): (kind, subject) for subject in portion for kind in kinds
        }
        calls.append(_hashes_by_name(keys.tag(portion[0]), wanted))
    return calls
