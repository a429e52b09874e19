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
    """A server of a cluster does not serve a command; the others may."""


class Circuit:
    """Opens when Redis fails. While it is open no caller waits; after CIRCUIT seconds one caller
    tries Redis again.
    """

    def __init__(self, name: str = "Redis") -> None:
        self.name = name
        self._lock = Lock()
        self.opened: float | None = None  # seconds of the monotonic clock
        self.slow_since: float | None = (
            None  # end of the first of the slow pages; None after a quick one
        )

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
            logger.warning(
                "%s failed, pages go on without it: %s: %s", self.name, type(error).__name__, error
            )
            redis_failed.send_robust(sender=None, error=error)

    def note_wait(self, waited: float) -> None:
        """Notes how long a page waited (s). Opens once all pages wait half of TIMEOUT or more, for
        longer than that.

        One slow moment, such as a fork of Redis, opens nothing, because views would be lost for
        CIRCUIT seconds.
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
    """The making of a page: everything in the block together waits for Redis no longer than `left`
    seconds.
    """

    request: Any
    left: float  # at first TIMEOUT
    elsewhere: float = 0.0
    # seconds that it waited for single servers of a cluster, which have circuits of their own
    _token: Any = None

    def __enter__(self) -> None:
        self._token = present_page.set(self)

    def __exit__(self, *error: object) -> None:
        present_page.reset(self._token)
        if self.left < conf.TIMEOUT:
            circuit.note_wait(conf.TIMEOUT - self.left - self.elsewhere)


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


def fail_open(
    call: Callable[Args, Result], default: Result, *args: Args.args, **kwargs: Args.kwargs
) -> Result:
    """Returns the call's result, or `default` if Redis fails or has just failed. For the edges of a
    request only.
    """
    if circuit.opened is None or circuit.lets_pass():
        try:
            result = call(*args, **kwargs)
        except SilentError:  # of a server with a circuit of its own
            pass
        except (RedisError, OSError) as error:
            circuit.open(error)
        else:
            circuit.opened = None
            return result
    return default
