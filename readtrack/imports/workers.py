"""Processes that judge lines beside the import's own process, which alone reads and adds.

A process that dies has added nothing, so the import can be repeated as after any other kill.
"""
# It imports what needs Django only when used, because a new process reads it before Django is set
# up.

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import django

from readtrack.imports.rules import Rules

if TYPE_CHECKING:
    from readtrack.imports.judging import Judge, Judged

MOST = 60  # processes; Windows cannot wait for more
AHEAD = 3  # chunks of lines that each process may be ahead: a bound of the memory they take
SETTINGS = "DJANGO_SETTINGS_MODULE"


class Chunk(NamedTuple):
    """Lines of a log that are judged together."""

    texts: Sequence[bytes]
    ends: Sequence[int]  # where each line ends, in bytes of the log
    digest: str  # of the log up to the last of these lines
    bytes_read: int  # of the file, so far


class Work(NamedTuple):
    """What a process needs to judge a chunk."""

    rules: Rules
    file: int  # its number: parsers begin each file anew
    has_agents: bool  # see `Judge.begin`
    head: bytes  # the last line before the chunk that names the columns; empty without one
    texts: Sequence[bytes]
    with_lines: bool  # the answer has the lines as they were understood


class Workers:
    """The processes of one import. It is a context: they end with it."""

    def __init__(self, rules: Rules, *, jobs: int) -> None:
        """Raises ImportRefusedError if other processes cannot judge what this one would."""
        _check_processes()
        self._rules = rules
        self._most_pending = jobs * AHEAD
        self._file = 0
        # Not by a fork, which would share connections to the servers.
        self._pool = ProcessPoolExecutor(
            jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_begin
        )

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_exception: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def judged(
        self, chunks: Iterable[Chunk], *, has_agents: bool, needs_lines: Callable[[], bool]
    ) -> "Iterator[tuple[Chunk, list[Judged]]]":
        """Yields the chunks of one file in their order, each with what is known of its lines.

        `needs_lines` tells whether the lines are needed as they were understood, which takes time.
        Raises ImportRefusedError if a process has ended by itself, and what a process raises.
        """
        from readtrack.imports import lines

        self._file += 1
        pending: deque[tuple[Chunk, Future[list[tuple[Any, ...]]]]] = deque()
        head = b""
        for chunk in chunks:
            work = Work(self._rules, self._file, has_agents, head, chunk.texts, needs_lines())
            pending.append((chunk, self._submitted(work)))
            for text in chunk.texts:
                if lines.is_head(text):
                    head = text
            if len(pending) > self._most_pending:
                yield _first(pending)
        while pending:
            yield _first(pending)

    def _submitted(self, work: Work) -> "Future[list[tuple[Any, ...]]]":
        """Gives the work to a process. Raises ImportRefusedError if one has ended by itself."""
        try:
            return self._pool.submit(judge_chunk, work)
        except BrokenProcessPool as error:
            raise _ended() from error


def _check_processes() -> None:
    """Raises ImportRefusedError if other processes cannot judge lines as this one does."""
    from readtrack.imports.ledger import ImportRefusedError
    from readtrack.store import keys

    reason = ""
    if not os.environ.get(SETTINGS):
        reason = (
            f"--jobs needs the environment variable {SETTINGS}: each process sets Django up by it."
        )
    elif keys.tenant_function() is not None:
        reason = (
            "--jobs cannot be used with tenants (READTRACK['PREFIX'] is the path of a function):"
            " other processes do not know which tenant's log this is."
        )
    elif multiprocessing.current_process().daemon:
        reason = "--jobs cannot be used here: this process is daemonic, and may start no others."
    if reason:
        raise ImportRefusedError(f"{reason} Without --jobs the import runs here.")


def _first(pending: "deque[tuple[Chunk, Future[Any]]]") -> "tuple[Chunk, list[Judged]]":
    """Returns the first chunk with what is known of its lines, when that is known."""
    from readtrack.imports.judging import Judged

    chunk, future = pending.popleft()
    try:
        answers = future.result()
    except BrokenProcessPool as error:
        raise _ended() from error
    return chunk, [*map(Judged._make, answers)]


def _ended() -> Exception:
    """Returns the error for a process that has ended by itself."""
    from readtrack.imports.ledger import ImportRefusedError

    return ImportRefusedError(
        "A process that judges lines has ended by itself; perhaps it was killed, or memory was"
        " short. What was added so far counts. Import again, perhaps with fewer --jobs: it goes on"
        " from there."
    )


def _begin() -> None:
    """Begins a process: it ends with the import, and not by the keys that interrupt a command."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_import, daemon=True).start()


def _end_with_import() -> None:
    """Ends this process when that of the import has ended, which may have been killed."""
    importing = multiprocessing.parent_process()
    if importing is not None:
        importing.join()
        os._exit(1)


def judge_chunk(work: Work) -> list[tuple[Any, ...]]:
    """Returns the fields of `Judged` for each line, in a process that may be new.

    Plain tuples are sent to another process in half the time.
    """
    judge = _judge_of(work.rules)
    if judge.file != work.file:
        judge.begin(work.file, has_agents=work.has_agents)
    judge.read_head(work.head)
    answers = judge.judge_all(work.texts)
    if work.with_lines:
        return [tuple(answer) for answer in answers]
    return [(*answer[:-1], None) for answer in answers]


@cache
def _judge_of(rules: Rules) -> "Judge":
    """Returns the judge of this process, for which Django is set up."""
    django.setup()
    from readtrack.imports.judging import Judge

    return Judge(rules)
