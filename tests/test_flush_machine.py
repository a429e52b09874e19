"""Flushes interleaved round trip by round trip, among views, kills and every loss, hold what they promise."""

import os
from collections import Counter
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from hypothesis import HealthCheck
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

from readtrack import keys, reports, subjects, tracker
from readtrack.flush import flush
from readtrack.models import FlushRun, Lineage
from readtrack.store import counters, scripts
from tests.factories import hit, post
from tests.site.models import Post
from tests.stepping import SteppedConnection, Stepper

POSTS = 3
FLUSHERS = 3
EXAMPLES = int(os.environ.get("READTRACK_TEST_EXAMPLES", "30"))  # more of them look deeper
STEPS = 40
POST = st.integers(0, POSTS - 1)
FLUSHER = st.integers(0, FLUSHERS - 1)

# Tables that a backup of the database holds.
TABLES: list[type[Model]] = [Post, FlushRun, Lineage]


class FlushMachine(RuleBasedStateMachine):
    """The promises: SQL never decreases, never holds more than was counted, and lacks only what Redis lost."""

    redis: Redis  # of bytes; set by the test

    def __init__(self) -> None:
        super().__init__()
        self.redis.flushdb()
        for model in TABLES:
            model._base_manager.all().delete()
        self.pks = [post().pk for _ in range(POSTS)]
        self.tokens = [subjects.token_of(Post, pk) for pk in self.pks]
        self.flushers: list[Stepper] = []
        self.counted = Counter[Any](dict.fromkeys(self.pks, 0))
        self.seen = dict.fromkeys(self.pks, 0)  # what SQL held when we last looked
        self.owed = dict.fromkeys(self.pks, 0)  # what it has to hold after the next whole flush, at least
        self.is_vague = False  # since a loss that hides what is counted until the next flush
        self.snapshot: dict[bytes, tuple[Any, int]] | None = None
        self.backup: dict[type[Model], list[dict[str, Any]]] | None = None

        self._live_a_little()

    def _live_a_little(self) -> None:
        """Snapshot and backup are older than what follows; in the snapshot one total lacks its base, one is fresh."""
        for index in (0, 1):
            self.view(index, 3)
        self.finish()
        self.lose("a total")
        self.view(0, 1)
        self.view(2, 1)
        self.copy()
        self.view(1, 2)
        self.finish()

    # Views

    @rule(index=POST, times=st.integers(1, 3))
    def view(self, index: int, times: int) -> None:
        for _ in range(times):
            assert tracker.record(hit(self.tokens[index])).counted
        self.counted[self.pks[index]] += times
        if not self.is_vague:
            self.owed[self.pks[index]] += times

    # Flushes. Few rules, so that hypothesis spends its steps on flushers that interleave.

    @rule(index=FLUSHER, times=st.integers(1, 8))
    def step(self, index: int, times: int) -> None:
        """One of the flushers goes on by some round trips; it starts if there is none yet."""
        self._flusher(index).step(times)
        self._sweep()

    @rule(index=FLUSHER, times=st.integers(9, 30))
    def run_far(self, index: int, times: int) -> None:
        self.step(index, times)

    @precondition(lambda self: self.flushers)
    @rule(index=FLUSHER, is_kill=st.booleans())
    def fail(self, index: int, is_kill: bool) -> None:
        """One of them is killed, or cut off from the database."""
        if is_kill:
            self._flusher(index).kill()
        else:
            self._flusher(index).lose_database()
        self._sweep()

    @rule()
    def finish(self) -> None:
        """Everybody comes to an end, then one flush has the field to itself."""
        for flusher in self.flushers:
            flusher.finish()
        self._sweep()
        flush()
        self._check_settled()

    # Losses

    @rule()
    def copy(self) -> None:
        """Redis takes a snapshot, and the database a backup."""
        redis: Any = self.redis
        self.snapshot = {key: (redis.dump(key), max(redis.pttl(key), 0)) for key in redis.scan_iter()}
        if not self.flushers:
            self.backup = {model: list(model._base_manager.values()) for model in TABLES}

    @rule(
        what=st.sampled_from(["everything", "since the snapshot", "a total", "the marks", "the epoch", "the database"])
    )
    def lose(self, what: str) -> None:
        is_alone = not self.flushers
        if what == "everything":
            self.redis.flushdb()
            self._lose(self.pks, is_vague=not is_alone)
        elif what == "since the snapshot" and self.snapshot is not None:
            self.redis.flushdb()
            for key, (value, life) in self.snapshot.items():
                self.redis.restore(key, life, value)
            self._lose(self.pks, is_vague=True)
        elif what == "a total":
            self.redis.unlink(keys.total(self.tokens[0]))
            self._lose(self.pks[:1], is_vague=not is_alone)
        elif what in ("the marks", "the epoch"):
            self.redis.unlink(keys.unbased() if what == "the marks" else keys.flush_epoch())
            self._lose(self.pks, is_vague=True)
        elif what == "the database" and self.backup is not None and is_alone:
            self._restore_backup(self.backup)

    def _restore_backup(self, backup: dict[type[Model], list[dict[str, Any]]]) -> None:
        for model, rows in backup.items():
            model._base_manager.all().delete()
            for row in rows:
                model._base_manager.create(**row)
        self.seen = self._stored()
        totals = scripts.run(counters.totals(self.tokens))
        based = {token for token, total in totals.items() if total.is_based}
        lost = [pk for pk, token in zip(self.pks, self.tokens, strict=True) if token not in based]
        self._lose(lost, is_vague=bool(lost))

    # Promises

    @invariant()
    def never_decreases_nor_overcounts(self) -> None:
        stored = self._stored()
        for pk in self.pks:
            assert self.seen[pk] <= stored[pk], "SQL decreased"
            assert stored[pk] <= self.counted[pk], "SQL holds more than was counted"
        self.seen = stored

    @invariant()
    def shows_no_less_than_sql(self) -> None:
        shown = reports.views(Post.objects.all())
        assert all(shown[row] >= row.view_count for row in shown)

    def teardown(self) -> None:
        for flusher in self.flushers:
            flusher.kill()
        flush()
        self._check_settled()

    def _check_settled(self) -> None:
        self.never_decreases_nor_overcounts()
        for pk in self.pks:
            assert self.seen[pk] >= self.owed[pk], "views are lost"
        totals = scripts.run(counters.totals(self.tokens))
        for pk, token in zip(self.pks, self.tokens, strict=True):
            if token in totals:
                assert totals[token] == (self.seen[pk], True), "Redis and SQL differ"
        assert flush().written == 0
        self.owed, self.is_vague = dict(self.seen), False

    def _lose(self, pks: list[Any], *, is_vague: bool) -> None:
        """From here on SQL has to hold what it holds now; and later views, unless a merge may hide them."""
        stored = self._stored()
        self.owed.update((pk, min(self.owed[pk], stored[pk])) for pk in pks)
        self.is_vague = self.is_vague or is_vague

    def _stored(self) -> dict[Any, int]:
        return dict(Post.objects.values_list("pk", "view_count"))

    def _flusher(self, index: int) -> Stepper:
        if index >= len(self.flushers):
            self.flushers.append(Stepper(flush))
        return self.flushers[min(index, len(self.flushers) - 1)]

    def _sweep(self) -> None:
        self.flushers = [flusher for flusher in self.flushers if not flusher.is_over]


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="threads need a database that they share")
def test_flushes_keep_their_promises_however_they_interleave_and_whatever_is_lost(
    redis_url: str, settings: Settings
) -> None:
    options = {"CONNECTION_POOL_KWARGS": {"connection_class": SteppedConnection}}
    settings.CACHES = {"default": {**settings.CACHES["default"], "OPTIONS": options}}
    settings.READTRACK = {"FLUSH_CHUNK": 2}
    with Redis.from_url(redis_url) as client:
        FlushMachine.redis = client
        run_state_machine_as_test(
            FlushMachine,
            settings=hypothesis_settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
