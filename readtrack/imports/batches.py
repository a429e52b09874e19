"""What one part of a log or table adds to the counts, put together before it is applied at once."""

from collections import Counter, defaultdict
from datetime import datetime

VIEWS = 2_000  # in a batch: a script that applies more would keep the server from its pages


class Batch:
    """Views by subject, by subject and hour, and who the visitors were."""

    def __init__(self) -> None:
        self.views: Counter[str] = Counter()
        self.hours: Counter[tuple[str, datetime]] = Counter()
        self.visitors: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self.size = 0

    @property
    def is_full(self) -> bool:
        """Whether it has to be applied before more comes."""
        return self.size >= VIEWS

    def add(self, token: str, *, visitor: str, at: datetime) -> None:
        """One view."""
        self.views[token] += 1
        self.hours[token, at.replace(minute=0, second=0, microsecond=0)] += 1
        self.visitors[token][visitor] = None
        self.size += 1
