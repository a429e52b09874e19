"""Buckets: slots of a minute, hour or day, by name (as in keys), by number and by start.

Minutes are those of UTC. Hours begin when the clocks of TIME_ZONE show a full hour, so that each
day of a zone with half or quarter hours consists of whole hours, too.
"""

from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from django.utils.timezone import get_default_timezone, make_aware

WEEK = timedelta(days=7)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
# The moment at which the offset of a zone from UTC is looked up. It never changes, because hours
# that are stored would then mean other times.
OFFSET_OF = datetime(2026, 7, 1, tzinfo=timezone.utc)
SECONDS = 3600  # of an hour


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


def hour_bucket(at: datetime) -> str:
    """Returns `2026112009`, the bucket of the hour of `at`."""
    return bucket_of_hour(hour_index(at))


@lru_cache(maxsize=128)
def bucket_of_hour(index: int) -> str:
    """Returns the bucket of the hour with that `hour_index`."""
    return datetime.fromtimestamp(index * SECONDS, timezone.utc).strftime("%Y%m%d%H")


def day_bucket(day: date) -> str:
    """Returns `20261120`, the bucket of that day, which may be a time (UTC)."""
    return day.strftime("%Y%m%d")


def minute_buckets(count: int, *, until: datetime) -> list[str]:
    """Returns the last `count` minutes, oldest first, the running one last."""
    last = until.replace(second=0, microsecond=0)
    return [minute_bucket(last - MINUTE * back) for back in range(count - 1, -1, -1)]


def time_of(microseconds: int) -> datetime:
    """Returns a time of Redis's clock (µs since 1970) as aware UTC."""
    return datetime.fromtimestamp(microseconds / 1_000_000, timezone.utc)


def hour_shift() -> int:
    """Returns by how much earlier than those of UTC the hours of TIME_ZONE begin (s): 1800 for a
    zone that is 5:30 hours ahead of UTC, and 0 for most zones.
    """
    return _shift_of(get_default_timezone())


@lru_cache(maxsize=16)
def _shift_of(zone: tzinfo) -> int:
    offset = OFFSET_OF.astimezone(zone).utcoffset() or timedelta()
    return int(offset.total_seconds()) % SECONDS


def hour_index(at: datetime) -> int:
    """Returns the number of whole hours since 1970. They begin with a full hour of TIME_ZONE."""
    return (int(at.timestamp()) + hour_shift()) // SECONDS


def hour_of(microseconds: int) -> int:
    """Returns the hour (since 1970) of a time of Redis's clock (µs)."""
    return hour_index(time_of(microseconds))


def bucket_index(bucket: str) -> int:
    """Returns the hour (since 1970) with that bucket, such as `2026112009`."""
    time = datetime.strptime(bucket, "%Y%m%d%H").replace(tzinfo=timezone.utc)
    return int(time.timestamp()) // SECONDS


def hour_start(index: int) -> datetime:
    """Returns the start of the hour with that `hour_index`."""
    return datetime.fromtimestamp(index * SECONDS - hour_shift(), timezone.utc)


def local_day(hour: int) -> date:
    """Returns the day of TIME_ZONE in which the hour (since 1970) begins."""
    return hour_start(hour).astimezone(get_default_timezone()).date()


def local_days(since: datetime, until: datetime) -> list[date]:
    """Returns the days of TIME_ZONE from that of `since` to that of `until`, oldest first.

    They are the days to which the hours of these times are counted.
    """
    first = local_day(hour_index(since))
    last = local_day(hour_index(until))
    return [first + DAY * number for number in range((last - first).days + 1)]


def local_day_bucket(at: datetime) -> str:
    """Returns `20261120`, the day of TIME_ZONE in which the hour of `at` begins."""
    return day_bucket(local_day(hour_index(at)))
