"""The connections of a pool: how scripts use them, and what happens where none is free."""

import errno
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Condition
from time import monotonic, perf_counter
from typing import Any

import redis
from hiredis import Reader, pack_command
from redis import ConnectionPool, exceptions
from redis.sentinel import MasterNotFoundError

from readtrack.conf import logger
from readtrack.store.circuit import BusyError, present_page

# What redis-py says of a pool that is used up, and Redis of its `maxclients`.
SHORTAGE = re.compile("Too many connections|No connection available|max number of clients reached")
NONE_FREE = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL}  # files, or ports
LOGGED_EVERY = 60.0  # seconds
READ_SIZE = 65_536  # bytes that are read at once, as redis-py does it
# Arguments of `get_connection`. redis-py before 5.3 wants the name of a command, and later versions
# warn of it.
ARGUMENTS: tuple[str, ...] = ()
if redis.VERSION < (5, 3):
    ARGUMENTS = ("EVALSHA",)

# The words of a command, or all of them as they are sent.
Command = tuple[Any, ...] | bytes


class Connections:
    """A pool, and some of its connections that scripts keep for the next hit.

    To take a connection out of the pool and put it back costs a hit more than its command.

    Where there is no further connection, because of `max_connections` or of the server's
    `maxclients`, a caller waits for one of those in use.
    """

    def __init__(self, pool: Any, *, patience: float) -> None:
        """Takes the pool. A caller waits `patience` seconds for a connection; a page less."""
        self.pool = pool
        # Scripts keep a tenth of the connections. A pool by Sentinel gets all of them back, so that
        # it can close those to an earlier primary.
        self.most_idle = 0
        if type(pool) is ConnectionPool:
            self.most_idle = pool.max_connections // 10
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
        if len(commands) == 1:
            packed = packed_command(commands[0])
        else:
            packed = b"".join(map(packed_command, commands))
        try:
            return self._exchange(packed, len(commands), meanwhile)
        except MasterNotFoundError:
            raise  # every Sentinel was asked, and none will know more a moment later
        except exceptions.ConnectionError:
            # A server that restarted leaves broken connections in the pool. Sending again is
            # harmless: a view counts only for the script that opens its window, a claim knows its
            # own value again, and all other commands set or merge.
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
        if is_again:
            connection = self._take()
        else:
            try:
                connection = self.idle.pop()
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
        number_taken = len(self.taken)
        try:
            return self._take_from_pool()
        except MasterNotFoundError:
            raise
        except exceptions.ConnectionError as error:
            # While others are open, Redis is there. A server that takes no more clients may close a
            # new connection before it has said why.
            if not (self.taken or is_shortage(error)):
                raise
            return self._wait_for_one(number_taken, error)

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

    def _wait_for_one(self, number_taken: int, error: Exception) -> Any:
        """Returns a connection once one is free, so that fewer than `number_taken` are taken.

        The error is why there are no more. Raises BusyError if none is free in time, and the error
        if all of them broke.
        """
        page = present_page.get()
        seconds = self._patience
        if page is not None:
            seconds = min(seconds, page.seconds_left)
        began = perf_counter()
        try:
            connection = self._take_once_free(began + seconds, number_taken)
        finally:
            if page is not None:
                page.note_wait_for_connection(perf_counter() - began)
        if connection is not None:
            return connection
        if not (self.taken or is_shortage(error)):
            raise error
        self._log(error)
        raise BusyError(f"no connection was free in time: {error}") from error

    def _take_once_free(self, until: float, number_taken: int) -> Any | None:
        """Returns a connection that is free by then (`perf_counter`); None if there is none.

        It ends at once when no connection is taken any more, because then all of them broke.
        """
        with self._freed:
            self._waiting += 1
            try:
                while True:
                    connection = self._take_free(number_taken)
                    seconds = until - perf_counter()
                    if connection is not None or seconds <= 0 or not self.taken:
                        return connection
                    self._freed.wait(seconds)
            finally:
                self._waiting -= 1

    def _take_free(self, number_taken: int) -> Any | None:
        """Returns a connection that is idle, or went back to the pool; None if there is none."""
        with suppress(IndexError):
            return self.idle.pop()
        if len(self.taken) < number_taken:
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


def packed_command(command: Command) -> bytes:
    """Returns the command in the protocol of Redis."""
    if isinstance(command, bytes):
        return command
    packed: bytes = pack_command(command)
    return packed


def words(command: Command) -> Sequence[Any]:
    """Returns the words of the command."""
    if not isinstance(command, bytes):
        return command
    reader = Reader()
    reader.feed(command)
    found: list[bytes] = reader.gets()  # a command is an array of texts, as an answer may be
    return found


def _never() -> bool:
    return False


def _read(connection: Any, count: int) -> list[Any]:
    """Returns that many answers, which may be errors.

    Raises redis.ConnectionError from a replica.
    """
    answers = _first_answers(connection, count)
    while len(answers) < count:
        try:
            answers.append(connection.read_response())
        except exceptions.ResponseError as error:
            answers.append(error)  # the answers after it have to be read all the same
    for answer in answers:
        if isinstance(answer, Exception):
            _check_error(answer)
    return answers


def _first_answers(connection: Any, count: int) -> list[Any]:
    """Returns the answers that arrive together, which are mostly all; errors as they are.

    `read_response` of redis-py returns the others. By itself it takes four functions for each
    answer, and ten thousand instructions more. Returns none for a connection that a client of the
    site's own has made, or whose parser is not hiredis.
    """
    sock: Any = getattr(connection, "_sock", None)
    reader = getattr(getattr(connection, "_parser", None), "_reader", None)
    if reader is None or not getattr(sock, "limits_reading", False):
        return []
    if connection.health_check_interval:  # `read_response` notes that the server is well
        return []
    reader.feed(_received(sock))
    answers: list[Any] = []
    while len(answers) < count:
        answer = reader.gets()
        kind = type(answer)
        # The mark of an answer that has not arrived in full: an `object()` of redis-py, or False of
        # its older versions. Neither is an answer of Redis to one of our commands.
        if kind is object or answer is False:
            break
        if isinstance(answer, list) and kind is not list:  # the server announces something
            connection._parser.handle_push_response(answer)
        else:
            answers.append(answer)
    return answers


def _received(sock: Any) -> bytes:
    """Returns what the server has sent, with the errors of redis-py."""
    try:
        received: bytes = sock.recv(READ_SIZE)
    except TimeoutError as error:
        raise exceptions.TimeoutError(f"Timeout reading from Redis: {error}") from error
    except OSError as error:
        raise exceptions.ConnectionError(f"Error while reading from Redis: {error}") from error
    if not received:
        raise exceptions.ConnectionError("Connection closed by server.")
    return received


def _check_error(error: Exception) -> None:
    """Raises redis.ConnectionError for an error by which the connection is of no more use."""
    if isinstance(error, exceptions.ConnectionError):
        raise error
    # The server became a replica. A new connection leads to the new primary. Redis before 7 wraps
    # the error of a command that a script runs in an error of the script.
    if isinstance(error, exceptions.ReadOnlyError) or "-READONLY" in str(error):
        raise exceptions.ConnectionError(str(error)) from error


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
