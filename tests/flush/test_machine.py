"""A state machine: flushes that interleave at each round trip, views, kills and losses. books.py
has the promises.
"""

from collections import ChainMap
from datetime import timedelta
from functools import partial
from itertools import count
from math import inf
from time import monotonic
from typing import Any

import pytest
from django.db.models import F, Model
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from pytest_django import Settings

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.hits.stages import READS
from readtrack.hits.visitors import Visitor
from readtrack.models import Archive, FlushRun, KnownEpoch, Reset
from readtrack.numbers.models import Breakdown, BreakdownHistory, DayBreakdown, History
from readtrack.script import keys as script_keys
from readtrack.script.reading import Reading
from readtrack.store import counters, keys, resetting, scripts
from readtrack.store.circuit import circuit
from readtrack.subjects import subject_of_row
from tests.site.models import Post
from tests.support.books import DEVICES, ENTERED, READ, VIEWS, Books, on
from tests.support.factories import hit, post
from tests.support.machines import (
    Backup,
    FlusherMachine,
    back_up,
    empty,
    made_ready,
    needs_threads,
    restore,
    run_machine,
)

POSTS = 3
FLUSHERS = 3
STEPS = 40
POST = st.integers(0, POSTS - 1)
FLUSHER = st.integers(0, FLUSHERS - 1)
DAYS = 40  # that pass at once: longer than IDLE_DAYS and ARCHIVE_INTERVAL
HOURS = 24 * DAYS
HOUR = timedelta(hours=1)
MICROSECONDS = 3_600_000_000 * HOURS

# Tables that a backup of the database holds.
TABLES: list[type[Model]] = [
    Post,
    FlushRun,
    KnownEpoch,
    Archive,
    Breakdown,
    BreakdownHistory,
    DayBreakdown,
    History,
    Reset,
]
PASSING = ("views:hour*", "trending:*", "viewed:*", "funnel:reached:*", "rate:*")
LOSSES = [
    "everything",
    "since the snapshot",
    "a total",
    "a hash",
    "a sketch",
    "the marks",
    "the epoch",
]
SETTINGS = {
    "NUMBERS": {"funnels": True, "dimensions": ["device"]},
    "RATE": (0, 10),
    "TIMEOUT": 10,  # so many slices may take a busy machine its time
}

_numbers = count()


