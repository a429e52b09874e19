"""The usual views of models, and of the whole site, by hour and by day of the week.

A day is judged by the days of its weekday in the eight weeks before it, and an hour by the same
hour of these days: so it is never judged by itself, nor by what came later, and it has the same
band in each period that it is in. Alerts, and what rises now, need no more than the band of the
coming week.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import NamedTuple

from django.db.models import Min
from django.utils.timezone import get_default_timezone

from readtrack import buckets
from readtrack.numbers import local_time
from readtrack.numbers.models import History
from readtrack.numbers.sql import thinning
from readtrack.numbers.sql.history import BASELINE
from readtrack.numbers.sql.period_gains import among, gains_statement, rows_of
from readtrack.numbers.sql.usual import (
    HOURS_OF_WEEK,
    Band,
    Bands,
    Past,
    band_of,
    name_of_past,
    name_of_week,
)
from readtrack.sql import databases
from readtrack.store import keys

WEEKS = 8  # that a day is judged by, those before it
FEWEST = 4  # weeks without which nothing is usual
WEEKS_JUDGED = 8  # up to now; the days before them have no band


def slot_of(hour: int) -> int:
    """Returns the slot of the week of an hour (since 1970): 0 from Monday midnight in TIME_ZONE."""
    local = buckets.hour_start(hour).astimezone(get_default_timezone())
    return local.weekday() * 24 + local.hour


def slot_of_day(day: date) -> int:
    """Returns the slot of the week of a day."""
    return HOURS_OF_WEEK + day.weekday()


def hours_of_day(day: date) -> range:
    """Returns the hours (since 1970) that are counted to a day."""
    return range(local_time.first_hour_of(day), local_time.first_hour_of(day + buckets.DAY))


def first_hours(labels: Iterable[str]) -> dict[str, int]:
    """Returns the first hour (since 1970) of the history of each model that has one, by label."""
    columns = {f"{label}{tag}": label for label in labels for tag in keys.past_tags()}
    rows = databases.rows(History).filter(subject__in=[*columns], hour__gt=BASELINE).order_by()
    first: dict[str, int] = {}
    for column, hour in rows.values_list("subject").annotate(Min("hour")):
        label = columns[column]
        first[label] = min(hour, first.get(label, hour))
    return first


class Weeks(NamedTuple):
    """The bands of the coming week by slot, and the past views that each day is judged by; by the
    names of both.
    """

    bands: Mapping[str, Bands] = {}
    past: Mapping[str, Past] = {}


class WeeksBefore:
    """The bands of days and hours, each by the weeks before it."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self._views_of_days: dict[date, Mapping[int, Sequence[int]]] = {}

    def of_day(self, day: date) -> Band | None:
        """Returns the band of a day; None if too few weeks before it are known."""
        days = [self._past.of(hours_of_day(earlier)) for earlier in _days_before(day)]
        return _band_if_enough([sum(views) for views in days if views])

    def of_hour(self, hour: int) -> Band | None:
        """Returns the band of an hour (since 1970); None if too few weeks before its day are
        known.
        """
        slot = slot_of(hour)
        numbers: list[int] = []
        for earlier in _days_before(buckets.local_day(hour)):
            numbers += self._views_of_day(earlier).get(slot, ())
        return _band_if_enough(numbers)

    def _views_of_day(self, day: date) -> Mapping[int, Sequence[int]]:
        """Returns the views of a day by slot, if they are known. Where clocks change, an hour is
        missing or there twice.
        """
        known = self._views_of_days.get(day)
        if known is not None:
            return known
        hours = hours_of_day(day)
        views_by_slot: defaultdict[int, list[int]] = defaultdict(list)
        for hour, views in zip(hours, self._past.of(hours), strict=False):
            views_by_slot[slot_of(hour)].append(views)
        self._views_of_days[day] = views_by_slot
        return views_by_slot


def _days_before(day: date) -> Sequence[date]:
    """Returns the days that a day is judged by."""
    return [day - weeks * buckets.WEEK for weeks in range(1, WEEKS + 1)]


def _band_if_enough(numbers: Sequence[int]) -> Band | None:
    """Returns the band of the numbers; None if there are fewer than FEWEST."""
    return band_of(numbers) if len(numbers) >= FEWEST else None


def weeks_of(first_hour_of: Mapping[str, int], *, at: datetime) -> Weeks:
    """Returns what is usual for each model, and for all models together.

    `first_hour_of` has the first hour of each model's history, by label. Only whole days count that
    have their hours. The day on which a history begins is none.
    """
    if not first_hour_of:
        return Weeks()
    today = buckets.local_day(buckets.hour_index(at))
    until = local_time.first_hour_of(today)  # because today is not compared with itself
    since = local_time.first_hour_of(today - WEEKS * buckets.WEEK)
    earliest = max(
        local_time.first_hour_of(today - (WEEKS + WEEKS_JUDGED) * buckets.WEEK),
        thinning.first_whole_hour(at=at),
    )
    bands: dict[str, Bands] = {}
    past: dict[str, Past] = {}
    views_of_site = Counter[int]()
    site_hours = _hours(min(first_hour_of.values()), earliest, until)
    if not _is_enough(site_hours):
        return Weeks()
    for label, first_hour in first_hour_of.items():
        views = _views_by_hour(label, since=earliest, until=until)
        views_of_site.update(views)
        hours = _hours(first_hour, earliest, until)
        if _is_enough(hours):
            bands[name_of_week(label)] = _bands(views, _since(hours, since))
            past[name_of_past(label)] = _past(views, hours)
    bands[name_of_week()] = _bands(views_of_site, _since(site_hours, since))
    past[name_of_past()] = _past(views_of_site, site_hours)
    return Weeks(bands, past)


def _since(hours: range, since: int) -> range:
    """Returns those of the hours that are not before `since`."""
    return range(max(since, hours.start), hours.stop)


def _past(views: Mapping[int, int], hours: range) -> Past:
    """Returns the views in each of the hours."""
    return Past(hours.start, [views.get(hour, 0) for hour in hours])


def _hours(first_hour: int, earliest: int, until: int) -> range:
    """Returns the hours to look at, from the first whole day of a history on."""
    day_after_first = buckets.local_day(first_hour) + buckets.DAY
    return range(max(earliest, local_time.first_hour_of(day_after_first)), until)


def _is_enough(hours: range) -> bool:
    """Returns True if the hours, which begin and end with a day, make up FEWEST weeks."""
    if not hours:
        return False
    days = buckets.local_day(hours[-1]) - buckets.local_day(hours[0])
    return days + buckets.DAY >= FEWEST * buckets.WEEK


def _views_by_hour(label: str, *, since: int, until: int) -> Counter[int]:
    """Returns the views of a model by hour (since 1970)."""
    condition, parameters = among([f"{label}{tag}" for tag in keys.past_tags()])
    statement = gains_statement(condition, since=since, until=until, subject="''", slot="hour")
    return Counter({int(hour): int(views) for _, hour, views in rows_of(statement, parameters)})


def _bands(views: Mapping[int, int], hours: range) -> Bands:
    """Returns the bands by slot. On a day when the clocks change, an hour is missing or there
    twice.
    """
    numbers: defaultdict[int, list[int]] = defaultdict(list)
    views_of_days = Counter[date]()
    for hour in hours:
        numbers[slot_of(hour)].append(views.get(hour, 0))
        views_of_days[buckets.local_day(hour)] += views.get(hour, 0)
    for day, views_of_day in views_of_days.items():
        numbers[slot_of_day(day)].append(views_of_day)
    return {slot: band_of(numbers_of_slot) for slot, numbers_of_slot in numbers.items()}
