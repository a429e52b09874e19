"""Buffered recording: hits wait in the process, and one thread sends many of them by one script.

With BUFFER above 0 a page does not wait for Redis to count its views. Pages that mark something
read or take a step do, and so do all pages while the queue is full, and once the process ends:
their hits are recorded directly.
"""

import signal
from collections import defaultdict, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from math import inf
from multiprocessing.util import Finalize
from threading import Event, Lock, Thread
from time import monotonic, perf_counter, sleep
from typing import Any

from redis.exceptions import ResponseError

from readtrack.conf import conf, logger, register_at_fork
from readtrack.hits.addresses import watch
from readtrack.hits.hit import AT, CALLER, KIND, NO_OUTCOME, Hit, Outcome, Reason
from readtrack.hits.visitors import id_of
from readtrack.store import clock, day_keys, keys, recording, scripts
from readtrack.store.circuit import SilentError, fail_open
from readtrack.store.cluster import REFUSAL
from readtrack.store.scripts import Call
from readtrack.store.skips import key_of, skip_buffer

MOST = 5_000  # hits that wait; some 2 kB each
BATCH = 250  # hits of one script, because a script blocks the server
EACH, PAUSE = (
    20,
    0.00001,
)  # each 20th page that comes while too many hits wait sleeps for that many seconds
ENOUGH = (
    50 * EACH
)  # hits that are sent before BUFFER seconds are over, so that a busy process does not fill its queue
LAST = 2.0  # seconds that the end of a process waits for the last sending

NOTHING_ELSE = NO_OUTCOME[:-1]  # of an outcome, before what is queued


@dataclass(slots=True)
class Waiting:
    """A hit as it is sent, with its keys."""

    at: datetime
    parts: Sequence[
        tuple[int, Call[Outcome]]
    ]  # of each partition: the number of its views, and their call
    upkeep: Sequence[Call[Any]]
    skips: str  # key of the counts of its skips; "" for a page's script, whose repeats are expected
    rate: (
        Call[int] | None
    )  # counts the hit, where the rate is in another partition; None once it did
    back: Call[int] | None  # takes the hit back if none of its views counts
    mark: Call[int] | None = (
        None  # looks for a robot's mark, where the rate is that of an earlier time
    )
    sent: float = 0.0  # when it was sent first, by the monotonic clock; 0 for never

    @classmethod
    def of(cls, hit: Hit) -> "Waiting":
        parts = scripts.parted(hit.views)
        hits = [hit] if len(parts) == 1 else [hit._replace(views=tuple(some)) for some in parts]
        return cls(
            hit.at,
            [(len(part.views), recording.count_views(part)) for part in hits],
            day_keys.upkeep(hit) if hit.visitor.kind == "day" else (),
            "" if hit.by_script else key_of(hit.at),
            recording.rate(hit, 1) if conf.PARTITIONS > 1 else None,
            recording.rate(hit, -1) if recording.takes_back(hit) else None,
        )


