"""A state machine: readers come, read and are erased while flushes run, are killed and interleave,
and Redis is emptied or goes back to any earlier snapshot between any two of their steps.

No two readers share an ordinal, in Redis or in SQL, and nobody has read what only another reader has.
"""

from functools import partial
from typing import Any

import pytest
from django.db.models import Model
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from pytest_django import Settings

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.models import (
    FlushRun,
    KnownEpoch,
    PendingPublication,
    ReaderNumber,
    ReadState,
)
from readtrack.reports.page_state import page_state
from readtrack.store import keys, read_state, scripts
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

READERS = 12
CATEGORIES = 2
FLUSHERS = 3
SNAPSHOTS = 4
STEPS = 100
READER = st.integers(1, READERS)
CATEGORY = st.integers(0, CATEGORIES - 1)
FLUSHER = st.integers(0, FLUSHERS - 1)
SNAPSHOT = st.integers(0, SNAPSHOTS - 1)
TABLES: list[type[Model]] = [
    FlushRun,
    KnownEpoch,
    PendingPublication,
    ReaderNumber,
    ReadState,
]


class OrdinalsMachine(FlusherMachine):
    """Events at a site that numbers its readers, each followed by a look at all ordinals."""

    options: dict[str, Any]

    def __init__(self) -> None:
        super().__init__()
        self.site.READTRACK = self.options
        self.redis.flushdb()
        empty(TABLES)
        ask_again()
        read_state.begin(0)
        self.subjects = [subject_of(factories.category()) for _ in range(CATEGORIES)]
        # Whoever has ever read each category: nobody else may have no dot for it.
        self.readers: list[set[int]] = [set() for _ in range(CATEGORIES)]
        self.snapshots: dict[int, dict[bytes, bytes]] = {}
        self.backup: Backup | None = None

    @initialize()
    def begin(self) -> None:
        flush()

    @rule(number=READER, index=CATEGORY)
    def read(self, number: int, index: int) -> None:
        if tracker.mark_subjects_read(str(number), [self.subjects[index]]):
            self.readers[index].add(number)

    @rule(first=READER)
    def number(self, first: int) -> None:
        """Gives ordinals to two readers, as the start of a site does."""
        names = [str(first), str(first % READERS + 1)]
        scripts.run_all(*read_state.number(names))

    @rule(number=READER)
    def erase(self, number: int) -> None:
        tracker.erase(number)

    @rule(index=FLUSHER, times=st.integers(1, 20), is_full=st.booleans())
    def step(self, index: int, times: int, is_full: bool) -> None:
        """Lets a flusher make some round trips. Starts it if it does not run."""
        self.step_flusher(index, times, partial(flush, only_changed=not is_full))

    @precondition(lambda self: self.flushers)
    @rule(index=FLUSHER)
    def kill(self, index: int) -> None:
        self.flusher(index).kill()
        self.sweep()

    @rule(is_full=st.booleans())
    def flush(self, is_full: bool) -> None:
        flush(only_changed=not is_full)
        if is_full:
            self.check_sql()

    def check_sql(self) -> None:
        """Checks the ordinals in SQL. A flusher looks for shared ones after it has stored them."""
        rows = [*ReaderNumber.objects.values_list("tag", "number")]
        assert len({*rows}) == len(rows), rows

    @rule(index=SNAPSHOT)
    def copy_redis(self, index: int) -> None:
        redis: Any = self.redis
        self.snapshots[index] = {key: redis.dump(key) for key in redis.scan_iter()}

    @rule(index=st.none() | SNAPSHOT)
    def lose_redis(self, index: int | None) -> None:
        """Empties Redis, or restores one of the snapshots."""
        self.redis.flushdb()
        ask_again()
        for key, value in self.snapshots.get(-1 if index is None else index, {}).items():
            self.redis.restore(key, 0, value)

    @precondition(lambda self: not self.flushers)
    @rule()
    def back_up(self) -> None:
        self.backup = back_up(TABLES)

    @precondition(lambda self: self.backup and not self.flushers)
    @rule()
    def lose_sql(self) -> None:
        assert self.backup is not None
        restore(self.backup)

    @precondition(lambda self: not self.flushers)
    @rule()
    def share(self) -> None:
        """Leaves two rows with one ordinal, as an earlier version did."""
        row = ReaderNumber.objects.exclude(name__startswith="!").first()
        if row is not None:
            names = [str(read_state.field(str(number))) for number in range(1, READERS + 1)]
            known = {*ReaderNumber.objects.filter(tag=row.tag).values_list("name", flat=True)}
            unknown = [name for name in names if name not in known]
            rows = [ReaderNumber(tag=row.tag, name=name, number=row.number) for name in unknown[:1]]
            ReaderNumber.objects.bulk_create(rows)
            flush()
            self.check_sql()

    @invariant()
    def no_ordinal_is_shared(self) -> None:
        for tag in keys.tags():
            numbers = self.redis.hgetall(keys.readers(tag))
            assert len({*numbers.values()}) == len(numbers), numbers

    @invariant()
    def nobody_has_read_what_only_others_have(self) -> None:
        for number in range(1, READERS + 1):
            unread = page_state(dots=self.subjects, reader=str(number)).unread
            for index, subject in enumerate(self.subjects):
                assert unread.get(subject, 1) or number in self.readers[index]


@pytest.mark.django_db(transaction=True)
@needs_threads
@pytest.mark.parametrize(
    "options",
    some(
        [{"DOTS": {"readers": "ordinal"}}],
        deep=[
            {"DOTS": {"readers": "ordinal", "form": "sequence"}},
            pytest.param(
                {"DOTS": {"readers": "ordinal"}, "CLUSTER": {"partitions": 4}},
                marks=pytest.mark.needs_parts("cluster"),
            ),
        ],
    ),
    ids=str,
)
def test_an_ordinal_belongs_to_one_reader_for_ever_whatever_is_lost_and_comes_back(
    options: dict[str, Any],
    redis_url: str,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copies, "CHANGES_AT_ONCE", 2)
    OrdinalsMachine.options = options
    run_machine(OrdinalsMachine, redis_url, settings, monkeypatch, steps=STEPS)
