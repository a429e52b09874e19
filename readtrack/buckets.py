"""Buckets: slots of a minute, hour or day in UTC, by name (as in keys), by number and by start."""

import itertools
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, timezone
from functools import lru_cache
from typing import Literal, get_args

from django.utils.timezone import get_current_timezone, get_default_timezone, make_aware

WEEK = timedelta(days=7)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
FIRST_DAY = date(1990, 1, 1)  # the earliest day of which numbers are asked


def now(at: datetime | None = None) -> datetime:
    """Returns the given time or the present as aware UTC. A naive time is of the site's
    TIME_ZONE.
    """
    if at is None:
        return datetime.now(timezone.utc)
    if at.tzinfo is None:
        at = make_aware(at, get_default_timezone())
    return at.astimezone(timezone.utc)


@lru_cache(maxsize=128)
def minute_bucket(at: datetime) -> str:
    """Returns `202611200937`, the bucket of that minute. `at` is UTC."""
    return at.strftime("%Y%m%d%H%M")


@lru_cache(maxsize=128)
def hour_bucket(at: datetime) -> str:
    """Returns `2026112009`, the bucket of that hour. `at` is UTC."""
    return at.strftime("%Y%m%d%H")


def day_bucket(day: date) -> str:
    """Returns `20261120`, the bucket of that day, which may be a time (UTC)."""
    return day.strftime("%Y%m%d")


def local_day(hour: int) -> date:
    """Returns the day of TIME_ZONE in which the hour (since 1970) begins.

    In a zone with half hours, an hour that is in two days belongs to the earlier one, as it does
    in history.
    """
    return hour_start(hour).astimezone(get_default_timezone()).date()


def first_hour_of(day: date) -> int:
    """Returns the first hour (since 1970) that `local_day` counts to the day."""
    midnight = datetime.combine(day, time(), get_default_timezone())
    # In a zone with half hours, the hour of midnight is in the earlier day.
    return hour_index(midnight + HOUR - timedelta(microseconds=1))


def local_days(since: datetime, until: datetime) -> list[date]:
    """Returns the days of TIME_ZONE from that of `since` to that of `until`, oldest first."""
    first = local_day(hour_index(since))
    last = local_day(hour_index(until))
    return [first + DAY * number for number in range((last - first).days + 1)]


def local_day_bucket(at: datetime) -> str:
    """Returns `20261120`, the day of TIME_ZONE in which the hour of `at` begins."""
    return day_bucket(local_day(hour_index(at)))


def minute_buckets(count: int, *, until: datetime) -> list[str]:
    """Returns the last `count` minutes, oldest first, the running one last."""
    last = until.replace(second=0, microsecond=0)
    return [minute_bucket(last - MINUTE * back) for back in range(count - 1, -1, -1)]


def time_of(microseconds: int) -> datetime:
    """Returns that time of Redis's clock, which is given in µs since 1970, as aware UTC."""
    return datetime.fromtimestamp(microseconds / 1_000_000, timezone.utc)


def hour_index(at: datetime) -> int:
    """Returns the number of whole hours since 1970, UTC."""
    return int(at.timestamp()) // 3600


def bucket_index(bucket: str) -> int:
    """Returns the `hour_index` of an hour's bucket."""
    return hour_index(datetime.strptime(bucket, "%Y%m%d%H").replace(tzinfo=timezone.utc))


def hour_start(index: int) -> datetime:
    """Returns the start of the hour with that `hour_index`."""
    return datetime.fromtimestamp(index * 3600, timezone.utc)


def day_start(day: date) -> datetime:
    """Returns the local start of the day."""
    zone = get_current_timezone()
    # By way of UTC, because a day starts at one o'clock where clocks skip midnight.
    return datetime.combine(day, time(), zone).astimezone(timezone.utc).astimezone(zone)


Period = Literal["hour", "day", "week", "month"]


def period_starts(since: datetime, until: datetime, *, by: Period) -> list[datetime]:
    """Returns the local starts of `since`'s period and of all later ones before `until`. Raises
    ValueError for an unknown period.
    """
    if by not in get_args(Period):
        known_periods = ", ".join(get_args(Period))
        raise ValueError(f"There is no period {by!r}; choose one of: {known_periods}.")
    zone = get_current_timezone()
    if by == "hour":
        starts = _hour_starts(since)
    else:
        starts = _day_starts(since.astimezone(zone).date(), by=by)
    before_end = itertools.takewhile(lambda start: start < until, starts)
    return [start.astimezone(zone) for start in before_end]


def _hour_starts(since: datetime) -> Iterator[datetime]:
    """Yields the starts of the hour and of all later ones."""
    start = since.astimezone(timezone.utc).replace(minute=0, second=0, microsecond=0)
    while True:
        yield start
        start += HOUR


def _day_starts(day: date, *, by: Period) -> Iterator[datetime]:
    """Yields the local starts of the day's period, which is a day, week or month, and of all later
    ones.
    """
    day -= DAY * _days_since_start(day, by=by)
    while True:
        if _days_since_start(day, by=by) == 0:
            yield day_start(day)
        day += DAY


def _days_since_start(day: date, *, by: Period) -> int:
    """Returns the number of days between the start of the day's period and the day."""
    if by == "week":
        return day.weekday()
    if by == "month":
        return day.day - 1
    return 0
