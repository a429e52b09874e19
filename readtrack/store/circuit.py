"""The circuit breaker: after Redis failed, pages do without it, and one at a time tries it again."""

import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from socket import SO_RCVTIMEO, SO_SNDTIMEO, SOL_SOCKET, socket
from struct import pack
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from redis import RedisError, exceptions

from readtrack.conf import conf, logger
from readtrack.signals import redis_failed

Args = ParamSpec("Args")
Result = TypeVar("Result")


FURTHER = 20  # failures, beyond which the pause before the next try grows no more


class SilentError(RedisError):
    """A server of a cluster does not serve a command; the others may."""


class BusyError(SilentError):
    """No connection to Redis was free in time: a shortage, while Redis is well."""


class Circuit:
    """Opens when Redis fails. While it is open no caller waits, but for one that tries Redis again.

    After the first failure the next caller tries at once, because one slow answer is no outage.
    After each failed try the pause doubles, from TIMEOUT to CIRCUIT seconds.
    """

    def __init__(self, name: str = "Redis") -> None:
        self.name = name
        self._lock = Lock()
        self.opened: float | None = (
            None  # the last failure or try (monotonic clock); None if closed
        )
        self.pause = inf  # seconds from then to the next try; CIRCUIT at most
        self._failures = 0  # since pages last were quick
        self._is_trying = False
        self.slow_since: float | None = (
            None  # end of the first of the slow pages; None after a quick one
        )

    def lets_pass(self) -> bool:
        """Returns True while it is closed, and to a caller that is to try Redis again."""
        with self._lock:
            if self.opened is None:
                return True
            now = time.monotonic()
            if now - self.opened < min(self.pause, conf.CIRCUIT) or _has_little_time():
                return False
            self.opened = now
            self.pause = 2 * conf.TIMEOUT  # within which this caller knows
            self._is_trying = True
            return True

    def open(self, error: Exception, *, pause: float | None = None) -> None:
        """Opens it after a failure, for that many seconds."""
        with self._lock:
            was_closed = self.opened is None
            if not (was_closed or self._is_trying):
                return  # the caller began before others failed
            self.opened = time.monotonic()
            self.pause = conf.TIMEOUT * (2**self._failures - 1) if pause is None else pause
            self._failures = min(self._failures + 1, FURTHER)
            self._is_trying = False
        if was_closed:
            logger.warning(
                "%s failed, pages go on without it: %s: %s", self.name, type(error).__name__, error
            )
            redis_failed.send_robust(sender=None, error=error)

    def close(self) -> None:
        """Closes it, and forgets the failures."""
        self.opened = self.slow_since = None
        self._failures = 0

    def note_wait(self, waited: float) -> None:
        """Notes how long a page waited (s) that had all answers in time. Opens for CIRCUIT seconds
        once all pages wait half of TIMEOUT or more, for longer than that.

        One slow moment, such as a fork of Redis, opens nothing, because views would be lost.
        """
        now = time.monotonic()
        if waited <= conf.TIMEOUT / 2:
            self.slow_since = None
            self._failures = 0
        elif self.slow_since is None:
            self.slow_since = now
        elif now - self.slow_since > conf.TIMEOUT:
            error = exceptions.TimeoutError(f"pages wait {waited * 1000:.0f} ms for it")
            self.open(error, pause=conf.CIRCUIT)


@dataclass(slots=True)
class Page:
    """The making of a page: everything in the block together waits for Redis no longer than `left`
    seconds.
    """

    request: Any
    left: float  # at first TIMEOUT
    # Seconds of them that it waited for single servers of a cluster, which have circuits of their
    # own, or for a free connection.
    elsewhere: float = 0.0
    _token: Any = None

    def __enter__(self) -> None:
        self._token = present_page.set(self)

    def __exit__(self, *error: object) -> None:
        present_page.reset(self._token)
        if 0 < self.left < conf.TIMEOUT:  # with 0 an answer was missing
            circuit.note_wait(conf.TIMEOUT - self.left - self.elsewhere)

    def wait_for_connection(self, seconds: float) -> None:
        """Notes that it waited for a free connection, for which Redis is not to blame."""
        self.left -= seconds
        self.elsewhere += seconds


circuit = Circuit()
present_page: ContextVar[Page | None] = ContextVar(
    "page", default=None
)  # the page that is being made


def within_page(
    limit: Callable[[float], object],
    most: float,
    wait: Callable[Args, Result],
    *args: Args.args,
    **kwargs: Args.kwargs,
) -> Result:
    """Returns the result of `wait` within `most` seconds, or as many as the page has left. Raises
    TimeoutError.
    """
    page = present_page.get()
    seconds = most if page is None else min(most, page.left)
    if seconds <= 0:
        raise TimeoutError("the page has waited for Redis as long as it may")
    is_short = (
        seconds < most * 0.98
    )  # a little less is as good as all, because each change of a limit takes time
    if is_short:
        limit(seconds)
    began = time.perf_counter()
    try:
        result = wait(*args, **kwargs)
    except BlockingIOError as error:  # by `kernel_limit`
        raise TimeoutError("Redis did not answer in time") from error
    finally:
        if page is not None:
            page.left -= time.perf_counter() - began
    if is_short:
        limit(most)
    return result


def kernel_limit(sock: socket, seconds: float) -> None:
    """Limits how long a blocking socket waits. With Python's own time-outs, other threads run
    before it asks.
    """
    value = pack("ll", int(seconds), max(1, int(seconds % 1 * 1_000_000)))  # 0 would be no limit
    for option in (SO_RCVTIMEO, SO_SNDTIMEO):
        sock.setsockopt(SOL_SOCKET, option, value)


def _has_little_time() -> bool:
    """Returns True if the page has too little time left for its failure to prove anything."""
    page = present_page.get()
    return page is not None and page.left < conf.TIMEOUT / 2


def fail_open(
    call: Callable[Args, Result], default: Result, *args: Args.args, **kwargs: Args.kwargs
) -> Result:
    """Returns the call's result, or `default` if Redis fails or has just failed. For the edges of a
    request only.
    """
    if circuit.opened is None or circuit.lets_pass():
        try:
            result = call(*args, **kwargs)
        except SilentError:  # of a server with a circuit of its own, or no connection was free
            pass
        except (RedisError, OSError) as error:
            _note_failure(error)
        else:
            if circuit.opened is not None:
                _note_success()
            return result
    return default


def ask_anyway(
    call: Callable[Args, Result], default: Result, *args: Args.args, **kwargs: Args.kwargs
) -> Result:
    """Returns the call's result, or `default` if Redis fails. Asks it though it has just failed: for
    what waits for Redis and for which no page waits.
    """
    try:
        result = call(*args, **kwargs)
    except SilentError:
        return default
    except (RedisError, OSError) as error:
        _note_failure(error)
        return default
    if circuit.opened is not None:
        _note_success()
    return result


def _note_failure(error: Exception) -> None:
    """Opens the circuit, unless the page had spent its time on waiting for a free connection."""
    page = present_page.get()
    is_late = isinstance(error, (TimeoutError, exceptions.TimeoutError))
    if is_late and page is not None and page.elsewhere >= conf.TIMEOUT / 2:
        return
    circuit.open(error)


def _note_success() -> None:
    """Closes the circuit. The failures of a page are forgotten once it was quick in all."""
    if present_page.get() is None:
        circuit.close()
    else:
        circuit.opened = None
