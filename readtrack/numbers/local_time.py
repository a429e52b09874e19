"""Local time: the days, weeks, months and years of a time zone, as moments and as hours of history.

All arithmetic with local times is here; only to which day an hour is counted is in `buckets`. Every
moment that a function returns is aware UTC: Python adds to a local time, and compares two local
times of one zone, as if its clock never changed. Pages and answers make local times of them last of
all, to show them.
"""

import itertools
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any, Literal, get_args

from django.utils.timezone import get_current_timezone, get_default_timezone

from readtrack.buckets import DAY, HOUR, WEEK, hour_index, hour_start, local_day, now

FIRST_DAY = date(1990, 1, 1)  # the earliest day of which numbers are asked
MOMENT = timedelta(microseconds=1)  # the shortest time: the one before an exclusive end
MIDNIGHT = time()
YEAR_OF_WEEKS = 52 * WEEK  # after which a day has the same weekday

Period = Literal["hour", "day", "week", "month"]


def day_of(at: datetime, *, zone: tzinfo | None = None) -> date:
    """Returns the day of a moment in the zone, by default the current time zone."""
    return at.astimezone(zone or get_current_timezone()).date()


def last_day_of(since: datetime, until: datetime, *, zone: tzinfo | None = None) -> date:
    """Returns the day of the last moment of a period, which is never before its first day."""
    return max(day_of(since, zone=zone), day_of(until - MOMENT, zone=zone))


def day_start(day: date, *, zone: tzinfo | None = None) -> datetime:
    """Returns the moment at which the day begins in the zone, by default the current time zone.

    Where clocks skip midnight it is their first moment after it. A day that a zone has skipped
    altogether begins, and ends, with the day after it.
    """
    return _day_start(day, zone or get_current_timezone())


@lru_cache(maxsize=8192)  # some years of days
def _day_start(day: date, zone: tzinfo) -> datetime:
    """Returns what `day_start` does, for a zone that is given."""
    start = at_clock(day, MIDNIGHT, zone=zone)
    second_midnight = at_clock(day, MIDNIGHT, zone=zone, fold=1)
    # Where clocks go back from 0:01 to 23:01, the day before goes on after the first midnight.
    if second_midnight > start and day_of(second_midnight - MOMENT, zone=zone) < day:
        return second_midnight
    return start