class FlushMachine(FlusherMachine):
    """Events at a site, each followed by a check of the promises."""

    def __init__(self) -> None:
        super().__init__()
        self.redis.flushdb()
        empty(TABLES)
        self.pks = [post().pk for _ in range(POSTS)]
        self.other = post().pk
        self.books = Books()
        self.snapshot: dict[bytes, tuple[Any, int]] | None = None
        self.backup: tuple[list[Any], Backup] | None = None
        self.is_full_needed = True  # a changed flush would not do
        self.is_snapshot_of_a_run = False

    @initialize(has_past=st.booleans(), unique=st.sampled_from(["hll", "hll", "set"]))
    def live_a_little(self, has_past: bool, unique: str) -> None:
        """Makes a snapshot and a backup, then goes on. In the snapshot one total is unsettled, and
        one is new.
        """
        self.site.READTRACK = {**SETTINGS, "UNIQUE": unique}
        self.books.has_sketches = unique == "hll"
        if not has_past:
            return
        for index in (0, 1):
            self.view(index, 3, "phone")
        self.finish(only_changed=False)
        self.lose("a total", 0)
        self.view(0, 1, "phone")
        self.view(2, 1, "desktop")
        self.copy()
        self.view(1, 2, "desktop")
        self.finish(only_changed=True)

    # Views

    @rule(index=POST, times=st.integers(1, 3), device=st.sampled_from(DEVICES))
    def view(self, index: int, times: int, device: str) -> None:
        for _ in range(times):
            self._view(index, f"visitor {next(_numbers)}", device)

    @rule(age=st.integers(0, 3))
    def view_other(self, age: int) -> None:
        """Views a post that only its model is checked for. The web server's clock may be hours
        behind.
        """
        visitor, at = f"visitor {next(_numbers)}", buckets.now() - age * HOUR
        dimensions = (("device", DEVICES[0]),)
        subject = subject_of_row(Post, self.other)
        assert tracker.record(
            hit(subject, visitor=Visitor(visitor), dimensions=dimensions, at=at)
        ).counted
        self.books.view(self.other, visitor=visitor, device=DEVICES[0])
        if age > 0:  # no flush looks into buckets that old, but a full one reads every total
            self.is_full_needed = self.books.has_late_hashes = True

    @rule(index=POST)
    def come_again(self, index: int) -> None:
        """Views a post again as the same visitor, after the window and the pass of the funnel have
        ended.
        """
        subject = self._subject(index)
        self.redis.unlink(keys.window("regular", subject), keys.funnel_pass("regular", subject))
        self._view(index, "regular", DEVICES[0])

    @rule(index=POST)
    def take_a_step(self, index: int) -> None:
        visitor = Visitor(f"visitor {next(_numbers)}")
        assert tracker.record(hit(steps=((self._subject(index), "click"),), visitor=visitor)).steps
        self.books.step(self.pks[index])

    @rule(index=POST)
    def see_a_page(self, index: int) -> None:
        visitor, subject = Visitor(f"visitor {next(_numbers)}"), self._subject(index)
        self._view(index, visitor.id, DEVICES[0])
        before = self._seen_in_redis(index)
        for _ in range(2):
            tracker.record(hit(subject, visitor=visitor, is_report=True, is_seen=True))
        if self._seen_in_redis(index) > before:
            self.books.see(self.pks[index])

    def _seen_in_redis(self, index: int) -> int:
        return int(self.redis.hget(script_keys.reading(self._subject(index)), "seen") or 0)

    @rule(index=POST)
    def read_a_text(self, index: int) -> None:
        visitor, subject = f"visitor {next(_numbers)}", self._subject(index)
        self._view(index, visitor, DEVICES[0])
        before = self._seen_in_redis(index)
        text = Reading(subject, 5, 9, stage=READS)
        steps = tracker.record(hit(visitor=Visitor(visitor), part_record=text)).steps
        # Where a loss has left fewer views than were seen, no more are seen than there are views.
        if self._seen_in_redis(index) > before:
            self.books.see(self.pks[index])
        if len(steps) == 2:
            self.books.read(self.pks[index])
        else:
            assert not self.books.is_whole
            assert not steps

    def _view(self, index: int, visitor: str, device: str) -> None:
        subject = self._subject(index)
        assert tracker.record(
            hit(subject, visitor=Visitor(visitor), dimensions=(("device", device),))
        ).counted
        self.books.view(self.pks[index], visitor=visitor, device=device)

    # Flushes. Few rules, so that hypothesis spends its steps on flushers that interleave.

    @rule(index=FLUSHER, times=st.integers(1, 30), only_changed=st.booleans())
    def step(self, index: int, times: int, only_changed: bool) -> None:
        """Lets a flusher make some round trips. Starts the flusher if it does not run."""
        share = ("1/2", "2/2", "")[len(self.flushers) % FLUSHERS] if keys.is_divided() else ""
        self.step_flusher(index, times, partial(flush, only_changed=only_changed, share=share))

    @precondition(lambda self: self.flushers)
    @rule(index=FLUSHER, is_kill=st.booleans())
    def fail(self, index: int, is_kill: bool) -> None:
        """Kills a flusher, or cuts its connection to the database (promises 5 and 6)."""
        flusher = self.flusher(index)
        if is_kill:
            flusher.kill()
        else:
            flusher.lose_database()
        self.sweep()

    @rule(only_changed=st.booleans())
    def finish(self, only_changed: bool) -> None:
        """Lets all flushers end, then runs one flush alone."""
        self.finish_flushers()
        self._flush(only_changed=only_changed and not self.is_full_needed)

    def _flush(self, *, only_changed: bool) -> None:
        run = flush(only_changed=only_changed)
        is_full = run.kind != run.Kind.CHANGED
        if run.kind == run.Kind.ARCHIVE:
            self.books.has_late_hashes = False
        self.books.check_flushed(self.pks, redis=self.redis, is_full=is_full)
        # With a sketch given back by a lift there may be more visitors to write.
        assert flush(only_changed=only_changed).written == 0 or run.lifted, (
            "7: flushing again writes rows"
        )
        if is_full:
            self.is_full_needed = False
            self.books.check_gone(self.redis)

    # What ends

    @precondition(lambda self: not self.flushers)
    @rule(is_flushed=st.booleans())
    def let_time_pass(self, is_flushed: bool) -> None:
        """Lets weeks pass in which only flushes run, or not even these, so that idle subjects leave
        Redis.
        """
        for subject, time in resetting.noted_resets().items():
            self.redis.zadd(keys.reset(keys.tag(subject)), {subject: time - MICROSECONDS})
        if is_flushed:
            self._flush(only_changed=False)
        else:
            self.books.neglect(self.pks)
        FlushRun.objects.update(flushed_until=F("flushed_until") - MICROSECONDS)
        Archive.objects.update(hour=F("hour") - HOURS)
        charted = History.objects.filter(hour__gt=0)
        rows = [History(row.subject, row.hour - HOURS, row.views, row.visitors) for row in charted]
        charted.delete()
        History.objects.bulk_create(rows)
        for pattern in PASSING:
            self._unlink(pattern)
        if self.backup is not None:
            _, tables = self.backup
            _age(tables)
        if self.snapshot is not None:  # its hours would be those of the present
            self.snapshot = {
                key: value
                for key, value in self.snapshot.items()
                if not key.startswith(b"views:hour")
            }
        self.books.forget_history()
        self._flush(only_changed=False)

    @rule(index=POST)
    def reset(self, index: int) -> None:
        self.books.reset(self.pks[index], is_alone=not self.flushers)
        tracker.reset_views(Post.objects.get(pk=self.pks[index]))

    @rule(index=POST)
    def delete(self, index: int) -> None:
        """Deletes a post and creates another one in its place."""
        Post.objects.get(pk=self.pks[index]).delete()
        self.books.gone.add(self.pks[index])
        self.books.forget_history()
        self.pks[index] = post().pk

    @precondition(lambda self: not self.flushers)
    @rule(index=POST, is_gone=st.booleans(), is_back=st.booleans())
    def use_again(self, index: int, is_gone: bool, is_back: bool) -> None:
        """Deletes a post, and creates another one with its id. Redis may be gone meanwhile."""
        pk = self.pks[index]
        self.books.reset(pk, is_alone=True)
        if is_gone:
            circuit.pause = inf
            circuit.opened = monotonic()
        Post.objects.get(pk=pk).delete()
        if is_back:
            circuit.opened = None
        post(pk=pk)
        circuit.opened = None
        if is_gone and not is_back:
            # Views are counted on top of those of the old post, until the next flush removes both.
            self.books.lose([pk], is_vague=True)
            self.is_full_needed = True

    # Losses

    @rule()
    def copy(self) -> None:
        """Takes a snapshot of Redis and a backup of the database."""
        redis: Any = self.redis
        self.snapshot = {
            key: (redis.dump(key), max(redis.pttl(key), 0)) for key in redis.scan_iter()
        }
        self.is_snapshot_of_a_run = bool(self.flushers)
        if not self.flushers:
            self.backup = (list(self.pks), back_up(TABLES))

    @rule(what=st.sampled_from(LOSSES), index=POST)
    def lose(self, what: str, index: int) -> None:
        is_alone = not self.flushers
        if what == "everything":
            self.redis.flushdb()
            self._lose(is_vague=not is_alone)
        elif what == "since the snapshot" and self.snapshot is not None:
            self.redis.flushdb()
            for key, (value, life) in self.snapshot.items():
                self.redis.restore(key, life, value)
            self._lose(is_vague=True)
        elif (
            what in ("a total", "a hash", "a sketch")
            and self.pks[index] not in self.books.before_reset
        ):
            self._evict(what, index)
        elif what in ("the marks", "the epoch"):
            for tag in keys.tags():
                self.redis.zremrangebyscore(
                    keys.unsettled(tag), "-inf" if what == "the marks" else "+inf", "+inf"
                )
            self.books.lose(self.pks, is_vague=True)

    @precondition(lambda self: self.backup and not self.flushers)
    @rule()
    def restore_backup(self) -> None:
        assert self.backup
        self._restore_backup(*self.backup)

    def _evict(self, what: str, index: int) -> None:
        subject, pk = self._subject(index), self.pks[index]
        members = keys.hll(subject) if self.books.has_sketches else keys.unique(subject)
        names = {
            "a total": keys.total(subject),
            "a hash": keys.funnel(subject),
            "a sketch": members,
        }
        self.redis.unlink(names[what])
        # Visitors are written with their total only.
        families = {"a total": ("", "visitors"), "a hash": ("funnel",), "a sketch": ("visitors",)}[
            what
        ]
        self.books.lose([pk], *families, is_vague=bool(self.flushers))

    def _lose(self, *, is_vague: bool) -> None:
        self.books.lose(self.pks, is_vague=is_vague)
        self.is_full_needed = True
        if self.flushers:
            self.books.haunt(self.pks)
        # Nobody knows that this Redis went back, if whoever flushed then was killed.
        self.books.carried.update(
            self.books.before_reset if is_vague and self.is_snapshot_of_a_run else {}
        )

    def _restore_backup(self, pks: list[Any], backup: Backup) -> None:
        restore(backup)
        self.books.gone |= {*self.pks} - {*pks}
        self.books.gone -= {*pks}
        self.pks = list(pks)
        self.books.forget_history()
        self.books.is_model_exact = False  # Redis may know of more
        self.books.seen = self.books.stored()
        answers = scripts.run_all(
            *map(counters.totals, scripts.parted([*map(self._subject, range(POSTS))]))
        )
        totals = ChainMap(*answers)
        based = {subject for subject, total in totals.items() if total.is_settled}
        # A Redis that went back as well, and holds less than was owed, cannot bring back the rest.
        owed = {subject_of_row(Post, pk): self.books.owed[pk][VIEWS] for pk in self.pks}
        behind = {subject for subject, total in totals.items() if total.views < owed[subject]}
        lost = [pk for pk in self.pks if subject_of_row(Post, pk) not in based - behind]
        self.books.lose(lost, is_vague=bool(lost))
        # Hashes that nobody counts in any more wait for the archive.
        self.books.lose(self.pks, *dict([ENTERED, READ, *map(on, DEVICES)]), is_vague=False)
        self.books.haunt(self.pks)
        self.is_full_needed = True

    # Promises

    @invariant()
    def sql_never_decreases_nor_overcounts_and_no_less_is_shown(self) -> None:
        self.books.check()
        self.books.check_shown(self.pks)

    def teardown(self) -> None:
        super().teardown()
        self._flush(only_changed=False)

    def _subject(self, index: int) -> str:
        return subject_of_row(Post, self.pks[index])

    def _unlink(self, pattern: str) -> None:
        for name in list(self.redis.scan_iter(pattern)):
            self.redis.unlink(name)


