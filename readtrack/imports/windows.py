"""The rate limit and the window of a live hit, by the times in a log instead of Redis's clock."""

from readtrack.conf import conf
from readtrack.hits.hit import Reason

LIMIT = 500_000  # entries of a generation: two of them take some 100 MB at most
NEVER = (float("-inf"), 0)


class Recent:
    """Counts hits by name in windows of `life` seconds. Two generations of entries bound the memory."""

    def __init__(self, life: float, *, limit: int) -> None:
        self.life = life
        self.limit = limit
        self.forgotten = 0  # entries dropped within their window, because there were too many
        self._since = float("-inf")
        self._young: dict[int, tuple[float, int]] = {}
        self._old: dict[int, tuple[float, int]] = {}

    def hit(self, name: int, at: float) -> int:
        """Counts a hit at that time (seconds). Returns the number of hits in the window, which the first one begins.

        Servers write a line when its response ends, so a time may be a little before one that was seen.
        """
        for seen in (self._young, self._old):
            started, count = seen.get(name, NEVER)
            if abs(at - started) < self.life:
                seen[name] = (started, count + 1)
                return count + 1
        is_over = abs(at - self._since) >= self.life  # or another log, which began earlier
        if is_over or len(self._young) >= self.limit:
            self.forgotten += 0 if is_over else len(self._old)
            self._old, self._young, self._since = self._young, {}, at
        self._young[name] = (at, 1)
        return 1


class LogDeduplicator:
    """Decides for the lines of logs what record.lua decides for live hits."""

    def __init__(self, *, limit: int = LIMIT) -> None:
        self._rates = Recent(conf.RATE_WINDOW, limit=limit)
        self.views = Recent(conf.WINDOW, limit=limit)

    def refusal(self, visitor: str, subject: str, at: float) -> Reason | None:
        """Returns why a hit at that time (seconds) does not count; None if it counts."""
        if conf.RATE_LIMIT and self._rates.hit(hash(visitor), at) > conf.RATE_LIMIT:
            return "rate"
        # 8 bytes for a pair: two in a million million are taken for one.
        return "repeat" if self.views.hit(hash((visitor, subject)), at) > 1 else None
