"""Skips: hits that did not count, by hour and reason, and robots by name."""

import atexit
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timezone
from threading import Lock
from time import monotonic, perf_counter, sleep
from typing import Any

from readtrack import buckets
from readtrack.conf import cached_setting, register_at_fork
from readtrack.hits.addresses import watch
from readtrack.hits.hit import REASONS
from readtrack.store import keys, scripts
from readtrack.store.circuit import ask_anyway, fail_open
from readtrack.store.scripts import Call

HOURS = 48  # hours of skips that are kept while Redis is down; older ones are dropped
INTERVAL = 1.0  # seconds between two sendings
LAST = 2.0  # seconds for which the end of a process tries again while Redis fails
PAUSE = 0.1  # seconds between two of these tries

NAMED = "bot:"  # before the name of a robot
OTHER = f"{NAMED}other"
# reasons, notices and names, of an hour in Redis; robots can make up names, and further ones are
# "other"
MOST = 64


class SkipBuffer:
    """Skips of this process that Redis does not have yet: robots come in floods, so they are sent
    once a second.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets all skips."""
        self._lock = Lock()
        # By key, which names the hour, and reason; names and notices travel with them.
        self.skips = Counter[tuple[str, str]]()
        self.due = (
            0.0  # the `perf_counter` from which to send again, INTERVAL after the last sending
        )

    def add(self, key: str, names: Iterable[str]) -> None:
        """Adds skips by reason, robots by name, and what the watch over addresses noticed since the
        last call.
        """
        if watch.notices:
            notices, watch.notices = watch.notices, set()
            names = (*names, *notices)
        with self._lock:
            for name in names:
                self.skips[key, self._counted_name(key, name)] += 1
            while len(self.skips) > HOURS * len(REASONS):
                del self.skips[min(self.skips)]

    def _counted_name(self, key: str, name: str) -> str:
        """Returns the name; for one more robot than are told apart the name of all others."""
        is_robot = name.startswith(NAMED)
        if is_robot and len(self.skips) >= MOST and (key, name) not in self.skips:
            return OTHER
        return name

    def send(self, *calls: Call[Any]) -> list[Any]:
        """Runs the calls and sends the skips, in one round trip. Returns the calls' results.

        Raises redis.RedisError.
        """
        with self._lock:
            skips = self.skips
            self.skips = Counter()
            self.due = perf_counter() + INTERVAL
        sending = _call_of(skips)
        is_sent = False
        try:
            scripts.run_all(*calls, *sending)
            is_sent = all(call.result is not None for call in sending)
        finally:
            if not is_sent:  # or the answer was lost, and then they count twice
                with self._lock:
                    self.skips.update(skips)
        return [call.result for call in calls]

    def send_rest(self) -> None:
        """Sends the skips, if there are any. A lost Redis is no error."""
        if self.skips:
            fail_open(self.send, [])

    def close(self) -> None:
        """Sends the skips before the process ends, though Redis has just failed."""
        until = monotonic() + LAST
        while self.skips:
            ask_anyway(self.send, [])
            if not self.skips or monotonic() > until:
                return
            sleep(PAUSE)


skip_buffer = SkipBuffer()
atexit.register(skip_buffer.close)
register_at_fork(after_in_child=skip_buffer.clear)  # because the parent sends its own skips


def _call_of(skips: Counter[tuple[str, str]]) -> list[Call[int | None]]:
    """Returns the call that counts the skips; none without skips. Its result is None if the server
    is silent.
    """
    if not skips:
        return []
    arguments: list[str | int] = [keys.skips.ttl, MOST, NAMED, OTHER]
    for (_, reason), count in skips.items():
        arguments += (reason, count)
    return [Call("skip", [key for key, _ in skips], arguments, int, absent=None)]


def by_hour(hours: int, *, at: datetime) -> Call[list[Counter[str]]]:
    """Reads the skips of each of the last hours, latest first.

    Each hour has skips by reason, robots by name, and notices of addresses.
    """
    tag = keys.tags()[0]
    times = [at - back * buckets.HOUR for back in range(hours)]
    names = [keys.skips(tag, buckets.hour_bucket(time)) for time in times]

    def decode(answer: list[list[list[bytes]]]) -> list[Counter[str]]:
        counts = answer[0] if answer else [[]] * hours
        return [Counter(dict(scripts.pairs(fields))) for fields in counts]

    return Call("hashes", [keys.unsettled(tag), *names], names, decode)


def key_of(at: datetime) -> str:
    """Returns the key of the skips of that hour."""
    return _of_hour(at, keys.prefix())


@cached_setting()
def _of_hour(at: datetime, prefix: str) -> str:  # by the prefix, too, which tenants differ in
    return keys.skips(keys.tags()[0], buckets.hour_bucket(at.astimezone(timezone.utc)))
