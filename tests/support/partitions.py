"""Partitions in tests: `READTRACK_TEST_PARTITIONS=16` runs the suite with so many of them, on one server.

A command with keys in several hash slots of a cluster is refused. The tests' own client takes keys by the names
that they have without partitions.
"""

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any, TypeVar

import pytest
from redis import Redis
from redis.client import Pipeline
from redis.connection import AbstractConnection
from redis.crc import key_slot

from readtrack.conf import Conf
from readtrack.store import keys, moving, scripts
from readtrack.store.cluster import Address, Cluster
from readtrack.store.connection import address_in
from readtrack.store.keys import TAG
from readtrack.store.scripts import Call

COUNT: int = Conf.PARTITIONS
Item = TypeVar("Item")
PARTS = {"subject": "[^:]+:[^:]+", "hour": "[0-9]{10}"}
ALL_KEYS = {"MGET", "DEL", "UNLINK", "EXISTS", "PFCOUNT", "SUNION", "ZUNION", "TOUCH"}
WITHOUT_KEYS = {
    "CLIENT",
    "CONFIG",
    "DBSIZE",
    "EXEC",
    "HELLO",
    "INFO",
    "MULTI",
    "PING",
    "SCAN",
    "SCRIPT",
    "SELECT",
    "TIME",
}


class SlotError(AssertionError):
    """A command has keys in several hash slots, which a cluster refuses."""


def keys_of(command: Sequence[bytes]) -> Sequence[bytes]:
    """Returns the keys of a command that readtrack sends."""
    name = command[0].upper().decode()
    if name in {"EVAL", "EVALSHA"}:
        return command[3 : 3 + int(command[2])]
    if name in ALL_KEYS:
        return command[1:]
    return command[2:3] if name == "MEMORY" else () if name in WITHOUT_KEYS else command[1:2]


def commands(packed: bytes) -> Iterator[list[bytes]]:
    """Yields the commands in what is sent to a server (RESP arrays of bulk strings)."""
    position = 0

    def line() -> int:
        nonlocal position
        end = packed.index(b"\r\n", position)
        number, position = int(packed[position + 1 : end]), end + 2
        return number

    while position < len(packed):
        command = []
        for _ in range(line()):
            length = line()
            command.append(packed[position : position + length])
            position += length + 2
        yield command


def check(packed: bytes) -> None:
    """Raises SlotError for a command, or a transaction, with keys in several slots."""
    transaction: set[int] = set()
    is_open = False
    for command in commands(packed):
        slots = {key_slot(key) for key in keys_of(command)}
        is_open = (is_open or command[0] == b"MULTI") and command[0] != b"EXEC"
        transaction = transaction | slots if is_open else set()
        if len(slots) > 1 or len(transaction) > 1:
            raise SlotError(f"{len(slots)} slots: {b' '.join(command)[:500]!r}")


@contextmanager
def slots_checked() -> Iterator[None]:
    """Checks every command of readtrack's clients, whose answers are bytes, unlike those of the tests' own."""
    send: Any = AbstractConnection.send_packed_command

    def checked(self: Any, command: Any, check_health: bool = True) -> None:  # noqa: FBT002 - its signature
        if not self.encoder.decode_responses:
            check(b"".join([command] if isinstance(command, bytes) else command))
        send(self, command, check_health)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AbstractConnection, "send_packed_command", checked)
        yield


@pytest.fixture(scope="session", autouse=COUNT > 1)
def validator() -> Iterator[None]:
    with slots_checked():
        yield


def asked(read: Callable[[Sequence[str]], Call[dict[str, Item]]], subjects: Iterable[str]) -> dict[str, Item]:
    """Returns the answers about subjects, each partition's by a call of its own."""
    subjects = list(subjects)
    found = ChainMap(*scripts.run_all(*map(read, scripts.parted(subjects))))
    return {subject: found[subject] for subject in subjects if subject in found}