class HitBuffer:
    """The hits of this process that Redis does not have yet, and the thread that sends them."""

    _earlier: Any = signal.SIG_DFL  # what handled SIGTERM before

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets all hits, as a forked process must, whose parent sends them."""
        self._lock, self._work, self._soon = Lock(), Event(), Event()
        self._is_closed = False
        self._thread: Thread | None = None
        self._queue: deque[tuple[Any, ...] | Waiting] = deque()  # of hits as plain tuples
        self._batch: list[
            Any
        ] = []  # is sent, plain at first, and then as objects until it is answered

    def add(self, hit: Hit) -> Outcome | None:
        """Queues a hit. Returns None for one that is to be recorded directly."""
        if hit.reads or hit.steps or not hit.views:
            return None
        if hit.visitor.kind == "hash":
            resolve = partial(day_keys.resolve, hit.visitor, at=hit.at)
            visitor = resolve() if day_keys.is_known(hit.at) else fail_open(resolve, None)
            if visitor is None:
                return None
            hit = hit._replace(visitor=visitor)
        if self._thread is None and not self._start():
            return None
        if watch.notices:
            skip_buffer.add(key_of(hit.at), ())
        # The thread knows no tenant. Each named tuple that waits would cost the garbage collector 3
        # µs.
        waiting = hit.visitor + hit[1:] if keys.tenant_function() is None else Waiting.of(hit.named)
        with self._lock:
            if self._is_closed or len(self._queue) >= MOST:
                return None
            self._queue.append(waiting)
            number = len(self._queue)
        if not self._work.is_set():
            self._work.set()
        if number % EACH == 0 and number >= ENOUGH:
            self._soon.set()
            if number >= 2 * ENOUGH:
                # CPython gives the GIL back to a thread that has just released it, as the only
                # thread of a server does for each request. Without the sleep the sending thread
                # waits for up to half a second, and the queue fills up.
                sleep(PAUSE)
        return tuple.__new__(Outcome, (*NOTHING_ELSE, hit.views))

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
            with suppress(
                ValueError
            ):  # in another thread than the main one, or in a subinterpreter
                self._earlier = signal.signal(signal.SIGTERM, self._on_sigterm) or signal.SIG_DFL

    def close(self) -> None:
        """Sends all hits. From now on hits are recorded directly."""
        self._is_closed = (
            True  # without the lock, because a signal may interrupt the thread that has it
        )
        self._work.set()
        self._soon.set()
        if self._thread:
            self._thread.join(LAST)
        if left := len(self._batch) + len(self._queue):
            logger.warning("%d queued views were not recorded before the process ended.", left)

    def _on_sigterm(self, number: int, frame: Any) -> None:
        self.close()
        signal.signal(number, self._earlier)
        signal.raise_signal(number)

    def _start(self) -> bool:
        with self._lock:
            if self._thread is None:
                thread = Thread(target=self._run, name="readtrack", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no thread begins where the interpreter ends
                    return False
                self._thread = thread
                # Not atexit, which forks of multiprocessing, as granian's workers are, ignore
                # before Python 3.13.
                Finalize(None, self.close, exitpriority=0)
        return True

    def _run(self) -> None:
        while not self._is_closed:
            self._work.wait()
            self._soon.wait(conf.BUFFER or 1)
            self._soon.clear()
            self._work.clear()
            self._send_all()
        with self._lock:  # a request that has it adds a last hit
            pass
        self._send_all()
        skip_buffer.send_rest()

    def _send_all(self) -> None:
        """Sends the queue in batches, and at least what there is of skips."""
        left = len(self._queue)  # not those that come back, because a server of a cluster is silent
        while True:
            try:
                if not self._batch:
                    now = monotonic()
                    self._batch = [self._queue.popleft() for _ in range(min(BATCH, left))]
                    left -= len(self._batch)
                    is_sent = bool(self._batch) and fail_open(self._send_plain, False)  # noqa: FBT003
                    self._batch = [] if is_sent else list(map(_waiting, self._batch))
                    for one in self._batch:
                        one.sent = one.sent or now
                # A view that is sent again counts once for as long as its window is open.
                self._give_up(monotonic() - (conf.WINDOW or 1) / 2)
                if (self._batch or skip_buffer.skips) and fail_open(self._send, None) is None:
                    self._work.set()  # to try again
                    return
            except Exception:  # the thread must not end
                logger.exception("Queued views could not be recorded.")
                with suppress(Exception):  # this may be what fails
                    self._batch = list(map(_waiting, self._batch))
                    self._give_up(inf)
            self._batch = []
            if not left:
                return

    def _send_plain(self) -> bool:
        """Sends hits as they were queued. Returns False if they have to be sent as objects, which
        can be sent again.

        Makes nothing that lasts until all hits are sent, because the garbage collector would look
        at it: with an object for each hit that took as long as all else that the thread does.
        """
        # Where one hit waits as an object, all do, and the first is the oldest.
        first, before = self._batch[0], clock.now() - timedelta(seconds=conf.RATE_WINDOW or 1)
        if conf.PARTITIONS > 1 or isinstance(first, Waiting) or first[AT] < before:
            return False
        self._batch = hits = [
            (hit[0], id_of(hit[CALLER]), *hit[2:CALLER], None, *hit[CALLER + 1 :])
            if hit[CALLER]
            else hit
            for hit in self._batch
        ]
        calls: list[Call[Any]] = [recording.count_batch(recording.plain_parts(hits))]
        for hit in hits:
            if hit[KIND] == "day":
                calls += day_keys.upkeep(Hit.of_plain(hit))
        if perf_counter() >= clock.due:
            calls.append(clock.question())
        try:
            refused = skip_buffer.send(*calls)[0]
        except ResponseError:  # because of one hit, perhaps
            return False
        for hit, reasons in zip(hits, refused, strict=True):
            if reasons and not Hit.of_plain(hit).by_script:
                skip_buffer.add(key_of(hit[AT]), reasons)
                self._work.set()
        return True

    def _send(self) -> bool | None:
        self._rate()
        batch, counted = self._batch, set()
        silent = defaultdict[int, list[tuple[int, Call[Outcome]]]](list)
        parts = [(place, *part) for place, waiting in enumerate(batch) for part in waiting.parts]
        groups = keys.by_tag(parts, lambda part: keys.tag_in(part[2].keys[1])).values()
        calls: list[Call[Any]] = [
            recording.count_batch(recording.part(call) for *_, call in some) for some in groups
        ]
        for waiting in batch:
            calls += waiting.upkeep
        if perf_counter() >= clock.due:
            calls.append(clock.question())
        try:
            answers = skip_buffer.send(*calls)
        except ResponseError:  # because of one hit, perhaps
            answers = [[_alone(views, call) for _, views, call in some] for some in groups]
        for some, refused in zip(groups, answers, strict=False):
            for (place, views, call), reasons in zip(
                some, refused or [None] * len(some), strict=True
            ):
                if reasons is None:
                    silent[place].append((views, call))
                    continue
                if len(reasons) < views:
                    counted.add(place)
                if reasons and batch[place].skips:
                    skip_buffer.add(batch[place].skips, reasons)
                    self._work.set()
        for place, rest in silent.items():
            later = None if place in counted else batch[place].back
            self._queue.append(replace(batch[place], parts=rest, upkeep=(), back=later))
            self._work.set()  # to try again
        back = [
            one.back
            for place, one in enumerate(batch)
            if one.back and place not in counted | {*silent}
        ]
        fail_open(
            scripts.run_all, [], *back
        )  # not sent again if it fails, because the batch would be
        return True

    def _rate(self) -> None:
        before = clock.now() - timedelta(seconds=conf.RATE_WINDOW or 1)
        for waiting in self._batch:
            judge: Call[Any] | None = waiting.rate if conf.PARTITIONS > 1 else waiting.parts[0][1]
            if (
                judge and waiting.at < before and not waiting.mark
            ):  # hits of minutes may be sent together
                waiting.mark = recording.mark(judge.keys[0])
                window = int(waiting.at.timestamp()) // (
                    conf.RATE_WINDOW or 1
                )  # the earlier one has a key of its own
                for one in filter(None, (judge, waiting.back)):
                    one.keys = [f"{one.keys[0]}:{window}", *one.keys[1:]]
        # Without rates of those that came back. The mark outweighs the rate.
        asked = [
            (waiting, call)
            for waiting in self._batch
            for call in (waiting.rate, waiting.mark)
            if call
        ]
        for (waiting, _), hits in zip(
            asked, scripts.run_all(*(call for _, call in asked)), strict=True
        ):
            waiting.rate = None
            for _, call in waiting.parts if hits else ():
                recording.set_hits(call, hits)

    def _give_up(self, before: float) -> None:
        """Counts what was sent first before that time as errors."""
        for waiting in self._batch:
            if waiting.skips and waiting.sent < before:
                skip_buffer.add(waiting.skips, ["error"] * sum(views for views, _ in waiting.parts))
        self._batch = [waiting for waiting in self._batch if waiting.sent >= before]


def _waiting(hit: "Sequence[Any] | Waiting") -> Waiting:
    return hit if isinstance(hit, Waiting) else Waiting.of(Hit.of_plain(hit).named)


def _alone(views: int, call: Call[Outcome]) -> Sequence[Reason] | None:
    try:
        return [*scripts.run(call).skipped.values()]
    except SilentError:
        return None
    except ResponseError as error:
        if REFUSAL.search(str(error)):  # then the hits wait
            raise
        return ["error"] * views


hit_buffer = HitBuffer()
register_at_fork(after_in_child=hit_buffer.clear)
