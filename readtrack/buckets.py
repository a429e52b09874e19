"""Slots of time: the names that hours and minutes have in keys. All of them are UTC."""

from datetime import datetime, timedelta, timezone

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def now(at: datetime | None = None) -> datetime:
    """The given time, or the present, as aware UTC."""
    return (at or datetime.now(timezone.utc)).astimezone(timezone.utc)


def hour(at: datetime) -> str:
    """`2026112009` for any time in that hour; `at` is UTC."""
    return f"{at.year:04}{at.month:02}{at.day:02}{at.hour:02}"


def minute(at: datetime) -> str:
    """`202611200937` for any time in that minute; `at` is UTC."""
    return f"{hour(at)}{at.minute:02}"


def hours(count: int, *, until: datetime) -> list[datetime]:
    """The starts of the last `count` hours, oldest first, the running one last."""
    last = until.replace(minute=0, second=0, microsecond=0)
    return [last - HOUR * back for back in range(count - 1, -1, -1)]


def minutes(count: int, *, until: datetime) -> list[datetime]:
    """The starts of the last `count` minutes, oldest first, the running one last."""
    last = until.replace(second=0, microsecond=0)
    return [last - MINUTE * back for back in range(count - 1, -1, -1)]
