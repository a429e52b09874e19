"""What an import did: how many lines counted, and why the others did not."""

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

PATTERNS = 1_000  # of paths that did not resolve, told apart
LONGEST = 80  # characters of such a pattern
OTHERS = "(others)"

_NUMBERS = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9]+")


@dataclass(slots=True)
class Report:
    """Of `lines`, so many `counted`; every other one is in one of the rest."""

    lines: int = 0
    counted: int = 0
    known: int = 0  # imported before
    malformed: int = 0
    outside: int = 0  # of the times that were asked for, or inside another piece of the same log
    gone: int = 0  # the object of the path does not exist
    skipped: Counter[str] = field(default_factory=Counter)  # by reason, as of a live hit
    unresolved: Counter[str] = field(default_factory=Counter)  # by pattern of path
    since: datetime | None = None
    until: datetime | None = None
    notes: list[str] = field(default_factory=list)

    def see(self, at: datetime) -> None:
        """Widens the report's times."""
        self.since = min(at, self.since or at)
        self.until = max(at, self.until or at)

    def miss(self, path: str) -> None:
        """A path whose view does not say what it shows."""
        pattern = _pattern(path)
        self.unresolved[pattern if pattern in self.unresolved or len(self.unresolved) < PATTERNS else OTHERS] += 1


@lru_cache(maxsize=1024)
def _pattern(path: str) -> str:
    """The path without its numbers. A visitor chose its characters, and a terminal obeys some."""
    return "".join(char if char.isprintable() else "?" for char in _NUMBERS.sub("…", path)[:LONGEST])
