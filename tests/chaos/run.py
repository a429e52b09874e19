"""The chaos run: starts servers and workers, breaks them at random, and compares the counts at the
end.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from demo_project.engines.postgres import Postgres
from demo_project.engines.process import Child
from demo_project.engines.valkey import Valkey
from tests.chaos.journal import imported_views, sums
from tests.chaos.watcher import Watcher

POSTS = 40
# Every command is on the disk before it is answered: a Redis that is killed comes back as it was.
DURABLE = {"appendonly": "yes", "appendfsync": "always"}
START, END = (edge.replace(tzinfo=timezone.utc) for edge in (datetime.min, datetime.max))
CALM = (0.2, 0.9)  # seconds between two blows


class Plan(NamedTuple):
    """Duration, numbers of workers, and seed. A seed fixes the order of the blows, though not their
    times.
    """

    seconds: float = 120
    flushers: int = 3
    recorders: int = 4
    importers: int = (
        1  # none where Redis loses something: nobody could tell what became of their last batch
    )
    lose_redis: bool = False
    seed: int = 0


class Result(NamedTuple):
    """Counts of views after the run. A loss is explained if it lies between the two flushes around
    a loss of Redis.
    """

    attempted: int
    acknowledged: int
    stored: int
    lost: int  # acknowledged, but not stored
    explained: int  # acknowledged around a loss of Redis
    decreases: int
    overcounts: (
        int  # posts that store more than was acknowledged; attempted, where Redis lost something
    )
    unexplained: int  # posts that lost more than was acknowledged around a loss
    flushes: int
    blows: dict[str, int]

    @property
    def holds(self) -> bool:
        return not (self.decreases or self.overcounts or self.unexplained)


class Chaos:
    """One run, on servers of its own."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.random = random.Random(plan.seed)
        self.folder = Path(tempfile.mkdtemp(prefix="readtrack-chaos-"))
        self.valkey = Valkey(config={} if plan.lose_redis else DURABLE)
        self.postgres = Postgres(durable=True)
        self.workers: dict[str, Child] = {}
        self.losses: list[float] = []  # when Redis lost something, seconds since 1970

    def run(self) -> Result:
        """Breaks things for the planned time, then restarts everything and compares the counts."""
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            stack.enter_context(self.valkey)
            stack.enter_context(self.postgres)
            self._set_up()
            watcher = Watcher(self.postgres.url, table="site_post")
            watcher.start()
            stack.callback(self._kill_all)
            importers = 0 if self.plan.lose_redis else self.plan.importers
            roles = {
                "record": self.plan.recorders,
                "flush": self.plan.flushers,
                "import": importers,
            }
            for role, number in roles.items():
                for n in range(number):
                    self._spawn(f"{role}{n}")
            blows = self._strike_until(time.monotonic() + self.plan.seconds)
            self._settle_down()
            watcher.leave()
            return self._add_up(decreases=len(watcher.decreases), blows=blows)

    def _set_up(self) -> None:
        os.environ.update(
            DJANGO_SETTINGS_MODULE="tests.chaos.settings",
            READTRACK_TEST_REDIS_URL=self.valkey.url,
            DATABASE_URL=self.postgres.url,
        )
        import django
        from django.core.management import call_command
        from django.db import connection

        django.setup()
        call_command("migrate", verbosity=0)
        from tests.support.factories import post

        (self.folder / "posts").write_text(" ".join(str(post().pk) for _ in range(POSTS)))
        connection.close()  # the server is about to be stopped

    def _spawn(self, name: str) -> None:
        command = [
            sys.executable,
            "-m",
            "tests.chaos.worker",
            name.rstrip("0123456789"),
            f"{self.folder}/{name}.journal",
        ]
        self.workers[name] = Child(command, log=self.folder / f"{name}.log", env=os.environ)

    def _strike_until(self, end: float) -> dict[str, int]:
        blows: dict[str, Callable[[], None]] = {
            "recorder killed": lambda: self._kill("record"),
            "flusher killed": lambda: self._kill("flush"),
            "Redis killed": self._kill_redis,
            "PostgreSQL stopped": lambda: self.postgres.restart(immediate=True),
        }
        if any(name.startswith("import") for name in self.workers):
            blows["importer killed"] = lambda: self._kill("import")
        if self.plan.lose_redis:
            blows |= {"Redis saved": self._save_redis, "Redis emptied": self._empty_redis}
        done, deck = dict.fromkeys(blows, 0), list[str]()
        with tqdm(
            total=round(self.plan.seconds), desc="Chaos", unit="s", disable=None, leave=False
        ) as bar:
            while (left := end - time.monotonic()) > 0:
                # Dealt like cards, so that a short run strikes every blow too.
                deck = deck or self.random.sample(
                    [*blows, "flusher killed", "flusher killed"], len(blows) + 2
                )
                name = deck.pop()
                bar.set_postfix_str(name)
                bar.update(round(self.plan.seconds - left) - bar.n)
                blows[name]()
                done[name] += 1
                time.sleep(self.random.uniform(*CALM))
        return done

    def _kill(self, role: str) -> None:
        """Kills a worker of the role and starts another one in its place."""
        name = self.random.choice([name for name in self.workers if name.startswith(role)])
        self.workers[name].kill()
        self._spawn(name)

    def _kill_redis(self) -> None:
        self.valkey.kill()
        if self.plan.lose_redis:  # it comes back with its last dump
            self.losses.append(time.time())
        self.valkey.start()

    def _empty_redis(self) -> None:
        self.losses.append(time.time())
        self.valkey.restart(keep=False)

    def _save_redis(self) -> None:
        with self.valkey.client() as client:
            client.save()

    def _settle_down(self) -> None:
        """Stops the workers, recorders after the view in progress. Then finishes the import, and
        flushes once.
        """
        from readtrack.flush.run import flush
        from readtrack.imports.weblog import Importer

        for name, worker in self.workers.items():
            worker.stop(signal.SIGTERM if name.startswith("record") else signal.SIGKILL)
        Importer().run([str(path) for path in self.folder.glob("*.access")])
        flush()

    def _kill_all(self) -> None:
        for worker in self.workers.values():
            worker.kill()

    def _add_up(self, *, decreases: int, blows: dict[str, int]) -> Result:
        from readtrack.models import FlushRun
        from tests.site.models import Post

        journals = sums(self.folder)
        imported = imported_views(self.folder)
        journals.attempted.update(imported)
        journals.acknowledged.update(imported)
        stored = dict(Post.objects.values_list("pk", "view_count"))
        lost = {pk: max(0, journals.acknowledged[pk] - count) for pk, count in stored.items()}
        # A try that was counted, then lost and tried again, may rightly have left its first view in
        # SQL.
        allowed = journals.attempted if self.losses else journals.acknowledged
        flushes = list(
            FlushRun.objects.filter(ended__isnull=False, error="").values_list("started", "ended")
        )
        around = self._around_losses(flushes)
        answers = (
            (entry.pk, datetime.fromtimestamp(entry.at, timezone.utc)) for entry in journals.answers
        )
        explained = Counter(
            pk for pk, at in answers if any(begin <= at <= end for begin, end in around)
        )
        return Result(
            attempted=journals.attempted.total(),
            acknowledged=journals.acknowledged.total(),
            stored=sum(stored.values()),
            lost=sum(lost.values()),
            explained=explained.total(),
            decreases=decreases,
            overcounts=sum(count > allowed[pk] for pk, count in stored.items()),
            unexplained=sum(lost[pk] > explained[pk] for pk in stored),
            flushes=len(flushes),
            blows=blows,
        )

    def _around_losses(self, flushes: list[Any]) -> list[tuple[datetime, datetime]]:
        """Returns, for each loss, the time from the last flush before it to the end of the first
        flush after it.
        """
        losses = (datetime.fromtimestamp(seconds, timezone.utc) for seconds in self.losses)
        return [
            (
                max((started for started, ended in flushes if ended < loss), default=START),
                min((ended for started, ended in flushes if started > loss), default=END),
            )
            for loss in losses
        ]
