"""The connections of a pool: how scripts use them, and what happens where none is free."""

import errno
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Condition
from time import monotonic, perf_counter
from typing import Any

import redis
from hiredis import pack_command
from redis import ConnectionPool, exceptions
from redis.sentinel import MasterNotFoundError

from readtrack.conf import logger
from readtrack.store.circuit import BusyError, present_page

# What redis-py says of a pool that is used up, and Redis of its `maxclients`.
SHORTAGE = re.compile("Too many connections|No connection available|max number of clients reached")
NONE_FREE = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL}  # files, or ports
LOGGED_EVERY = 60.0  # seconds
# Of `get_connection`. redis-py before 5.3 wants the name of a command, and later versions warn of it.
ARGUMENTS = () if redis.VERSION >= (5, 3) else ("EVALSHA",)

Command = tuple[Any, ...]


class Connections:
    """A pool, and some of its connections that scripts keep for the next hit.

    To take a connection out of the pool and put it back costs a hit more than its command.

    Where there is no further connection, because of `max_connections` or of the server's
    `maxclients`, a caller waits for one of those in use.
    """

    def __init__(self, pool: Any, *, patience: float) -> None:
        """Takes the pool, and how many seconds a caller waits at most; a page for less."""
        self.pool = pool
        # Scripts keep a tenth of the connections. A pool by Sentinel must have all of them back, so
        # that it can close those to an earlier primary.
        self.most_idle = pool.max_connections // 10 if type(pool) is ConnectionPool else 0
        self.idle: list[Any] = []  # kept connections that nobody uses now
        self.taken: set[Any] = set()  # out of the pool: in use, idle, or about to be opened
        self._patience = patience
        self._freed = Condition()
        self._waiting = 0  # callers that wait for a free connection
        self._logged = -LOGGED_EVERY  # when the last warning was logged, by the monotonic clock

    def close(self) -> None:
        """Closes the connections that nobody uses, including those of the pool."""
        while self.idle:
            self._release(self.idle.pop())
        close_idle(self.pool)

    def answers(
        self, commands: Sequence[Command], meanwhile: Callable[[], None] | None = None
    ) -> list[Any]:
        """Returns the server's answer to each command, which may be an error.

        `meanwhile` is called after the commands are sent and before the answers are read. Raises
        BusyError if no connection is free in time.
        """
        packed = b"".join(map(pack_command, commands))
        try:
            return self._exchange(packed, len(commands), meanwhile)
        except MasterNotFoundError:
            raise  # every Sentinel was asked, and none will know more a moment later
        except exceptions.ConnectionError:
            # A server that restarted leaves broken connections in the pool. Sending again is
            # harmless: a view counts only for the script that opens its window, and all other
            # commands set or merge.
            return self._exchange(packed, len(commands), meanwhile, is_again=True)

    def _exchange(
        self,
        packed: bytes,
        count: int,
        meanwhile: Callable[[], None] | None,
        *,
        is_again: bool = False,
    ) -> list[Any]:
        """Sends the packed commands by a kept connection, and returns that many answers.

        The second time (`is_again`) the connection is one of the pool, which checks it.
        """
        # On the connection itself, because execute_command of redis-py costs a hit as much as the
        # server does.
        try:
            connection = self._take() if is_again else self.idle.pop()
        except IndexError:
            connection = self._take()
        try:
            connection.send_packed_command([packed], check_health=False)
            if meanwhile:
                meanwhile()
            answers = _read(connection, count)
        except BaseException:
            # On an open connection, a late answer would be taken for the answer to the next
            # command. By Sentinel, it would also stay open to a primary that hangs after another
            # took over.
            connection.disconnect()
            self._release(connection)
            raise
        # Redis Enterprise announces that a server moves. redis-py then marks the connections to it;
        # older versions of redis-py have no such method.
        should_reconnect = getattr(connection, "should_reconnect", _never)
        if len(self.idle) < self.most_idle and not should_reconnect():
            self.idle.append(connection)
            if self._waiting:  # asked here, because a call takes longer
                self._wake()
        else:
            self._release(connection)
        return answers

    def _take(self) -> Any:
        """Returns a connection of the pool, or else one of those in use once it is free.

        Raises BusyError if none is free in time.
        """
        taken_before = len(self.taken)
        try:
            return self._take_from_pool()
        except MasterNotFoundError:
            raise
        except exceptions.ConnectionError as error:
            # While others are open, Redis is there. A server that takes no more clients may close a
            # new connection before it has said why.
            if not (self.taken or is_shortage(error)):
                raise
            return self._wait_for_one(taken_before, error)

    def _take_from_pool(self) -> Any:
        """Returns a connection of the pool, open. Raises redis.ConnectionError."""
        opening = object()  # counts as taken, so that callers which find none wait for this one
        self.taken.add(opening)
        try:
            connection = self.pool.get_connection(*ARGUMENTS)
            self.taken.add(connection)
            return connection
        finally:
            self.taken.discard(opening)
            if not self.taken:
                self._wake()  # it failed and no other is open, so those who wait give up

    def _wait_for_one(self, taken_before: int, error: Exception) -> Any:
        """Returns a connection once one of those that were `taken_before` is free.

        The error is why there are no more. Raises BusyError if none is free in time, and the error
        if all of them broke.
        """
        page = present_page.get()
        seconds = self._patience if page is None else min(self._patience, page.seconds_left)
        began = perf_counter()
        try:
            connection = self._take_once_free(began + seconds, taken_before)
        finally:
            if page is not None:
                page.note_wait_for_connection(perf_counter() - began)
        if connection is not None:
            return connection
        if not (self.taken or is_shortage(error)):
            raise error
        self._log(error)
        raise BusyError(f"no connection was free in time: {error}") from error

    def _take_once_free(self, until: float, taken_before: int) -> Any | None:
        """Returns a connection that is free by then (`perf_counter`); None if there is none.

        It ends at once when no connection is taken any more, because then all of them broke.
        """
        with self._freed:
            self._waiting += 1
            try:
                while True:
                    connection = self._take_free(taken_before)
                    seconds = until - perf_counter()
                    if connection is not None or seconds <= 0 or not self.taken:
                        return connection
                    self._freed.wait(seconds)
            finally:
                self._waiting -= 1

    def _take_free(self, taken_before: int) -> Any | None:
        """Returns a connection that is idle, or went back to the pool; None if there is none."""
        with suppress(IndexError):
            return self.idle.pop()
        if len(self.taken) < taken_before:
            with suppress(exceptions.ConnectionError):
                return self._take_from_pool()
        return None

    def _release(self, connection: Any) -> None:
        """Gives the connection back to the pool."""
        self.taken.discard(connection)
        self.pool.release(connection)
        self._wake()

    def _wake(self) -> None:
        """Wakes the callers that wait, of which one finds the connection."""
        if self._waiting:
            with self._freed:
                self._freed.notify_all()

    def _log(self, error: Exception) -> None:
        """Logs that views are lost, once every LOGGED_EVERY seconds."""
        if monotonic() - self._logged < LOGGED_EVERY:
            return
        self._logged = monotonic()
        logger.warning(
            "Pages wait in vain for a connection to Redis, so views are lost. This process has %d,"
            " and gets no more: %s",
            len(self.taken),
            error,
        )


def _never() -> bool:
    return False


def _read(connection: Any, count: int) -> list[Any]:
    """Returns that many answers, which may be errors.

    Raises redis.ConnectionError from a replica.
    """
    answers: list[Any] = []
    while len(answers) < count:
        try:
            answers.append(connection.read_response())
        except exceptions.ResponseError as error:
            # The server became a replica. A new connection leads to the new primary. Redis before 7
            # wraps the error of a command that a script runs in an error of the script.
            if isinstance(error, exceptions.ReadOnlyError) or "-READONLY" in str(error):
                raise exceptions.ConnectionError(str(error)) from error
            answers.append(error)  # the answers after it have to be read all the same
    return answers


def is_shortage(error: BaseException) -> bool:
    """Returns True if the error says that there is no further connection."""
    if SHORTAGE.search(str(error)):
        return True
    return getattr(error.__context__, "errno", None) in NONE_FREE


def close_idle(pool: Any) -> None:
    """Closes the connections of the pool that nobody uses."""
    try:
        pool.disconnect(inuse_connections=False)
    except TypeError:  # BlockingConnectionPool of redis-py before 7 can only close them all
        pool.disconnect()
