"""Runs several Lua scripts of `lua/` and plain commands in one round trip."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha1
from importlib.resources import files
from itertools import chain
from threading import Lock
from typing import Any, Generic, TypeVar

from redis import Redis, exceptions

from readtrack import parts
from readtrack.conf import cached_setting, register_at_fork
from readtrack.store import fragments, keys, limits, pools
from readtrack.store.circuit import SilentError
from readtrack.store.connection import WRONG_TYPE, AnswerError, closers, connect, timeout_of
from readtrack.store.pools import Command, Connections
from readtrack.store.servers import SeveralServers

# Keys in one call, because a script blocks the server, and Lua can unpack some 8,000 values.
SLICE = 1000
# Scripts that are not run a second time, because they would answer that nothing is new.
ONCE = frozenset({"forget_reader", "rate", "record", "skip", "step"})
INCLUDED = re.compile(r"^-- (\w+)\.lua$", re.MULTILINE)
OF_PARTS = re.compile(r"^-- parts: (\w+)$", re.MULTILINE)
OF_SETTINGS = re.compile(r"^-- settings$", re.MULTILINE)

Item = TypeVar("Item")
Result = TypeVar("Result")


class NotRunError(RuntimeError):
    """The result of a call was read before the call was run."""


_NOT_RUN = object()


# Not frozen, because that would cost a hit as much as one command costs the server.
@dataclass(slots=True)
class Call(Generic[Result]):
    """A script or a plain command with its keys and arguments. `run_all` gives it its result."""

    # The name of the script's file without `.lua`, with the part before it for a script of a part:
    # `readtrack.script/reading`; or a plain command in capitals.
    script: str
    keys: Sequence[str]
    args: Sequence[str | int | bytes] = ()
    decode: Callable[[Any], Result] = lambda answer: answer  # makes the result out of the answer
    # The result if the server of a cluster is silent. Without one, and for long work, reading the
    # result raises.
    absent: Any = ...
    # The result, or the error that reading it raises.
    outcome: Any = field(default=_NOT_RUN, repr=False, compare=False)
    # The command as it is sent, if it is packed already. Then `keys` and `args` are empty. Only for
    # a Redis that is one server.
    packed: bytes = b""

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
        """Returns the words of the call as a command of Redis. A script goes by its digest."""
        if self.packed:
            return self.packed
        if self.script.islower():
            return ("EVALSHA", digest(self.script), len(self.keys), *self.keys, *self.args)
        return (self.script, *self.keys, *self.args)

    def take(self, answer: Any) -> None:
        """Decodes the answer and keeps it as the result, or keeps the error."""
        if not isinstance(answer, Exception):
            self.outcome = self.decode(answer)
        elif isinstance(answer, SilentError) and self.absent is not ...:
            self.outcome = self.absent
        else:
            self.outcome = answer


def run(call: Call[Result], *, patient: bool = False) -> Result:
    """Returns the call's result, in one round trip. Raises what `run_all` does."""
    _ask([call], patient=patient)
    return call.result


def run_all(*calls: Call[Any], patient: bool = False) -> list[Any]:
    """Runs the calls in one round trip, and gives each its result. Returns the results, in order.

    With `patient` it waits for the server for as long as a flush does, and a silent server is an
    error also for calls with an `absent`. Raises redis.RedisError if Redis fails, or if one call
    fails; the other calls then still have their results. Raises AnswerError if an answer is of
    another type than its call expects.
    """
    if calls:
        _ask(calls, patient=patient)
    return [call.result for call in calls]


def _ask(calls: Sequence[Call[Any]], *, patient: bool) -> None:
    """Runs the calls in one round trip, and gives each its result or its error."""
    ask = sender(patient)
    commands = [call.command() for call in calls]
    answers = ask(commands)
    if patient:
        # Or a flush would take a silent server for an empty one.
        for call in calls:
            call.absent = ...
    _settle(calls, commands, answers, ask)


