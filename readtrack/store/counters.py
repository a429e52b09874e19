"""Counters: totals, hours of models and hashes of counts (funnels, reading, dimensions).

They are read, settled (SQL's count is added to a counter that began anew) and lifted (to SQL's
count, where that is higher).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from secrets import randbits
from typing import Any, NamedTuple

from readtrack.store import keys, scripts, trending, uniques
from readtrack.store.connection import connect
from readtrack.store.scripts import Call
from readtrack.store.servers import SeveralServers

Name = tuple[str, str]  # of a hash: its kind ("funnel", "reading", "views:device"), and the subject

SCAN_COUNT = 5000  # keys looked at in one SCAN step, 2 ms; redis-py's default of 10 is far slower
is_number = re.compile(rb"[0-9]{1,18}").fullmatch  # a count that all databases can store
VALUES = 50  # values of a dimension that a subject keeps, beside "other"
SETTLE_ARGUMENTS = 6  # arguments of settle.lua before the sketches
BUCKETS_AT_ONCE = 8  # minutes read in one round trip, because a busy one has thousands of members


class Epoch(NamedTuple):
    """The epoch of a partition: random numbers by which a restored Redis is known; 0 for none.

    See settle.lua.
    """

    origin: int = 0  # drawn when the list of unsettled counters began
    current: int = 0  # drawn by the last settling
    previous: int = 0  # drawn by the settling before that
    until: int = 0  # when the newest counter began that was ever settled (µs)
    tag: str = ""  # of the partition


class Stored(NamedTuple):
    """What SQL stores of one counter."""

    counts: Mapping[str, int]  # by field; a total has one field, ""
    sketch: bytes = b""  # of a total's visitors
    visitors: int = 0  # of a total


class Total(NamedTuple):
    """A count in Redis. An unsettled count lacks what SQL had counted before Redis lost the key."""

    views: int
    is_settled: bool = True


def totals(subjects: Sequence[str]) -> Call[dict[str, Total]]:
    """Reads the totals by subject, without totals that are missing or no numbers.

    The subjects have to be of one partition, as for each function here that returns one call.
    """
    by_member = {subject: subject for subject in subjects}
    tag = keys.tag(subjects[0])
    # Built from the template, because a call of the row for each key would take longer than all
    # else on a page with many counts.
    prefix = keys.prefix()
    template = keys.total.template
    total_keys = [prefix + template % (tag, subject) for subject in by_member]
    return totals_by_member(tag, by_member, total_keys)


def totals_by_member(
    tag: str, by_member: Mapping[str, Any], total_keys: Iterable[str]
) -> Call[dict[Any, Total]]:
    """Reads the totals at these keys, without totals that are missing or no numbers.

    `by_member` has, for the member of `views:unsettled` that stands for each total, the key of the
    total in the result.
    """

    def decode(answer: Sequence[Sequence[Any]]) -> dict[Any, Total]:
        counts, marks = with_marks(answer, len(by_member))
        rows = zip(by_member.values(), counts, marks, strict=True)
        return {
            item: Total(int(count), is_settled=mark is None)
            for item, count, mark in rows
            if is_number(count or b"")
        }

    return Call("totals", [keys.unsettled(tag), *total_keys], [*by_member], decode, absent={})


def with_marks(answer: Sequence[Sequence[Any]], number: int) -> tuple[Sequence[Any], Sequence[Any]]:
    """Returns the counters in an answer, and the mark of each, which is None for a settled counter.

    totals.lua leaves the marks out if all are settled; hashes.lua leaves out all if no hash exists.
    `number` is how many counters were asked for.
    """
    counters = answer[0] if len(answer) > 0 else [()] * number
    marks = answer[1] if len(answer) > 1 else [None] * number
    return counters, marks


def settled_totals(subjects: Sequence[str]) -> Call[tuple[int, Sequence[bytes | None]]]:
    """Reads the number of totals that exist, and the total of each subject in their order.

    A total is None if it is missing or unsettled.
    """
    tag = keys.tag(subjects[0])
    start = keys.total.start(tag)
    key_names = [keys.unsettled(tag), *[start + subject for subject in subjects]]
    length_of_start = len(start.encode())
    return Call("settled_totals", key_names, (length_of_start,), tuple)


def sketches(subjects: Sequence[str]) -> Call[dict[str, bytes | None]]:
    """Reads the sketches of unique visitors; None for a subject without one."""

    def decode(answer: Sequence[bytes | None]) -> dict[str, bytes | None]:
        return dict(zip(subjects, answer, strict=True))

    return Call("MGET", [keys.hll(subject) for subject in subjects], (), decode)


def scan(*, tags: Sequence[str] = ()) -> Iterator[str]:
    """Yields the subjects of all totals in no order. SCAN may return a subject twice."""
    client: Any = connect(patient=True)
    wanted_tags = frozenset(tags)
    start = len(keys.prefix() + keys.total.family)
    pattern = keys.matching(f"{keys.total.family}:*")
    cursor: Any = 0
    if wanted_tags and isinstance(client, SeveralServers):
        cursor = client.scan_of([keys.unsettled(tag) for tag in tags])
    while True:
        cursor, scanned_keys = client.scan(cursor, match=pattern, count=SCAN_COUNT)
        for key in scanned_keys:
            name = key.decode()
            tag = keys.tag_in(name)  # with more than 256 partitions, tags differ in length
            if not wanted_tags or tag in wanted_tags:
                after_tag = start + len(tag)
                yield name[after_tag + 1 :]  # behind a colon
        if not cursor:
            return


def viewed(minutes: Sequence[str], *, tags: Sequence[str] = ()) -> Iterator[list[str]]:
    """Yields the subjects that were viewed in these minutes: lists for each minute and partition.

    The minutes are buckets, such as "202611200915".
    """
    for portion in scripts.sliced(minutes, BUCKETS_AT_ONCE):
        calls = []
        for tag in tags or keys.tags():
            calls += [
                Call("ZRANGE", [name], (0, -1), scripts.names)
                for name in trending.keys_of_minutes(tag, portion)
            ]
        yield from scripts.run_all(*calls, patient=True)


class Taken(NamedTuple):
    """What a flush has taken from the lists of what changed."""

    subjects: dict[str, None]  # in no order
    times: dict[str, str]  # when they were taken (µs), by the tag of the partition


def take_changed(tags: Sequence[str]) -> list[Call[tuple[str, list[str]]]]:
    """Returns calls that take what changed in each partition, of which `taken` makes one value.

    A call gives the subjects that changed since the last flush, and those that earlier flushes have
    not stored. They come again until `forget_taken` is called.
    """

    def decode(answer: Sequence[Any]) -> tuple[str, list[str]]:
        time, subjects = answer
        return time.decode(), scripts.names(subjects)

    return [
        Call("take_changed", [keys.changed(tag), keys.flushing(tag)], (keys.flushing.ttl,), decode)
        for tag in tags
    ]


def taken(tags: Sequence[str], calls: Sequence[Call[tuple[str, list[str]]]]) -> Taken:
    """Returns what the calls have taken from the partitions with these tags, in their order."""
    found = Taken({}, {})
    for tag, call in zip(tags, calls, strict=True):
        time, subjects = call.result
        found.subjects.update(dict.fromkeys(subjects))
        found.times[tag] = time
    return found


def forget_taken(taken: Taken) -> None:
    """Forgets the subjects that were taken, except those that another flush has taken since then.

    Raises redis.RedisError.
    """
    if not taken.subjects:
        return
    calls = [
        Call[int]("ZREMRANGEBYSCORE", [keys.flushing(tag)], ("-inf", time))
        for tag, time in taken.times.items()
    ]
    scripts.run_all(*calls, patient=True)


def mark_changed(subjects: Iterable[str]) -> None:
    """Makes the next flush store these subjects, though they had no further view."""
    for portion in scripts.parted([*subjects]):
        scores = scripts.flat((1, subject) for subject in portion)
        name = keys.changed(keys.tag(portion[0]))
        arguments = (keys.changed.ttl, "ZADD", *scores)
        scripts.run(Call[int]("write", [name], arguments), patient=True)


def unsettled(
    *, until: int, tags: Sequence[str], after: Mapping[str, int] = {}
) -> list[tuple[dict[str, int], Epoch]]:
    """Returns, for each partition, when each of the next counters to settle began (µs), and the
    epoch.

    A counter is named by its member of `views:unsettled`. Only counters that began by `until` (µs)
    are returned, the oldest first. `after` has the number of counters that are passed over, by tag.
    """
    limit = max(1, scripts.SLICE // len(tags))
    member_calls = []
    for tag in tags:
        arguments = ("-inf", until, "BYSCORE", "LIMIT", after.get(tag, 0), limit, "WITHSCORES")
        member_calls.append(Call("ZRANGE", [keys.unsettled(tag)], arguments, scripts.pairs))
    epoch_calls = [epoch(tag) for tag in tags]
    scripts.run_all(*member_calls, *epoch_calls, patient=True)
    return [
        (dict(members.result), present_epoch.result)
        for members, present_epoch in zip(member_calls, epoch_calls, strict=True)
    ]


def number_of_unsettled(tag: str) -> Call[int | None]:
    """Reads the number of unsettled counters of a partition; None if its server is silent."""
    # The epoch is in the same list, with an infinite score.
    return Call("ZCOUNT", [keys.unsettled(tag)], ("-inf", "(inf"), int, absent=None)


def settle(
    stored: Mapping[str, Stored], *, epoch: Epoch, sql_epoch: Epoch | None
) -> Call[tuple[int, Epoch]]:
    """Adds SQL's counts to unsettled counters of one partition.

    The result is the number of counters that were settled, and the epoch after that. `stored` has
    SQL's counts by member of `views:unsettled`, `epoch` is what `unsettled` returned with these
    members, and `sql_epoch` is the epoch of the partition that SQL knows, if any.
    """
    known_epoch = ("", 0) if sql_epoch is None else (sql_epoch.current, sql_epoch.until)
    expected = (epoch.origin, *known_epoch)

    def decode(answer: Sequence[Any]) -> tuple[int, Epoch]:
        settled, epoch_text = answer
        return settled, _epoch(epoch.tag, epoch_text)

    return Call("settle", *_settle_arguments("settle", epoch.tag, stored, expected), decode)


def lift(stored: Mapping[str, Stored]) -> list[Call[int]]:
    """Returns calls that raise the settled counters that are below SQL's counts.

    The result of each call is the number of counters that were raised. `stored` has SQL's counts by
    member of `views:unsettled`.
    """

    def tag_of(member: str) -> str:
        return keys.tag_in(member) or keys.tag(member)

    def decode(answer: Sequence[Any]) -> int:
        return int(answer[0])  # behind it comes the epoch

    no_epoch = (0, "", 0)
    calls: list[Call[int]] = []
    for tag, members in keys.by_tag(stored, tag_of).items():
        for portion in scripts.sliced(members):
            counts = {member: stored[member] for member in portion}
            calls.append(Call("settle", *_settle_arguments("lift", tag, counts, no_epoch), decode))
    return calls


def _settle_arguments(
    mode: str, tag: str, stored: Mapping[str, Stored], epoch: Sequence[Any]
) -> tuple[list[str], list[Any]]:
    """Returns the keys and arguments of settle.lua, whose header describes them."""
    key_names = [keys.unsettled(tag), keys.reset(tag)]
    counters: list[dict[str, Any]] = []
    sketches: list[bytes] = []
    for member, counts in stored.items():
        kind, subject = keys.split_member(member)
        strategy = uniques.strategy_of(subject)
        if kind:
            # Three keys for each counter. An hour or a hash has no visitors.
            key_names += [keys.prefix() + member] * 3
        else:
            visitors_row = keys.scratch if strategy.has_sketch else keys.earlier
            key_names += (keys.total(subject), strategy.key(subject), visitors_row(subject))
        counter: dict[str, Any] = {
            "name": member,
            "subject": subject,
            "life": keys.model_hour.ttl if kind == "hour" else 0,
            "counts": [(field, str(count)) for field, count in counts.counts.items()],
        }
        if counts.visitors and not strategy.has_sketch:
            counter["visitors"] = (counts.visitors, strategy.command)
        elif counts.sketch and strategy.has_sketch:
            sketches.append(counts.sketch)
            counter["sketch"] = SETTLE_ARGUMENTS + len(sketches)  # its index in ARGV
        counters.append(counter)
    return key_names, [mode, randbits(62), *epoch, json.dumps(counters), *sketches]


def epoch(tag: str) -> Call[Epoch]:
    """Reads the epoch of a partition."""

    def decode(answer: Sequence[bytes]) -> Epoch:
        return _epoch(tag, answer[0] if answer else b"")

    return Call("ZRANGE", [keys.unsettled(tag)], ("inf", "inf", "BYSCORE"), decode)


def _epoch(tag: str, text: bytes) -> Epoch:
    """Returns the epoch in a member of `views:unsettled`, `epoch 4 3 2 1`; an empty one for b""."""
    if not text:
        return Epoch(tag=tag)
    _, origin, current, previous, until = text.split()
    return Epoch(int(origin), int(current), int(previous), int(until), tag)
