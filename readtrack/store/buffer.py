"""Buffered recording: hits wait in the process, and one thread sends many of them by one script.

With BUFFER above 0 a page does not wait for Redis to count its views. Pages that mark something
read or take a step do, and so do all pages while the queue is full, and once the process ends:
their hits are recorded directly.
"""

import signal
from collections import defaultdict, deque
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from math import inf
from multiprocessing.util import Finalize
from threading import Event, Lock, Thread
from time import monotonic, perf_counter, sleep
from typing import Any, NamedTuple

from redis.exceptions import ResponseError

from readtrack.conf import conf, logger, register_at_fork
from readtrack.hits.addresses import watch
from readtrack.hits.hit import NO_OUTCOME, Hit, Outcome, Reason
from readtrack.store import batch, clock, day_keys, keys, recording, scripts
from readtrack.store.batch import Part, PlainView
from readtrack.store.circuit import SilentError, ask_anyway, fail_open
from readtrack.store.cluster import REFUSAL
from readtrack.store.counting import count_views, rate_limit, set_hits
from readtrack.store.scripts import Call
from readtrack.store.skips import key_of, skip_buffer

MOST = 5_000  # hits that wait; some 2 kB each
BATCH = 250  # hits of one script, because a script blocks the server
EACH = 20  # while too many hits wait, each 20th page that comes sleeps for PAUSE
PAUSE = 0.00001  # seconds
# Hits that are sent before BUFFER seconds are over, so that a busy process does not fill its queue.
ENOUGH = 50 * EACH
AGAIN = 1.0  # seconds until what Redis did not take is sent again
# While a process ends, what Redis does not take is sent again for as long; servers kill a process
# that takes longer, most of them after 30 seconds.
GRACE = 25.0
LAST_PAUSE = 0.1  # seconds between two of these tries
# Seconds that a signal's handler waits for the last sending where the process goes on after it.
PATIENCE = 2.0
NEVER = Event()

NOTHING_ELSE = NO_OUTCOME[:-1]  # of an outcome, before what is queued


@dataclass(slots=True, eq=False)
class Waiting:
    """A hit as calls, which may be sent again."""

    at: datetime
    parts: Sequence["ViewsOfPartition"]
    upkeep: Sequence[Call[Any]]
    skips: str  # key of the counts of its skips; "" for a page's script, whose repeats are expected
    # Counts the hit, where the rate is in another partition; None once it did.
    rate: Call[int] | None
    back: Call[int] | None  # takes the hit back if none of its views counts
    # Looks for a robot's mark, where the rate is that of an earlier time.
    mark: Call[int] | None = None
    sent: float = 0.0  # when it was sent first, by the monotonic clock; 0 for never

    @classmethod
    def of(cls, hit: Hit) -> "Waiting":
        parts = [
            ViewsOfPartition(len(part.views), count_views(part))
            for part in recording.by_partition(hit)
        ]
        return cls(
            at=hit.at,
            parts=parts,
            upkeep=day_keys.upkeep(hit.at) if hit.visitor.kind == "day" else (),
            skips="" if hit.by_script else key_of(hit.at),
            rate=recording.rate(hit, 1) if conf.PARTITIONS > 1 else None,
            back=recording.rate(hit, -1) if recording.takes_back(hit) else None,
        )

    @property
    def rate_calls(self) -> list[Call[int]]:
        """The calls that ask for the visitor's hits; without the rate once it counted the hit.

        The mark is last, because it outweighs the rate.
        """
        return [call for call in (self.rate, self.mark) if call is not None]

    def set_hits(self, hits: int) -> None:
        """Sets the number of the visitor's hits before this one, unless it is 0."""
        if hits:
            for part in self.parts:
                set_hits(part.call, hits)


class ViewsOfPartition(NamedTuple):
    """The views of a hit that are of one partition."""

    number: int
    call: Call[Outcome]


class Sent(NamedTuple):
    """What became of the views of a hit in one partition."""

    waiting: Waiting
    views: ViewsOfPartition
    reasons: Sequence[Reason] | None  # why views do not count; None where the server is silent


# How a hit waits: as a plain tuple of the fields of PlainView where that suffices, as it came, or as
# calls where it was sent before, or where its tenant is known only to its own request.
Queued = tuple[Any, ...] | Hit | Waiting


