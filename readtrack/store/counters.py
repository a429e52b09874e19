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
from readtrack.store.connection import connect, server_time
from readtrack.store.scripts import Call

Name = tuple[str, str]  # of a hash: its kind, and the subject
Hours = dict[tuple[str, int], "Total"]  # by model and hour since 1970

MODEL_HOURS: int = keys.model_hour.ttl // keys.HOUR  # hours that Redis keeps
SCAN_COUNT = 5000  # keys looked at in one SCAN step, 2 ms; redis-py's default of 10 is far slower
is_number = re.compile(rb"[0-9]{1,18}").fullmatch  # of a counter; all databases store it
VALUES = 50  # values of a dimension that a subject keeps, beside "other"
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
    wanted = dict(zip(subjects, subjects, strict=True))
    return _with_marks("totals", keys.tag(subjects[0]), wanted, map(keys.total, wanted))


def _with_marks(
    script: str, tag: str, wanted: Mapping[str, Any], names: Iterable[str] = ()
) -> Call[dict[Any, Any]]:
    """Reads what `wanted` has by names in `views:unsettled`; leaves out counters that are missing
    or no numbers.
    """

    def decode(answer: Sequence[Sequence[Any]]) -> dict[Any, Any]:
        # A script leaves out the marks where there are none, and hashes as well.
        missing: list[Sequence[Any]] = [[()] * len(wanted), [None] * len(wanted)]
        live, marks = [*answer, *missing[len(answer) :]]
        rows = zip(wanted.values(), live, marks, strict=True)
        if script == "hashes":
            return {
                one: Hash(dict(scripts.pairs(some)), is_settled=mark is None)
                for one, some, mark in rows
            }
        return {
            one: Total(int(count), is_settled=mark is None)
            for one, count, mark in rows
            if is_number(count or b"")
        }

    names = [*names] or [
        keys.prefix() + name for name in wanted
    ]  # a total's key has another name there
    return Call(script, [keys.unsettled(tag), *names], [*wanted], decode, {})


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
    calls = list[Call[Hours]]()
    for tag in tags or keys.tags():
        slices = scripts.sliced([(f"{model}{tag}", hour) for model in models for hour in hours])
        calls += [
            _with_marks("totals", tag, {keys.hour_name(*one): one for one in some})
            for some in slices
        ]
    return calls


def by_model(answers: Iterable[Hours]) -> defaultdict[str, dict[int, Total]]:
    """Returns the answers to `model_hours` by model, then by hour."""
    found: defaultdict[str, dict[int, Total]] = defaultdict(dict)
    for answer in answers:
        for (model, hour), total in answer.items():
            found[model][hour] = total
    return found


def sketches(subjects: Sequence[str]) -> Call[dict[str, bytes | None]]:
    """Reads the sketches of unique visitors; None for a subject without one."""
    return Call(
        "MGET",
        list(map(keys.hll, subjects)),
        (),
        lambda found: dict(zip(subjects, found, strict=True)),
    )


def have_hashes(subjects: Sequence[str]) -> bool:
    """Returns True if any of the subjects has a funnel or a breakdown. Raises redis.RedisError."""
    calls = (
        Call("EXISTS", read.keys[1:], (), bool) for read in hashes(subjects, keys.hash_kinds())
    )
    return any(scripts.run_all(*calls, patient=True))


def subject_hours(hours: Sequence[int], *, subject: str) -> list[int]:
    """Returns the views of one subject in each of those hours (since 1970). Raises
    redis.RedisError.
    """
    names = [keys.hour(buckets.hour_bucket(buckets.hour_start(hour)), subject) for hour in hours]
    return (
        scripts.run(Call("MGET", names, (), lambda found: [int(count or 0) for count in found]))
        if names
        else []
    )


def scan(*, tags: Sequence[str] = ()) -> Iterator[str]:
    """Yields the subjects of all totals, unordered; SCAN may give one twice."""
    wanted, start = frozenset(tags), len(keys.prefix() + keys.total.family)
    every = keys.matching(f"{keys.total.family}:*")
    for name in map(bytes.decode, connect(patient=True).scan_iter(match=every, count=SCAN_COUNT)):
        tag = keys.tag_in(name)  # of more than 256 partitions not all are as long
        if not wanted or tag in wanted:
            yield name[start + len(tag) + 1 :]


def changed(minutes: Sequence[str], *, tags: Sequence[str] = ()) -> Iterator[list[str]]:
    """Yields the subjects in each of those minute buckets in each partition."""
    for some in scripts.sliced(minutes, BUCKETS_AT_ONCE):
        names = [
            keys.trending_bucket(tag, minute) for minute in some for tag in tags or keys.tags()
        ]
        yield from scripts.run_all(
            *(Call("ZRANGE", [name], (0, -1), scripts.names) for name in names), patient=True
        )


