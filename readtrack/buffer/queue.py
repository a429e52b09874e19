"""The hits that wait in the process, and the thread that sends many of them by one script.

A page does not wait for Redis to count its views. Its hit is recorded directly if it marks
something read or takes a step, while the queue is full, and once the process ends.
"""

import signal
from collections import defaultdict, deque
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from math import inf
from multiprocessing.util import Finalize
from threading import Event, Lock, Thread
from time import monotonic, perf_counter, sleep
from typing import Any, NamedTuple

from readtrack import parts
from readtrack.buffer import batch
from readtrack.buffer.batch import PlainView
from readtrack.buffer.options import buffer_options
from readtrack.buffer.waiting import (
    Queued,
    ViewsOfPartition,
    Waiting,
    as_waiting,
    entry_of,
    is_of_a_day,
    queued_form,
    rate_window_ago,
    with_names,
)
from readtrack.conf import conf, logger, register_at_fork
from readtrack.hits.addresses import watch
from readtrack.hits.hit import NO_OUTCOME, Hit, Outcome, Reason
from readtrack.store import clock, day_keys, keys, scripts
from readtrack.store.circuit import REFUSAL, SilentError, ask_anyway, fail_open
from readtrack.store.connection import ResponseError
from readtrack.store.scripts import Call
from readtrack.store.sending import Sending
from readtrack.store.skips import key_of, skip_buffer

MOST = 5_000  # hits that wait; some 2 kB each
BATCH = 250  # hits of one script, because a script blocks the server
EACH = 20  # while too many hits wait, each 20th page sleeps for PAUSE
PAUSE = 0.00001  # seconds
# Hits that are sent before their time, so that a busy process does not fill its queue.
ENOUGH = 50 * EACH
AGAIN = 1.0  # seconds until what Redis did not take is sent again
# While a process ends, what Redis does not take is sent again for as long; servers kill a process
# that takes longer, most of them after 30 seconds.
GRACE = 25.0
LAST_PAUSE = 0.1  # seconds between two of these tries
# Seconds that a signal's handler waits for the last sending where the process goes on after it.
PATIENCE = 2.0
NEVER = Event()

EMPTY_FIELDS = NO_OUTCOME[:-1]  # the fields of an outcome before `queued`


class Sent(NamedTuple):
    """What became of the views of a hit in one partition."""

    waiting: Waiting
    views: ViewsOfPartition
    reasons: Sequence[Reason] | None  # why views do not count; None where the server is silent


