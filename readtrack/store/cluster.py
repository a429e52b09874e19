"""Redis Cluster: a client that sends a command to the server of its key, and does without a server
that fails.
"""

import re
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from operator import methodcaller
from time import monotonic, perf_counter_ns, sleep
from typing import Any, TypeVar

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
from readtrack.store.circuit import Circuit, SilentError, present_page

TRIES = 3  # of a page's command that the cluster redirects, or cannot serve for now
PATIENCE = 10.0  # seconds in which long work tries again, so that a replica can take over
PAUSE = 0.1  # seconds between two of its tries
ASKED_EVERY = 0.25  # seconds between two questions of a process where the slots are

# Of all scripts, or of all writes. redis-py drops some codes.
REFUSAL = re.compile(r"(^|-)(BUSY|MISCONF|NOREPLICAS|OOM) |'maxmemory'|Link with MASTER")
REDIRECTED = (AskError, ClusterDownError, SilentError, TryAgainError)  # MovedError is an AskError

Address = tuple[str, int]
Command = tuple[Any, ...]
Ask = Callable[[Redis, Sequence[Command], Callable[[], None]], Sequence[Any]]
Result = TypeVar("Result")


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
            self.refresh()
        if key is None:
            found = min(
                self._primaries, key=lambda one: self.server(one)[1].opened or 0, default=None
            )
        else:
            found = self._slots[key_slot(key.encode() if isinstance(key, str) else key)]
        if found is None:
            raise SilentError(
                "no server of the cluster has the slot"
                if self._primaries
                else "no server of the cluster answers"
            )
        return found

    def at(self, address: Address, ask: Callable[[Redis], Result]) -> Result:
        """Returns the answer of that server. Raises SilentError, at once if the server failed a
        moment ago.
        """
        client, circuit = self.server(address)
        page = present_page.get()
        left = page.left if page and not self.is_patient else inf
        if left <= 0 or not (self.is_patient or circuit.opened is None or circuit.lets_pass()):
            raise SilentError(f"{circuit.name} failed a moment ago")
        before = (
            page.left + page.elsewhere if page else 0.0
        )  # less what `ask` waits for other servers
        try:
            try:
                result = ask(client)
                circuit.opened = None
            finally:
                if page:  # that it waited is noted in the circuit of the server, and nowhere else
                    waited = before - page.left - page.elsewhere
                    page.elsewhere += waited
                    circuit.note_wait(waited)
            for answer in result if isinstance(result, list) and not self.is_patient else ():
                if isinstance(answer, ResponseError) and REFUSAL.search(str(answer)):
                    raise answer
        except (
            ResponseError,
            exceptions.ConnectionError,
            exceptions.TimeoutError,
            OSError,
        ) as error:
            is_answer = isinstance(error, ResponseError)
            if is_answer and (self.is_patient or not REFUSAL.search(str(error))):
                raise
            # A server that had little time, because another one hangs, is not to blame.
            is_to_blame = (
                is_answer
                or left > conf.TIMEOUT / 2
                or isinstance(error, exceptions.ConnectionError)
            )
            if not self.is_patient and is_to_blame:
                circuit.open(error)
                if page:  # gets a moment (s) to take what the others have answered meanwhile
                    page.left = max(page.left, 0.005)
            raise SilentError(f"{circuit.name} failed: {type(error).__name__}: {error}") from error
        return result

    def _follow(self, error: RedisError) -> bool:
        """Learns where slots are now. Returns True if it makes sense to send the command again."""
        if (page := present_page.get()) and page.left <= 0:
            return False
        if isinstance(error, MovedError):
            self.refresh()
            address = self._slots[error.slot_id] = self._named(error)
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
        if (
            self._primaries and monotonic() - self._asked < ASKED_EVERY
        ):  # each of a process's first threads asks
            return False
        self._asked = monotonic()
        self._known.rotate()
        for address in sorted(self._known, key=lambda one: self.server(one)[1].opened or 0):
            try:
                found = self.at(address, methodcaller("execute_command", "CLUSTER", "SLOTS"))
            except RedisError:
                continue
            slots: list[Address | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
            known, primaries = dict[Address, None](), dict[Address, None]()
            for start, end, *servers in found:
                # A server that does not know its own name gives none.
                addresses = [
                    (str_if_bytes(host or "") or address[0], int(port))
                    for host, port, *_ in servers
                ]
                slots[start : end + 1] = [addresses[0]] * (end + 1 - start)
                primaries[addresses[0]] = None
                known.update(dict.fromkeys(addresses))
            if primaries:
                self._slots, self._primaries, self._known = slots, [*primaries], deque(known)
                for gone in set(self._servers) - {*known}:
                    client, _ = self._servers.pop(
                        gone, (self, None)
                    )  # another thread may do the same
                    client.connection_pool.disconnect(inuse_connections=False)
                return True
        return False

    def server(self, address: Address) -> tuple[Redis, Circuit]:
        """Returns the client of one server, and its circuit."""
        if address not in self._servers:
            self._servers[address] = (
                self._client_of(address),
                Circuit("Redis at {}:{}".format(*address)),
            )
        return self._servers[address]

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Returns the answer of the key's server, wherever the key is by now. Raises
        redis.RedisError.
        """

        def redirect(client: Redis) -> Any:
            pipeline: Any = client.pipeline(transaction=False)
            return pipeline.execute_command("ASKING").execute_command(*args, **options).execute()[1]

        until, tries = monotonic() + PATIENCE, 1
        while True:
            try:
                try:
                    return self.at(
                        self.address(_key_of(args)),
                        methodcaller("execute_command", *args, **options),
                    )
                except AskError as error:
                    if isinstance(error, MovedError):
                        raise
                    return self.at(
                        self._named(error), redirect
                    )  # the slot of the key is on its way there
            except REDIRECTED as error:
                is_last = monotonic() > until if self.is_patient else tries == TRIES
                if is_last or not self._follow(error):
                    raise SilentError(f"{type(error).__name__}: {error}") from error
                tries += 1

    def spread(self, commands: Sequence[Command], ask: Ask) -> list[Any]:
        """Returns the answers to the commands; an error is the answer to the command that it
        concerns.

        `ask` takes a client of a server, the commands for it and a function that asks the other
        servers, which it calls once it has sent them, so that all are sent before any answer is
        waited for.
        """
        answers: list[Any] = [None] * len(commands)
        groups = defaultdict[Address, list[int]](list)
        names = [_key_of(command) for command in commands]
        anywhere = next(filter(None, names), None)
        for place, name in enumerate(names):
            try:
                groups[self.address(name or anywhere)].append(place)
            except SilentError as error:
                answers[place] = error
        waiting = list(groups.items())

        def ask_next() -> None:
            if waiting:
                address, places = waiting.pop()
                some = [commands[place] for place in places]
                try:
                    found = self.at(address, lambda client: ask(client, some, ask_next))
                except SilentError as error:
                    found = [error] * len(places)
                for place, answer in zip(places, found, strict=True):
                    answers[place] = answer

        while waiting:
            ask_next()
        given = zip(commands, answers, strict=True)
        return [
            self._repeated(command) if isinstance(answer, REDIRECTED) else answer
            for command, answer in given
        ]

    def _repeated(self, command: Command) -> Any:
        try:
            return self.execute_command(*command)
        except RedisError as error:
            if self.is_patient and isinstance(error, SilentError):
                raise  # without the others, each of which would wait as long
            return error

    def disconnect(self, *, inuse_connections: bool = True) -> None:
        """Closes the connections to all servers."""
        for client, _ in list(self._servers.values()):  # other threads may meet new ones
            client.connection_pool.disconnect(inuse_connections)

    def scan(self, cursor: Any = 0, *args: Any, **options: Any) -> Any:
        """Returns a cursor and keys of one server. Those of one that fails come again, from the one
        that takes over.
        """
        done, address, place = (
            cursor if isinstance(cursor, tuple) else (frozenset[Address](), None, 0)
        )
        until = monotonic() + PATIENCE
        while True:
            if address is None:
                self.clients()
                address = next((one for one in self._primaries if one not in done), None)
            if address is None:
                return 0, []
            try:
                place, names = self.at(address, methodcaller("scan", place, *args, **options))
            except SilentError:
                if monotonic() > until:
                    raise
                sleep(PAUSE)
                address, place = None, 0
            else:
                return (done, address, place) if place else (done | {address}, None, 0), names

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
