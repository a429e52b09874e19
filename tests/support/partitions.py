"""Partitions in tests: `READTRACK_TEST_PARTITIONS=16` runs the suite with so many of them, on one
server.

A command with keys in several hash slots of a cluster is refused. The tests' own client takes keys
by the names that they have without partitions.
"""

import os
import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any, TypeVar

import pytest
from hiredis import Reader
from redis import Redis
from redis.client import Pipeline
from redis.connection import AbstractConnection
from redis.crc import key_slot

from readtrack.store import keys, scripts
from readtrack.store.keys import TAG
from readtrack.store.scripts import Call
from readtrack.store.servers import SeveralServers

COUNT = int(os.environ.get("READTRACK_TEST_PARTITIONS", "1"))
Item = TypeVar("Item")
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
    """Yields the commands in what is sent to a server (RESP arrays of bulk strings, as answers
    are).
    """
    reader: Any = Reader()
    reader.feed(packed)
    while command := reader.gets():
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
    """Checks every command of readtrack's clients, whose answers are bytes, unlike those of the
    tests' own.
    """
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


def asked(
    read: Callable[[Sequence[str]], Call[dict[str, Item]]], subjects: Iterable[str]
) -> dict[str, Item]:
    """Returns the answers about subjects, each partition's by a call of its own."""
    subjects = list(subjects)
    found = ChainMap(*scripts.run_all(*map(read, scripts.parted(subjects))))
    return {subject: found[subject] for subject in subjects if subject in found}


class PlainNames(Redis):
    """A client by which a test names keys as they are without partitions."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        answers = [self._send(*command, **options) for command in self.placed(*args)]
        if args[0] == "KEYS":
            found = dict.fromkeys(TAG.sub("", key) for key in answers[0])
            pattern = re.sub(r"\\(.)", r"[\1]", args[1])  # as fnmatch has it
            return [plain for plain in found if fnmatchcase(plain, pattern)]
        if args[0] == "ZRANGE" and str(args[1]).endswith("views:unsettled"):
            return [TAG.sub("", member) for member in chain(*answers)]
        if args[0] == "TYPE":
            return next((kind for kind in answers if kind != "none"), "none")
        if args[0] in {"TTL", "PTTL"}:
            return max(answers)
        if len(answers) == 1:
            return answers[0]
        return answers if args[0] == "DUMP" else sum(answers)

    def scan_iter(self, match: Any = None, *args: Any, **options: Any) -> Any:
        return iter(self.keys(match or "*"))

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Any:  # noqa: FBT002 - its signature
        return PlainPipeline(self.connection_pool, self.response_callbacks, False, self)  # noqa: FBT003

    def placed(self, *args: Any) -> list[Sequence[Any]]:
        """Returns the command with keys as they are named in their partitions; one for each
        partition if need be.
        """
        name = str(args[0]).upper()
        if name == "KEYS":
            return [("KEYS", "*")]
        if name in ALL_KEYS:
            return [(name, *chain(*self._places(*args[1:])))]
        if name == "MSET":
            return [
                (
                    name,
                    *chain(
                        *zip(
                            next(zip(*self._places(*args[1::2]), strict=True)),
                            args[2::2],
                            strict=True,
                        )
                    ),
                )
            ]
        if name in WITHOUT_KEYS | {"FLUSHDB", "FLUSHALL"} or len(args) < 2:
            return [args]
        if str(args[1]).endswith("views:unsettled"):
            return self._of_unsettled(*args)
        place = 2 if name == "MEMORY" else 1  # of the key
        return [(*args[:place], self._places(args[place])[0][0], *args[place + 1 :])]

    def _of_unsettled(self, name: str, key: str, *args: Any) -> list[Sequence[Any]]:
        """Returns the commands for the lists of unsettled counters, whose members have tags, as
        their keys do.
        """

        def of(member: str) -> tuple[str, str]:
            kind, subject = keys.split_member(member)
            return key + keys.tag(subject), keys.member(kind, subject)

        if name == "ZADD":
            pairs = zip(args[::2], map(of, args[1::2]), strict=True)
            return [(name, place, score, member) for score, (place, member) in pairs]
        if name in {"ZSCORE", "ZREM"}:
            return [(name, *of(member)) for member in args]
        return [(name, place, *args) for place in self._places(key)[0]]

    def _send(self, *args: Any, **options: Any) -> Any:
        return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    def _places(self, *names: Any) -> list[list[str]]:
        """Returns the names of each key in the partitions that have it, or in one that could."""
        found = [
            self._possible(name.decode() if isinstance(name, bytes) else str(name))
            for name in names
        ]
        asked = [place for places in found if len(places) > 1 for place in places]
        exist = {place: self._send("EXISTS", place) for place in asked}
        return [[place for place in places if exist.get(place)] or places[:1] for places in found]

    def _possible(self, key: str) -> list[str]:
        row, parts = keys.parse(key)
        if row is None or row.divided == "left" or parts["tag"]:
            return [key]
        owner = parts.get("subject", parts.get("visitor"))
        return [
            row.placed(parts, tag=tag)
            for tag in (keys.tags() if owner is None else [keys.tag(owner)])
        ]


class PlainPipeline(Pipeline):
    """Commands for keys of several partitions, which are in no transaction."""

    def execute(self, raise_on_error: bool = True) -> list[Any]:  # noqa: FBT002 - its signature
        stack: list[Any] = self.command_stack
        self.command_stack = []
        return [self.shard_hint.execute_command(*args, **options) for args, options in stack]


def servers(redis: Redis) -> list[Any]:
    """Returns a client of each server with data, by which keys have their own names."""
    return (
        redis.clients()
        if isinstance(redis, SeveralServers)
        else [Redis(connection_pool=redis.connection_pool)]
    )
