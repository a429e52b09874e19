"""Views of the past, as a log has them, and what a plain walk through the same times finds."""

from collections.abc import Callable, Iterable
from datetime import date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management import call_command

from readtrack.flush.run import flush
from tests.imports import weblogs
from tests.site.models import Post
from tests.support import factories


class Journal:
    """A post, and the time of each of its views. Each view is of a visitor of its own."""

    def __init__(self, path: Path, times: Iterable[datetime]) -> None:
        self.post: Post = factories.post()
        self.times = sorted(times)
        lines = []
        for number, at in enumerate(self.times):
            address = f"10.{number // 40_000}.{number // 200 % 200}.{number % 200}"
            lines.append(weblogs.line(f"/posts/{self.post.pk}/", address=address, start=at))
        call_command("readtrack", "import", weblogs.write(path / "access.log", lines))
        flush()

    def count(self, condition: Callable[[datetime], Any]) -> int:
        """Returns the number of views at times for which the condition holds."""
        return sum(map(bool, map(condition, self.times)))

    def on(self, *days: date, zone: str) -> int:
        """Returns the number of views on these days of the zone."""
        return self.count(lambda at: at.astimezone(ZoneInfo(zone)).date() in days)