def at_clock(
    day: date, clock: time, *, zone: tzinfo | None = None, fold: Literal[0, 1] = 0
) -> datetime:
    """Returns the moment of the day at which the clocks of the zone show that time.

    Where they skip the time it is their first moment after it. Where they show it twice, `fold`
    chooses the first or the second time.
    """
    zone = zone or get_current_timezone()
    wall = datetime.combine(day, clock, zone)
    at = wall.replace(fold=fold).astimezone(timezone.utc)
    if at.astimezone(zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
        return at
    # The two offsets of a skipped time are those after and before the clocks change.
    earlier = wall.replace(fold=1).astimezone(timezone.utc)
    later = wall.replace(fold=0).astimezone(timezone.utc)
    return _change_of_clocks(earlier, later, zone)


def same_clock(at: datetime, *, day: date, zone: tzinfo | None = None) -> datetime:
    """Returns the moment of another day at which the clocks of the zone show the same time."""
    local = at.astimezone(zone or get_current_timezone())
    fold: Any = local.fold  # 0 or 1, an int in the stubs
    return at_clock(day, local.time(), zone=zone, fold=fold)


def is_same_clock(at: datetime, other_at: datetime, *, zone: tzinfo | None = None) -> bool:
    """Returns True if the clocks of the zone show the same time at both moments."""
    zone = zone or get_current_timezone()
    return at.astimezone(zone).time() == other_at.astimezone(zone).time()


def _change_of_clocks(since: datetime, until: datetime, zone: tzinfo) -> datetime:
    """Returns the moment between the two at which the zone changes its clocks.

    Clocks change at a whole second.
    """
    before = int(since.timestamp())
    after = int(until.timestamp())
    old_offset = since.astimezone(zone).utcoffset()
    while after - before > 1:
        middle = (before + after) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == old_offset:
            before = middle
        else:
            after = middle
    return datetime.fromtimestamp(after, timezone.utc)


def moment(day_or_time: date) -> datetime:
    """Returns the time (a naive one is of TIME_ZONE), or the start of the day in TIME_ZONE."""
    if isinstance(day_or_time, datetime):
        return now(day_or_time)
    return day_start(day_or_time, zone=get_default_timezone())


def first_hour_since(day_or_time: date) -> int:
    """Returns the first hour (since 1970) of what is asked for since a day of TIME_ZONE or a time.

    It is the hour in which the time lies, unless a day begins at that time: the hour may have
    begun on the day before.
    """
    at = moment(day_or_time)
    zone = get_default_timezone()
    if at == day_start(day_of(at, zone=zone), zone=zone):
        return first_hour_from(at)
    return hour_index(at)


def first_hour_from(at: datetime) -> int:
    """Returns the first hour of history (since 1970) that begins at this moment or later."""
    return hour_index(at + HOUR - MOMENT)


def hours_between(since: datetime, until: datetime) -> range:
    """Returns the hours (since 1970) that begin in the period. `until` is exclusive.

    So an hour is in one of two periods that follow each other, also where they meet within it.
    """
    first = first_hour_from(since)
    return range(first, max(first, first_hour_from(until)))


def first_hour_of(day: date) -> int:
    """Returns the first hour (since 1970) that `local_day` counts to the day."""
    return first_hour_from(day_start(day, zone=get_default_timezone()))


def today() -> date:
    """Returns the day of TIME_ZONE to which views of this moment are counted."""
    return local_day(hour_index(now()))


def period_starts(since: datetime, until: datetime, *, by: Period) -> list[datetime]:
    """Returns the starts of `since`'s period in the current time zone and of all later ones before
    `until`. Raises ValueError for an unknown period.
    """
    if by not in get_args(Period):
        known_periods = ", ".join(get_args(Period))
        raise ValueError(f"There is no period {by!r}; choose one of: {known_periods}.")
    if by == "hour":
        starts = _hour_starts(hour_index(since))
    else:
        starts = _starts_from(first_day(day_of(since), by=by), by=by)
    return [*itertools.takewhile(lambda start: start < until, starts)]


def _hour_starts(hour: int) -> Iterator[datetime]:
    """Yields the starts of the hour and of all later ones."""
    for later_hour in itertools.count(hour):
        yield hour_start(later_hour)


def _starts_from(day: date, *, by: Period) -> Iterator[datetime]:
    """Yields the start of the day, week or month that begins with `day`, then those of all later
    ones.
    """
    start = day_start(day)
    while True:
        day = _next(day, by=by)
        next_start = day_start(day)
        if next_start > start:  # otherwise the zone has skipped the day
            yield start
        start = next_start


def first_day(day: date, *, by: Period) -> date:
    """Returns the first day of the day's week or month; the day itself for shorter periods."""
    if by == "week":
        return day - DAY * day.weekday()
    if by == "month":
        return day.replace(day=1)
    return day


def _next(day: date, *, by: Period) -> date:
    """Returns the first day of the next period."""
    if by == "week":
        return day + WEEK
    if by == "month":
        return month_after(day)
    return day + DAY


def month_after(day: date) -> date:
    """Returns the first day of the month after that of the day."""
    return (day.replace(day=1) + 31 * DAY).replace(day=1)


def last_of_month(day: date) -> date:
    """Returns the last day of the month of the day."""
    return month_after(day) - DAY


def month_before(day: date) -> date:
    """Returns the first day of the month before that of the day."""
    return (day.replace(day=1) - DAY).replace(day=1)


def year_before(day: date) -> date:
    """Returns the same day a year ago; the 28th of February for the 29th."""
    if (day.month, day.day) == (2, 29):
        day -= DAY
    return day.replace(year=day.year - 1)
