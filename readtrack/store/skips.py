"""Skips: hits that did not count, by hour and reason; of robots and assistants by name, too."""

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

NAME_PREFIX = "bot:"  # before the name of a robot or an assistant
NAMED_REASONS = frozenset({"bot", "agent"})  # reasons of hits that are also counted by name
OTHER = f"{NAME_PREFIX}other"
# Reasons, notices and names of robots that Redis keeps of an hour. Robots can make up names, so
# further ones are counted as OTHER.
MOST_FIELDS = 64
MOST_WAITING = HOURS * len(REASONS)  # numbers that wait for Redis in a process


class SkipBuffer:
    """Skips of this process that Redis does not have yet.

    They are sent once a second, because robots come in floods.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets all skips."""
        self._lock = Lock()  # in a forked process the old one may be locked for good
        # Numbers by key, which has the hour, and field: a reason, a robot's name, or a notice.
        self.skips = Counter[tuple[str, str]]()
        # The `perf_counter` from which to send again: INTERVAL after the last sending.
        self.due = 0.0

    def add(self, key: str, fields: Iterable[str]) -> None:
        """Adds one to each of the fields of an hour: reasons of skips, and names of robots.

        Also adds what the watch over addresses has noticed since the last call.
        """
        if watch.notices:
            notices = watch.notices
            watch.notices = set()
            fields = (*fields, *notices)
        with self._lock:
            for field in fields:
                number = self.skips.get((key, field))
                if number:  # for most
                    self.skips[key, field] = number + 1
                else:
                    self._add_new(key, field)

    def _add_new(self, key: str, field: str) -> None:
        """Adds one to a field that there was not; to OTHER for a robot that is one too many.

        Mostly all fields are of one hour. While Redis is down for longer, robots soon are OTHER.
        """
        if field.startswith(NAME_PREFIX) and len(self.skips) >= MOST_FIELDS:
            field = OTHER
        self.skips[key, field] += 1
        while len(self.skips) > MOST_WAITING:
            oldest = min(self.skips)  # keys begin with the hour
            del self.skips[oldest]

    def send(self, *calls: Call[Any]) -> list[Any]:
        """Runs the calls and sends the skips, in one round trip. Returns the results of the calls.

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
            if not is_sent:  # if only the answer was lost, they will count twice
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
    """Returns the call that counts the skips; no call if there are none.

    The result of the call is None if the server is silent.
    """
    if not skips:
        return []
    arguments: list[str | int] = [keys.skips.ttl, MOST_FIELDS, NAME_PREFIX, OTHER]
    for (_, reason), count in skips.items():
        arguments += (reason, count)
    return [Call("skip", [key for key, _ in skips], arguments, int, absent=None)]


def by_hour(hours: int, *, at: datetime) -> Call[list[Counter[str]]]:
    """Returns the call that reads the skips of each of the last hours, the latest hour first.

    Each hour has numbers by field: a reason, a robot's name behind "bot:", or a notice.
    """
    tag = keys.tags()[0]
    times = [at - back * buckets.HOUR for back in range(hours)]
    hour_keys = [keys.skips(tag, buckets.hour_bucket(time)) for time in times]

    def decode(answer: list[list[list[bytes]]]) -> list[Counter[str]]:
        if not answer:
            return [Counter() for _hour in range(hours)]
        fields_by_hour = answer[0]
        return [Counter(dict(scripts.pairs(fields))) for fields in fields_by_hour]

    return Call("hashes", [keys.unsettled(tag), *hour_keys], hour_keys, decode)


def key_of(at: datetime) -> str:
    """Returns the key of the skips of the hour of `at`."""
    return _key_of(at, keys.prefix())


@cached_setting()
def _key_of(at: datetime, prefix: str) -> str:
    """Returns the key. `prefix` is that of the key, so that each tenant's is cached for itself."""
    return keys.skips(keys.tags()[0], buckets.hour_bucket(at.astimezone(timezone.utc)))