def _age(backup: Backup) -> None:
    """Makes the backup older by the time that passed. Its hours would be those of the present."""
    for run in backup[FlushRun]:
        run.flushed_until -= MICROSECONDS
    for row in backup[Archive]:
        row.hour -= HOURS
    for row in backup[History]:
        if row.hour > 0:
            row.hour -= HOURS


@pytest.mark.django_db(transaction=True)
@needs_threads
def test_views_after_a_backup_of_weeks_ago_came_back_are_stored_beside_those_of_its_hours(
    redis_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made_ready(FlushMachine, redis_url, settings, monkeypatch):
        site = FlushMachine()
        site.live_a_little(has_past=True, unique="hll")
        site.let_time_pass(is_flushed=True)
        for index in range(POSTS):
            site.view(index, times=1, device="phone")
        site.finish(only_changed=False)
        site.restore_backup()
        site.view(index=1, times=1, device="phone")
        site.teardown()  # flushes, and checks that what is owed is stored


@pytest.mark.django_db(transaction=True)
@needs_threads
def test_flushes_keep_their_promises_however_they_interleave_and_whatever_is_lost(
    redis_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.flush.run.TOTALS_AT_ONCE", 2)
    monkeypatch.setattr("readtrack.flush.totals.ORPHAN_PATIENCE", 0)
    run_machine(FlushMachine, redis_url, settings, monkeypatch, steps=STEPS)
