"""A state machine: reads, news and flushes that are killed or interleave, while Redis and SQL are lost
or restored from older copies. No dot that should be on is off, and only reads that SQL had no copy
of light a dot again.
"""

from functools import partial
from typing import Any

import pytest
from django.db.models import Model
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from pytest_django import Settings

from readtrack import tracker
from readtrack.flush import read_state as keeping
from readtrack.flush.run import flush
from readtrack.models import (
    FlushRun,
    KnownEpoch,
    PendingPublication,
    ReaderNumber,
    ReadState,
)
from readtrack.reports.page_state import page_state
from readtrack.sql import read_states
from readtrack.store.read_state import copies
from readtrack.subjects import subject_of
from tests.support import factories
from tests.support.asking import ask_again
from tests.support.depth import some
from tests.support.machines import (
    Backup,
    FlusherMachine,
    back_up,
    empty,
    needs_threads,
    restore,
    run_machine,
)

CATEGORIES = 3
READERS = 4
FLUSHERS = 2
STEPS = 60
CATEGORY = st.integers(0, CATEGORIES - 1)
READER = st.integers(1, READERS)

# What a backup of the database holds.
TABLES: list[type[Model]] = [
    FlushRun,
    KnownEpoch,
    PendingPublication,
    ReaderNumber,
    ReadState,
]

# Readers who have read each category since its last publication.
Reads = dict[int, set[int]]


def nobody() -> Reads:
    return {index: set() for index in range(CATEGORIES)}


def copy(reads: Reads) -> Reads:
    return {index: set(readers) for index, readers in reads.items()}


