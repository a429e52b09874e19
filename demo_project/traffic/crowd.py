"""What the visitors share: the rate, the time of the next post, and the end."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush

PUBLISH_EVERY = 1_200.0  # seconds: three stories an hour
REPLY_EVERY = 120.0  # seconds
FIRST_AFTER = 45.0  # seconds until the first of each, so that whoever watches sees a dot come
PATIENCE = (1, 2, 3, 5, 8)  # seconds between attempts to reach a server that is gone


@dataclass
class Crowd:
    """Shared by all visitors' threads."""

    visitors: int
    rate: float  # requests per second, of all together
    stop: threading.Event = field(default_factory=threading.Event)
    is_lost: bool = False
    seen: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _later: list[tuple[float, int, Callable[[], object]]] = field(
        default_factory=list
    )  # by time and number
    _put_off: int = 0
    _next_request: float = 0.0
    _next_post: float = field(default_factory=lambda: time.monotonic() + FIRST_AFTER)

    _next_reply: float = field(default_factory=lambda: time.monotonic() + FIRST_AFTER)

    def __str__(self) -> str:
        with self._lock:
            return ", ".join(f"{count} {what}" for what, count in self.seen.most_common())

    @property
    def think_time(self) -> float:
        """Mean seconds between two pages of one visitor, so that all together keep the rate."""
        return self.visitors / self.rate

    def pause(self, seconds: float) -> bool:
        """Waits; True if the end came meanwhile."""
        return self.stop.wait(seconds)

    def take_turn(self) -> bool:
        """Waits for a slot under the rate; True if the end came meanwhile."""
        with self._lock:
            slot = max(self._next_request, time.monotonic())
            self._next_request = slot + 1 / self.rate
        return self.pause(slot - time.monotonic())

    def is_time_to_publish(self) -> bool:
        """True for one visitor every PUBLISH_EVERY seconds."""
        with self._lock:
            if time.monotonic() < self._next_post:
                return False
            self._next_post = time.monotonic() + PUBLISH_EVERY
            return True

    def is_time_to_reply(self) -> bool:
        """True for one visitor every REPLY_EVERY seconds."""
        with self._lock:
            if time.monotonic() < self._next_reply:
                return False
            self._next_reply = time.monotonic() + REPLY_EVERY
            return True

    def put_off(self, what: Callable[[], object], *, seconds: float) -> None:
        """Leaves something to whoever comes by once the time is over, so that nobody waits for it."""
        with self._lock:
            self._put_off += 1
            heappush(self._later, (time.monotonic() + seconds, self._put_off, what))

    def do_what_is_due(self) -> None:
        """Does what was put off until now."""
        while what := self._due():
            what()

    def _due(self) -> Callable[[], object] | None:
        with self._lock:
            is_due = self._later and self._later[0][0] <= time.monotonic()
            return heappop(self._later)[2] if is_due else None

    def note(self, what: str) -> None:
        with self._lock:
            self.seen[what] += 1

    def give_up(self) -> None:
        """The server stayed away: everybody goes home."""
        self.is_lost = True
        self.stop.set()
