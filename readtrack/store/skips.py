"""Skips: hits that did not count, by hour and reason."""

import atexit
import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from threading import Lock, Timer
from typing import Any

from readtrack import buckets
from readtrack.hits.hit import REASONS, Reason
from readtrack.store import keys, scripts
from readtrack.store.circuit import fail_open
from readtrack.store.connection import connect
from readtrack.store.scripts import Call

LIFE = 49 * 3600  # seconds that an hour's skips are kept after the last one
HOURS = 48  # hours of skips that wait for a Redis that is gone; older ones are given up
INTERVAL = 1.0  # seconds between two portions
PATIENCE = 5.0  # seconds that a portion waits for a hit to go along with, at most

Skips = Counter[tuple[str, Reason]]  # by hour and reason


class Tally:
    """What this process has counted and not yet told Redis.

    A robot's hit must not cost more than a person's, and robots come in floods. So skips are added up here,
    and at most once a second go along with the next recorded view, or alone where nobody comes but robots.
    Where nobody comes at all, a thread that lives for those few seconds sends them, or the end of the process
    does. What Redis did not take is kept for the next hit. Lost is what a killed process still had; a portion
    whose answer was lost on the way is sent again, and may then be counted twice.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = Lock()
        self._timer: Timer | None = None
        self.clear()

    def _own(self) -> None:
        """After a fork begins at nothing: what the parent has counted is the parent's to tell."""
        if self._process != os.getpid():
            self._process, self._lock = os.getpid(), Lock()
            self._timer = None  # a fork takes no threads along
            self.clear()

    def clear(self) -> None:
        """Forgets everything."""
        if self._timer:
            self._timer.cancel()
        self._timer = None
        self._skips: Skips = Counter()
        self._sent = -INTERVAL

    def add(self, reasons: Iterable[Reason], *, at: datetime) -> None:
        """Counts a skip of each reason."""
        self._own()
        hour = buckets.hour_bucket(at)
        with self._lock:
            self._skips.update((hour, reason) for reason in reasons)
            while len(self._skips) > HOURS * len(REASONS):
                del self._skips[min(self._skips)]
            self._wait()

    def _wait(self) -> None:
        if self._timer is None or not self._timer.is_alive():
            self._timer = Timer(PATIENCE, self.settle)
            self._timer.daemon = True
            self._timer.start()

    def settle(self) -> None:
        """Sends what waits, if anything does; a lost Redis is no error."""
        if self._skips:
            fail_open(self.send, [])

    @property
    def is_due(self) -> bool:
        """Whether there is a portion to send."""
        return bool(self._skips) and time.monotonic() - self._sent >= INTERVAL

    def send(self, *calls: Call[Any]) -> list[Any]:
        """Runs the calls, and with them what waits here, in one round trip. Raises redis.RedisError."""
        self._own()
        with self._lock:
            portion, self._skips, self._sent = self._skips, Counter(), time.monotonic()
        try:
            return scripts.run_all(*calls, *([_count(portion)] if portion else []))
        except BaseException:
            with self._lock:
                self._skips.update(portion)
            raise


tally = Tally()
atexit.register(tally.settle)


def skips_by_hour(times: Sequence[datetime]) -> Skips:
    """The skips of those hours that Redis was told of."""
    pipeline: Any = connect().pipeline(transaction=False)
    names = [buckets.hour_bucket(at) for at in times]
    for name in names:
        pipeline.hgetall(keys.skips(name))
    found = zip(names, pipeline.execute(), strict=True)
    return Counter({(name, reason.decode()): int(count) for name, skips in found for reason, count in skips.items()})


def _count(portion: Skips) -> Call[int]:
    by_hour: dict[str, list[str | int]] = {}
    for (hour, reason), count in portion.items():
        by_hour.setdefault(hour, []).extend((reason, count))
    args: list[str | int] = [LIFE]
    for pairs in by_hour.values():
        args += (len(pairs) // 2, *pairs)
    return Call("skip", [keys.skips(hour) for hour in by_hour], args, int)
