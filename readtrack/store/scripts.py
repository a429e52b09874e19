"""Runs the Lua scripts in `lua/`, by their digest, and plain commands; several in one round trip."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha1
from importlib.resources import files
from itertools import chain
from threading import Lock
from typing import Any, Generic, TypeVar

from redis import Redis, exceptions

from readtrack.conf import cached_setting, conf, register_at_fork
from readtrack.store import keys
from readtrack.store.circuit import SilentError
from readtrack.store.cluster import Cluster, Command
from readtrack.store.connection import PATIENCE, WRONG_TYPE, AnswerError, closers, connect
from readtrack.store.pools import Connections

SLICE = 1000  # keys in one call: a script blocks the server, and Lua can unpack some 8,000 values
# Scripts whose second answer would be that nothing is new.
ONCE = frozenset({"rate", "record", "record_batch", "skip", "step"})
NAMED = re.compile(rb"^-- (\w+)\.lua$", re.MULTILINE)

Item = TypeVar("Item")
Result = TypeVar("Result")


class NotRunError(RuntimeError):
    """The result of a call was read before the call was run."""


_NOT_RUN = object()


# Not frozen, which would cost a hit as much as one command costs the server.
@dataclass(slots=True)
class Call(Generic[Result]):
    """One run of a script or of a plain command, the function that decodes its answer, and its
    result once `run_all` has run it.
    """

    # The name of the script's file; or a plain command in capitals, which keys and arguments follow.
    script: str
    keys: Sequence[str]
    args: Sequence[str | int | bytes] = ()
    decode: Callable[[Any], Result] = lambda answer: answer
    # The result where one server of a cluster is silent; without one the whole run fails.
    absent: Any = ...
    # What decode returned, or the error of the answer.
    outcome: Any = field(default=_NOT_RUN, repr=False, compare=False)

    @property
    def result(self) -> Result:
        """Returns the decoded answer, or `absent` if the server was silent.

        Raises NotRunError before the call was run, SilentError if its server of a cluster was
        silent and there is no `absent`, and the server's own error if it refused the call.
        """
        if self.outcome is _NOT_RUN:
            raise NotRunError(f"The call of {self.script!r} has no result before it is run.")
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome  # type: ignore[no-any-return]

    @property
    def has_result(self) -> bool:
        """Returns True once the call was run and answered, or its silent server has an `absent`."""
        return self.outcome is not _NOT_RUN and not isinstance(self.outcome, Exception)

    def command(self) -> Command:
        """Returns the call as a command of Redis."""
        if self.script.islower():
            return ("EVALSHA", _digest(self.script), len(self.keys), *self.keys, *self.args)
        return (self.script, *self.keys, *self.args)

    def take(self, answer: Any) -> None:
        """Keeps what the answer means as the result."""
        if not isinstance(answer, Exception):
            self.outcome = self.decode(answer)
        elif isinstance(answer, SilentError) and self.absent is not ...:
            self.outcome = self.absent
        else:
            self.outcome = answer


def run(call: Call[Result], *, patient: bool = False) -> Result:
    """Returns the call's result, in one round trip. Raises redis.RedisError."""
    run_all(call, patient=patient)
    return call.result


def run_all(*calls: Call[Any], patient: bool = False) -> list[Any]:
    """Runs the calls in one round trip, and gives each its result. Returns the results, in order.

    Raises redis.RedisError if Redis fails, or if one call fails: the other calls have their
    results all the same. Raises AnswerError if an answer is not one to its call.
    """
    if not calls:
        return []
    ask = sender(patient)
    commands = [call.command() for call in calls]
    answers = ask(commands)
    if any(isinstance(answer, exceptions.NoScriptError) for answer in answers):
        _send_sources(ask, calls, commands, answers)
    try:
        for call, answer in zip(calls, answers, strict=True):
            call.take(answer)
    except WRONG_TYPE as error:
        # Where one answer was that to another question, the next ones would be, too.
        for close in closers:
            close()
        wrong = AnswerError(f"{type(error).__name__}: {error}")
        for call in calls:
            call.outcome = wrong  # earlier answers may be those to other questions as well
        raise wrong from error
    return [call.result for call in calls]


def _send_sources(
    ask: Callable[..., list[Any]],
    calls: Sequence[Call[Any]],
    commands: list[Command],
    answers: list[Any],
) -> None:
    """Runs scripts by their source that the server does not know, and puts their answers in place.

    A server forgets scripts by a restart, a fail-over or SCRIPT FLUSH.
    """
    unknown = [
        index
        for index, answer in enumerate(answers)
        if isinstance(answer, exceptions.NoScriptError)
    ]
    for index in unknown:
        commands[index] = ("EVAL", _source(calls[index].script), *commands[index][2:])
    # Later calls run again as well, because they are to see what the unknown script writes.
    again = [
        index
        for index in range(unknown[0], len(calls))
        if index in unknown or calls[index].script not in ONCE
    ]
    for index, answer in zip(again, ask([commands[index] for index in again]), strict=True):
        answers[index] = answer


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
    with _making:
        return _connections_of(client.connection_pool, patient=patient).answers


_making = Lock()  # because a cached function runs for each of several threads that come at once


@cached_setting("CACHES")
def _connections_of(pool: Any, *, patient: bool) -> Connections:
    """Returns the only connections of the pool, so that a caller knows which are in use."""
    connections = Connections(pool, patience=PATIENCE if patient else conf.TIMEOUT)
    closers.append(connections.close)
    return connections


def _begin_anew() -> None:
    """Forgets all connections after a fork, because the parent uses them."""
    global _making
    _making = Lock()
    _connections_of.cache_clear()  # type: ignore[attr-defined]
    sender.cache_clear()  # type: ignore[attr-defined]


register_at_fork(after_in_child=_begin_anew)


def sliced(items: Sequence[Item], size: int = 0) -> list[Sequence[Item]]:
    """Returns the items in portions of that size, by default of as many as one call can take."""
    size = size or SLICE
    return [items[start : start + size] for start in range(0, len(items), size)]


def parted(
    items: Collection[Item], size: int = 0, *, tag_of: Callable[[Any], str] = keys.tag
) -> list[Sequence[Item]]:
    """Returns the subjects, or other items, in portions of that size, each of one partition."""
    if not items:
        return []
    if len(items) == 1:
        return [[*items]]
    if conf.PARTITIONS == 1:
        return sliced([*items], size)
    portions: list[Sequence[Item]] = []
    for group in keys.by_tag(items, tag_of).values():
        portions += sliced(group, size)
    return portions


def by_subject(subjects: Sequence[str], numbers: Sequence[int]) -> dict[str, int]:
    """Returns the numbers of an answer that has one for each subject."""
    return dict(zip(subjects, map(int, numbers), strict=True))


def names(answer: Sequence[bytes]) -> list[str]:
    """Returns the names in an answer."""
    return [name.decode() for name in answer]


def pairs(answer: Sequence[Any]) -> list[tuple[str, int]]:
    """Returns the names and numbers of an answer: alternating by RESP2, in pairs by RESP3."""
    is_in_pairs = bool(answer) and isinstance(answer[0], list)
    flat = [*chain(*answer)] if is_in_pairs else answer
    return [
        (name.decode(), int(number)) for name, number in zip(flat[::2], flat[1::2], strict=True)
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
