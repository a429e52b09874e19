"""A flush that is killed at any step, or at any time, loses nothing and counts nothing twice."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest
from redis import Redis

from readtrack import reports, tracker
from readtrack.flush.run import flush
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.addresses import database_url
from tests.support.depth import STRIDE, examples
from tests.support.waiting import ENOUGH
from tests.support.wire import Moment, Wire

pytestmark = pytest.mark.django_db(transaction=True)

BASE = 1000  # what SQL holds of each post before Redis ever heard of it


class Flusher:
    """A process that flushes and can be killed."""

    def __init__(self, redis_url: str, database_url: str) -> None:
        urls = {"READTRACK_TEST_REDIS_URL": redis_url, "DATABASE_URL": database_url}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.flusher"],
            env={**os.environ, **urls, "DJANGO_SETTINGS_MODULE": "tests.settings"},
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pids: SimpleQueue[int] = SimpleQueue()

    def flush(self) -> int:
        """Flushes once. Returns the exit code, negative for a signal. Puts the process id into
        `pids`.
        """
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("flush\n")
        self._process.stdin.flush()
        self.pids.put(int(self._process.stdout.readline()))
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


class Crowd:
    """Visitors who view posts all the time, and the number of their views that Redis acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: dict[int, int] = {}
        self.lock = threading.Lock()  # held from a view until it is acknowledged
        self._has_closed = threading.Event()
        self._thread = threading.Thread(target=self._browse)

    def new_post(self) -> None:
        """Creates a post that Redis does not know, and views it once."""
        post = factories.post(view_count=BASE)
        self._look_at(post.pk, {post.pk: BASE})

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._has_closed.set()
        self._thread.join()

    def _browse(self) -> None:
        while not self._has_closed.wait(0.002):
            self._look_at(random.choice(list(self.acknowledged)), {})

    def _look_at(self, pk: int, known: dict[int, int]) -> None:
        with self.lock:
            outcome = tracker.record(factories.hit(f"site.post:{pk}"))
            self.acknowledged = {**self.acknowledged, **known}
            self.acknowledged[pk] += len(outcome.counted)


@pytest.fixture
def wires(redis_url: str) -> Iterator[dict[str, Wire]]:
    """Returns a relay in front of each server, for the flusher."""
    relays = {"redis": Wire(redis_url), "database": Wire(database_url())}
    yield relays
    for relay in relays.values():
        relay.close()


@pytest.fixture
def flusher(wires: dict[str, Wire]) -> Iterator[Flusher]:
    process = Flusher(wires["redis"].url, wires["database"].url)
    yield process
    process.close()


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    visitors = Crowd()
    visitors.new_post()
    visitors.start()
    yield visitors
    visitors.stop()


def stored() -> dict[int, int]:
    return dict(Post.objects.values_list("pk", "view_count"))


def check_all_is_well(crowd: Crowd, redis: Redis) -> None:
    """Checks that after one flush SQL holds exactly what was acknowledged, and that another writes
    nothing.
    """
    crowd.stop()
    flush()
    assert stored() == crowd.acknowledged
    assert flush().written == 0
    posts = list(Post.objects.all())
    assert {post.pk: views for post, views in reports.views(posts).items()} == crowd.acknowledged
    live = {post.pk: int(redis.get(f"views:total:{subject_of(post)}") or 0) for post in posts}
    assert live == crowd.acknowledged


def test_a_flush_is_killed_at_each_message_to_and_from_each_server(
    flusher: Flusher, wires: dict[str, Wire], crowd: Crowd, redis: Redis
) -> None:
    kills = 0
    moments: list[Moment] = ["request", "answer"]
    for server in wires:
        for moment in moments:
            trip = 1
            while _is_killed(flusher, wires, crowd, server=server, moment=moment, trip=trip):
                trip += STRIDE
                kills += 1
    assert kills * STRIDE > 25
    check_all_is_well(crowd, redis)


def _is_killed(
    flusher: Flusher,
    wires: dict[str, Wire],
    crowd: Crowd,
    *,
    server: str,
    moment: Moment,
    trip: int,
) -> bool:
    """Kills a flush at one step. Returns False if the flush has no such step and ended well."""
    crowd.new_post()
    before, wire = stored(), wires[server]
    target = wire.trips + trip
    is_done = threading.Event()

    def kill(now: Moment, number: int) -> None:
        if (number, now) == (target, moment):
            wire.hook = None
            os.kill(flusher.pids.get(), signal.SIGKILL)
            wire.cut()  # what it was about to say is never heard
            is_done.set()

    wire.hook = kill
    code = flusher.flush()
    wire.hook = None
    _check_that_nothing_fell(before, crowd)
    if code == 0:
        flusher.pids.get()
        return False
    assert code == -signal.SIGKILL
    assert is_done.wait(ENOUGH)
    wire.mend()
    return True


def _check_that_nothing_fell(before: dict[int, int], crowd: Crowd) -> None:
    with crowd.lock:
        now, acknowledged = stored(), dict(crowd.acknowledged)
    assert all(now[pk] >= views for pk, views in before.items())
    assert all(views <= acknowledged[pk] for pk, views in now.items())


def test_flushes_are_killed_at_any_moment(flusher: Flusher, crowd: Crowd, redis: Redis) -> None:
    rng, codes = random.Random(20261120), []
    for _ in range(examples(12)):
        crowd.new_post()
        before, delay = stored(), rng.uniform(0, 0.05)
        killer = threading.Thread(target=_kill_after, args=(flusher, delay))
        killer.start()
        codes.append(flusher.flush())
        killer.join()
        _check_that_nothing_fell(before, crowd)
    assert -signal.SIGKILL in codes
    check_all_is_well(crowd, redis)


def _kill_after(flusher: Flusher, delay: float) -> None:
    pid = flusher.pids.get()
    threading.Event().wait(delay)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
