"""The circuit breaker: after Redis failed, pages do without it for some seconds."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
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
        self.reset()

    def reset(self) -> None:
        self.opened: float | None = None

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


class Absence:
    """Notes that a call got its default, because Redis was down."""

    is_noticed = False


_absence: ContextVar[Absence | None] = ContextVar("absence", default=None)


@contextmanager
def noticing_absence() -> Iterator[Absence]:
    """Yields an `Absence` that is noticed if any `fail_open` in the block returned its default."""
    absence = Absence()
    token = _absence.set(absence)
    try:
        yield absence
    finally:
        _absence.reset(token)


def _notice_absence() -> None:
    if absence := _absence.get():
        absence.is_noticed = True


def fail_open(
    call: Callable[Arguments, Result], default: Result, *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Returns the call's result, or `default` if Redis fails or has just failed. For the edges of a request only."""
    if circuit.opened is not None and not circuit.lets_pass():
        _notice_absence()
        return default
    try:
        result = call(*args, **kwargs)
    except (RedisError, OSError) as error:
        circuit.open(error)
        _notice_absence()
        return default
    if circuit.opened is not None:
        circuit.reset()
    return result
