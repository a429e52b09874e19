"""The circuit breaker: after Redis failed, pages do without it for some seconds."""

import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from socket import SO_RCVTIMEO, SO_SNDTIMEO, SOL_SOCKET, socket
from struct import pack
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from redis import RedisError, exceptions

from readtrack.conf import conf, logger
from readtrack.signals import redis_failed

Args = ParamSpec("Args")
Result = TypeVar("Result")


class SilentError(RedisError):
    """One server of a cluster does not serve a command. Other servers may still answer."""


class Circuit:
    """Opens when Redis fails. While it is open, callers do not ask Redis. After CIRCUIT seconds one
    caller tries Redis again.
    """

    def __init__(self, name: str = "Redis") -> None:
        self.name = name  # for the log
        self._lock = Lock()
        # When it opened (seconds of the monotonic clock); None while it is closed.
        self.opened: float | None = None
        # When the first of the slow pages ended (the same clock); None after a quick page.
        self.slow_since: float | None = None

    def lets_pass(self) -> bool:
        """Returns True if the caller may ask Redis."""
        with self._lock:
            if self.opened is None:
                return True
            if time.monotonic() - self.opened < conf.CIRCUIT:
                return False
            # This caller tries Redis. Other callers wait for CIRCUIT seconds more.
            self.opened = time.monotonic()
            return True

    def open(self, error: Exception) -> None:
        """Opens the circuit because of this error. Says so in the log and by a signal."""
        with self._lock:
            was_closed = self.opened is None
            self.opened = time.monotonic()
        if was_closed:
            logger.warning(
                "%s failed, pages go on without it: %s: %s", self.name, type(error).__name__, error
            )
            redis_failed.send_robust(sender=None, error=error)

    def note_wait(self, waited: float) -> None:
        """Notes how long a page waited for Redis (s).

        Opens the circuit if all pages of the last TIMEOUT seconds waited for more than half of
        TIMEOUT. One slow moment, such as a fork of Redis, does not open it, because views would be
        lost for CIRCUIT seconds.
        """
        now = time.monotonic()
        if waited <= conf.TIMEOUT / 2:
            self.slow_since = None
        elif self.slow_since is None:
            self.slow_since = now
        elif now - self.slow_since > conf.TIMEOUT:
            self.open(exceptions.TimeoutError(f"pages wait {waited * 1000:.0f} ms for it"))


@dataclass(slots=True)
class Page:
    """A context in which a page is made.

    All waiting for Redis in it takes `seconds_left` at most.
    """

    request: Any
    seconds_left: float  # seconds that the page may still wait; TIMEOUT at first
    # Seconds that the page waited for single servers of a cluster, which have their own circuits.
    seconds_elsewhere: float = 0.0
    _token: Any = None

    def __enter__(self) -> None:
        self._token = present_page.set(self)

    def __exit__(self, *error: object) -> None:
        present_page.reset(self._token)
        if self.seconds_left < conf.TIMEOUT:
            circuit.note_wait(conf.TIMEOUT - self.seconds_left - self.seconds_elsewhere)


circuit = Circuit()
# The page that is being made; None outside of a request.
present_page: ContextVar[Page | None] = ContextVar("page", default=None)


def within_page(
    set_timeout: Callable[[float], object],
    timeout: float,
    wait: Callable[Args, Result],
    *args: Args.args,
    **kwargs: Args.kwargs,
) -> Result:
    """Returns the result of `wait`, which gets `timeout` seconds, or what the page has left.

    `set_timeout` takes the seconds that `wait` waits at most: before and after they are `timeout`.
    Raises TimeoutError.
    """
    page = present_page.get()
    seconds = timeout if page is None else min(timeout, page.seconds_left)
    if seconds <= 0:
        raise TimeoutError("the page has waited for Redis as long as it may")
    # If nearly all seconds are left, the time-out stays, because each change of it takes time.
    is_short = seconds < timeout * 0.98
    if is_short:
        set_timeout(seconds)
    began = time.perf_counter()
    try:
        result = wait(*args, **kwargs)
    except BlockingIOError as error:  # the kernel raises it after a `kernel_limit`
        raise TimeoutError("Redis did not answer in time") from error
    finally:
        if page is not None:
            page.seconds_left -= time.perf_counter() - began
    if is_short:
        set_timeout(timeout)
    return result


def kernel_limit(sock: socket, seconds: float) -> None:
    """Limits how long the kernel lets a blocking socket wait.

    Python's own time-outs cost a page more, because other threads run before the socket is read.
    """
    microseconds = int(seconds % 1 * 1_000_000)
    value = pack("ll", int(seconds), max(1, microseconds))  # 0 would be no limit
    for option in (SO_RCVTIMEO, SO_SNDTIMEO):
        sock.setsockopt(SOL_SOCKET, option, value)


def fail_open(
    call: Callable[Args, Result], default: Result, *args: Args.args, **kwargs: Args.kwargs
) -> Result:
    """Returns the result of the call; `default` if Redis fails, or while the circuit is open.

    Only for the edges of a request. Elsewhere errors surface.
    """
    if circuit.opened is not None and not circuit.lets_pass():
        return default
    try:
        result = call(*args, **kwargs)
    except SilentError:  # the server of a cluster has its own circuit
        return default
    except (RedisError, OSError) as error:
        circuit.open(error)
        return default
    circuit.opened = None
    return result