class HitBuffer:
    """The hits of this process that Redis does not have yet, and the thread that sends them."""

    _earlier: Any = signal.SIG_DFL  # what handled SIGTERM before

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets all hits, as a forked process must, whose parent sends them."""
        self._lock = Lock()
        self._work = Event()
        self._soon = Event()
        self._is_closed = False
        self._has_ended = False  # the thread looks at the queue no more
        self._process = object()  # which the thread belongs to
        self._thread: Thread | None = None
        self._queue: deque[Queued] = deque()
        self._batch: list[Any] = []  # is being sent, as it was queued or as Waiting

    def add(self, hit: Hit) -> Outcome | None:
        """Queues a hit. Returns None for one that is to be recorded directly."""
        if hit.reads or hit.steps or not hit.views:
            return None
        identified = _with_ids_of_the_day(hit)
        if identified is None or (self._thread is None and not self._start()):
            return None
        if watch.notices:
            skip_buffer.add(key_of(hit.at), ())
        waiting = _queued(identified)
        with self._lock:
            if self._has_ended or len(self._queue) >= MOST:
                return None
            self._queue.append(waiting)
            number = len(self._queue)
        self._wake(number)
        return tuple.__new__(Outcome, (*NOTHING_ELSE, hit.views))

    def _wake(self, number: int) -> None:
        """Lets the thread send; at once where that number of hits waits."""
        if not self._work.is_set():
            self._work.set()
        if number % EACH or number < ENOUGH:
            return
        self._soon.set()
        if number >= 2 * ENOUGH:
            # CPython gives the GIL back to a thread that has just released it, as the only thread
            # of a server does for each request. Without the sleep the sending thread waits for up
            # to half a second, and the queue fills up.
            sleep(PAUSE)

    def send_skips(self) -> bool:
        """Sends the skips within BUFFER seconds. Returns False if the process ends."""
        if self._thread is None and not self._start():
            return False
        self._work.set()
        return not self._is_closed

    def close_on_sigterm(self) -> None:
        """Sends all hits before the process handles SIGTERM, after which uvicorn, for one, calls no
        exit handlers.
        """
        if signal.getsignal(signal.SIGTERM) != self._on_sigterm:
            # Raised in another thread than the main one, and in a subinterpreter.
            with suppress(ValueError):
                self._earlier = signal.signal(signal.SIGTERM, self._on_sigterm) or signal.SIG_DFL

    def close(self) -> None:
        """Sends all hits, and tries again for GRACE seconds. From then on hits are recorded directly."""
        self._end(PATIENCE)
        if self._number and not self._has_ended:
            logger.warning("%d queued views wait for Redis before the process ends.", self._number)
        self._end(GRACE)
        if self._number:
            logger.warning(
                "%d queued views were not recorded before the process ended.", self._number
            )

    def _end(self, seconds: float) -> None:
        """Has the thread send all hits and end, and waits for it."""
        # Without the lock, because a signal may interrupt the thread that has it.
        self._is_closed = True
        self._work.set()
        self._soon.set()
        if self._thread:
            self._thread.join(seconds)

    @property
    def _number(self) -> int:
        """The number of hits that wait."""
        return len(self._batch) + len(self._queue)

    def _on_sigterm(self, number: int, frame: Any) -> None:
        if self._earlier == signal.SIG_DFL:
            self.close()
        else:  # the server finishes its requests first, and the process sends the rest at its exit
            self._end(PATIENCE)
        signal.signal(number, self._earlier)
        signal.raise_signal(number)

    def _start(self) -> bool:
        with self._lock:
            if self._thread is None:
                thread = Thread(
                    target=self._run, args=(self._process,), name="readtrack", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:  # no thread begins where the interpreter ends
                    return False
                self._thread = thread
                # Not atexit, which forks of multiprocessing, as granian's workers are, ignore
                # before Python 3.13.
                Finalize(None, self.close, exitpriority=0)
        return True

    def _run(self, process: object) -> None:
        while not self._is_closed:
            self._work.wait()
            self._soon.wait(AGAIN if self._batch else conf.BUFFER or 1)
            if process is not self._process:
                # A thread of gevent that a fork has copied. It must not end, because `threading` in
                # the child does not know it.
                NEVER.wait()
            self._soon.clear()
            self._work.clear()
            self._send_all()
        self._send_last()

    def _send_last(self) -> None:
        """Sends until no hit waits any more, for GRACE seconds at most, and then the skips."""
        until = monotonic() + GRACE
        while True:
            self._send_all()
            # A request that has the lock adds a last hit. The timeout is for one that a signal
            # interrupted, whose handler waits for this thread.
            has_lock = self._lock.acquire(timeout=PATIENCE)
            self._has_ended = not self._number or monotonic() > until
            if has_lock:
                self._lock.release()
            if self._has_ended:
                break
            sleep(LAST_PAUSE)
        skip_buffer.close()

    def _send_all(self) -> None:
        """Sends the queue in batches, and at least what there is of skips."""
        # Without those that come back meanwhile, because a server of a cluster is silent.
        remaining = len(self._queue)
        while True:
            try:
                if not self._batch:
                    size = min(BATCH, remaining)
                    remaining -= size
                    self._take(size)
                # A view that is sent again counts once for as long as its window is open.
                self._give_up(monotonic() - (conf.WINDOW or 1) / 2)
                if self._batch or skip_buffer.skips:
                    is_sent: bool = ask_anyway(self._send, False)  # noqa: FBT003
                    if not is_sent:
                        self._work.set()  # to try again
                        return
            except Exception:  # the thread must not end
                logger.exception("Queued views could not be recorded.")
                with suppress(Exception):  # this may be what fails
                    self._batch = list(map(_waiting, self._batch))
                    self._give_up(inf)
            self._batch = []
            if not remaining:
                return

    def _take(self, size: int) -> None:
        """Takes hits from the queue and sends them as they are; the batch has those to send again."""
        began = monotonic()
        self._batch = [self._queue.popleft() for _ in range(size)]
        if not self._batch:
            return
        is_sent: bool = ask_anyway(self._send_plain, False)  # noqa: FBT003
        if is_sent:
            self._batch = []
        self._batch = list(map(_waiting, self._batch))
        for waiting in self._batch:
            waiting.sent = waiting.sent or began

    def _send_plain(self) -> bool:
        """Sends hits as they were queued. Returns False if they have to be sent as Waiting.

        Makes nothing that lasts until all hits are sent, because the garbage collector would look
        at it: with an object for each hit that took as long as all else that the thread does.
        """
        if not self._can_be_sent_plain():
            return False
        prefix = keys.prefix()
        counting = batch.count_batch(_part(queued, prefix=prefix) for queued in self._batch)
        upkeep: list[Call[Any]] = []
        for queued in self._batch:
            if _is_of_a_day(queued):
                upkeep += day_keys.upkeep(_view(queued).at)
        try:
            skip_buffer.send(counting, *upkeep, *_clock_question())
        except ResponseError:  # because of one hit, perhaps
            return False
        for queued, reasons in zip(self._batch, counting.result or (), strict=True):
            if reasons:
                self._count_skips_of(_view(queued), reasons)
        return True

    def _can_be_sent_plain(self) -> bool:
        # Where one hit waits as calls, all do, and the first is the oldest.
        first = self._batch[0]
        if conf.PARTITIONS > 1 or isinstance(first, Waiting):
            return False
        return _view(first).at >= _rate_window_ago()

    def _count_skips_of(self, view: PlainView | Hit, reasons: Sequence[Reason]) -> None:
        """Has the skips of a view counted, but for those of a script, whose repeats are expected."""
        if not view.by_script:
            skip_buffer.add(key_of(view.at), reasons)
            self._work.set()

    def _send(self) -> bool:
        """Sends the batch, and queues again what silent servers did not take. Returns True."""
        self._rate()
        counted: set[Waiting] = set()
        silent: defaultdict[Waiting, list[ViewsOfPartition]] = defaultdict(list)
        for sent in self._send_groups():
            if sent.reasons is None:
                silent[sent.waiting].append(sent.views)
                continue
            if len(sent.reasons) < sent.views.number:
                counted.add(sent.waiting)
            if sent.reasons and sent.waiting.skips:
                skip_buffer.add(sent.waiting.skips, sent.reasons)
                self._work.set()
        self._queue_again(silent, counted)
        self._take_back(counted.union(silent))
        return True

    def _send_groups(self) -> list["Sent"]:
        """Sends the batch, by one script for each partition, and returns what became of each hit."""
        groups = self._by_partition()
        countings = []
        for group in groups:
            parts = [batch.part_of_call(views.call) for _, views in group]
            countings.append(batch.count_batch(parts))
        upkeep = [call for waiting in self._batch for call in waiting.upkeep]
        try:
            skip_buffer.send(*countings, *upkeep, *_clock_question())
        except ResponseError:  # because of one hit, perhaps
            return [Sent(*pair, _count_alone(pair[1])) for pair in chain.from_iterable(groups)]
        sent = []
        for group, counting in zip(groups, countings, strict=True):
            # None for a silent server.
            answer = [None] * len(group) if counting.result is None else counting.result
            for pair, reasons in zip(group, answer, strict=True):
                sent.append(Sent(*pair, reasons))
        return sent

    def _queue_again(
        self, silent: Mapping[Waiting, Sequence[ViewsOfPartition]], counted: Container[Waiting]
    ) -> None:
        """Queues what silent servers did not take."""
        for waiting, parts in silent.items():
            back = None if waiting in counted else waiting.back
            self._queue.append(replace(waiting, parts=parts, upkeep=(), back=back))
            self._work.set()

    def _take_back(self, kept: Container[Waiting]) -> None:
        """Takes hits of the batch back that counted nothing."""
        calls = [waiting.back for waiting in self._batch if waiting.back and waiting not in kept]
        # Not sent again if it fails, because the batch would be.
        fail_open(scripts.run_all, [], *calls)

    def _by_partition(self) -> Sequence[Sequence[tuple[Waiting, ViewsOfPartition]]]:
        """Returns the views of the batch in groups, one for each partition."""
        parts = [(waiting, part) for waiting in self._batch for part in waiting.parts]

        def tag_of(pair: tuple[Waiting, ViewsOfPartition]) -> str:
            unsettled = pair[1].call.keys[1]
            return keys.tag_in(unsettled)

        return list(keys.by_tag(parts, tag_of).values())

    def _rate(self) -> None:
        """Counts hits whose rate is in another partition, and looks for marks of robots in the rates
        of hits that waited longer than a rate window.
        """
        before = _rate_window_ago()
        for waiting in self._batch:
            if waiting.at < before and not waiting.mark:
                _move_rate(waiting)
        scripts.run_all(*(call for waiting in self._batch for call in waiting.rate_calls))
        for waiting in self._batch:
            for call in waiting.rate_calls:
                waiting.set_hits(call.result)
            waiting.rate = None

    def _give_up(self, before: float) -> None:
        """Counts what was sent first before that time as errors."""
        kept = []
        for waiting in self._batch:
            if waiting.sent >= before:
                kept.append(waiting)
            elif waiting.skips:
                views = sum(part.number for part in waiting.parts)
                skip_buffer.add(waiting.skips, ["error"] * views)
        self._batch = kept


def _with_ids_of_the_day(hit: Hit) -> Hit | None:
    """Returns the hit with ids of the day for a hashed visitor; None if Redis does not tell them."""
    if hit.visitor.kind != "hash":
        return hit
    resolve = partial(day_keys.resolve, hit.visitor, at=hit.at)
    visitor = resolve() if day_keys.is_known(hit.at) else fail_open(resolve, None)
    return None if visitor is None else hit._replace(visitor=visitor)


def _queued(hit: Hit) -> Queued:
    """Returns the form in which the hit waits."""
    if keys.tenant_function() is not None:  # the thread knows no tenant
        return Waiting.of(hit.named)
    return PlainView.plain(hit) or hit


def _view(queued: Any) -> "PlainView | Hit":
    """Returns a queued hit with names for its fields."""
    return queued if isinstance(queued, Hit) else PlainView._make(queued)


def _part(queued: Any, *, prefix: str) -> Part:
    """Returns what a batch takes of a queued hit."""
    view = _view(queued).named
    if isinstance(view, Hit):
        return batch.part_of_call(count_views(view))
    return batch.part_of_view(view, prefix=prefix)


def _waiting(queued: Any) -> Waiting:
    if isinstance(queued, Waiting):
        return queued
    if isinstance(queued, Hit):
        return Waiting.of(queued.named)
    return Waiting.of(PlainView._make(queued).hit)


def _is_of_a_day(queued: Any) -> bool:
    """Returns True if a queued hit is that of a visitor whose ids are those of a day."""
    view = _view(queued)
    kind = view.visitor.kind if isinstance(view, Hit) else view.kind
    return kind == "day"


def _clock_question() -> list[Call[None]]:
    """Returns the question for Redis's clock where it is due."""
    return [clock.question()] if perf_counter() >= clock.due else []


def _rate_window_ago() -> datetime:
    return clock.now() - timedelta(seconds=rate_limit().seconds)


def _move_rate(waiting: Waiting) -> None:
    """Counts the hit in the rate of the time when it came, because hits of minutes may be sent
    together.
    """
    judge: Call[Any] | None = waiting.rate if conf.PARTITIONS > 1 else waiting.parts[0].call
    if judge is None:
        return
    waiting.mark = recording.mark(judge.keys[0])
    window = int(waiting.at.timestamp()) // rate_limit().seconds
    for call in (judge, waiting.back):
        if call is not None:
            rate, *others = call.keys
            call.keys = [f"{rate}:{window}", *others]


def _count_alone(part: ViewsOfPartition) -> Sequence[Reason] | None:
    """Counts views by a script of their own. Returns why they do not count, None for a silent server."""
    try:
        outcome = scripts.run(part.call)
    except SilentError:
        return None
    except ResponseError as error:
        if REFUSAL.search(str(error)):  # then the hits wait
            raise
        return ["error"] * part.number
    return [*outcome.skipped.values()]


hit_buffer = HitBuffer()
register_at_fork(after_in_child=hit_buffer.clear)
