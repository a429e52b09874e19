"""What an examination finds."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

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
