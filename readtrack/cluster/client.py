"""A client of a cluster. If one server fails, only the commands for that server do."""

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
from readtrack.store.circuit import (
    REFUSAL,
    BusyError,
    Circuit,
    Page,
    SilentError,
    present_page,
)
from readtrack.store.pools import Command, close_idle, is_shortage
from readtrack.store.servers import Ask, SeveralServers

Address = tuple[str, int]  # host and port
TRIES = 3  # of a page's command that the cluster redirects, or cannot serve for now
# Seconds that long work waits for one answer, before it asks the other servers who has the slot by
# now. No script takes as long.
ANSWER = 5.0
# Seconds in which long work tries again, so that a replica can take over: by default it does so
# 15 s after its primary fell silent.
PATIENCE = 20.0
PAUSE = 0.1  # seconds between two of its tries
ASKED_EVERY = 0.25  # seconds after which a process may ask again where the slots are

REDIRECTED = (AskError, ClusterDownError, SilentError, TryAgainError)  # MovedError is an AskError

# Errors of a server, and of the connection to it.
FAILURES = (ResponseError, exceptions.ConnectionError, exceptions.TimeoutError, OSError)
# Seconds that a page without time gets, to read the answers that other servers have sent already.
MOMENT = 0.005

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


class Cluster(SeveralServers):
    """A client of all servers of a cluster, each of which has its own circuit.

    All keys of a command have to be in one slot.
    """

    def __init__(
        self, seeds: Sequence[Address], client_of: Callable[[Address], Redis], *, is_patient: bool
    ) -> None:
        """Takes the addresses of some servers, and a function that makes a client of one server.

        A patient client is for long work: it tries again, and opens no circuit.
        """
        super().__init__(connection_pool=client_of(seeds[0]).connection_pool)
        self.is_patient = is_patient
        self._client_of = client_of
        self._addresses = deque(seeds)  # of all servers that are known, replicas included
        self._servers: dict[Address, tuple[Redis, Circuit]] = {}
        self._slots: list[Address | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._primaries: list[Address] = []
        self._asked = -ASKED_EVERY  # by the monotonic clock
        self._beginning = Lock()  # of the thread that asks first where the slots are

    def clients(self) -> list[Redis]:
        """Returns a client of each server that has slots. Raises SilentError if no server of the
        cluster answers.
        """
        if self.is_patient:
            self.refresh()
        self.address(None)  # raises SilentError
        servers = [self.server(address) for address in self._primaries]
        return [client for client, _ in servers]

    def address(self, key: str | bytes | None) -> Address:
        """Returns the address of the key's server. Raises SilentError if no server is known.

        Without a key, it is the address of a primary, of one that has not failed if possible.
        """
        if not self._primaries:
            self._begin()
        if key is None:
            address = min(self._primaries, key=self._failed_at, default=None)
        else:
            key_bytes = key.encode() if isinstance(key, str) else key
            address = self._slots[key_slot(key_bytes)]
        if address is not None:
            return address
        if self._primaries:
            raise SilentError("no server of the cluster has the slot")
        raise SilentError("no server of the cluster answers")

    def _begin(self) -> None:
        """Learns where the slots are. One thread asks, because a pool may have one connection."""
        page = present_page.get()
        seconds = PATIENCE if page is None else max(0.0, page.seconds_left)
        began = perf_counter()
        has_turn = self._beginning.acquire(timeout=seconds)
        if page is not None:
            page.note_wait_for_connection(perf_counter() - began)
        try:
            if not self._primaries:
                self.refresh()
        finally:
            if has_turn:
                self._beginning.release()

    def at(self, address: Address, ask: Callable[[Redis], Result]) -> Result:
        """Returns what `ask` returns for the client of the server at that address.

        Raises SilentError if the server fails; at once, without asking, if it failed a moment ago.
        """
        client, circuit = self.server(address)
        if self.is_patient:
            return self._at_patiently(client, circuit, ask)
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
            if _has_failed(error, seconds_left):
                _give_up(page, circuit, error)
            raise _silent(circuit, error) from error
        return result

    def _at_patiently(
        self, client: Redis, circuit: Circuit, ask: Callable[[Redis], Result]
    ) -> Result:
        """Returns what `ask` returns for that client. For long work, which opens no circuit."""
        page = present_page.get()
        try:
            return _asked_within(page, client, circuit, ask)
        except ResponseError:
            raise
        except FAILURES as error:
            circuit.opened = monotonic()  # only so that other servers are asked before it
            raise _silent(circuit, error) from error

    def _follow(self, error: RedisError) -> bool:
        """Learns where slots are now. Returns True if the command may be sent again."""
        page = present_page.get()
        if page and page.seconds_left <= 0:
            return False
        if isinstance(error, MovedError):
            self.refresh()
            # The server that answered may not know of the move yet, but the error does.
            address = self._address_in(error)
            self._slots[error.slot_id] = address
            if address not in self._primaries:
                self._primaries.append(address)
            return True
        # The server is down. Another one may have taken its slots, or will.
        if self.is_patient:
            sleep(PAUSE)
        is_refreshed = self.refresh()
        return is_refreshed or self.is_patient

    def _address_in(self, error: AskError) -> Address:
        """Returns the address of the server to which the error redirects."""
        # A server that does not know the host of the other server leaves it out. It then is the
        # host of the servers that are known.
        known_host, _ = self._addresses[0]
        return error.host or known_host, error.port

    def refresh(self) -> bool:
        """Asks a server where the slots are, unless this process did so a moment ago.

        Returns True if a server answered.
        """
        if self._primaries and monotonic() - self._asked < ASKED_EVERY:
            return False
        self._asked = monotonic()
        self._addresses.rotate()
        for address in sorted(self._addresses, key=self._failed_at):
            try:
                answer = self.at(address, methodcaller("execute_command", "CLUSTER", "SLOTS"))
            except RedisError:
                continue
            layout = _layout_of(answer, asked=address)
            if layout.primaries:
                self._slots = layout.slots
                self._primaries = layout.primaries
                self._addresses = deque(layout.servers)
                self._forget_others(layout.servers)
                return True
        return False

    def _failed_at(self, address: Address) -> float:
        """Returns when the server failed (monotonic clock), 0 for a server that did not."""
        _, circuit = self.server(address)
        return circuit.opened or 0

    def _forget_others(self, servers: Sequence[Address]) -> None:
        """Closes the connections to all servers but these, which are those of the cluster now."""
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
                is_last = tries == TRIES
                if self.is_patient:
                    is_last = monotonic() > until
                if is_last or not self._follow(error):
                    raise SilentError(f"{type(error).__name__}: {error}") from error
                tries += 1

    def _try_command(self, *args: Any, **options: Any) -> Any:
        """Returns the answer of the key's server.

        While the key's slot is moving to another server, the other server may answer.
        """

        def ask_new_server(client: Redis) -> Any:
            pipeline: Any = client.pipeline(transaction=False)
            pipeline.execute_command("ASKING")  # without it, the server would redirect us back
            pipeline.execute_command(*args, **options)
            _, answer = pipeline.execute()
            return answer

        try:
            address = self.address(_key_of(args))
            return self.at(address, methodcaller("execute_command", *args, **options))
        except MovedError:  # an AskError, too
            raise
        except AskError as error:
            return self.at(self._address_in(error), ask_new_server)

    def spread(self, commands: Sequence[Command], ask: Ask) -> list[Any]:
        """Returns the answer to each command, as `SeveralServers` says."""
        answers: list[Any] = [None] * len(commands)
        unasked_servers = self._by_server(commands, answers)

        def ask_next() -> None:
            """Puts the answers of the next server into `answers`."""
            if not unasked_servers:
                return
            address, indexes = unasked_servers.pop()
            portion = [commands[index] for index in indexes]
            try:
                server_answers = self.at(address, lambda client: ask(client, portion, ask_next))
            except SilentError as error:
                server_answers = [error] * len(indexes)
            for index, answer in zip(indexes, server_answers, strict=True):
                answers[index] = answer

        while unasked_servers:  # those after a server that failed before it called `meanwhile`
            ask_next()
        if self.is_patient and any(isinstance(answer, SilentError) for answer in answers):
            self.refresh()  # a replica may have taken over
        silent: dict[Address | None, RedisError] = {}
        for index, answer in enumerate(answers):
            if isinstance(answer, REDIRECTED):
                answers[index] = self._repeated(commands[index], silent)
        return answers

    def _by_server(
        self, commands: Sequence[Command], answers: list[Any]
    ) -> list[tuple[Address, list[int]]]:
        """Returns the address of each server, with the indexes of the commands for it.

        Puts an error into `answers` for each command that no server can take.
        """
        groups = defaultdict[Address, list[int]](list)
        command_keys = [_key_of(command) for command in commands]
        first_key = next(filter(None, command_keys), None)
        for index, key in enumerate(command_keys):
            try:
                # A command without a key goes to a server that is asked anyway.
                groups[self.address(key or first_key)].append(index)
            except SilentError as error:
                answers[index] = error
        # In one order, so that no two threads wait for a connection that the other thread has.
        return sorted(groups.items())

    def _repeated(self, command: Command, silent: dict[Address | None, RedisError]) -> Any:
        """Returns the answer to a command that is sent again, or its error.

        Long work waits for each server once. `silent` has the errors of those for which it has
        waited, and at None of slots without a server.
        """
        address: Address | None = None
        with suppress(SilentError):
            address = self.address(_key_of(command))
        if address in silent:
            return silent[address]
        try:
            return self.execute_command(*command)
        except RedisError as error:
            # A server that answers may serve other commands, though this one's slot is on its way.
            if self.is_patient and (address is None or self._failed_at(address)):
                silent[address] = error
            return error

    def disconnect(self) -> None:
        """Closes the connections to all servers that nobody uses."""
        for client, _ in list(self._servers.values()):  # a copy, because other threads may add some
            close_idle(client.connection_pool)

    def scan(self, cursor: Any = 0, *args: Any, **options: Any) -> Any:
        """Returns a cursor for the next call, and keys of one server. The last cursor is 0.

        If a server fails, its keys come again, from the replica that takes over. Raises SilentError
        if none does.
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
            next_cursor, key_names = scanned
            if next_cursor:
                return position._replace(cursor=next_cursor), key_names
            return ScanPosition(position.done | {address}), key_names

    def scan_of(self, names: Sequence[str]) -> ScanPosition:
        """Returns the beginning of a scan of the servers that have these keys."""
        self.clients()  # refreshes the primaries
        needed = {self.address(name) for name in names}
        return ScanPosition(frozenset(self._primaries) - needed)

    def _next_to_scan(self, done: frozenset[Address]) -> Address | None:
        """Returns a primary that is not among the done ones; None if all are done."""
        self.clients()  # refreshes the primaries
        return next((address for address in self._primaries if address not in done), None)

    def time(self, **options: Any) -> Any:
        """Returns the earliest time of the servers that answer, in seconds and microseconds.

        By a later time, a page would seem to begin after it did, and would mark as read what was
        published meanwhile.
        """
        # By how much each server's clock is ahead of `perf_counter` (ns). Not the time itself,
        # because that passes while the next servers are asked.
        ahead = []
        self.address(None)  # learns the primaries; raises SilentError if none is known
        for address in self._primaries:
            if self.is_patient and self._failed_at(address):
                continue  # or each question would wait for it again
            with suppress(SilentError):
                seconds, microseconds = self.at(address, lambda client: client.time(**options))
                ahead.append((seconds * 1_000_000 + microseconds) * 1_000 - perf_counter_ns())
        if not ahead:  # tries once more, and raises the error
            return super().time(**options)
        return divmod((min(ahead) + perf_counter_ns()) // 1_000, 1_000_000)


def _key_of(command: Any) -> Any:
    """Returns the first key of a command; None for one without keys."""
    key_index = {"EVAL": 3, "EVALSHA": 3, "MEMORY": 2}.get(command[0], 1)
    return command[key_index] if len(command) > key_index else None


def _seconds_left(page: Page | None) -> float:
    """Returns how long the page may still wait (s); without a page that is for ever."""
    return inf if page is None else page.seconds_left


def _lets_pass(circuit: Circuit) -> bool:
    """Returns True if the server may be asked. A closed circuit takes no lock."""
    return circuit.opened is None or circuit.lets_pass()


def _asked_within(
    page: Page | None, client: Redis, circuit: Circuit, ask: Callable[[Redis], Result]
) -> Result:
    """Returns what `ask` returns for the client, and closes the circuit of the server.

    The time that the page waited is noted in the circuit of the server, not in that of the site.
    """
    if page is None:
        result = ask(client)
        if circuit.opened is not None:
            circuit.close()
        return result
    # `ask` may also wait for other servers, whose circuits note that part of the time.
    before = page.seconds_left + page.seconds_excused
    try:
        result = ask(client)
        circuit.opened = None
    finally:
        waited = before - page.seconds_left - page.seconds_excused
        page.seconds_excused += waited
    circuit.note_wait(waited)
    return result


def _has_failed(error: Exception, seconds_left: float) -> bool:
    """Returns True if the error means that the server failed.

    A time-out does not if the page had little time left, because another server hangs. Nor does a
    shortage of connections.
    """
    if isinstance(error, exceptions.ConnectionError):
        return not is_shortage(error)
    return isinstance(error, ResponseError) or seconds_left > conf.TIMEOUT / 2


def _give_up(page: Page | None, circuit: Circuit, error: Exception) -> None:
    """Opens the circuit of a server, and gives the page time to read other servers' answers."""
    circuit.open(error)
    if page:
        page.seconds_left = max(page.seconds_left, MOMENT)


def _raise_refusal(result: Any) -> None:
    """Raises the first of several answers by which the server refuses all scripts or writes."""
    if not isinstance(result, list):
        return
    for answer in result:
        if isinstance(answer, ResponseError) and REFUSAL.search(str(answer)):
            raise answer


def _silent(circuit: Circuit, error: Exception) -> SilentError:
    """Returns the error that says which server failed, and why."""
    kind = BusyError if is_shortage(error) else SilentError
    return kind(f"{circuit.name} failed: {type(error).__name__}: {error}")


def _layout_of(answer: Any, *, asked: Address) -> Layout:
    """Returns the layout in an answer to CLUSTER SLOTS of the server at the address `asked`."""
    slots: list[Address | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
    primaries: dict[Address, None] = {}  # the keys, in their order
    all_servers: dict[Address, None] = {}
    for start, end, *servers in answer:
        addresses = [_address_of(server, asked=asked) for server in servers]
        primary = addresses[0]
        slots[start : end + 1] = [primary] * (end + 1 - start)
        primaries[primary] = None
        all_servers.update(dict.fromkeys(addresses))
    return Layout(slots, [*primaries], [*all_servers])


def _address_of(server: Sequence[Any], *, asked: Address) -> Address:
    """Returns the address of a server in an answer to CLUSTER SLOTS."""
    host, port, *_ = server
    # A server that does not know its own host leaves it out.
    asked_host, _ = asked
    return str_if_bytes(host or "") or asked_host, int(port)
