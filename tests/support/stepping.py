"""Work that goes one round trip at a time: it stops before every Redis command and every SQL
statement.

Redis's side is a connection class for `CONNECTION_POOL_KWARGS`, the database's an execute wrapper,
so the code that is tested knows nothing of it.
"""

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection
from redis.connection import Connection

CLOSED_PORT = 1  # nobody listens there

_current = threading.local()


class Killed(BaseException):
    """Ends the work as SIGKILL does: nothing more reaches a server."""


class SteppedConnection(Connection):
    """A connection that waits for its thread's turn before it sends anything."""

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:  # noqa: FBT002 - its signature
        _wait_for_turn()
        super().send_packed_command(command, check_health)  # type: ignore[no-untyped-call]


class Stepper:
    """A thread that does the work, and waits before each round trip."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.is_over = False
        self.error: Exception | None = None
        self._work = work
        self._is_killed = False
        self._loses_database = False
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._stopped.acquire()

    def step(self, times: int = 1) -> None:
        """Lets the work make that many round trips."""
        for _ in range(times):
            if self.is_over:
                return
            self._go.release()
            self._stopped.acquire()

    def finish(self) -> None:
        """Lets the work go on to its end."""
        while not self.is_over:
            self.step()

    def kill(self) -> None:
        """Ends the work where it is."""
        self._is_killed = True
        self.finish()

    def lose_database(self) -> None:
        """Cuts the work's connection to the database, and refuses a new one."""
        self._loses_database = True

    def wait(self) -> None:
        self._stopped.release()
        self._go.acquire()
        if self._is_killed:
            raise Killed
        if self._loses_database:
            self._loses_database = False
            connection.close()
            connection.settings_dict = {**connection.settings_dict, "PORT": CLOSED_PORT}

    def _run(self) -> None:
        _current.stepper = self
        try:
            with connection.execute_wrapper(_step_statement):
                self.wait()
                self._work()
        except Killed:
            pass
        except Exception as error:
            self.error = error
        finally:
            connection.close()
            self.is_over = True
            self._stopped.release()


def _wait_for_turn() -> None:
    stepper: Stepper | None = getattr(_current, "stepper", None)
    if stepper is not None:
        stepper.wait()


def _step_statement(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
) -> Any:
    # Further on in a transaction it holds locks: whoever waits for those could not be stepped any
    # more.
    is_inside = connection.in_atomic_block
    if not (is_inside and getattr(_current, "is_inside", False)):
        _wait_for_turn()
    _current.is_inside = is_inside
    return execute(sql, params, many, context)
