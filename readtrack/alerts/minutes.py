"""Views by minute and by hour of the subjects that are viewed now, which alerts compare.

The minutes are those of the trending list.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from readtrack import buckets
from readtrack.alerts.keys import since
from readtrack.store import keys, scripts
from readtrack.store.scripts import Call

MINUTES = 60  # that are read; Redis keeps them a little longer
NEWEST = 3  # minutes in which a subject has to be viewed, to be looked at
MOST = 500  # subjects that are looked at in each of these minutes and partitions, at most
HOURS = 23  # whole hours that are read


def watched_since(*, at: datetime) -> datetime:
    """Returns since when this Redis has been watched, which is now in the first call.

    A Redis that lost its data does not know it any more. Then its minutes say nothing, although
    the site may have been busy. Raises redis.RedisError.
    """
    key = since("")
    microseconds = int(at.timestamp() * 1_000_000)
    first: Call[Any] = Call("SET", [key], (microseconds, "NX"))
    known = Call("GET", [key], (), int)
    scripts.run_all(first, known, patient=True)
    return buckets.time_of(known.result)


def viewed_now(*, at: datetime) -> list[str]:
    """Returns the subjects that are viewed now, those with the most views in each minute.

    Raises redis.RedisError.
    """
    calls = []
    for tag in keys.tags():
        for minute in buckets.minute_buckets(NEWEST, until=at):
            bucket = keys.trending_bucket(tag, minute)
            calls.append(Call("ZREVRANGE", [bucket], (0, MOST - 1), scripts.names))
    subjects: dict[str, None] = {}
    for names in scripts.run_all(*calls, patient=True):
        subjects.update(dict.fromkeys(names))
    return [*subjects]


def by_minute(subjects: Sequence[str], *, at: datetime) -> dict[str, list[int]]:
    """Returns the views of each subject in each of the last MINUTES, the running minute last.

    Raises redis.RedisError.
    """
    portions = scripts.parted(subjects)
    calls = []
    for portion in portions:
        tag = keys.tag(portion[0])
        for minute in buckets.minute_buckets(MINUTES, until=at):
            bucket = keys.trending_bucket(tag, minute)
            calls.append(Call("ZMSCORE", [bucket], portion, _numbers))
    answers = iter(scripts.run_all(*calls, patient=True))
    views: defaultdict[str, list[int]] = defaultdict(list)
    for portion in portions:
        for _ in range(MINUTES):
            for subject, number in zip(portion, next(answers), strict=True):
                views[subject].append(number)
    return dict(views)


def by_hour(subjects: Sequence[str], *, at: datetime) -> dict[str, dict[int, int]]:
    """Returns the views of each subject in each of the last HOURS whole hours, by hour (since 1970).

    Raises redis.RedisError.
    """
    present = buckets.hour_index(at)
    hours = range(present - HOURS, present)
    names = [buckets.hour_bucket(buckets.hour_start(hour)) for hour in hours]
    calls = []
    for subject in subjects:
        hour_keys = [keys.hour(name, subject) for name in names]
        calls.append(Call("MGET", hour_keys, (), _numbers))
    answers = scripts.run_all(*calls, patient=True)
    return {
        subject: dict(zip(hours, numbers, strict=True))
        for subject, numbers in zip(subjects, answers, strict=True)
    }


def _numbers(answer: Sequence[Any]) -> list[int]:
    """Returns the numbers in an answer, 0 for what is missing."""
    return [int(number or 0) for number in answer]
