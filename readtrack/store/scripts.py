"""Runs the Lua scripts in `lua/`, by their digest, and plain commands; several in one round trip."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha1
from importlib.resources import files
from itertools import chain, islice
from typing import Any, Generic, TypeVar

from hiredis import pack_command
from redis import ConnectionPool, Redis, exceptions
from redis.sentinel import MasterNotFoundError

from readtrack.conf import cached_setting, conf, register_at_fork
from readtrack.store import keys
from readtrack.store.circuit import SilentError
from readtrack.store.cluster import Cluster, Command
from readtrack.store.connection import WRONG_TYPE, AnswerError, closers, connect

SLICE = 1000  # keys in one call: a script blocks the server, and Lua can unpack some 8,000 values
ONCE = {
    "rate",
    "record",
    "record_batch",
    "skip",
    "step",
}  # scripts whose second answer would be that nothing is new
NAMED = re.compile(rb"^-- (\w+)\.lua$", re.MULTILINE)

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(slots=True)  # not frozen, which would cost a hit as much as one command costs the server
class Call(Generic[Result]):
    """One run of a script or of a plain command, and the function that decodes its answer."""

    script: (
        str  # the name of its file, or a plain command in capitals; keys and arguments follow it
    )
    keys: Sequence[str]
    args: Sequence[str | int | bytes] = ()
    decode: Callable[[Any], Result] = lambda answer: answer
    absent: Any = (
        ...
    )  # a page's result where one server of a cluster is silent; without one the call fails


class Connections:
    """A pool, and connections of it that scripts keep: to check one out and in costs a hit more
    than its command.
    """

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        # The others are left to all else. A pool by Sentinel must have its connections back, to
        # close those to an earlier primary.
        self.most = pool.max_connections // 10 if type(pool) is ConnectionPool else 0
        self.idle: list[Any] = []

    def close(self) -> None:
        """Closes the connections that nobody uses, those of the pool too."""
        while self.idle:
            self.pool.release(self.idle.pop())
        self.pool.disconnect(inuse_connections=False)

    def answers(
        self, commands: Sequence[Command], meanwhile: Callable[[], None] | None = None
    ) -> list[Any]:
        """Returns the server's answer to each command, errors too. `meanwhile` is called once they
        are sent.
        """
        packed = b"".join(map(pack_command, commands))
        try:
            return self._exchange(packed, len(commands), meanwhile)
        except MasterNotFoundError:
            raise  # every Sentinel was asked, and none will know better at once
        except exceptions.ConnectionError:
            # A server that restarted leaves broken connections in the pool. Sending again is
            # harmless: each view comes after a window that only the first one enters, and
            # everything else sets or merges.
            return self._exchange(packed, len(commands), meanwhile, is_again=True)

    def _exchange(
        self,
        packed: bytes,
        count: int,
        meanwhile: Callable[[], None] | None,
        *,
        is_again: bool = False,
    ) -> list[Any]:
        # On the bare connection, because execute_command of redis-py costs a hit as much as the
        # server does.
        try:
            connection = self.pool.get_connection() if is_again else self.idle.pop()
        except IndexError:
            connection = self.pool.get_connection()
        try:
            connection.send_packed_command([packed], check_health=False)
            if meanwhile:
                meanwhile()
            answers: list[Any] = []
            while len(answers) < count:
                try:
                    answers.append(connection.read_response())
                except exceptions.ResponseError as error:
                    # Of a server that became a replica; a new connection leads to its successor.
                    # Redis before 7 wraps the error of a refused command in one of its own.
                    if isinstance(error, exceptions.ReadOnlyError) or "-READONLY" in str(error):
                        raise exceptions.ConnectionError(str(error)) from error
                    answers.append(error)  # the answers after it have to be read all the same
        except BaseException:
            # A late answer would be taken for the answer to the next question. Connections by
            # Sentinel would also stay open to a primary that hangs after another one took over.
            connection.disconnect()
            self.pool.release(connection)
            raise
        # Redis Enterprise announces that a server moves, and redis-py then marks its connections.
        # Older ones do not listen.
        if len(self.idle) < self.most and not getattr(connection, "should_reconnect", bool)():
            self.idle.append(connection)
        else:
            self.pool.release(connection)
        return answers


def run(call: Call[Result], *, patient: bool = False) -> Result:
    """Returns the call's result, in one round trip. Raises redis.RedisError."""
    return run_all(call, patient=patient)[0]  # type: ignore[no-any-return]