def change(subjects: Iterable[str]) -> None:
    """Enters the subjects into the present minute's bucket with no further view, so that the next
    flush finds them.
    """
    minute = buckets.minute_bucket(buckets.time_of(server_time(patient=True)))
    for some in scripts.parted([*subjects]):
        words = [word for subject in some for word in (0, subject)]
        bucket = keys.trending_bucket(keys.tag(some[0]), minute)
        scripts.run(
            Call[int]("write", [bucket], (keys.trending_bucket.ttl, "ZADD", "NX", *words)),
            patient=True,
        )


def unsettled(*, until: int, tags: Sequence[str]) -> list[tuple[list[str], Epoch]]:
    """Returns the next counters to settle that began until then (µs), and the epoch, of each
    partition.
    """
    args = ("-inf", until, "BYSCORE", "LIMIT", 0, max(1, scripts.SLICE // len(tags)))
    begun = [Call("ZRANGE", [keys.unsettled(tag)], args, scripts.names) for tag in tags]
    answers = scripts.run_all(*begun, *map(epoch, tags), patient=True)
    return list(zip(answers[: len(tags)], answers[len(tags) :], strict=True))


def settle(
    stored: Mapping[str, Stored], *, epoch: Epoch, known: Epoch | None
) -> Call[tuple[int, Epoch]]:
    """Adds SQL's counts to unsettled counters; answers how many, and the epoch. `known` is SQL's of
    their list.
    """
    asked = (epoch.origin, "", 0) if known is None else (epoch.origin, known.current, known.until)
    return _restore(
        "settle", epoch.tag, stored, asked, lambda answer: (answer[0], _epoch(epoch.tag, answer[1]))
    )


def lift(stored: Mapping[str, Stored]) -> list[Call[int]]:
    """Raises the settled counters that are below SQL's counts; the answers are how many were."""
    groups = keys.by_tag(stored, lambda name: keys.tag_in(name) or keys.tag(name))
    return [
        _restore(
            "lift",
            tag,
            {name: stored[name] for name in some},
            (0, "", 0),
            lambda answer: int(answer[0]),
        )
        for tag, names in groups.items()
        for some in scripts.sliced(names)
    ]


def _restore(
    mode: str, tag: str, stored: Mapping[str, Stored], known: Sequence[Any], decode: Any
) -> Call[Any]:
    names = [keys.unsettled(tag), keys.reset(tag)]
    counters, sketches = list[dict[str, Any]](), list[bytes]()
    for name, one in stored.items():
        kind, subject = keys.split_member(name)
        strategy = uniques.strategy_of(subject)
        rows = (keys.total, strategy.key, keys.scratch if strategy.has_sketch else keys.earlier)
        names += (
            [keys.prefix() + name] * 3 if kind else [row(subject) for row in rows]
        )  # a kind has no visitors
        counts = [(field, str(count)) for field, count in one.counts.items()]
        life = keys.model_hour.ttl if kind == "hour" else 0
        counters.append({"name": name, "subject": subject, "life": life, "counts": counts})
        if one.visitors and not strategy.has_sketch:
            counters[-1]["visitors"] = (one.visitors, strategy.command)
        elif one.sketch and strategy.has_sketch:
            sketches.append(one.sketch)
            counters[-1]["sketch"] = 6 + len(sketches)
    return Call(
        "settle", names, [mode, randbits(62), *known, json.dumps(counters), *sketches], decode
    )


def epoch(tag: str) -> Call[Epoch]:
    """Reads the epoch of a partition."""
    return Call(
        "ZRANGE",
        [keys.unsettled(tag)],
        ("inf", "inf", "BYSCORE"),
        lambda found: _epoch(tag, *found[:1]),
    )


def _epoch(tag: str, answer: bytes = b"") -> Epoch:
    origin, current, previous, until = map(int, answer.split()[1:]) if answer else (0,) * 4
    return Epoch(origin, current, previous, until, tag)


def live_hashes(subjects: Sequence[str], kinds: Sequence[str]) -> dict[Name, Hash]:
    """Returns the hashes of these kinds by kind and subject, in one round trip. Raises
    redis.RedisError.
    """
    return {
        name: one
        for name, one in ChainMap(*scripts.run_all(*hashes(subjects, kinds))).items()
        if one.counts
    }


def hashes(subjects: Sequence[str], kinds: Sequence[str]) -> list[Call[dict[Name, Hash]]]:
    """Reads the hashes of these kinds by kind and subject; a missing one has no counts."""
    calls = []
    for some in scripts.parted(subjects, scripts.SLICE // len(kinds)):
        wanted = {keys.member(kind, subject): (kind, subject) for subject in some for kind in kinds}
        calls.append(_with_marks("hashes", keys.tag(some[0]), wanted))
    return calls
