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
        if None in heads:  # Redis could not keep it
            return []
    return best(heads, limit)


def keys_of_minutes(tag: str, minutes: Sequence[str]) -> list[str]:
    """Returns the keys that have the views by subject in these minutes: two for each minute.

    A view is in the first one until the list takes it in, and then in the second one.
    """
    key_names: list[str] = []
    for minute in minutes:
        key_names += (keys.trending_bucket(tag, minute), keys.trending_taken(tag, minute))
    return key_names


def lists(limit: int, *, label: str = "") -> list[Call[list[tuple[str, int]] | None]]:
    """Returns calls that read the most viewed subjects and their views, one for each partition.

    The result of a call is None if the list of the partition has not been computed yet.
    """

    def decode(answer: Sequence[bytes] | None) -> list[tuple[str, int]] | None:
        if answer is None:
            return None
        return scripts.pairs(answer)

    start_of_subjects = ""
    if label:
        start_of_subjects = f"{label}:"
    arguments = (max(0, limit), start_of_subjects, LOOKED_AT)
    return [
        Call("top", [keys.trending_list(tag)], arguments, decode, absent=[]) for tag in keys.tags()
    ]


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


def forgetting(subjects: Sequence[str], *, at: datetime) -> Call[int]:
    """Returns the call that removes subjects of one partition from the last hour.

    `at` is by Redis's clock, as that of views is.
    """
    tag = keys.tag(subjects[0])
    minutes = buckets.minute_buckets(MINUTES + GAP, until=at)
    key_names = [keys.trending_list(tag), *keys_of_minutes(tag, minutes)]
    return Call("forget_trending", key_names, subjects, int)


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
        keys.trending_list.ttl,
        keys.trending_taken.ttl,
        int(is_missing),
    )
    calls = []
    for tag in keys.tags():
        key_names = [keys.trending_list(tag)]
        key_names += [keys.trending_bucket(tag, minute) for minute in minutes[-MINUTES:]]
        key_names += [keys.trending_taken(tag, minute) for minute in minutes]
        calls.append(Call("trend", key_names, arguments, int))
    return calls
