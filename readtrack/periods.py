"""Hours, days, weeks and months as people there count them: in the current time zone, over changes of the clock."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from datetime import timezone as fixed
from itertools import takewhile
from typing import Literal, get_args

from django.utils import timezone

Period = Literal["hour", "day", "week", "month"]


def starts(since: datetime, until: datetime, *, by: Period) -> list[datetime]:
    """The starts of all periods that `since` to `until` (exclusive) touches, oldest first, in local time.

    Raises ValueError for another period.
    """
    if by not in get_args(Period):
        raise ValueError(f"There is no period {by!r}; choose one of: {', '.join(get_args(Period))}.")
    zone = timezone.get_current_timezone()
    if by == "hour":
        first = since.astimezone(fixed.utc).replace(minute=0, second=0, microsecond=0)
        count = max(0, -((first - until) // timedelta(hours=1)))
        return [(first + timedelta(hours=hour)).astimezone(zone) for hour in range(count)]
    # By way of UTC: where clocks skip midnight, the day starts at one.
    days = _days(since.astimezone(zone).date(), by)
    midnights = (datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(fixed.utc) for day in days)
    return [start.astimezone(zone) for start in takewhile(lambda start: start < until, midnights)]


def _days(day: date, by: Period) -> Iterator[date]:
    """The first days of the period that holds the day, and of all that follow."""
    if by == "week":
        day -= timedelta(days=day.weekday())
    if by == "month":
        day = day.replace(day=1)
    while True:
        yield day
        if by == "month":
            day = (day + timedelta(days=31)).replace(day=1)
        else:
            day += timedelta(days=7 if by == "week" else 1)