class PlainNames(Redis):
    """A client by which a test names keys as they are without partitions."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        name = str(args[0]).upper()
        if name == "KEYS":
            found = self._send("KEYS", "*", **options)
            return [plain for plain in dict.fromkeys(TAG.sub("", key) for key in found) if fnmatchcase(plain, args[1])]
        if name in ALL_KEYS:
            args = (name, *(placed for key in args[1:] for placed in self._places(key)))
        elif name == "MSET":
            args = (name, *(arg if place % 2 else self._places(arg)[0] for place, arg in enumerate(args[1:])))
        elif name not in WITHOUT_KEYS | {"FLUSHDB", "FLUSHALL"} and len(args) > 1:
            key = 2 if name == "MEMORY" else 1
            args = (*args[:key], self._places(args[key])[0], *args[key + 1 :])
        return self._send(*args, **options)

    def scan_iter(self, match: Any = None, *args: Any, **options: Any) -> Any:
        return iter(self.keys(match or "*"))

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Any:  # noqa: FBT002 - its signature
        return PlainPipeline(self.connection_pool, self.response_callbacks, transaction, self)

    def _send(self, *args: Any, **options: Any) -> Any:
        return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    def _places(self, key: Any) -> list[str]:
        """Returns the names of the key in the partitions that have it, or in one that could."""
        key = key.decode() if isinstance(key, bytes) else str(key)
        row = next((row for row in keys.KEYS if row.pattern == keys.kind_of(key)), None)
        if row is None or row in moving.NOT_MOVED or TAG.search(key):
            return [key]
        parts = re.sub(
            r"\\{(\w+)\\}", lambda part: f"(?P<{part[1]}>{PARTS.get(part[1], '[^:]*')})", re.escape(row.pattern)
        )
        named: Any = re.fullmatch(parts, key[len(keys.prefix()) :])
        end = len(keys.prefix()) + (named.end("dimension") if "dimension" in named.groupdict() else len(row.family))
        owner = named.groupdict().get("subject") or named.groupdict().get("visitor")
        if owner is not None:
            return [key[:end] + keys.tag(owner) + key[end:]]
        found = [key[:end] + tag + key[end:] for tag in keys.tags()]
        return [name for name in found if self._send("EXISTS", name)] or found[:1]


class PlainPipeline(Pipeline):
    """Commands that are sent one after another, because those of a transaction have to be in one slot."""

    def execute(self, raise_on_error: bool = True) -> list[Any]:  # noqa: FBT002 - its signature
        stack: list[Any] = self.command_stack
        self.command_stack = []
        return [self.shard_hint.execute_command(*args, **options) for args, options in stack]


class PlainNamesInCluster(PlainNames, Cluster):
    """The same for a cluster."""

    @classmethod
    def of(cls, urls: Sequence[str], stack: ExitStack) -> "PlainNamesInCluster":
        """Returns the client, whose connections the stack closes."""

        def client_of(address: Address) -> Redis:
            host, port = address
            client: Redis = stack.enter_context(Redis(host, port, decode_responses=True))
            return client

        return cls([address_in(url) for url in urls], client_of)

    def _send(self, *args: Any, **options: Any) -> Any:
        if args[0] in OF_ALL:
            answers = [client.execute_command(*args, **options) for client in servers(self)]
            return OF_ALL[args[0]](answers)
        if args[0] in {"MGET", "DEL", "UNLINK", "EXISTS", "TOUCH"}:
            found = [super(PlainNamesInCluster, self)._send(args[0], key, **options) for key in args[1:]]
            return list(chain(*found)) if args[0] == "MGET" else sum(found)
        if args[0] == "MSET":
            for pair in zip(args[1::2], args[2::2], strict=True):
                super()._send("SET", *pair, **options)
            return True
        return super()._send(*args, **options)


def servers(redis: Redis) -> list[Any]:
    """Returns a client of each server with data, by which keys have their own names."""
    return redis.clients() if isinstance(redis, Cluster) else [Redis(connection_pool=redis.connection_pool)]


def _added_up(answers: Sequence[Any]) -> Any:
    """Returns the sums of what INFO tells: of numbers, also in parts of it."""
    found: dict[str, Any] = {}
    for answer in answers:
        for name, value in answer.items():
            before = found.get(name)
            if isinstance(value, dict) and before:
                found[name] = _added_up([before, value])
            else:
                found[name] = before + value if isinstance(before, int | float) else value
    return found


def _joined(answers: Sequence[Sequence[Any]]) -> list[Any]:
    return list(chain(*answers))


# Commands for all servers, and what their answers are together.
OF_ALL: dict[str, Callable[[Sequence[Any]], Any]] = {
    "CLIENT LIST": _joined,
    "CONFIG RESETSTAT": all,
    "DBSIZE": sum,
    "FLUSHALL": all,
    "FLUSHDB": all,
    "INFO": _added_up,
    "KEYS": _joined,
    "SCRIPT FLUSH": all,
}
