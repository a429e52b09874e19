"""Findings of the doctor, and how sizes, durations and failed servers are worded."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from django.db import Error

from readtrack.checks.setup import texts
from readtrack.conf import conf
from readtrack.store import server
from readtrack.store.connection import AuthenticationError, RedisError, UnusableError, address
from readtrack.store.flushes import LayoutError
from readtrack.store.keys import DAY, HOUR, MINUTE

UNITS = ((DAY, "days"), (HOUR, "h"), (MINUTE, "min"), (1, "s"))


class Finding(NamedTuple):
    """One result of an examination. The hint says what to do."""

    level: str  # ok, note, warning or error
    message: str
    hint: str
    name: str  # of the examination


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


def finding(name: str, *words: Any) -> Finding:
    """Returns the finding of that name in messages.ini, `examination.result`, with its words."""
    section = texts(name, "readtrack.doctor")
    message, hint = (section.get(key, "").format(*words) for key in ("message", "hint"))
    return Finding(section["level"], message, hint, name.partition(".")[0])


def failure(error: RedisError | Error) -> Finding:
    """Returns the finding for a cache that is no Redis, or a server that does not answer or refuses to."""
    kinds = {LayoutError: "layout", UnusableError: "unusable", Error: "database", AuthenticationError: "password"}
    kind = next((kind for of, kind in kinds.items() if isinstance(error, of)), "redis")
    where = address() if kind == "redis" else ""
    return finding(f"failure.{kind}", str(error).strip(), conf.CACHE, type(error).__name__, where)
