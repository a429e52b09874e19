"""Findings of the doctor, and how sizes, durations and failed servers are worded."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from django.db import Error

from readtrack.conf import conf
from readtrack.store import server
from readtrack.store.connection import AuthenticationError, RedisError, UnusableError, address
from readtrack.store.flushes import LayoutError
from readtrack.store.keys import DAY, HOUR, MINUTE

Level = Literal["ok", "note", "warning", "error"]

UNITS = ((DAY, "days"), (HOUR, "h"), (MINUTE, "min"), (1, "s"))
FLUSH = "manage.py readtrack flush"


class Finding(NamedTuple):
    """One result of an examination. The hint says what to do."""

    level: Level
    message: str
    hint: str = ""
    name: str = ""  # of the examination


class Context(NamedTuple):
    """Input of every examination."""

    sample: int  # most totals to compare with SQL
    info: Callable[[], Mapping[str, Any]] = server.info
    configured: Callable[[str], str | None] = server.configured


def duration(time: timedelta) -> str:
    """Returns `75 s`, `3 h`: rounded down, in the largest unit of which there are two or more."""
    seconds = max(0, round(time.total_seconds()))
    length, unit = next((pair for pair in UNITS if seconds >= 2 * pair[0]), UNITS[-1])
    return f"{seconds // length} {unit}"


def size(count: float) -> str:
    """Returns a number of bytes as `89 B`, `12.0 KB`, `2.1 GB`."""
    for unit in ("B", "KB", "MB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} GB"


def counted(count: int, noun: str) -> str:
    """Returns `1 key`, `2,000 keys`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def failure(error: RedisError | Error) -> Finding:
    """Returns the finding for a cache that is no Redis, or a server that does not answer or refuses to."""
    if isinstance(error, LayoutError):
        return Finding("error", str(error), "Do it once no process has the old number any more.")
    cache = f"CACHES['{conf.CACHE}']"
    if isinstance(error, UnusableError):
        hint = "It has to be of django-redis, with a LOCATION such as redis://127.0.0.1:6379/0. Run: manage.py check"
        return Finding("error", f"{cache} names no Redis: {error}", hint)
    if isinstance(error, Error):
        hint = "Is it running, and does DATABASES point at it? If a table is missing, run: manage.py migrate"
        return Finding("error", f"The database failed: {str(error).strip()}", hint)
    if isinstance(error, AuthenticationError):
        hint = f"Correct the user or the password in {cache}."
    else:
        hint = f"{cache} points at {address()}. Is Redis running there, and can this machine reach it?"
    return Finding("error", f"Redis failed: {type(error).__name__}: {error}", hint)
