"""Views by minute and by hour of the subjects that are viewed now, which alerts compare.

The minutes are those of the trending list.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from readtrack import buckets
from readtrack.alerts.keys import since
from readtrack.numbers import recent_minutes
from readtrack.numbers.live_counters import totals_and_hours
from readtrack.numbers.usual_now import HOURS, MINUTES
from readtrack.store import keys, scripts, trending
from readtrack.store.scripts import Call

NEWEST = 3  # minutes in which a subject has to be viewed, to be looked at
MOST = 500  # subjects that are looked at in each of these minutes and partitions, at most


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
    minutes = buckets.minute_buckets(NEWEST, until=at)
    calls = []
    for tag in keys.tags():
        calls += [
            Call("ZREVRANGE", [name], (0, MOST - 1), scripts.names)
            for name in trending.keys_of_minutes(tag, minutes)
        ]
    subjects: dict[str, None] = {}
    for names in scripts.run_all(*calls, patient=True):
        subjects.update(dict.fromkeys(names))
    return [*subjects]


def by_minute(subjects: Sequence[str], *, at: datetime) -> dict[str, list[int]]:
    """Returns the views of each subject in each of the last MINUTES, the running minute last.

    Raises redis.RedisError.
    """
    views: dict[str, list[int]] = {}
    calls = recent_minutes.by_minute(subjects, MINUTES, at=at)
    for found in scripts.run_all(*calls, patient=True):
        views.update(found)
    return views


def hours_before(at: datetime) -> range:
    """Returns the last HOURS whole hours before that of the time (since 1970)."""
    present = buckets.hour_index(at)
    return range(present - HOURS, present)


def by_hour(subjects: Sequence[str], *, at: datetime) -> dict[str, Mapping[int, int]]:
    """Returns the views of each subject in each of the last HOURS whole hours, by hour (since
    1970).

    Raises redis.RedisError.
    """
    hours = hours_before(at)
    views: dict[str, Mapping[int, int]] = {}
    for found in scripts.run_all(*totals_and_hours(subjects, hours), patient=True):
        views.update({subject: live.views_by_hour for subject, live in found.items()})
    return views
