"""What an examination finds."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from django.db import Error
from django.utils.translation import gettext, gettext_lazy, ngettext_lazy

from readtrack.conf import conf
from readtrack.store.connection import RedisError, UnusableError, address, is_refused

Level = Literal["ok", "note", "warning", "error"]

# What monitoring takes for fine, degraded and broken; a note needs nobody's attention.
STATUS: Mapping[Level, int] = {"ok": 0, "note": 0, "warning": 1, "error": 2}


class Finding(NamedTuple):
    """One thing that is as it should be, or not. The hint says what to do."""

    level: Level
    message: str
    hint: str = ""


class Named(NamedTuple):
    """A finding, and the name of the examination that it is of."""

    name: str
    level: Level
    message: str
    hint: str


class Order(NamedTuple):
    """What an examination is told: how much to look at, and the server's INFO ({} where it is not ours to ask)."""

    sample: int
    progress: Any  # called with a number of keys just measured
    info: Mapping[str, Any]


def status(found: Iterable[Named]) -> int:
    """The exit status for monitoring: 0 all well, 1 warnings, 2 errors."""
    return max((STATUS[finding.level] for finding in found), default=0)


UNITS = (
    (86_400, ngettext_lazy("%(count)s day", "%(count)s days", "count")),
    (3600, gettext_lazy("%(count)s h")),
    (60, gettext_lazy("%(count)s min")),
    (1, gettext_lazy("%(count)s s")),
)


def span(time: timedelta) -> str:
    """`75 s`, `3 h`: as much as one has to know."""
    seconds = max(0, round(time.total_seconds()))
    size, unit = next((pair for pair in UNITS if seconds >= 2 * pair[0]), UNITS[-1])
    return str(unit % {"count": seconds // size})


def run(command: str) -> str:
    """What to type."""
    return gettext("Run: %(command)s") % {"command": command}


def misconfigured(problem: str) -> tuple[str, str]:
    """Message and hint for settings that name no Redis."""
    message = gettext("CACHES['%(alias)s'] names no Redis: %(problem)s")
    hint = gettext("It has to be a django-redis cache with a LOCATION such as redis://127.0.0.1:6379/0.")
    return message % {"alias": conf.CACHE, "problem": problem}, f"{hint} {run('manage.py check')}"


def redis_failed(error: RedisError) -> tuple[str, str]:
    """Message and hint for a Redis that does not answer, or not us."""
    if isinstance(error, UnusableError):
        return misconfigured(str(error))
    message = gettext("Redis failed: %(error)s") % {"error": f"{type(error).__name__}: {error}"}
    if is_refused(error):
        hint = gettext("Look at the user and the password in CACHES['%(alias)s'].")
    else:
        hint = gettext(
            "CACHES['%(alias)s'] points at %(address)s. Is Redis running there, and may this machine reach it?"
        )
    return message, hint % {"alias": conf.CACHE, "address": address()}


def database_failed(error: Error) -> tuple[str, str]:
    """Message and hint for a database that does not answer."""
    message = gettext("The database failed: %(error)s") % {"error": str(error).strip()}
    return message, gettext("Is it running, and does DATABASES point at it?")
