"""The usual views of models, and of the whole site, by hour and by day of the week."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, datetime

from django.db.models import Min
from django.utils.timezone import get_default_timezone

from readtrack import buckets, local_time
from readtrack.numbers.models import History
from readtrack.numbers.sql import thinning
from readtrack.numbers.sql.history import BASELINE
from readtrack.numbers.sql.period_gains import among, gains_statement, rows_of
from readtrack.numbers.sql.usual import HOURS_OF_WEEK, Bands, band_of, name_of_week
from readtrack.sql import databases
from readtrack.store import keys

WEEKS = 8  # that are looked at, up to yesterday
FEWEST = 4  # weeks without which nothing is usual


def slot_of(hour: int) -> int:
    """Returns the slot of the week of an hour (since 1970): 0 from Monday midnight in TIME_ZONE."""
    local = buckets.hour_start(hour).astimezone(get_default_timezone())
    return local.weekday() * 24 + local.hour


def slot_of_day(day: date) -> int:
    """Returns the slot of the week of a day."""
    return HOURS_OF_WEEK + day.weekday()


def first_hours(labels: Iterable[str]) -> dict[str, int]:
    """Returns the first hour (since 1970) of the history of each model that has one, by label."""
    columns = {f"{label}{tag}": label for label in labels for tag in keys.past_tags()}
    rows = databases.rows(History).filter(subject__in=[*columns], hour__gt=BASELINE).order_by()
    first: dict[str, int] = {}
    for column, hour in rows.values_list("subject").annotate(Min("hour")):
        label = columns[column]
        first[label] = min(hour, first.get(label, hour))
    return first


def bands_by_slot(first_hour_of: Mapping[str, int], *, at: datetime) -> dict[str, Bands]:
    """Returns the bands of each model, and of all models together, by name.

    `first_hour_of` has the first hour of each model's history, by label. Only whole days count that
    have their hours. The day on which a history begins is none.
    """
    if not first_hour_of:
        return {}
    today = local_time.local_day(buckets.hour_index(at))
    until = local_time.first_hour_of(today)  # because today is not compared with itself
    earliest = max(
        local_time.first_hour_of(today - WEEKS * buckets.WEEK), thinning.first_whole_hour(at=at)
    )
    bands: dict[str, Bands] = {}
    views_of_site = Counter[int]()
    site_hours = _hours(min(first_hour_of.values()), earliest, until)
    if not _is_enough(site_hours):
        return {}
    for label, first_hour in first_hour_of.items():
        views = _views_by_hour(label, since=earliest, until=until)
        views_of_site.update(views)
        hours = _hours(first_hour, earliest, until)
        if _is_enough(hours):
            bands[name_of_week(label)] = _bands(views, hours)
    bands[name_of_week()] = _bands(views_of_site, site_hours)
    return bands


def _hours(first_hour: int, earliest: int, until: int) -> range:
    """Returns the hours to look at, from the first whole day of a history on."""
    day_after_first = local_time.local_day(first_hour) + buckets.DAY
    return range(max(earliest, local_time.first_hour_of(day_after_first)), until)


def _is_enough(hours: range) -> bool:
    """Returns True if the hours, which begin and end with a day, make up FEWEST weeks."""
    if not hours:
        return False
    days = local_time.local_day(hours[-1]) - local_time.local_day(hours[0])
    return days + buckets.DAY >= FEWEST * buckets.WEEK


def _views_by_hour(label: str, *, since: int, until: int) -> Counter[int]:
    """Returns the views of a model by hour (since 1970)."""
    condition, parameters = among([f"{label}{tag}" for tag in keys.past_tags()])
    statement = gains_statement(condition, since=since, until=until, subject="''", slot="hour")
    return Counter({int(hour): int(views) for _, hour, views, _ in rows_of(statement, parameters)})


def _bands(views: Mapping[int, int], hours: range) -> Bands:
    """Returns the bands by slot. On a day when the clocks change, an hour is missing or there
    twice.
    """
    numbers: defaultdict[int, list[int]] = defaultdict(list)
    views_of_days = Counter[date]()
    for hour in hours:
        numbers[slot_of(hour)].append(views.get(hour, 0))
        views_of_days[local_time.local_day(hour)] += views.get(hour, 0)
    for day, views_of_day in views_of_days.items():
        numbers[slot_of_day(day)].append(views_of_day)
    return {slot: band_of(numbers_of_slot) for slot, numbers_of_slot in numbers.items()}
