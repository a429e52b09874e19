"""The circuit breaker: after Redis failed, pages do without it for some seconds."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Lock
from typing import ParamSpec, TypeVar

from redis.exceptions import RedisError as RedisError

from readtrack.conf import conf
from readtrack.signals import redis_failed

logger = logging.getLogger("readtrack")

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Circuit:
    """Opens when Redis fails. While it is open no caller waits; after CIRCUIT seconds one caller tries Redis again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.opened: float | None = None  # seconds of the monotonic clock

    def lets_pass(self) -> bool:
        with self._lock:
            if self.opened is None or time.monotonic() - self.opened < conf.CIRCUIT:
                return self.opened is None
            self.opened = time.monotonic()  # this caller tries, the others still do without
            return True

    def open(self, error: Exception) -> None:
        with self._lock:
            was_closed, self.opened = self.opened is None, time.monotonic()
        if was_closed:
            logger.warning("Redis failed, pages go on without it: %s: %s", type(error).__name__, error)
            redis_failed.send_robust(sender=None, error=error)


circuit = Circuit()


_absence: ContextVar[Event | None] = ContextVar("absence", default=None)


@contextmanager
def noticing_absence() -> Iterator[Event]:
    """Yields an event that is set if any `fail_open` in the block returns its default."""
    absence = Event()
    token = _absence.set(absence)
    try:
        yield absence
    finally:
        _absence.reset(token)


def fail_open(
    call: Callable[Arguments, Result], default: Result, *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Returns the call's result, or `default` if Redis fails or has just failed. For the edges of a request only."""
    if circuit.opened is None or circuit.lets_pass():
        try:
            result = call(*args, **kwargs)
        except (RedisError, OSError) as error:
            circuit.open(error)
        else:
            circuit.opened = None
            return result
    if absence := _absence.get():
        absence.set()
    return default
