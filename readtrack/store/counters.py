"""Totals: recording a hit, reading, settling and lifting them."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from readtrack import buckets, keys
from readtrack.conf import conf
from readtrack.hits import Hit, Outcome, Reason
from readtrack.store import effects, robots, scripts
from readtrack.store.connection import connect
from readtrack.store.scripts import Call

SCAN_COUNT = 1000  # keys looked at in one SCAN step; redis-py's default of 10 is far slower

_SKIPPED: dict[int, Reason] = {2: "rate", 3: "repeat", 4: "honeypot"}


class Epoch(NamedTuple):
    """Where a Redis stands in the line of settlings: the number of the last one, and of the one before."""

    current: int
    previous: int


class Settled(NamedTuple):
    """What a settling did: to how many totals, and where Redis stands now."""

    totals: int
    epoch: Epoch


class Total(NamedTuple):
    """A live count. One that is not based lacks what SQL counted before Redis lost the key."""

    views: int
    is_based: bool = True


def record(hit: Hit) -> Call[Outcome]:
    """Counts the hit's views."""
    visitor, seen_as = hit.visitor.id, hit.visitor.seen_as
    hour = buckets.hour(hit.at)
    names = keys.recorded(seen_as or visitor, minute=buckets.minute(hit.at), hour=hour)
    if effects.wants(hit):
        rate = (conf.RATE_LIMIT or robots.NO_LIMIT, conf.RATE_WINDOW)
        return Call("record", *effects.named(hit, shared=names, hour=hour, rate=rate), partial(_outcome, hit))
    for token in hit.views:
        names += keys.viewing(token, visitor=visitor, seen_as=seen_as, hour=hour)
    args: list[str | int] = [
        conf.WINDOW,
        conf.RATE_LIMIT or robots.NO_LIMIT,
        conf.RATE_WINDOW,
        visitor,
        5 if seen_as else 4,
        len(hit.views),
        *hit.views,
    ]
    return Call("record", names, args, partial(_outcome, hit))


def _outcome(hit: Hit, codes: list[int]) -> Outcome:
    if codes == [1]:
        return Outcome(hit.views)
    views = dict(zip(hit.views, codes, strict=True))
    return Outcome(
        counted=tuple(token for token, code in views.items() if code == 1),
        skipped={token: _SKIPPED[code] for token, code in views.items() if code != 1},
    )


def totals(tokens: Sequence[str]) -> Call[dict[str, Total]]:
    """The totals that Redis holds, by token; a token that it holds nothing of is left out."""

    def decode(answer: list[list[bytes | None]]) -> dict[str, Total]:
        counts, marks = answer if len(answer) == 2 else (answer[0], [None] * len(tokens))
        return {
            token: Total(int(count), is_based=mark is None)
            for token, count, mark in zip(tokens, counts, marks, strict=True)
            if count is not None
        }

    return Call("totals", [keys.unbased(), *map(keys.total, tokens)], tokens, decode)


def hours(times: Sequence[datetime]) -> list[int]:
    """The whole site's views in each of those hours."""
    found = connect().mget([keys.site_hour(buckets.hour(time)) for time in times])
    return [int(count or 0) for count in found]


def scan() -> Iterator[str]:
    """The tokens of all totals, unordered; one may come twice, as SCAN has it."""
    start = len(keys.total(""))
    for key in connect(patient=True).scan_iter(keys.total_pattern(), count=SCAN_COUNT):
        yield key.decode()[start:]


def unbased(*, until: int) -> list[str]:
    """Some tokens whose totals lack SQL's base, marked until then (µs); settling them makes room for the next."""
    client: Any = connect(patient=True)
    found: list[bytes] = client.zrange(keys.unbased(), "-inf", until, byscore=True, offset=0, num=scripts.SLICE)
    return [member.decode() for member in found]


def settle(bases: dict[str, int], *, head: int) -> Call[Settled]:
    """Adds each total its base from SQL. `head` is the epoch SQL knew of after it gave the bases."""
    args: list[str | int] = [head, *bases, *bases.values()]
    names = [keys.flush_epoch(), keys.unbased(), *map(keys.total, bases)]
    return Call("settle", names, args, lambda answer: Settled(answer[0], _epoch(answer[1])))


def epoch() -> Call[Epoch]:
    """Where this Redis stands; zeros for one that was never settled."""
    return Call("epoch", [keys.flush_epoch()], (), _epoch)


def _epoch(answer: bytes) -> Epoch:
    return Epoch(*map(int, answer.split()))


def lift(stored: dict[str, int]) -> Call[int]:
    """Raises the totals that are below what SQL stores; gives how many were."""
    args: list[str | int] = [*stored, *stored.values()]
    return Call("lift", [keys.unbased(), *map(keys.total, stored)], args, int)


def clock() -> int:
    """Redis's own time in microseconds."""
    seconds, microseconds = connect(patient=True).time()
    return seconds * 1_000_000 + microseconds