def answer_to(packed: bytes) -> Any:
    """Returns the answer to a packed command, which may be an error, in one round trip.

    What the answer of a call means, `result_by` tells. Raises redis.RedisError.
    """
    [answer] = sender(False)([packed])  # noqa: FBT003 - as `sender` wants it
    return answer


def result_by(call: Call[Result], answer: Any) -> Result:
    """Returns the result of a call that has got this answer. Raises what `run_all` does."""
    _settle([call], [call.command()], [answer], sender(False))  # noqa: FBT003
    return call.result


def _settle(
    calls: Sequence[Call[Any]],
    commands: list[Command],
    answers: list[Any],
    ask: Callable[..., list[Any]],
) -> None:
    """Gives the calls their answers, once the server knows the scripts of all of them."""
    if exceptions.NoScriptError in map(type, answers):
        _send_sources(ask, calls, commands, answers)
    _take_answers(calls, answers)


def _take_answers(calls: Sequence[Call[Any]], answers: Sequence[Any]) -> None:
    """Gives each call its answer. Raises AnswerError if one is of another type than expected."""
    try:
        for call, answer in zip(calls, answers, strict=True):
            call.take(answer)
    except WRONG_TYPE as error:
        # The answer may be that to another command. Then the next answers on the connections are,
        # too, and perhaps the earlier answers to these calls were.
        for close in closers:
            close()
        wrong = AnswerError(f"{type(error).__name__}: {error}")
        for call in calls:
            call.outcome = wrong
        raise wrong from error


def _send_sources(
    ask: Callable[..., list[Any]],
    calls: Sequence[Call[Any]],
    commands: list[Command],
    answers: list[Any],
) -> None:
    """Sends the source of the scripts that the server does not know, and replaces their answers.

    A server forgets scripts after a restart, a fail-over or SCRIPT FLUSH.
    """
    unknown: list[int] = []  # the indexes of the calls whose script the server does not know
    for index, answer in enumerate(answers):
        if isinstance(answer, exceptions.NoScriptError):
            unknown.append(index)
            _, _, *others = pools.words(commands[index])  # behind EVALSHA and the digest
            commands[index] = ("EVAL", _source(calls[index].script), *others)
    # The calls after an unknown script run again as well, because they have to see what it writes.
    repeated = [
        index
        for index in range(unknown[0], len(calls))
        if index in unknown or calls[index].script not in _scripts_run_once()
    ]
    new_answers = ask([commands[index] for index in repeated])
    for index, answer in zip(repeated, new_answers, strict=True):
        answers[index] = answer


@cached_setting("INSTALLED_APPS", maxsize=1)
def _scripts_run_once() -> frozenset[str]:
    """Returns the scripts of the core and of parts that are not run a second time."""
    of_parts = [
        f"{part.name}/{script}" for part in parts.installed() for script in part.scripts_run_once
    ]
    return ONCE.union(of_parts)


# `patient` is positional, because a keyword makes the look-up in the cache slower.
@cached_setting("CACHES", "INSTALLED_APPS")
def sender(patient: bool, server: Redis | None = None) -> Callable[..., list[Any]]:  # noqa: FBT001
    """Returns a function that sends a list of commands and returns the answer to each.

    The commands go to Redis, in a cluster to the servers of their keys; with `server`, the client
    of one server, they go there. An answer may be an error. Raises redis.RedisError.
    """
    client = server or connect(patient=patient)
    if isinstance(client, SeveralServers):

        def ask_server(
            server: Redis, commands: Sequence[Command], meanwhile: Callable[[], None]
        ) -> list[Any]:
            return sender(patient, server)(commands, meanwhile)

        return partial(client.spread, ask=ask_server)
    with _making_lock:
        return _connections_of(client.connection_pool, patient=patient).answers


_making_lock = Lock()  # because threads that come at once all run a cached function


