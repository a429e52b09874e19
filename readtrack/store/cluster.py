"""Redis Cluster: a client that sends a command to the server of its key, and does without a server
that fails.
"""

import re
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from operator import methodcaller
from threading import Lock
from time import monotonic, perf_counter, perf_counter_ns, sleep
from typing import Any, NamedTuple, TypeVar

from redis import Redis, exceptions
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MovedError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.utils import str_if_bytes

from readtrack.conf import conf
from readtrack.store.circuit import BusyError, Circuit, Page, SilentError, present_page
from readtrack.store.pools import close_idle, is_shortage

TRIES = 3  # of a page's command that the cluster redirects, or cannot serve for now
PATIENCE = 10.0  # seconds in which long work tries again, so that a replica can take over
PAUSE = 0.1  # seconds between two of its tries
ASKED_EVERY = 0.25  # seconds between two questions of a process where the slots are

# Of all scripts, or of all writes. redis-py drops some codes.
REFUSAL = re.compile(r"(^|-)(BUSY|MISCONF|NOREPLICAS|OOM) |'maxmemory'|Link with MASTER")
REDIRECTED = (AskError, ClusterDownError, SilentError, TryAgainError)  # MovedError is an AskError

Address = tuple[str, int]
Command = tuple[Any, ...]
# Errors of a server, and of the way to it.
FAILURES = (ResponseError, exceptions.ConnectionError, exceptions.TimeoutError, OSError)
MOMENT = 0.005  # seconds that a page gets to take what other servers have answered meanwhile

Ask = Callable[[Redis, Sequence[Command], Callable[[], None]], Sequence[Any]]
Result = TypeVar("Result")


class Layout(NamedTuple):
    """The servers of a cluster, and the primary of each slot."""

    slots: list[Address | None]
    primaries: list[Address]
    servers: list[Address]  # replicas, too


class ScanPosition(NamedTuple):
    """How far a scan of all servers is: a cursor over several servers."""

    done: frozenset[Address] = frozenset()
    address: Address | None = None  # the server that is being scanned
    cursor: Any = 0  # of that server


