"""How the lines of logs are understood, and which of them may count: options of the command."""
# It imports nothing of Django, because a new process reads them before Django is set up.

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What an import was told about the lines of its logs."""

    form: str  # see `lines.parser`
    fields: tuple[tuple[str, str], ...]  # see `lines.parser`
    where: tuple[tuple[str, str], ...]  # see `lines.parser`
    is_decoded: bool  # see `lines.parser`
    hosts: tuple[str, ...]  # see `Hosts`
    since: datetime | None
    until: datetime | None
    count_robots: bool  # counts lines without a user agent, which may be those of robots

    @property
    def times(self) -> str:
        """The times between which lines are imported, as the record of an import keeps them."""
        if self.since is None and self.until is None:
            return ""
        return f"{self.since or ''}/{self.until or ''}"

    def is_outside(self, at: datetime) -> bool:
        """Returns True for a time before `since`, or not before `until`."""
        is_before = self.since is not None and at < self.since
        return is_before or (self.until is not None and at >= self.until)
