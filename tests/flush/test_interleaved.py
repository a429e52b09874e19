"""A flush with an event at each of its steps: another flush, a view, a restart of Redis."""

from collections.abc import Callable
from itertools import count, product
from typing import Any

import pytest
from django.db import connections
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import RedisError

from readtrack import reports, tracker
from readtrack.flush.run import flush
from readtrack.models import FlushRun
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.depth import DEEP, STRIDE, examples
from tests.support.interference import Dump, at_step, dump, restore, shared_connections
from tests.support.wire import Moment, Wire

MOMENTS: list[Moment] = ["request", "answer"]
DATABASES = ["default", "lite"]
BASE = 100  # what SQL holds of each post before Redis ever heard of it


class Site:
    """Three posts, events that happen to them, and what must hold at all times."""

    def __init__(self, wire: Wire, redis: Redis) -> None:
        self.wire, self.redis = wire, redis
        self.posts = [factories.post(view_count=base) for base in (0, BASE, BASE)]
        self.acknowledged = [0, BASE, BASE]
        self.stored = [0, BASE, BASE]
        self.has_lost = False
        self.snapshot: Dump = {}

    def view(self, number: int = 1) -> None:
        """Views one post as a new visitor."""
        self.acknowledged[number] += len(
            tracker.record(factories.hit(subject_of(self.posts[number]))).counted
        )

    def empty(self) -> None:
        """Restarts Redis without data."""
        self.redis.flushdb()
        self.has_lost = True

    def save(self) -> None:
        """Takes a snapshot of Redis."""
        self.snapshot = dump(self.redis)

    def restart(self) -> None:
        """Restarts Redis with its last snapshot."""
        restore(self.redis, self.snapshot)
        self.has_lost = True

    @property
    def total(self) -> str:
        """Returns the key of the second post's total."""
        return f"views:total:{subject_of(self.posts[1])}"

    def begin_anew(self) -> None:
        """Deletes that total in Redis and starts a new one by a view."""
        self.redis.delete(self.total)
        self.view(1)

    def cut(self) -> None:
        """Cuts the connections to Redis."""
        self.wire.cut()

    def flush(self) -> None:
        """Flushes. The flush may fail."""
        try:
            flush()
        except RedisError:
            self.wire.mend()

    def flush_with(self, deed: Callable[[], Any], trip: int, moment: Moment) -> bool:
        """Flushes, with an event at one step. Returns False if the flush has no such step."""
        with (
            shared_connections() as sharing,
            at_step(self.wire, trip, moment, sharing(deed)) as done,
        ):
            self.flush()
        return bool(done)

    def check(self) -> None:
        """Checks that SQL has not decreased, and holds and shows no more than was acknowledged."""
        rows = {post.pk: post for post in Post.objects.all()}
        now = [rows[post.pk].view_count for post in self.posts]
        assert all(new >= old for new, old in zip(now, self.stored, strict=True)), (
            self.stored,
            now,
        )
        assert all(new <= most for new, most in zip(now, self.acknowledged, strict=True)), (
            now,
            self.acknowledged,
        )
        self.stored = now

    def settle_down(self) -> None:
        """Checks that one flush makes both sides equal, and that another one writes nothing."""
        flush()
        self.check()
        run = flush()
        assert (run.written, run.settled, run.lifted) == (0, 0, 0)
        self.check()
        shown = reports.views(list(Post.objects.filter(pk__in=[post.pk for post in self.posts])))
        assert [shown[post] for post in self.posts] == self.stored
        if not self.has_lost:
            assert self.stored == self.acknowledged


DEEDS = ["view", "flush", "cut", "save", "empty", "restart"]


# From READTRACK_DEEP=2 on each of them on both databases; below, every event and every moment meets
# either of them.
EVENTS = [
    (database, deed, moment)
    for (place, deed), (other, moment) in product(enumerate(DEEDS), enumerate(MOMENTS))
    for database in (DATABASES if DEEP > 1 else [DATABASES[(place + other) % 2]])
]


def first(deed: str, moment: Moment) -> int:
    """Returns the step that is disturbed first: another one for each event, so that together they
    try every step.
    """
    return 1 + (DEEDS.index(deed) * 2 + MOMENTS.index(moment)) % STRIDE


@pytest.mark.django_db(databases=DATABASES)
@pytest.mark.parametrize(("database", "deed", "moment"), EVENTS, indirect=["database"])
def test_an_event_at_any_step_of_a_flush_loses_and_adds_nothing(
    database: str, wire: Wire, redis: Redis, deed: str, moment: Moment
) -> None:
    for trip in count(first(deed, moment), STRIDE):
        redis.flushdb()
        site = Site(wire, redis)
        for number in (0, 1, 1):
            site.view(number)
        site.save()
        site.flush()
        site.view(1)
        site.acknowledged[1] -= 1  # lost with the key
        site.begin_anew()
        site.view(2)
        happened = site.flush_with(getattr(site, deed), trip, moment)
        site.check()
        if deed == "save":
            site.restart()
            site.flush()
            site.check()
        site.view(2)
        site.settle_down()
        if not happened:
            break
    assert trip > 5


@pytest.mark.django_db(databases=DATABASES)
@pytest.mark.parametrize(
    ("database", "deed", "moment"),
    [row for row in EVENTS if row[1] == "view"],
    indirect=["database"],
)
def test_a_total_that_begins_anew_at_any_step_of_a_flush_that_lifts_it_is_settled_once(
    database: str, wire: Wire, redis: Redis, deed: str, moment: Moment
) -> None:
    for trip in count(first(deed, moment), STRIDE):
        redis.flushdb()
        site = Site(wire, redis)
        redis.set(site.total, BASE - 20)  # as a replica that lagged has it
        happened = site.flush_with(site.begin_anew, trip, moment)
        site.check()
        site.settle_down()
        assert site.stored[1] == BASE + happened
        if not happened:
            break
    assert trip > 5


STEPS = st.one_of(
    st.tuples(st.just("view"), st.integers(0, 2)),
    st.tuples(st.sampled_from(["flush", "empty", "save", "restart"])),
    st.tuples(
        st.just("flush_with"), st.sampled_from(DEEDS), st.integers(1, 8), st.sampled_from(MOMENTS)
    ),
)


@pytest.mark.django_db(databases=DATABASES)
@settings(max_examples=examples(4))
@given(steps=st.lists(STEPS, max_size=14))
def test_no_order_of_events_breaks_a_count(
    database: str, wire: Wire, redis: Redis, steps: list[Any]
) -> None:
    redis.flushdb()
    site = Site(wire, redis)
    for name, *words in steps:
        if name == "flush_with":
            words[0] = getattr(site, words[0])
        getattr(site, name)(*words)
        site.check()
    site.settle_down()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("moment", MOMENTS)
def test_two_flushers_on_connections_of_their_own_are_one(
    wire: Wire, redis: Redis, moment: Moment
) -> None:
    for trip in count(1, STRIDE):
        site = Site(wire, redis)
        for number in (0, 1, 1, 2):
            site.view(number)

        def other() -> None:
            flush()
            connections.close_all()

        with at_step(wire, trip, moment, other) as done:
            flush()
        assert list(Post.objects.order_by("pk").values_list("view_count", flat=True))[-3:] == [
            1,
            BASE + 2,
            BASE + 1,
        ]
        site.settle_down()
        if not done:
            break
    assert FlushRun.objects.filter(error="").count() == FlushRun.objects.count()
