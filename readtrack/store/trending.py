"""Trending: views by subject in the last hour, by a list that a task updates."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from heapq import nlargest
from itertools import chain
from operator import itemgetter

from readtrack import buckets
from readtrack.store import keys, scripts
from readtrack.store.circuit import SilentError
from readtrack.store.scripts import Call

MINUTES = 60  # because a minute's bucket is kept little longer
GAP = 8  # minutes without a refresh that the list can slide over; after a longer gap it begins anew
LOOKED_AT = 10_000  # subjects looked through to find those of one model


def top_subjects(limit: int, *, at: datetime, label: str = "") -> list[tuple[str, int]]:
    """Returns the most viewed subjects, of one model or of all. Computes a list that is missing."""
    heads = scripts.run_all(*lists(limit, label=label))
    if None in heads:
        scripts.run_all(*_updates(at, is_missing=True))
        heads = scripts.run_all(*lists(limit, label=label))
    return [] if None in heads else best(heads, limit)


def lists(limit: int, *, label: str = "") -> list[Call[list[tuple[str, int]] | None]]:
    """Reads the heads of the partitions' lists; None for a list that nobody has computed yet."""

    def decode(answer: Sequence[bytes] | None) -> list[tuple[str, int]] | None:
        return None if answer is None else scripts.pairs(answer)

    start = f"{label}:" if label else ""
    arguments = (max(0, limit), start, LOOKED_AT)
    return [
        Call("top", [keys.trending_top(tag)], arguments, decode, absent=[]) for tag in keys.tags()
    ]


def recent(names: Sequence[str], minutes: int, *, at: datetime) -> list[Call[int]]:
    """Reads the views of subjects in the last minutes, or of the models whose labels are given."""
    slots = buckets.minute_buckets(minutes, until=at)
    are_subjects = any(":" in name for name in names)
    arguments = [str(int(are_subjects)), *names]
    calls = []
    for tag in keys.tags():
        minute_keys = [keys.trending_bucket(tag, slot) for slot in slots]
        calls.append(Call("recent", minute_keys, arguments, int, absent=None))
    return calls


def best(heads: Sequence[list[tuple[str, int]] | None], limit: int) -> list[tuple[str, int]]:
    """Returns the subjects with the most views in the heads of the lists."""
    # Each subject is in one of them, so the best of all are among the best of each.
    return nlargest(limit, chain(*filter(None, heads)), key=itemgetter(1))


def refresh_trending(*, at: datetime | None = None) -> int:
    """Updates the list of the hour. Returns the number of subjects in it.

    The part of a server of a cluster that is silent stays as it is. Raises redis.RedisError.
    """
    calls = _updates(buckets.now(at))
    with suppress(SilentError):
        scripts.run_all(*calls, patient=True)
    return sum(call.result for call in calls if call.has_result)


def _updates(at: datetime, *, is_missing: bool = False) -> list[Call[int]]:
    """Updates the partitions' lists; with `is_missing` those that nobody else has computed by then."""
    slots = buckets.minute_buckets(MINUTES + GAP, until=at)
    args = (
        int(at.timestamp()) // 60,
        MINUTES,
        GAP,
        keys.trending_top.ttl,
        keys.trending_copy.ttl,
        int(is_missing),
    )
    calls = []
    for tag in keys.tags():
        names = [
            keys.trending_top(tag),
            *(keys.trending_bucket(tag, slot) for slot in slots[-MINUTES:]),
        ]
        names += [keys.trending_copy(tag, slot) for slot in slots]
        calls.append(Call("trend", names, args, int))
    return calls
