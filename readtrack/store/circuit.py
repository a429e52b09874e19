"""The circuit breaker: after Redis failed, pages do without it, and only one tries it again."""

import re
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


# Errors by which a server refuses all scripts, or all writes. redis-py drops some of the codes.
REFUSAL = re.compile(r"(^|-)(BUSY|MISCONF|NOREPLICAS|OOM) |'maxmemory'|Link with MASTER")
SMALL = 8_192  # bytes that the kernel takes over without a wait, unless the server hangs
MOST_FAILURES = 20  # further ones do not make the pause longer


class SilentError(RedisError):
    """One server of a cluster does not serve a command. Other servers may still answer."""


class BusyError(SilentError):
    """No connection to Redis was free in time. Redis itself may be well."""


class Circuit:
    """Opens when Redis fails. While it is open, callers do not ask Redis, except one that tries
    again.

    After the first failure the next caller tries at once, because one slow answer is no outage.
    After each failed try the pause doubles, from TIMEOUT to `longest_pause` seconds.
    """

    longest_pause = 5.0  # seconds between two tries while Redis fails, at most

    def __init__(self, name: str = "Redis") -> None:
        self.name = name  # for the log
        self._lock = Lock()
        # When Redis last failed or was tried again (seconds of the monotonic clock); None while the
        # circuit is closed.
        self.opened: float | None = None
        self.pause = inf  # seconds from `opened` to the next try; `longest_pause` at most
        self._failures = 0  # since pages were last quick
        self._is_trying = False
        # When the first of the slow pages ended (the same clock); None after a quick page.
        self.slow_since: float | None = None

    def lets_pass(self) -> bool:
        """Returns True if the caller may ask Redis."""
        with self._lock:
            if self.opened is None:
                return True
            pause = min(self.pause, self.longest_pause)
            if time.monotonic() - self.opened < pause or has_little_time():
                return False
            # This caller tries Redis. Other callers wait until it knows, which takes TIMEOUT.
            self.opened = time.monotonic()
            self.pause = 2 * conf.TIMEOUT
            self._is_trying = True
            return True

    def open(self, error: Exception, *, pause: float | None = None) -> None:
        """Opens the circuit because of this error. Says so in the log and by a signal.

        The next caller tries after `pause` seconds, by default after a time that each failure
        doubles.
        """
        with self._lock:
            was_closed = self.opened is None
            if not was_closed and not self._is_trying:
                return  # the caller began before the circuit opened
            self.opened = time.monotonic()
            if pause is None:
                pause = conf.TIMEOUT * (2**self._failures - 1)
            self.pause = pause
            self._failures = min(self._failures + 1, MOST_FAILURES)
            self._is_trying = False
        if was_closed:
            logger.warning(
                "%s failed, pages go on without it: %s: %s", self.name, type(error).__name__, error
            )
            redis_failed.send_robust(sender=None, error=error)

    def close(self) -> None:
        """Closes the circuit, and forgets all failures."""
        self.opened = None
        self.slow_since = None
        self._failures = 0

    def note_wait(self, waited: float) -> None:
        """Notes how long a page waited for Redis (s) that got all answers in time.

        Opens the circuit for `longest_pause` seconds if all pages of the last TIMEOUT seconds
        waited for more than half of TIMEOUT. One slow moment, such as a fork of Redis, does not
        open it, because views would be lost.
        """
        now = time.monotonic()
        if waited <= conf.TIMEOUT / 2:
            self.slow_since = None
            self._failures = 0
        elif self.slow_since is None:
            self.slow_since = now
        elif now - self.slow_since > conf.TIMEOUT:
            error = exceptions.TimeoutError(f"pages wait {waited * 1000:.0f} ms for it")
            self.open(error, pause=self.longest_pause)


@dataclass(slots=True)
class Page:
    """A page while it is made.

    All waiting for Redis in it takes `seconds_left` at most.
    """

    request: Any
    seconds_left: float  # seconds that the page may still wait; TIMEOUT at first
    # Seconds that the page waited and that this circuit is not blamed for: for single servers of a
    # cluster, which have circuits of their own, or for a free connection.
    seconds_excused: float = 0.0

    def note_its_wait(self) -> None:
        """Notes at the end of the page how long it waited for Redis."""
        if 0 < self.seconds_left < conf.TIMEOUT:  # with 0 an answer was missing
            circuit.note_wait(conf.TIMEOUT - self.seconds_left - self.seconds_excused)

    def note_wait_for_connection(self, seconds: float) -> None:
        """Takes a wait for a free connection off the page's time, without blaming Redis for it."""
        self.seconds_left -= seconds
        self.seconds_excused += seconds


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
    seconds = timeout
    if page is not None:
        seconds = min(timeout, page.seconds_left)
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


def send_within_page(
    sendall: Callable[[bytes], None], limited_sendall: Callable[[bytes], None], data: bytes
) -> None:
    """Sends the bytes by a socket. Raises TimeoutError.

    `limited_sendall` takes as long as the page may wait. `sendall` has the time-out of the socket,
    which is enough for what the kernel takes over without a wait. A page that has no time left
    sends nothing, because it would not hear what became of it.
    """
    page = present_page.get()
    has_time = page is None or page.seconds_left > 0
    if len(data) > SMALL or not has_time:
        limited_sendall(data)
        return
    try:
        sendall(data)
    except BlockingIOError as error:
        raise TimeoutError("Redis did not take the command in time") from error


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
    return ask_anyway(call, default, *args, **kwargs)


def ask_anyway(
    call: Callable[Args, Result], default: Result, *args: Args.args, **kwargs: Args.kwargs
) -> Result:
    """Returns the result of the call; `default` if Redis fails.

    Asks Redis while the circuit is open, too. For what waits for Redis while no page waits for it.
    """
    try:
        result = call(*args, **kwargs)
    except SilentError:  # the server of a cluster has its own circuit, or no connection was free
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
    is_timeout = isinstance(error, (TimeoutError, exceptions.TimeoutError))
    if is_timeout and page is not None and page.seconds_excused >= conf.TIMEOUT / 2:
        return
    circuit.open(error)


def _note_success() -> None:
    """Closes the circuit. In a page, failures are forgotten only once a whole page was quick."""
    if present_page.get() is None:
        circuit.close()
    else:
        circuit.opened = None


def has_little_time() -> bool:
    """Returns True if the page has so little time left that its failure would prove nothing: less
    than half of TIMEOUT.
    """
    page = present_page.get()
    return page is not None and page.seconds_left < conf.TIMEOUT / 2