@cached_setting("CACHES", "INSTALLED_APPS")
def _connections_of(pool: Any, *, patient: bool) -> Connections:
    """Returns the only connections of the pool, so that a caller knows which are in use."""
    connections = Connections(pool, patience=timeout_of(patient=patient))
    closers.append(connections.close)
    return connections


def _begin_anew() -> None:
    """Forgets all connections after a fork, because the parent still uses them."""
    global _making_lock
    _making_lock = Lock()
    _connections_of.cache_clear()  # type: ignore[attr-defined]
    sender.cache_clear()  # type: ignore[attr-defined]


register_at_fork(after_in_child=_begin_anew)


def sliced(items: Sequence[Item], size: int = 0) -> list[Sequence[Item]]:
    """Returns the items in portions of that size, by default of SLICE."""
    size = size or SLICE
    return [items[start : start + size] for start in range(0, len(items), size)]


def parted(
    items: Collection[Item], size: int = 0, *, tag_of: Callable[[Any], str] = keys.tag
) -> list[Sequence[Item]]:
    """Returns the items in portions of one partition each, and of that size, by default of SLICE.

    Items are subjects or visitors; for other items `tag_of` returns the tag of the partition.
    """
    if not items:
        return []
    if len(items) == 1:
        return [[*items]]
    if not keys.is_divided():
        return sliced([*items], size)
    portions: list[Sequence[Item]] = []
    for group in keys.by_tag(items, tag_of).values():
        portions += sliced(group, size)
    return portions


def by_subject(subjects: Sequence[str], numbers: Sequence[int]) -> dict[str, int]:
    """Returns the numbers by subject, of an answer that has one number for each subject."""
    return dict(zip(subjects, map(int, numbers), strict=True))


def names(answer: Sequence[bytes]) -> list[str]:
    """Returns the names in an answer as text."""
    return [name.decode() for name in answer]


def pairs(answer: Sequence[Any]) -> list[tuple[str, int]]:
    """Returns the names and numbers of an answer, such as one to HGETALL or to ZRANGE WITHSCORES.

    They alternate in the protocol RESP2, and are in pairs in RESP3.
    """
    if answer and isinstance(answer[0], list):
        answer = [*chain(*answer)]
    names_and_numbers = zip(answer[::2], answer[1::2], strict=True)
    return [(name.decode(), int(number)) for name, number in names_and_numbers]


def flat(rows: Iterable[tuple[Any, Any]]) -> list[Any]:
    """Returns names and numbers, two in each row, one behind the other, as commands take them."""
    return [*chain.from_iterable(rows)]


@cached_setting("INSTALLED_APPS")
def _source(script: str) -> str:
    """Returns the source of the script.

    A line such as `-- common.lua` is replaced by that file, because a script cannot call another.
    One such as `-- parts: counted` is replaced by what the installed parts do in that place, and
    `-- settings` by the numbers of the settings.
    """
    part, _, _ = script.rpartition("/")
    source = _path_of(script).read_text(encoding="utf-8")
    source = INCLUDED.sub(lambda line: _source(_included(line[1], part=part)), source)
    source = OF_SETTINGS.sub(lambda line: limits.lua(), source)
    return OF_PARTS.sub(lambda line: fragments.PLACES[line[1]](), source)


def _included(name: str, *, part: str) -> str:
    """Returns the name of a script that one of the part includes: its own one, or the core's."""
    script_of_part = f"{part}/{name}"
    if part and _path_of(script_of_part).is_file():
        return script_of_part
    return name


def _path_of(script: str) -> Any:
    """Returns the path of the script's file."""
    part, _, name = script.rpartition("/")
    return files(part or "readtrack.store").joinpath("lua", f"{name}.lua")


@cached_setting("INSTALLED_APPS")
def digest(script: str) -> str:
    """Returns the digest by which the server knows the script."""
    return sha1(_source(script).encode(), usedforsecurity=False).hexdigest()
