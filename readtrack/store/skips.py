"""Skips: hits that did not count, by hour and reason."""

import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from threading import Lock
from typing import Any

from readtrack import buckets, keys
from readtrack.hits import REASONS, Reason
from readtrack.store import scripts
from readtrack.store.connection import connect
from readtrack.store.scripts import Call

LIFE = 49 * 3600  # seconds that an hour's skips are kept after the last one
HOURS = 48  # hours of skips that wait for a Redis that is gone; older ones are given up
INTERVAL = 1.0  # seconds between two portions

Skips = Counter[tuple[str, Reason]]  # by hour and reason


class Tally:
    """What this process has counted and not yet told Redis.

    A robot's hit must not cost more than a person's, and robots come in floods. So skips are added up here,
    and at most once a second go along with the next recorded view, or alone where nobody comes but robots.
    What Redis did not take is kept. Lost is the last second of a process that ends; a portion whose answer
    was lost on the way is sent again, and may then be counted twice.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = Lock()
        self.clear()

    def _own(self) -> None:
        """After a fork begins at nothing: what the parent has counted is the parent's to tell."""
        if self._process != os.getpid():
            self._process, self._lock = os.getpid(), Lock()
            self.clear()

    def clear(self) -> None:
        """Forgets everything."""
        self._skips: Skips = Counter()
        self._sent = -INTERVAL

    def add(self, reasons: Iterable[Reason], *, at: datetime) -> None:
        """Counts a skip of each reason."""
        self._own()
        hour = buckets.hour(at)
        with self._lock:
            self._skips.update((hour, reason) for reason in reasons)
            while len(self._skips) > HOURS * len(REASONS):
                del self._skips[min(self._skips)]

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


def hours(times: Sequence[datetime]) -> Skips:
    """The skips of those hours that Redis was told of."""
    pipeline: Any = connect().pipeline(transaction=False)
    names = [buckets.hour(at) for at in times]
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
