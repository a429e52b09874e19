"""Trending: views by subject in the last hour, from a list that a task updates each minute."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from heapq import nlargest
from operator import itemgetter

from readtrack import buckets
from readtrack.store import keys, scripts
from readtrack.store.circuit import SilentError
from readtrack.store.scripts import Call

MINUTES = 60  # that the list covers; Redis keeps the bucket of a minute for little longer
GAP = 8  # minutes without an update after which the list is still moved on, and not made anew
LOOKED_AT = 10_000  # subjects that are looked through to find those of one model


def top_subjects(limit: int, *, at: datetime, label: str = "") -> list[tuple[str, int]]:
    """Returns the most viewed subjects and their views, of the model with the label or of all.

    Computes a list that is missing. Raises redis.RedisError.
    """
    heads = scripts.run_all(*lists(limit, label=label))
    if None in heads:
        scripts.run_all(*_updates(at, is_missing=True))
        heads = scripts.run_all(*lists(limit, label=label))
    return [] if None in heads else best(heads, limit)


def lists(limit: int, *, label: str = "") -> list[Call[list[tuple[str, int]] | None]]:
    """Returns calls that read the most viewed subjects and their views, one for each partition.

    The result of a call is None if the list of the partition has not been computed yet.
    """

    def decode(answer: Sequence[bytes] | None) -> list[tuple[str, int]] | None:
        return None if answer is None else scripts.pairs(answer)

    start = f"{label}:" if label else ""
    arguments = (max(0, limit), start, LOOKED_AT)
    return [
        Call("top", [keys.trending_top(tag)], arguments, decode, absent=[]) for tag in keys.tags()
    ]


def recent(subjects_or_labels: Sequence[str], minutes: int, *, at: datetime) -> list[Call[int]]:
    """Returns calls that read the views of the last minutes, one for each partition.

    They are the views of all these subjects, or of all these models, together.
    """
    minute_names = buckets.minute_buckets(minutes, until=at)
    are_subjects = any(":" in name for name in subjects_or_labels)
    arguments = [str(int(are_subjects)), *subjects_or_labels]
    calls = []
    for tag in keys.tags():
        minute_keys = [keys.trending_bucket(tag, minute) for minute in minute_names]
        calls.append(Call("recent", minute_keys, arguments, int, absent=None))
    return calls


def best(heads: Sequence[list[tuple[str, int]] | None], limit: int) -> list[tuple[str, int]]:
    """Returns the subjects with the most views of all partitions, and their views.

    `heads` are the results of `lists`.
    """
    # Each subject is in one partition, so the best of all are among the best of each.
    candidates: list[tuple[str, int]] = []
    for head in heads:
        candidates += head or []
    return nlargest(limit, candidates, key=itemgetter(1))


def refresh_trending(*, at: datetime | None = None) -> int:
    """Updates the list of the last hour. Returns the number of subjects in it.

    If a server of a cluster is silent, its part of the list stays as it is. Raises
    redis.RedisError.
    """
    calls = _updates(buckets.now(at))
    with suppress(SilentError):
        scripts.run_all(*calls, patient=True)
    return sum(call.result for call in calls if call.has_result)


def _updates(at: datetime, *, is_missing: bool = False) -> list[Call[int]]:
    """Returns calls that update the lists, one for each partition.

    With `is_missing` they only compute lists that nobody else has computed in the meantime. The
    result of a call is the number of subjects in the list.
    """
    minutes = buckets.minute_buckets(MINUTES + GAP, until=at)
    present_minute = int(at.timestamp()) // keys.MINUTE
    arguments = (
        present_minute,
        MINUTES,
        GAP,
        keys.trending_top.ttl,
        keys.trending_copy.ttl,
        int(is_missing),
    )
    calls = []
    for tag in keys.tags():
        key_names = [keys.trending_top(tag)]
        key_names += [keys.trending_bucket(tag, minute) for minute in minutes[-MINUTES:]]
        key_names += [keys.trending_copy(tag, minute) for minute in minutes]
        calls.append(Call("trend", key_names, arguments, int))
    return calls
