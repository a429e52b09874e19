"""Chaos on a cluster: `python -m tests.chaos.cluster`. Under eight writers servers are killed and
hung, and slots move.

Each page is a new visitor's, so it counts once at most. The first primary is killed when it has
views that its replica was not sent and no flush has stored: they are counted, post by post, and no
more may be lost with it. Any other view that Redis acknowledged and SQL lacks at the end is
explained if its server was about to fail.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from redis.crc import key_slot

from demo_project.engines.postgres import Postgres
from demo_project.engines.process import Child
from tests.chaos.watcher import Watcher
from tests.support.cluster import SHARDS, ValkeyCluster
from tests.support.waiting import comes_true

POSTS = 48
WRITERS, FLUSHERS = 8, 2
CALM = 2.0  # seconds between two blows
LAG = 20  # views, at least, that the primary that is killed has not sent to its replica
# seconds in which a page of the primary that is killed ends; sooner than its replica takes over
SAID = 1.0
# Seconds before a failure, and after a demoted server woke up, in which views may be lost.
UNSENT = 0.5
# Seconds without a counted view, at most: of a shard that fails, and of the others. On an idle
# machine it is 2.5 and 0.25 s; a test must also hold on a busy one.
SILENCE = 5.0
OTHERS = 1.0


class Page(NamedTuple):
    """One page as its writer saw it."""

    at: float  # when it was there, seconds since 1970
    pk: int
    status: int
    counted: bool


class Blow(NamedTuple):
    name: str
    shard: int | None  # that it silences
    began: float
    ended: float


class Result(NamedTuple):
    pages: int
    errors: int  # pages with another status than 200
    acknowledged: int
    stored: int
    unsent: int  # acknowledged by the primary that was killed, and not on its replica
    lost: int  # acknowledged, and not stored
    unexplained: (
        int  # of those, what was neither unsent nor acknowledged around a failure of its server
    )
    overcounts: int  # posts that store more than there were pages
    decreases: int  # of a row in SQL
    silences: dict[
        str, tuple[float, float]
    ]  # by blow: of its shard, and the longest of the others (seconds)

    @property
    def holds(self) -> bool:
        is_quick = all(
            own <= SILENCE and others <= OTHERS for own, others in self.silences.values()
        )
        is_safe = not (self.errors or self.unexplained or self.overcounts or self.decreases)
        return is_quick and is_safe and self.unsent >= LAG


class ClusterChaos:
    """One run, on servers of its own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="readtrack-chaos-"))
        self.cluster = ValkeyCluster(config={"cluster-node-timeout": "1500"})
        self.postgres = Postgres()
        self.blows: list[Blow] = []
        self.shards: dict[int, int] = {}  # by post: the number of the server that had it first
        self.flushers: list[Child] = []
        self.replicated: dict[
            int, int
        ] = {}  # views by post, on the replica of the primary that was killed
        self.killed = 0.0  # when it was, seconds since 1970

    def run(self) -> Result:
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            stack.enter_context(self.postgres)
            stack.enter_context(self.cluster)
            self._set_up()
            watcher = Watcher(self.postgres.url, table="site_post")
            watcher.start()
            workers = [self._spawn("browse", number) for number in range(WRITERS)]
            self.flushers = [self._spawn("flush", number) for number in range(FLUSHERS)]
            for child in (*workers, *self.flushers):
                stack.callback(child.kill)
            if not comes_true(lambda: len(list(self._pages())) > 20 * WRITERS):
                raise RuntimeError(workers[0].last_lines())
            self._strike()
            for worker in workers:
                worker.stop(signal.SIGTERM)
            for flusher in self.flushers:
                flusher.stop(signal.SIGKILL)
            from readtrack.flush.run import flush

            flush()
            watcher.leave()
            return self._add_up(decreases=len(watcher.decreases))

    def _set_up(self) -> None:
        os.environ.update(
            DJANGO_SETTINGS_MODULE="tests.chaos.cluster_settings",
            READTRACK_TEST_CLUSTER=" ".join(self.cluster.urls),
            READTRACK_TEST_PARTITIONS="16",
            DATABASE_URL=self.postgres.url,
        )
        import django
        from django.core.management import call_command
        from django.db import connection

        django.setup()
        call_command("migrate", verbosity=0)
        from readtrack.store import keys
        from tests.support.factories import post

        pks = [post().pk for _ in range(POSTS)]
        self.shards = {
            pk: key_slot(keys.total(f"site.post:{pk}").encode()) // (16384 // SHARDS + 1)
            for pk in pks
        }
        (self.folder / "posts").write_text(" ".join(map(str, pks)))
        connection.close()

    def _spawn(self, role: str, number: int) -> Child:
        path = self.folder / f"{role}{number}.journal"
        return Child(
            [sys.executable, "-m", "tests.chaos.worker", role, str(path)],
            log=path.with_suffix(".log"),
            env=os.environ,
        )

    @contextmanager
    def _blow(self, name: str, shard: int | None = None) -> Iterator[None]:
        time.sleep(CALM)
        began = time.time()
        yield
        self.blows.append(Blow(name, shard, began, time.time()))

    def _strike(self) -> None:
        cluster = self.cluster
        with self._blow("primary killed, replica promoted", 0), self._lagging():
            cluster.servers[0].kill()
            self.replicated, self.killed = self._on_replica(), time.time()
            self._until_promoted(SHARDS)
        with self._blow("slots moved at once"):
            first, second, third, *_ = sorted(self._slots(of=2))
            for slot in (first, second):
                cluster.ask(
                    2,
                    "CLUSTER",
                    "MIGRATESLOTS",
                    "SLOTSRANGE",
                    slot,
                    slot,
                    "NODE",
                    cluster.id_of(SHARDS),
                )
            cluster.until_moved([first, second], SHARDS, servers=(2, SHARDS))
        with self._blow("a slot moved key by key"):
            cluster.move(third, 2, SHARDS, servers=(2, SHARDS))
        with self._blow("primary hung, replica promoted", 1):
            cluster.servers[1].pause()
            self._until_promoted(SHARDS + 1)
        with self._blow("hung primary goes on", 1):
            cluster.servers[1].resume()
        with self._blow("killed primary is back", 0):
            cluster.servers[0].start()
            cluster.until_replica(0)
        time.sleep(CALM)

    @contextmanager
    def _lagging(self) -> Iterator[None]:
        """Cuts off the first replica, and waits until it lacks views. Meanwhile no flush stores
        them.
        """
        for flusher in self.flushers:
            flusher.send(signal.SIGSTOP)
        self.cluster.detach(0)
        if not comes_true(
            lambda: self._unsent(self._on_replica(), until=time.time()).total() >= LAG
        ):
            raise RuntimeError(self.cluster.servers[0].last_lines())
        yield
        for flusher in self.flushers:
            flusher.send(signal.SIGCONT)

    def _on_replica(self) -> dict[int, int]:
        """Returns the views that the first replica has, by post of its shard."""
        from readtrack.store import keys

        with self.cluster.servers[SHARDS].client(single_connection_client=True) as replica:
            replica.readonly()
            pks = [pk for pk, shard in self.shards.items() if shard == 0]
            return {pk: int(replica.get(keys.total(f"site.post:{pk}")) or 0) for pk in pks}

    def _unsent(self, replicated: dict[int, int], *, until: float) -> Counter[int]:
        """Returns the views that were acknowledged until then and not replicated, by post."""
        found = Counter(page.pk for page in self._pages() if page.counted and page.at < until)
        return +Counter({pk: found[pk] - count for pk, count in replicated.items()})

    def _slots(self, *, of: int) -> set[int]:
        from readtrack.store import keys

        return {
            key_slot(keys.total(f"site.post:{pk}").encode())
            for pk, shard in self.shards.items()
            if shard == of
        }

    def _until_promoted(self, number: int) -> None:
        if not comes_true(lambda: self.cluster.is_primary(number)):
            raise RuntimeError(self.cluster.servers[number].last_lines())

    def _pages(self) -> Iterator[Page]:
        for path in self.folder.glob("browse*.journal"):
            for line in path.read_text().splitlines():
                at, pk, status, counted = line.split()
                yield Page(float(at), int(pk), int(status), counted == "1")

    def _add_up(self, *, decreases: int) -> Result:
        from tests.site.models import Post

        pages = sorted(self._pages())
        stored: dict[int, int] = dict(Post.objects.values_list("pk", "view_count"))
        attempted = Counter(page.pk for page in pages)
        acknowledged = Counter(page.pk for page in pages if page.counted)
        lost = {pk: max(0, acknowledged[pk] - count) for pk, count in stored.items()}
        explained = Counter(page.pk for page in pages if page.counted and self._is_explained(page))
        unsent = self._unsent(self.replicated, until=self.killed + SAID)
        return Result(
            pages=len(pages),
            errors=sum(page.status != 200 for page in pages),
            acknowledged=acknowledged.total(),
            stored=sum(stored.values()),
            unsent=unsent.total(),
            lost=sum(lost.values()),
            unexplained=sum(max(0, lost[pk] - unsent[pk] - explained[pk]) for pk in stored),
            overcounts=sum(count > attempted[pk] for pk, count in stored.items()),
            decreases=decreases,
            silences={blow.name: self._silences(blow, pages) for blow in self.blows},
        )

    def _is_explained(self, page: Page) -> bool:
        # But the first one, of which it was counted what was not sent.
        mine = [blow for blow in self.blows[1:] if blow.shard == self.shards[page.pk]]
        return any(blow.began - UNSENT <= page.at <= blow.ended + UNSENT for blow in mine)

    def _silences(self, blow: Blow, pages: list[Page]) -> tuple[float, float]:
        """Returns the longest silence of the blow's shard and of the others, from the blow to the
        next one.
        """
        first, last = blow.began - CALM, blow.ended + CALM
        times = defaultdict[int, list[float]](list)
        for page in pages:
            if page.counted and first <= page.at <= last:
                times[self.shards[page.pk]].append(page.at)
        longest = {
            shard: max((after - before for before, after in pairwise(at)), default=last - first)
            for shard, at in times.items()
        }
        own = longest.pop(blow.shard, 0.0) if blow.shard is not None else 0.0
        return round(own, 2), round(max(longest.values(), default=0.0), 2)


def table(result: Result) -> str:
    """Returns the result as text, a line for each figure."""
    rows: dict[str, Any] = result._asdict()
    silences = rows.pop("silences")
    lines = [f"{name:34} {count:>8,}" for name, count in rows.items()]
    lines += [
        f"{name:34} {own:>6.2f} s, others {others:.2f} s"
        for name, (own, others) in silences.items()
    ]
    return "\n".join([*lines, "every promise held" if result.holds else "A PROMISE WAS BROKEN"])


if __name__ == "__main__":
    outcome = ClusterChaos().run()
    print(table(outcome))
    sys.exit(not outcome.holds)