def run_all(*calls: Call[Any], patient: bool = False) -> list[Any]:
    """Returns the calls' results in their order, in one round trip. Raises redis.RedisError."""
    if not calls:
        return []
    ask = sender(patient)
    commands: list[Command] = [
        ("EVALSHA", _digest(call.script), len(call.keys), *call.keys, *call.args)
        if call.script.islower()
        else (call.script, *call.keys, *call.args)
        for call in calls
    ]
    answers = ask(commands)
    unknown = [
        index
        for index, answer in enumerate(answers)
        if isinstance(answer, exceptions.NoScriptError)
    ]
    if unknown:  # after a restart, a fail-over or SCRIPT FLUSH
        for index in unknown:
            commands[index] = ("EVAL", _source(calls[index].script), *commands[index][2:])
        # Calls after the first of them run again, because they are to see what it writes.
        last = [
            at
            for at in range(unknown[0], len(calls))
            if at in unknown or calls[at].script not in ONCE
        ]
        for index, answer in zip(last, ask([commands[index] for index in last]), strict=True):
            answers[index] = answer
    results = []
    try:
        for call, answer in zip(calls, answers, strict=True):
            if not isinstance(answer, Exception):
                results.append(call.decode(answer))
            elif call.absent is ... or not isinstance(answer, SilentError):
                raise answer
            else:
                results.append(call.absent)
    except WRONG_TYPE as error:
        # Where one answer was that to another question, the next ones would be, too.
        for close in closers:
            close()
        raise AnswerError(f"{type(error).__name__}: {error}") from error
    return results


def run_groups(*groups: Sequence[Call[Any]], patient: bool = False) -> list[list[Any]]:
    """Returns the results of each group of calls, all in one round trip. Raises redis.RedisError."""
    results = iter(run_all(*chain.from_iterable(groups), patient=patient))
    return [list(islice(results, len(group))) for group in groups]


@cached_setting("CACHES")
def sender(patient: bool, server: Redis | None = None) -> Callable[..., list[Any]]:  # noqa: FBT001 - a keyword is slow
    """Returns the function that gets the answers of Redis, of all servers of a cluster, or of that
    one, to commands.
    """
    client = server or connect(patient=patient)
    if isinstance(client, Cluster):
        return partial(
            client.spread, ask=lambda one, some, others: sender(patient, one)(some, others)
        )
    connections = Connections(client.connection_pool)
    closers.append(connections.close)
    return connections.answers


register_at_fork(after_in_child=sender.cache_clear)  # type: ignore[attr-defined]  # the parent uses them


def sliced(items: Sequence[Item], size: int = 0) -> list[Sequence[Item]]:
    """Returns the items in portions of that size, by default of as many as one call can take."""
    size = size or SLICE
    return [items[start : start + size] for start in range(0, len(items), size)]


def parted(
    items: Collection[Item], size: int = 0, *, tag_of: Callable[[Any], str] = keys.tag
) -> list[Sequence[Item]]:
    """Returns the subjects, or other items, in such portions, each of one partition."""
    if len(items) < 2:
        return [[*items]] if items else []
    groups = keys.by_tag(items, tag_of).values() if conf.PARTITIONS > 1 else [[*items]]
    return [some for group in groups for some in sliced(group, size)]


def by_subject(subjects: Sequence[str], numbers: Sequence[int]) -> dict[str, int]:
    """Returns the numbers of an answer that has one for each subject."""
    return dict(zip(subjects, map(int, numbers), strict=True))


def names(answer: Sequence[bytes]) -> list[str]:
    """Returns the names in an answer."""
    return [name.decode() for name in answer]


def pairs(answer: Sequence[Any]) -> list[tuple[str, int]]:
    """Returns the names and numbers of an answer, where they alternate, or by RESP3 are in pairs."""
    answer = [*chain(*answer)] if answer and isinstance(answer[0], list) else answer
    return [
        (name.decode(), int(number)) for name, number in zip(answer[::2], answer[1::2], strict=True)
    ]


def load(client: Redis) -> None:
    """Loads every script into a server."""
    for path in files("readtrack.store").joinpath("lua").iterdir():
        client.script_load(_source(path.name.removesuffix(".lua")).decode())


@cache
def _source(script: str) -> bytes:
    """Returns the script. A line that names another script stands for it, because a script can call
    no other.
    """
    source = files("readtrack.store").joinpath("lua", f"{script}.lua").read_bytes()
    return NAMED.sub(lambda named: _source(named[1].decode()), source)


@cache
def _digest(script: str) -> str:
    return sha1(_source(script), usedforsecurity=False).hexdigest()