class HitBuffer(Sending):
    """The hits of this process that Redis does not have yet, and the thread that sends them."""

    # The thread computes the ids of new visitors in a loop. In a request that takes four times as
    # long.
    needs_named_visitors = False
    _earlier_handler: Any = signal.SIG_DFL  # of SIGTERM

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets all hits. For a process that was forked, because its parent sends them."""
        self._lock = Lock()
        self._work = Event()  # set while the thread has something to send
        self._soon = Event()  # set if the thread is to send before the seconds of BUFFER are over
        self._finished = Event()  # set once the thread has ended
        self._is_closed = False
        self._has_ended = False  # the thread looks at the queue no more
        self._process = object()  # which the thread belongs to
        self._thread: Thread | None = None
        self._queue: deque[Queued] = deque()
        self._batch: list[Any] = []  # hits that are being sent, in any of the forms of `Queued`

    def take(self, hit: Hit) -> Outcome | None:
        """Queues a hit. Returns None for one that its page is to record."""
        if hit.reads or hit.steps or not hit.views:
            return None
        identified = _with_ids_of_the_day(hit)
        if identified is None or (self._thread is None and not self._start()):
            return None
        if watch.notices:
            skip_buffer.add(key_of(hit.at), ())
        queued = queued_form(identified)
        with self._lock:
            if self._has_ended or len(self._queue) >= MOST:
                return None
            self._queue.append(queued)
            queue_length = len(self._queue)
        self._wake(queue_length)
        # This takes less time than `Outcome(queued=hit.views)`.
        return tuple.__new__(Outcome, (*EMPTY_FIELDS, hit.views))

    def _wake(self, queue_length: int) -> None:
        """Lets the thread send the queue; at once if many hits wait."""
        if not self._work.is_set():
            self._work.set()
        if queue_length % EACH or queue_length < ENOUGH:
            return
        self._soon.set()
        if queue_length >= 2 * ENOUGH:
            # CPython gives the GIL back to a thread that has just released it, as the only thread
            # of a server does for each request. Without the sleep the sending thread waits for up
            # to half a second, and the queue fills up.
            sleep(PAUSE)

    def take_skips(self) -> bool:
        """Lets the thread send the skips with the hits. Returns False if the process ends."""
        if self._thread is None and not self._start():
            return False
        self._work.set()
        return not self._is_closed

    def begin(self) -> None:
        """Has all hits sent before the process handles SIGTERM, because some servers, such as
        uvicorn, call no exit handlers after it.
        """
        if signal.getsignal(signal.SIGTERM) == self._on_sigterm:
            return
        # ValueError is raised in another thread than the main one, and in a subinterpreter.
        with suppress(ValueError):
            handler = signal.signal(signal.SIGTERM, self._on_sigterm)
            # None for a handler that was not set by Python.
            self._earlier_handler = handler or signal.SIG_DFL

    def close(self) -> None:
        """Has all hits sent, and tried again for GRACE seconds. From then on hits are recorded
        directly.
        """
        self._end(PATIENCE)
        if self._waiting_hits and not self._has_ended:
            logger.warning(
                "%d queued views wait for Redis before the process ends.", self._waiting_hits
            )
        self._end(GRACE)
        if self._waiting_hits:
            logger.warning(
                "%d queued views were not recorded before the process ended.", self._waiting_hits
            )

    def _end(self, seconds: float) -> None:
        """Has the thread send all hits and end, and waits for it."""
        # Without the lock, because a signal may interrupt the thread that holds it.
        self._is_closed = True
        self._work.set()
        self._soon.set()
        # Not `join`, which takes a thread for ended where waiting is refused. A signal may
        # interrupt the event loop of gevent, which cannot wait for a green thread and raises
        # AssertionError; the thread goes on once the signal's handler has returned.
        with suppress(AssertionError):
            if self._thread:
                self._finished.wait(seconds)

    @property
    def _waiting_hits(self) -> int:
        """The number of hits that wait."""
        return len(self._batch) + len(self._queue)

    def _on_sigterm(self, number: int, frame: Any) -> None:
        """Has all hits sent, then hands the signal to the handler from before."""
        if self._earlier_handler == signal.SIG_DFL:
            self.close()
        else:  # the server finishes its requests first, and the process sends the rest at its exit
            self._end(PATIENCE)
        signal.signal(number, self._earlier_handler)
        signal.raise_signal(number)

    def _start(self) -> bool:
        """Starts the thread, unless it runs. Returns False if the interpreter ends."""
        with self._lock:
            if self._thread is not None:
                return True
            thread = Thread(target=self._run, args=(self._process,), name="readtrack", daemon=True)
            self._thread = thread
        # Without the lock, because a green thread lets others run as it starts. The lock itself is
        # not green if gevent came after us, and would stop them all.
        try:
            thread.start()
        except RuntimeError:  # no thread begins where the interpreter ends
            self._thread = None
            return False
        # Not atexit, which forks of multiprocessing ignore before Python 3.13. Workers of granian
        # are such forks.
        Finalize(None, self.close, exitpriority=0)
        return True

    def _run(self, process: object) -> None:
        """Sends the queue until the process ends. Runs in the thread."""
        try:
            self._send_until_closed(process)
            self._send_last()
        finally:
            self._finished.set()

    def _send_until_closed(self, process: object) -> None:
        """Sends the queue every `BUFFER.seconds`."""
        while not self._is_closed:
            self._work.wait()
            self._soon.wait(AGAIN if self._batch else buffer_options().seconds or 1)
            if process is not self._process:
                # A thread of gevent that a fork has copied. It must not end, because `threading` in
                # the child does not know it.
                NEVER.wait()
            self._soon.clear()
            self._work.clear()
            self._send_all()

    def _send_last(self) -> None:
        """Sends until no hit waits any more, for GRACE seconds at most, and then the skips."""
        until = monotonic() + GRACE
        while True:
            self._send_all()
            # A request that has the lock adds a last hit. The timeout is for one that a signal
            # interrupted, whose handler waits for this thread.
            has_lock = self._lock.acquire(timeout=PATIENCE)
            self._has_ended = not self._waiting_hits or monotonic() > until
            if has_lock:
                self._lock.release()
            if self._has_ended:
                break
            sleep(LAST_PAUSE)
        skip_buffer.close()

    def _send_all(self) -> None:
        """Sends the queue in batches, and the skips, even if no hit waits."""
        # Hits that are queued again meanwhile wait for the next time, because their server of a
        # cluster is silent.
        remaining = len(self._queue)
        while True:
            try:
                if not self._batch:
                    size = min(BATCH, remaining)
                    remaining -= size
                    self._take(size)
                # A view that is sent again counts once only while its window is open.
                self._give_up(monotonic() - (conf.WINDOW or 1) / 2)
                if self._batch or skip_buffer.skips:
                    is_sent: bool = ask_anyway(self._send, False)  # noqa: FBT003
                    if not is_sent:
                        self._work.set()  # to try again
                        return
            except Exception:  # the thread must not end
                logger.exception("Queued views could not be recorded.")
                with suppress(Exception):  # it may be these two lines that fail
                    self._batch = list(map(as_waiting, self._batch))
                    self._give_up(inf)
            self._batch = []
            if not remaining:
                return

    def _take(self, size: int) -> None:
        """Takes hits from the queue into the batch, and sends them in the form in which they wait.

        If that fails, the batch has them as Waiting, to be sent again. Otherwise it is empty.
        """
        began = monotonic()
        self._batch = [self._queue.popleft() for _ in range(size)]
        if not self._batch:
            return
        is_sent: bool = ask_anyway(self._send_plain, False)  # noqa: FBT003
        if is_sent:
            self._batch = []
            return
        self._batch = list(map(as_waiting, self._batch))
        for waiting in self._batch:
            waiting.first_sent = waiting.first_sent or began

    def _send_plain(self) -> bool:
        """Sends the batch in the form in which it waited. Returns False if that cannot be done.

        It keeps no object for each hit until all are sent, because the garbage collector would
        look at these objects, which took as long as everything else that the thread does.
        """
        if not self._can_be_sent_plain():
            return False
        prefix = keys.prefix()
        counting = batch.count_batch(entry_of(queued, prefix=prefix) for queued in self._batch)
        upkeep: list[Call[Any]] = []
        for queued in self._batch:
            if is_of_a_day(queued):
                upkeep += day_keys.upkeep(with_names(queued).at)
            if isinstance(queued, Hit):
                upkeep += parts.calls_of_hit(queued)
        try:
            skip_buffer.send(counting, *upkeep, *_clock_question())
        except ResponseError:  # perhaps because of one hit
            return False
        for queued, reasons in zip(self._batch, counting.result or (), strict=True):
            if reasons:
                self._count_skips_of(with_names(queued), reasons)
        return True

    def _can_be_sent_plain(self) -> bool:
        """Returns True if no hit of the batch has to be sent as Waiting."""
        # The first hit decides for all: if one is Waiting, all are, and the first is the oldest.
        first = self._batch[0]
        if keys.is_divided() or isinstance(first, Waiting):
            return False
        # An older hit counts in the rate of its own time, which only Waiting can do.
        return with_names(first).at >= rate_window_ago()

    def _count_skips_of(self, view: PlainView | Hit, reasons: Sequence[Reason]) -> None:
        """Adds the skips of a view, unless a script reported it, whose repeats are expected."""
        if not view.is_report:
            skip_buffer.add(key_of(view.at), reasons)
            self._work.set()

    def _send(self) -> bool:
        """Sends the batch of Waiting, and queues again what silent servers did not take.

        Returns True, in which it differs from the default that `fail_open` returns.
        """
        self._count_rates()
        counted: set[Waiting] = set()
        silent: defaultdict[Waiting, list[ViewsOfPartition]] = defaultdict(list)
        for sent in self._send_groups():
            if sent.reasons is None:
                silent[sent.waiting].append(sent.views)
                continue
            if len(sent.reasons) < sent.views.number:
                counted.add(sent.waiting)
            if sent.reasons and sent.waiting.skips_key:
                skip_buffer.add(sent.waiting.skips_key, sent.reasons)
                self._work.set()
        self._queue_again(silent, counted)
        self._take_back(counted.union(silent))
        return True

    def _send_groups(self) -> list["Sent"]:
        """Sends the batch by one script for each partition. Returns what became of each hit."""
        groups = self._by_partition()
        countings = []
        for group in groups:
            entries = [batch.entry_of_call(views.call) for _, views in group]
            countings.append(batch.count_batch(entries))
        upkeep = [call for waiting in self._batch for call in waiting.upkeep]
        try:
            skip_buffer.send(*countings, *upkeep, *_clock_question())
        except ResponseError:  # perhaps because of one hit, so each is sent by its own script
            return [
                Sent(waiting, views, _count_alone(views))
                for waiting, views in chain.from_iterable(groups)
            ]
        sent = []
        for group, counting in zip(groups, countings, strict=True):
            # Without a result, the server of the group is silent.
            no_reasons = [None] * len(group)
            reasons_by_hit: Sequence[Sequence[Reason] | None] = counting.result or no_reasons
            for (waiting, views), reasons in zip(group, reasons_by_hit, strict=True):
                sent.append(Sent(waiting, views, reasons))
        return sent

    def _queue_again(
        self, silent: Mapping[Waiting, Sequence[ViewsOfPartition]], counted: Container[Waiting]
    ) -> None:
        """Queues the views that silent servers did not take.

        `counted` has the hits of which other servers have counted a view.
        """
        for waiting, view_groups in silent.items():
            take_back = None if waiting in counted else waiting.take_back
            self._queue.append(
                replace(waiting, view_groups=view_groups, upkeep=(), take_back=take_back)
            )
            self._work.set()

    def _take_back(self, kept: Container[Waiting]) -> None:
        """Takes hits of the batch back, but not the kept ones, which counted or are sent again."""
        unkept = [waiting for waiting in self._batch if waiting not in kept]
        calls = [waiting.take_back for waiting in unkept if waiting.take_back]
        # Not tried again if it fails, because the batch would be sent again as well.
        fail_open(scripts.run_all, [], *calls)

    def _by_partition(self) -> Sequence[Sequence[tuple[Waiting, ViewsOfPartition]]]:
        """Returns the views of the batch in groups, one for each partition."""
        pairs = [(waiting, views) for waiting in self._batch for views in waiting.view_groups]

        def tag_of(pair: tuple[Waiting, ViewsOfPartition]) -> str:
            _, views = pair
            unsettled = views.call.keys[1]
            return keys.tag_in(unsettled)

        return list(keys.by_tag(pairs, tag_of).values())

    def _count_rates(self) -> None:
        """Counts the hits whose rate is in another partition than their views.

        Also looks whether the visitors of hits that waited longer than a rate window are marked as
        robots.
        """
        window_ago = rate_window_ago()
        for waiting in self._batch:
            if waiting.at < window_ago and not waiting.mark:
                waiting.move_rate()
        rate_calls = [call for waiting in self._batch for call in waiting.rate_calls]
        scripts.run_all(*rate_calls)
        for waiting in self._batch:
            for call in waiting.rate_calls:
                waiting.set_hits(call.result)
            waiting.rate = None

    def _give_up(self, before: float) -> None:
        """Counts as errors the hits that were first sent before that time (monotonic clock)."""
        kept = []
        for waiting in self._batch:
            if waiting.first_sent >= before:
                kept.append(waiting)
            elif waiting.skips_key:
                number_of_views = sum(views.number for views in waiting.view_groups)
                skip_buffer.add(waiting.skips_key, ["error"] * number_of_views)
        self._batch = kept


def _with_ids_of_the_day(hit: Hit) -> Hit | None:
    """Returns the hit; that of a hashed visitor with ids of the day, or None if Redis fails."""
    if hit.visitor.kind != "hash":
        return hit
    resolve = partial(day_keys.resolve, hit.visitor, at=hit.at)
    visitor = resolve() if day_keys.is_known(hit.at) else fail_open(resolve, None)
    if visitor is None:
        return None
    return hit._replace(visitor=visitor)


def _clock_question() -> list[Call[None]]:
    """Returns the call that asks for Redis's time if that is due; else none."""
    return [clock.question()] if perf_counter() >= clock.due else []


def _count_alone(views: ViewsOfPartition) -> Sequence[Reason] | None:
    """Counts the views by a script of their own.

    Returns the reasons why views do not count; None for a silent server. Raises ResponseError if
    the server refuses all scripts for now.
    """
    try:
        outcome = scripts.run(views.call)
    except SilentError:
        return None
    except ResponseError as error:
        if REFUSAL.search(str(error)):  # the caller keeps the hits for later
            raise
        return ["error"] * views.number
    return [*outcome.skipped.values()]


hit_buffer = HitBuffer()
register_at_fork(after_in_child=hit_buffer.clear)
