"""A Valkey Cluster of three primaries, each with a replica: six processes on loopback, ready in
some two seconds.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from redis.crc import REDIS_CLUSTER_HASH_SLOTS

from demo_project.engines.process import ChildError, free_port
from demo_project.engines.valkey import Valkey
from tests.support import caches
from tests.support.sentinel import wait_until

if TYPE_CHECKING:
    from typing_extensions import Self

SHARDS = 3
CONFIG = {
    "cluster-enabled": "yes",
    "cluster-node-timeout": "30000",  # milliseconds; a busy machine may be slow
    "cluster-require-full-coverage": "no",
    "repl-diskless-sync-delay": "0",
}


class ValkeyCluster:
    """Servers by number: the first three begin as primaries, and number n + 3 as the replica of
    number n.
    """

    def __init__(self, *, config: Mapping[str, str] | None = None, replicas: bool = True) -> None:
        self._width = (
            3 + replicas
        )  # of an entry of CLUSTER SLOTS: first and last slot, and each server
        self._config = {**CONFIG, **(config or {})}
        self._renew(SHARDS * (1 + replicas))
        self._stack = ExitStack()

    def _renew(self, number: int) -> None:
        ports = [str(free_port()) for _ in range(number)]
        password = secrets.token_urlsafe(24)  # of all, because each may become another's replica
        self.servers = [
            Valkey(config={**self._config, "cluster-port": port}, password=password)
            for port in ports
        ]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self) -> None:
        """Starts the servers, which end with this process at the latest."""
        for tries in range(3):
            try:
                for server in self.servers:
                    self._stack.enter_context(server)
                self._assemble()
                return
            except BaseException as error:
                self._stack.close()
                if not isinstance(error, ChildError) or tries == 2:
                    raise
                self._renew(len(self.servers))  # another test run has taken a port meanwhile

    @property
    def urls(self) -> list[str]:
        return [server.url for server in self.servers]

    def cache(self) -> dict[str, Any]:
        """Returns the cache of CACHES."""
        return caches.cluster(self.urls)

    def ask(self, number: int, *command: Any) -> Any:
        """Returns the answer of one server."""
        with self.servers[number].client(decode_responses=True) as client:
            return client.execute_command(*command)

    def id_of(self, number: int) -> str:
        return str(self.ask(number, "CLUSTER", "MYID"))

    def is_primary(self, number: int) -> bool:
        return bool(self.ask(number, "ROLE")[0] == "master")

    @contextmanager
    def configured(self, number: int, name: str, value: str) -> Iterator[None]:
        """Gives one server another value of a directive, and its own one back at the end."""
        before = self.ask(number, "CONFIG GET", name)[name]
        self.ask(number, "CONFIG SET", name, value)
        try:
            yield
        finally:
            self.ask(number, "CONFIG SET", name, before)

    @contextmanager
    def moved(self, slot: int, source: int, target: int) -> Iterator[None]:
        """Moves a slot with its keys, and back at the end."""
        self.move(slot, source, target)
        try:
            yield
        finally:
            self.move(slot, target, source)

    def move(
        self, slot: int, source: int, target: int, *, servers: Iterable[int] | None = None
    ) -> None:
        """Moves a slot with its keys, key by key, as all versions can."""
        with self.importing(slot, source, target):
            while found := self.ask(source, "CLUSTER", "GETKEYSINSLOT", slot, 100):
                self.ask(
                    source,
                    "MIGRATE",
                    "127.0.0.1",
                    self.servers[target].port,
                    "",
                    0,
                    10_000,
                    "AUTH",
                    self.servers[target].password,
                    "KEYS",
                    *found,
                )
            for number in (target, source):
                self.ask(number, "CLUSTER", "SETSLOT", slot, "NODE", self.id_of(target))
        self.until_moved([slot], target, servers=servers)

    def until_moved(
        self, slots: Iterable[int], target: int, *, servers: Iterable[int] | None = None
    ) -> None:
        """Waits until the servers, by default all, know that the slots moved."""
        wanted, where = set(slots), self.servers[target].port

        def have_moved(told: Any) -> bool:
            own = [range(start, end + 1) for start, end, server, *_ in told if server[1] == where]
            return all(any(slot in some for some in own) for slot in wanted)

        self.until_all(have_moved, "CLUSTER", "SLOTS", servers=servers)

    def until_replica(self, number: int) -> None:
        """Waits until the server is a replica that has all data."""
        self.until_all(
            lambda told: told[0] == "slave" and told[3] == "connected", "ROLE", servers=[number]
        )

    @contextmanager
    def importing(self, slot: int, source: int, target: int) -> Iterator[None]:
        """Opens a slot to be moved."""
        self.ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", self.id_of(source))
        self.ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", self.id_of(target))
        try:
            yield
        finally:
            for number in (source, target):
                self.ask(number, "CLUSTER", "SETSLOT", slot, "STABLE")

    def detach(self, number: int) -> None:
        """Cuts the replica of a primary off, so that it lags behind from now on."""
        self.ask(number, "ACL", "SETUSER", "default", "-psync", "-sync")
        self.ask(number, "CLIENT", "KILL", "TYPE", "replica")

    def empty(self) -> None:
        """Removes all keys."""
        for number, server in enumerate(self.servers):
            if server.is_running and self.is_primary(number):
                self.ask(number, "FLUSHALL")

    def _assemble(self) -> None:
        share = REDIS_CLUSTER_HASH_SLOTS // SHARDS + 1
        for number in range(SHARDS):
            last = min((number + 1) * share, REDIS_CLUSTER_HASH_SLOTS) - 1
            self.ask(number, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            self.ask(number, "CLUSTER", "ADDSLOTSRANGE", number * share, last)
        for server in self.servers[1:]:
            self.ask(0, "CLUSTER", "MEET", "127.0.0.1", server.port, server.config["cluster-port"])
        self.until_all(
            lambda told: f"cluster_known_nodes:{len(self.servers)}\r" in told, "CLUSTER", "INFO"
        )
        for number in range(SHARDS, len(self.servers)):
            self.ask(number, "CLUSTER", "REPLICATE", self.id_of(number - SHARDS))
        self.until_all(lambda told: "cluster_state:ok" in told, "CLUSTER", "INFO")
        self.until_all(lambda told: told[0] == "master" or told[3] == "connected", "ROLE")
        self.until_all(
            lambda told: len(told) == SHARDS and {len(shard) for shard in told} == {self._width},
            "CLUSTER",
            "SLOTS",
        )

    def until_all(
        self, holds: Callable[[Any], bool], *command: str, servers: Iterable[int] | None = None
    ) -> None:
        """Waits until the answer of each of the servers, by default of all, is as it should be."""
        for number in range(len(self.servers)) if servers is None else servers:
            wait_until(partial(self._holds, holds, number, *command), server=self.servers[number])

    def _holds(self, holds: Callable[[Any], bool], number: int, *command: str) -> bool:
        return holds(self.ask(number, *command))