class ReadStateMachine(FlusherMachine):
    """Events at a site, each followed by a check of the dots."""

    options: dict[str, Any]
    tables = TABLES

    def __init__(self) -> None:
        super().__init__()
        self.site.READTRACK = self.options
        self.redis.flushdb()
        empty(self.tables)
        ask_again()
        self.categories = self.new_categories()
        self.subjects = [subject_of(category) for category in self.categories]
        self.reads = nobody()
        self.safe_reads = nobody()  # of those, what SQL has a copy of
        self.uncertain_reads = nobody()  # that may be lost: such a dot may be on or off
        self.news_since_backup: set[int] = set()
        self.reads_of_snapshot = nobody()
        # Categories whose news is gone from SQL since: that in the snapshot, and that after it.
        self.gone_news_in_snapshot: set[int] = set()
        self.gone_news_since_snapshot: set[int] = set()
        self.news_since_snapshot: set[int] = set()
        self.snapshot: dict[bytes, bytes] | None = None
        self.backup: Backup | None = None
        self.reads_of_backup = nobody()

    def new_categories(self) -> list[Any]:
        return [factories.category() for _ in range(CATEGORIES)]

    @initialize()
    def begin(self) -> None:
        page_state(dots=self.subjects, reader=self._reader(1))
        self.make_unread()
        self.finish(is_full=True)

    def make_unread(self) -> None:
        """Makes all categories unread, which those of the core are."""

    @rule(index=CATEGORY, number=READER)
    def read(self, index: int, number: int) -> None:
        subject = self.subjects[index]
        marked = tracker.mark_subjects_read(self._reader(number), [subject])
        if marked:
            self.reads[index].add(number)

    @rule(index=CATEGORY)
    def publish(self, index: int) -> None:
        self._publish(index)

    def _publish(self, index: int) -> None:
        tracker.mark_unread([self.categories[index]])
        self.news_since_backup.add(index)
        for reads in (self.reads, self.safe_reads, self.uncertain_reads):
            reads[index] = set()
        self.news_since_snapshot.add(index)
        self.gone_news_since_snapshot.discard(index)

    @rule(has_time=st.booleans())
    def hurry(self, has_time: bool) -> None:
        """Decides if flushers copy all that changed, or leave most of it to the next ones."""
        self._hurry(has_time=has_time)

    def _hurry(self, *, has_time: bool) -> None:
        keeping.COPYING_SECONDS = 600 if has_time else 0

    @rule(index=st.integers(0, FLUSHERS - 1), times=st.integers(1, 25), is_full=st.booleans())
    def step(self, index: int, times: int, is_full: bool) -> None:
        """Lets a flusher make some round trips. Starts it if it does not run."""
        self.step_flusher(index, times, partial(flush, only_changed=not is_full))

    @precondition(lambda self: self.flushers)
    @rule(index=st.integers(0, FLUSHERS - 1))
    def kill(self, index: int) -> None:
        self.flusher(index).kill()
        self.sweep()

    @rule(is_full=st.booleans())
    def finish(self, is_full: bool) -> None:
        """Lets all flushers end, then runs one alone, after which SQL has all small copies."""
        self.finish_flushers()
        self._hurry(has_time=True)
        tracker.resend()
        flush(only_changed=not is_full)
        tracker.resend()
        self._check_all()

    @rule()
    def copy_redis(self) -> None:
        redis: Any = self.redis
        self.snapshot = {key: redis.dump(key) for key in redis.scan_iter()}
        self.reads_of_snapshot = copy(self.reads)
        self.gone_news_in_snapshot = set()
        self.gone_news_since_snapshot = set()
        self.news_since_snapshot = set()

    @precondition(lambda self: not self.flushers)
    @rule()
    def back_up(self) -> None:
        self.backup = back_up(self.tables)
        self.reads_of_backup = copy(self.safe_reads)
        self.news_since_backup = set()

    @rule(is_old=st.booleans())
    def lose_redis(self, is_old: bool) -> None:
        """Empties Redis, or restores an older snapshot."""
        self.redis.flushdb()
        ask_again()
        if is_old and self.snapshot is not None:
            for key, value in self.snapshot.items():
                self.redis.restore(key, 0, value)
        self._lose(self.safe_reads)
        if is_old:  # reads may also come back that were lost since
            for index, readers in self.reads_of_snapshot.items():
                if index not in self.news_since_snapshot - self.gone_news_since_snapshot:
                    self.uncertain_reads[index] |= readers - self.reads[index]
            for index in self.gone_news_in_snapshot:  # a dot for a post that is gone
                self.uncertain_reads[index] |= self.reads[index]
                self.reads[index] = set()
        self.finish(is_full=False)

    @precondition(lambda self: self.backup and not self.flushers)
    @rule(is_redis_lost=st.booleans())
    def lose_sql(self, is_redis_lost: bool) -> None:
        """Restores the database from an older backup, and maybe loses Redis before the next flush."""
        assert self.backup is not None
        restore(self.backup)
        if is_redis_lost:
            self.redis.flushdb()
            ask_again()
            self._lose(self.reads_of_backup)
            for index in self.news_since_backup:  # these posts are gone as well
                self.uncertain_reads[index] |= self.reads_of_backup[index]
            self.gone_news_in_snapshot |= self.news_since_backup
            self.gone_news_since_snapshot |= self.news_since_backup
        self.finish(is_full=False)

    def _lose(self, safe_reads: Reads) -> None:
        """Reads that SQL has no copy of may be lost."""
        for index, readers in self.reads.items():
            self.uncertain_reads[index] |= readers - safe_reads[index]
            self.reads[index] = readers & safe_reads[index]

    @invariant()
    def no_dot_is_missing(self) -> None:
        for number in range(1, READERS + 1):
            unread = self._unread(number)  # empty while Redis has not begun
            for index, subject in enumerate(self.subjects):
                may_be_off = number in self.reads[index] | self.uncertain_reads[index]
                assert may_be_off or self._waits(subject) or unread.get(subject, 1)

    def _waits(self, subject: str) -> bool:
        """Returns True for news that the next flush sends again, because Redis lost it."""
        return PendingPublication.objects.filter(subject=subject, sent=None).exists()

    def _check_all(self) -> None:
        """Checks that all dots are known after a flush, and which reads were lost."""
        for number in range(1, READERS + 1):
            unread = self._unread(number)
            for index, subject in enumerate(self.subjects):
                assert subject in unread, "read state was not restored"
                is_read = not unread[subject]
                if number in self.uncertain_reads[index]:
                    if is_read:
                        self.reads[index].add(number)
                else:
                    assert is_read == (number in self.reads[index])
        self.uncertain_reads = nobody()
        self.safe_reads = copy(self.reads)

    def _unread(self, number: int) -> dict[str, int]:
        return page_state(dots=self.subjects, reader=self._reader(number)).unread

    def _reader(self, number: int) -> Any:
        return str(number) if self.options.get("DOTS", {}).get("readers") else number


@pytest.mark.django_db(transaction=True)
@needs_threads
@pytest.mark.parametrize(
    "options",
    some(
        [{}, {"DOTS": {"form": "sequence", "readers": "ordinal"}}],
        deep=[
            {"DOTS": {"form": "sequence"}},
            {"DOTS": {"readers": "ordinal"}},
            pytest.param({"CLUSTER": {"partitions": 4}}, marks=pytest.mark.needs_parts("cluster")),
        ],
    ),
    ids=str,
)
def test_no_dot_that_should_be_on_is_off_whatever_is_lost(
    options: dict[str, Any],
    redis_url: str,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(read_states, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(copies, "CHANGES_AT_ONCE", 2)
    monkeypatch.setattr(keeping, "COPYING_SECONDS", 600)
    ReadStateMachine.options = options
    run_machine(ReadStateMachine, redis_url, settings, monkeypatch, steps=STEPS)