class Cluster(Redis):
    """A client of all servers of a cluster, each with a circuit of its own. All keys of a command
    are in one slot.
    """

    def __init__(
        self, seeds: Sequence[Address], client_of: Callable[[Address], Redis], *, is_patient: bool
    ) -> None:
        """Takes addresses of some servers, and a function that makes the client of one."""
        super().__init__(connection_pool=client_of(seeds[0]).connection_pool)
        self.is_patient = is_patient
        self._client_of = client_of
        self._known = deque(seeds)
        self._servers: dict[Address, tuple[Redis, Circuit]] = {}
        self._slots: list[Address | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._primaries: list[Address] = []
        self._asked = -ASKED_EVERY  # by the monotonic clock
        self._beginning = Lock()

    def clients(self) -> list[Redis]:
        """Returns a client of each server that has slots. Raises SilentError if no server of the
        cluster answers.
        """
        if self.is_patient:
            self.refresh()
        self.address(None)
        return [self.server(address)[0] for address in self._primaries]

    def address(self, key: str | bytes | None) -> Address:
        """Returns the server of the key; for None one that answers. Raises SilentError if nobody
        knows one.
        """
        if not self._primaries:
            self._begin()
        if key is None:
            address = min(self._primaries, key=self._failed_at, default=None)
        else:
            address = self._slots[key_slot(key.encode() if isinstance(key, str) else key)]
        if address is not None:
            return address
        if self._primaries:
            raise SilentError("no server of the cluster has the slot")
        raise SilentError("no server of the cluster answers")

    def _begin(self) -> None:
        """Asks where the slots are, unless another thread does: a pool may have one connection."""
        page = present_page.get()
        seconds = PATIENCE if page is None else max(0.0, page.left)
        began = perf_counter()
        has_turn = self._beginning.acquire(timeout=seconds)
        if page is not None:
            page.wait_for_connection(perf_counter() - began)
        try:
            if not self._primaries:
                self.refresh()
        finally:
            if has_turn:
                self._beginning.release()

    def at(self, address: Address, ask: Callable[[Redis], Result]) -> Result:
        """Returns the answer of that server. Raises SilentError, at once if the server failed a
        moment ago.
        """
        client, circuit = self.server(address)
        if self.is_patient:
            return self._at_length(client, circuit, ask)
        page = present_page.get()
        seconds_left = _seconds_left(page)
        if seconds_left <= 0 or not _lets_pass(circuit):
            raise SilentError(f"{circuit.name} failed a moment ago")
        try:
            result = _asked_within(page, client, circuit, ask)
            _raise_refusal(result)
        except FAILURES as error:
            if isinstance(error, ResponseError) and not REFUSAL.search(str(error)):
                raise
            if _is_to_blame(error, seconds_left):
                _give_up(page, circuit, error)
            raise _silent(circuit, error) from error
        return result

    def _at_length(self, client: Redis, circuit: Circuit, ask: Callable[[Redis], Result]) -> Result:
        """Returns the answer of a server to long work, for which no circuit opens."""
        page = present_page.get()
        try:
            return _asked_within(page, client, circuit, ask)
        except ResponseError:
            raise
        except FAILURES as error:
            raise _silent(circuit, error) from error

    def _follow(self, error: RedisError) -> bool:
        """Learns where slots are now. Returns True if it makes sense to send the command again."""
        page = present_page.get()
        if page and page.left <= 0:
            return False
        if isinstance(error, MovedError):
            self.refresh()
            address = self._named(error)
            self._slots[error.slot_id] = address
            if address not in self._primaries:
                self._primaries.append(address)
            return True
        if self.is_patient:
            sleep(PAUSE)
        return self.refresh() or self.is_patient

    def _named(self, error: AskError) -> Address:
        # A server that does not know the other's name gives none: it is its own.
        return error.host or self._known[0][0], error.port

    def refresh(self) -> bool:
        """Asks a server where the slots are, unless this process did so a moment ago. Returns True
        if one answered.
        """
        if self._primaries and monotonic() - self._asked < ASKED_EVERY:
            return False
        self._asked = monotonic()
        self._known.rotate()
        for address in sorted(self._known, key=self._failed_at):
            try:
                answer = self.at(address, methodcaller("execute_command", "CLUSTER", "SLOTS"))
            except RedisError:
                continue
            layout = _layout_of(answer, asked=address)
            if layout.primaries:
                self._slots = layout.slots
                self._primaries = layout.primaries
                self._known = deque(layout.servers)
                self._forget_others(layout.servers)
                return True
        return False

    def _failed_at(self, address: Address) -> float:
        """Returns when the server failed (monotonic clock), 0 for a server that did not."""
        return self.server(address)[1].opened or 0

    def _forget_others(self, servers: Sequence[Address]) -> None:
        """Closes the connections to the servers that are in the cluster no more."""
        for address in set(self._servers) - {*servers}:
            client, _ = self._servers.pop(address, (self, None))  # another thread may do the same
            close_idle(client.connection_pool)

    def server(self, address: Address) -> tuple[Redis, Circuit]:
        """Returns the client of one server, and its circuit."""
        if address not in self._servers:
            host, port = address
            self._servers[address] = (
                self._client_of(address),
                Circuit(f"Redis at {host}:{port}"),
            )
        return self._servers[address]

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Returns the answer of the key's server, wherever the key is by now. Raises
        redis.RedisError.
        """
        until = monotonic() + PATIENCE
        tries = 1
        while True:
            try:
                return self._try_command(*args, **options)
            except REDIRECTED as error:
                is_last = monotonic() > until if self.is_patient else tries == TRIES
                if is_last or not self._follow(error):
                    raise SilentError(f"{type(error).__name__}: {error}") from error
                tries += 1

    def _try_command(self, *args: Any, **options: Any) -> Any:
        """Returns the answer of the server that should have the key, or of the one to which the
        key's slot is on its way.
        """

        def redirected(client: Redis) -> Any:
            pipeline: Any = client.pipeline(transaction=False)
            return pipeline.execute_command("ASKING").execute_command(*args, **options).execute()[1]

        try:
            address = self.address(_key_of(args))
            return self.at(address, methodcaller("execute_command", *args, **options))
        except MovedError:
            raise
        except AskError as error:
            return self.at(self._named(error), redirected)

    def spread(self, commands: Sequence[Command], ask: Ask) -> list[Any]:
        """Returns the answers to the commands; an error is the answer to the command that it
        concerns.

        `ask` takes a client of a server, the commands for it and a function that asks the other
        servers, which it calls once it has sent them, so that all are sent before any answer is
        waited for.
        """
        answers: list[Any] = [None] * len(commands)
        waiting = self._by_server(commands, answers)

        def ask_next() -> None:
            if not waiting:
                return
            address, places = waiting.pop()
            portion = [commands[place] for place in places]
            try:
                answered = self.at(address, lambda client: ask(client, portion, ask_next))
            except SilentError as error:
                answered = [error] * len(places)
            for place, answer in zip(places, answered, strict=True):
                answers[place] = answer

        while waiting:
            ask_next()
        return [
            self._repeated(command) if isinstance(answer, REDIRECTED) else answer
            for command, answer in zip(commands, answers, strict=True)
        ]

    def _by_server(
        self, commands: Sequence[Command], answers: list[Any]
    ) -> list[tuple[Address, list[int]]]:
        """Returns the places of the commands for each server. An error becomes the answer to a
        command that no server can take.
        """
        groups = defaultdict[Address, list[int]](list)
        names = [_key_of(command) for command in commands]
        first_name = next(filter(None, names), None)
        for place, name in enumerate(names):
            try:
                # A command without a key goes where another one goes anyway.
                groups[self.address(name or first_name)].append(place)
            except SilentError as error:
                answers[place] = error
        # In one order, so that no two threads wait for the connection that the other one has.
        return sorted(groups.items())

    def _repeated(self, command: Command) -> Any:
        try:
            return self.execute_command(*command)
        except RedisError as error:
            if self.is_patient and isinstance(error, SilentError):
                raise  # without the others, each of which would wait as long
            return error

    def disconnect(self) -> None:
        """Closes the connections to all servers that nobody uses."""
        for client, _ in list(self._servers.values()):  # other threads may meet new ones
            close_idle(client.connection_pool)

    def scan(self, cursor: Any = 0, *args: Any, **options: Any) -> Any:
        """Returns a cursor and keys of one server. Those of one that fails come again, from the one
        that takes over.
        """
        position = cursor if isinstance(cursor, ScanPosition) else ScanPosition()
        until = monotonic() + PATIENCE
        while True:
            if position.address is None:
                position = position._replace(address=self._next_to_scan(position.done))
            address = position.address
            if address is None:
                return 0, []
            try:
                scanned = self.at(address, methodcaller("scan", position.cursor, *args, **options))
            except SilentError:
                if monotonic() > until:
                    raise
                sleep(PAUSE)
                position = ScanPosition(position.done)
                continue
            next_cursor, names = scanned
            if next_cursor:
                return position._replace(cursor=next_cursor), names
            return ScanPosition(position.done | {address}), names

    def _next_to_scan(self, done: frozenset[Address]) -> Address | None:
        """Returns a server whose keys were not all returned; None if all were."""
        self.clients()  # refreshes the primaries
        return next((address for address in self._primaries if address not in done), None)

    def time(self, **options: Any) -> Any:
        """Returns the earliest time of the servers that answer, so that no page seems to begin
        after it did.
        """
        # nanoseconds by which each clock is ahead of `perf_counter`: an answer ages while others
        # are asked
        ahead = []
        self.address(None)
        for address in self._primaries:
            with suppress(SilentError):
                seconds, microseconds = self.at(address, lambda client: client.time(**options))
                ahead.append((seconds * 1_000_000 + microseconds) * 1_000 - perf_counter_ns())
        if not ahead:
            return super().time(**options)
        return divmod((min(ahead) + perf_counter_ns()) // 1_000, 1_000_000)


def _key_of(command: Command) -> Any:
    """Returns the first key of a command; None for one without keys."""
    place = {"EVAL": 3, "EVALSHA": 3, "MEMORY": 2}.get(command[0], 1)
    return command[place] if len(command) > place else None


def _seconds_left(page: Page | None) -> float:
    return inf if page is None else page.left


def _lets_pass(circuit: Circuit) -> bool:
    return circuit.opened is None or circuit.lets_pass()


def _asked_within(
    page: Page | None, client: Redis, circuit: Circuit, ask: Callable[[Redis], Result]
) -> Result:
    """Returns what the server answers, and closes its circuit.

    How long the page waited is noted in the circuit of the server, and nowhere else.
    """
    if page is None:
        result = ask(client)
        if circuit.opened is not None:
            circuit.close()
        return result
    # `ask` may wait for other servers, too, which note their own part of the time.
    before = page.left + page.elsewhere
    try:
        result = ask(client)
        circuit.opened = None
    finally:
        waited = before - page.left - page.elsewhere
        page.elsewhere += waited
    circuit.note_wait(waited)
    return result


def _is_to_blame(error: Exception, seconds_left: float) -> bool:
    """Returns True if the server failed, and did not just have little time because another one hangs."""
    if isinstance(error, exceptions.ConnectionError):
        return not is_shortage(error)
    return isinstance(error, ResponseError) or seconds_left > conf.TIMEOUT / 2


def _give_up(page: Page | None, circuit: Circuit, error: Exception) -> None:
    """Opens the circuit of a server, and lets the page take the answers of the other servers."""
    circuit.open(error)
    if page:
        page.left = max(page.left, MOMENT)


def _raise_refusal(result: Any) -> None:
    """Raises the first answer of several by which the server refuses all scripts or writes."""
    if not isinstance(result, list):
        return
    for answer in result:
        if isinstance(answer, ResponseError) and REFUSAL.search(str(answer)):
            raise answer


def _silent(circuit: Circuit, error: Exception) -> SilentError:
    kind = BusyError if is_shortage(error) else SilentError
    return kind(f"{circuit.name} failed: {type(error).__name__}: {error}")


def _layout_of(answer: Any, *, asked: Address) -> Layout:
    """Returns the layout in an answer to CLUSTER SLOTS of the server that was asked."""
    slots: list[Address | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
    primaries: dict[Address, None] = {}
    known: dict[Address, None] = {}
    for start, end, *servers in answer:
        addresses = [_address_of(server, asked=asked) for server in servers]
        primary = addresses[0]
        slots[start : end + 1] = [primary] * (end + 1 - start)
        primaries[primary] = None
        known.update(dict.fromkeys(addresses))
    return Layout(slots, [*primaries], [*known])


def _address_of(server: Sequence[Any], *, asked: Address) -> Address:
    """Returns the address of a server in an answer to CLUSTER SLOTS."""
    host, port, *_ = server
    # A server that does not know its own name gives none.
    return str_if_bytes(host or "") or asked[0], int(port)
