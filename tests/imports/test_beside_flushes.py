"""Imports, undos and flushes that go on round trip by round trip, among live views, kills and losses
of Redis.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, Phase
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pytest_django import Settings
from redis import Redis
from redis.connection import Connection

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.imports import keys as import_keys
from readtrack.imports import ledger, undo
from readtrack.imports.ledger import Batch
from readtrack.imports.models import Import
from readtrack.models import Archive, FlushRun, KnownEpoch
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import History
from readtrack.store import scripts
from readtrack.subjects import subject_of
from tests.imports.snapshots import Snapshot
from tests.site.models import Post
from tests.support import factories
from tests.support.depth import examples
from tests.support.stepping import SteppedConnection, Stepper

POSTS = 2
POST = st.integers(0, POSTS - 1)
TIMES = st.integers(1, 30)  # round trips at once
HOUR = timedelta(hours=1)
AGES = (
    0,
    2,
    30,
    47,
    90,
)  # of imported views, in hours: Redis counts the younger ones by the hour, too

LOGS = {"log": 3, "large": 9}  # with views of a batch

_numbers = count()


class OpenConnection(SteppedConnection):
    """A connection that does not wait in a transaction, which may hold locks: whoever waits for those
    could not be stepped any more.
    """

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:  # noqa: FBT002 - its signature
        if connection.in_atomic_block:
            Connection.send_packed_command(self, command, check_health)  # type: ignore[no-untyped-call]
        else:
            super().send_packed_command(command, check_health)


class ImportMachine(RuleBasedStateMachine):
    """Two posts that are viewed, flushed and imported at once, from two logs. Each run of an import
    takes over one batch; an undo takes all batches of a log back.
    """

    redis: Redis  # set by the test

    def __init__(self) -> None:
        super().__init__()
        self.redis.flushdb()
        for model in (Post, Import, FlushRun, KnownEpoch, Archive, History):
            model._base_manager.all().delete()
        self.posts = [factories.post() for _ in range(POSTS)]
        for log in LOGS:
            Import.objects.create(source=log, name=log)
        self.live: Counter[int] = Counter()  # views by post
        self.stored: Counter[int] = Counter()
        # By log: batches that some run has begun to take over.
        self.begun = dict.fromkeys(LOGS, 0)
        self.flushers: list[Stepper] = []
        self.importers: dict[str, list[Stepper]] = {log: [] for log in LOGS}
        # By log. One that is killed stays until it is repeated.
        self.undos: dict[str, Stepper] = {}
        self.taken: Counter[int] = Counter()  # views by post that undos take back
        self.undone = 0  # views that undos have ever taken back
        self.snapshot: Snapshot | None = None
        self.has_lost = False

    @rule(index=POST, times=st.integers(1, 3))
    def view(self, index: int, times: int) -> None:
        for _ in range(times):
            hit = factories.hit(
                subject_of(self.posts[index]), visitor=Visitor(f"visitor {next(_numbers)}")
            )
            assert tracker.record(hit).counted
            self.live[index] += 1

    @rule(index=st.integers(0, 1), times=TIMES, only_changed=st.booleans())
    def flush(self, index: int, times: int, only_changed: bool) -> None:
        self._step(self.flushers, index, lambda: flush(only_changed=only_changed), times=times)

    @rule(index=st.sampled_from([0, 0, 1]), log=st.sampled_from([*LOGS]), times=TIMES)
    def take_over(self, index: int, log: str, times: int) -> None:
        """A run of the import, or two that know nothing of each other."""
        if log not in self.undos:
            self._step(self.importers[log], index, lambda: self._import(log), times=times)

    @rule(log=st.sampled_from([*LOGS]), times=TIMES)
    def take_back(self, log: str, times: int) -> None:
        """An undo, after the imports of the log have ended."""
        if log not in self.undos:
            for one in self.importers[log]:
                one.finish()
            self._sweep()
            views = self._imported(log, self.begun[log])
            self.taken += views
            self.undone += views.total()
            self.undos[log] = Stepper(lambda: undo.undo(log))
        self.undos[log].step(times)
        if self.undos[log].is_over:
            self._repeat_undo(log)

    def _repeat_undo(self, log: str) -> None:
        """Repeats an undo that has ended, perhaps too early, and begins the log anew."""
        with suppress(ledger.ImportRefusedError):  # it was done
            undo.undo(log)
        del self.undos[log]
        self.begun[log] = 0
        Import.objects.create(source=f"{log}{next(_numbers)}", name=log)

    def _step(
        self, some: list[Stepper], index: int, work: Callable[[], object], *, times: int
    ) -> None:
        if index >= len(some):
            some.append(Stepper(work))
        some[min(index, len(some) - 1)].step(times)
        self._sweep()

    @precondition(lambda self: self._steppers())
    @rule(index=st.integers(0, 5), is_kill=st.booleans())
    def fail(self, index: int, is_kill: bool) -> None:
        """One of them is killed, or cut off from the database."""
        some = self._steppers()
        one = some[index % len(some)]
        if is_kill:
            one.kill()
        else:
            one.lose_database()
        self._sweep()

    @rule()
    def finish(self) -> None:
        """Everybody comes to an end, the import is taken up again, and one flush has the field to
        itself.
        """
        for one in self._steppers():
            one.finish()
        self._sweep()
        for log in [*self.undos]:
            self._repeat_undo(log)
        for log in LOGS:
            while self._is_open(log):
                self._import(log)
        flush()
        assert flush().written == 0
        self.check()
        if not self.has_lost:
            self.taken.clear()  # no flush has an older total in its hands
            self.check()
        if not self.has_lost:
            self._check_equality()

    @rule()
    def copy(self) -> None:
        """Redis takes a snapshot; not in the moment between announcement and addition (see
        ledger.py).
        """
        for source in Import.objects.values_list("source", flat=True):
            begun, done = self.redis.hmget(import_keys.position("", source), "begun", "done")
            if begun != done:
                return
        self.snapshot = Snapshot(self.redis)

    @rule(is_emptied=st.booleans())
    def lose(self, is_emptied: bool) -> None:
        if not is_emptied and self.snapshot is None:
            return
        self.has_lost = True
        self.redis.flushdb()
        if not is_emptied and self.snapshot:
            self.snapshot.restore()

    @invariant()
    def check(self) -> None:
        """SQL only falls by undos, and never holds more than was counted, however the import was
        disturbed.
        """
        stored = self._stored()
        # A flush that has read an older total may write what was taken back.
        most = self.live + self._imported_of_all(self.begun) + self.taken
        for index in range(POSTS):
            least = self.stored[index] - self.taken[index]
            assert least <= stored[index] <= most[index], f"{self.stored} {stored} {most}"
        self.stored = stored

    def teardown(self) -> None:
        for one in self._steppers():
            one.kill()
        self._sweep()
        self.finish()

    def _check_equality(self) -> None:
        """Where Redis lost nothing, totals and charts hold every live view and every batch once."""
        positions = {log: self._record(log).position for log in LOGS}
        expected = self.live + self._imported_of_all(positions)
        assert self.stored == expected
        since, until = buckets.now() - (max(AGES) + 2) * HOUR, buckets.now() + HOUR
        everything: list[Any] = [*self.posts, Post, None]
        *charts, model, site = (
            sum(point.views for point in numbers_reports.series(of, since=since, until=until))
            for of in everything
        )
        assert charts == [expected[index] for index in range(POSTS)]
        assert model == site
        # The hours of models that Redis counts keep what was taken back.
        assert expected.total() <= model <= expected.total() + self.undone

    def _record(self, log: str) -> Import:
        return Import.objects.get(name=log)

    def _import(self, log: str) -> None:
        record = self._record(log)
        position, _ = ledger.resume(record)
        self.begun[log] = max(self.begun[log], position + 1)
        ledger.add(record, self._batch(log, position), position=position + 1)

    def _is_open(self, log: str) -> bool:
        record = self._record(log)
        return record.intended > record.position

    def _batch(self, log: str, position: int) -> Batch:
        batch, now = Batch(), buckets.now()
        for index, times in self._views(log, position).items():
            for number in range(times):
                age = AGES[(position + number) % len(AGES)]
                batch.add(
                    subject_of(self.posts[index]),
                    visitor=f"{log} {position} {number}",
                    at=now - age * HOUR,
                )
        return batch

    def _views(self, log: str, position: int) -> Counter[int]:
        size = LOGS[log]
        return Counter({position % POSTS: size, (position + 1) % POSTS: 2 - position % 3})

    def _imported(self, log: str, batches: int) -> Counter[int]:
        return sum((self._views(log, position) for position in range(batches)), Counter())

    def _imported_of_all(self, batches: Mapping[str, int]) -> Counter[int]:
        return sum((self._imported(log, batches[log]) for log in LOGS), Counter())

    def _stored(self) -> Counter[int]:
        counts = dict(Post.objects.values_list("pk", "view_count"))
        return +Counter({index: counts[post.pk] for index, post in enumerate(self.posts)})

    def _sweep(self) -> None:
        self.flushers = [one for one in self.flushers if not one.is_over]
        for log, some in self.importers.items():
            self.importers[log] = [one for one in some if not one.is_over]

    def _steppers(self) -> list[Stepper]:
        """Returns all that go on."""
        steppers = [one for some in self.importers.values() for one in some]
        return [*steppers, *self.undos.values(), *self.flushers]


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(
    connection.vendor != "postgresql", reason="threads need a database that they share"
)
def test_an_import_counts_once_however_it_interleaves_with_flushes(
    redis_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"CONNECTION_POOL_KWARGS": {"connection_class": OpenConnection}}
    settings.CACHES = {"default": {**settings.CACHES["default"], "OPTIONS": options}}
    settings.READTRACK = {"RATE": (0, 10), "TIMEOUT": 10}
    monkeypatch.setattr("readtrack.flush.run.TOTALS_AT_ONCE", 1)
    monkeypatch.setattr(scripts, "SLICE", 2)  # so that settling and reading take several turns
    with Redis.from_url(redis_url, decode_responses=True) as client:
        ImportMachine.redis = client
        run_state_machine_as_test(
            ImportMachine,
            settings=hypothesis_settings(
                max_examples=examples(3),
                stateful_step_count=40,
                phases=[Phase.generate],  # to shrink a case takes thousands of round trips
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
