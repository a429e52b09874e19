"""The rate and the window of a live hit, by the times in a log instead of Redis's clock."""

from readtrack.conf import conf
from readtrack.hits.hit import Reason

LIMIT = 500_000  # entries of a generation: two of them take some 100 MB at most


class Recent:
    """What was seen lately, by generations: two dicts hold all of the last `life` seconds, and not much more."""

    def __init__(self, life: float, *, limit: int = LIMIT) -> None:
        self.life = life
        self.limit = limit
        self.forgotten = 0  # entries dropped before their time, for there were too many
        self._since = float("-inf")
        self._young: dict[int, tuple[float, int]] = {}
        self._old: dict[int, tuple[float, int]] = {}

    def get(self, name: int, at: float) -> tuple[float, int] | None:
        """When the thing's window began, and how often it was seen in it; None outside of one.

        Logs are written when a response ends, so a time may lie a little before one that was seen.
        """
        entry = self._young.get(name) or self._old.get(name)
        return entry if entry is not None and abs(at - entry[0]) < self.life else None

    def put(self, name: int, at: float, count: int = 1) -> None:
        """Keeps that the thing's window began then."""
        is_over = abs(at - self._since) >= self.life  # or another log, which began earlier
        if is_over or len(self._young) >= self.limit:
            self.forgotten += 0 if is_over else len(self._old)
            self._old, self._young, self._since = self._young, {}, at
        self._young[name] = (at, count)


class LogDeduplicator:
    """What record.lua decides with keys that expire."""

    def __init__(self, *, limit: int = LIMIT) -> None:
        self._rates = Recent(conf.RATE_WINDOW, limit=limit)
        self._views = Recent(conf.WINDOW, limit=limit)

    @property
    def forgotten(self) -> int:
        """How many visits were forgotten within their window: their reloads count as views."""
        return self._views.forgotten

    def refusal(self, visitor: str, subject: str, at: float) -> Reason | None:
        """Why this hit does not count; None when it does, and then its window has begun."""
        if conf.RATE_LIMIT and self._is_fast(hash(visitor), at):
            return "rate"
        view = hash((visitor, subject))  # 8 bytes for a pair: two in a million million are taken for one
        if self._views.get(view, at):
            return "repeat"
        self._views.put(view, at)
        return None

    def _is_fast(self, visitor: int, at: float) -> bool:
        started, count = self._rates.get(visitor, at) or (at, 0)
        self._rates.put(visitor, started, count + 1)
        return count + 1 > conf.RATE_LIMIT
