"""A page marks a category read only if it showed all of it, whatever happens while the page is
built.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from readtrack import reports, tracker
from readtrack.hits import readers
from readtrack.reports.page_state import page_state
from readtrack.store import clock, keys, read_state, scripts
from readtrack.store.connection import connect
from readtrack.subjects import subject_of
from tests.site.models import Category, Post
from tests.support import factories
from tests.support.depth import examples, some

pytestmark = [pytest.mark.django_db]

DAY = 86_400_000_000  # microseconds

STRATEGIES = [
    {},
    {"DOTS": {"form": "sequence"}},
    {"DOTS": {"readers": "ordinal"}},
    {"DOTS": {"form": "sequence", "readers": "ordinal"}},
]
every_strategy = pytest.mark.parametrize("options", STRATEGIES, ids=str)
some_strategies = pytest.mark.parametrize(
    "options", some(STRATEGIES[::3], deep=STRATEGIES), ids=str
)


@pytest.fixture(autouse=True)
def _forgotten_clock() -> Iterator[None]:
    clock._offsets.clear()
    yield
    clock._offsets.clear()


class Page:
    """One visit of a reader to a category's page, in steps."""

    def __init__(self, category: Category, reader: Any) -> None:
        self.category, self.reader = category, reader
        self.subject = subject_of(category)
        self.seen: set[int] = set()

    def begin(self) -> None:
        self.began = time.perf_counter()

    def query(self) -> None:
        self.seen = set(Post.objects.filter(category=self.category).values_list("pk", flat=True))

    def record(self) -> bool:
        """Records the visit. Returns True if the category is now read."""
        return bool(tracker.record(self.hit()).read)

    def hit(self, **values: Any) -> Any:
        return factories.hit(
            views=(), reads=(self.subject,), reader=self.reader, began=self.began, **values
        )

    def visit(self) -> bool:
        self.begin()
        self.query()
        return self.record()

    def is_read_soon(self) -> bool:
        """Visits until the category is read: when a page began is known only to within an answer's
        way.
        """
        return any(self.visit() for _ in range(100))


class News:
    """One post: committed first, then published."""

    def __init__(self, category: Category) -> None:
        self.category = category

    def commit(self) -> None:
        Post.objects.bulk_create([Post(title="news", category=self.category)])

    def publish(self) -> None:
        tracker.mark_unread([self.category])


def reader_of(options: dict[str, Any]) -> Any:
    return "7" if "readers" in options.get("DOTS", {}) else 7


def is_unread(page: Page) -> bool:
    return bool(page_state(dots=[page.subject], reader=page.reader).unread[page.subject])


ORDERS = sorted(set(permutations(["begin", "query", "record", "commit", "publish"])))
ORDERS = [
    order
    for order in ORDERS
    if order.index("begin") < order.index("query") < order.index("record")
    and order.index("commit") < order.index("publish")
]


@some_strategies
@pytest.mark.parametrize("order", ORDERS, ids=lambda order: " ".join(order))
def test_a_post_that_was_not_on_the_page_stays_unread_in_any_order_of_events(
    order: tuple[str, ...], options: dict[str, Any], settings: Any
) -> None:
    settings.READTRACK = options
    category = factories.category()
    page, news = Page(category, reader_of(options)), News(category)
    page.visit()
    for step in order:
        getattr(page if hasattr(page, step) else news, step)()
    if order.index("query") < order.index("commit"):
        assert is_unread(page)
    assert page.is_read_soon()
    assert not is_unread(page)


@every_strategy
def test_of_several_categories_only_those_without_news_are_marked(
    options: dict[str, Any], settings: Any
) -> None:
    settings.READTRACK = options
    quiet, busy = factories.category(), factories.category()
    page = Page(quiet, reader_of(options))
    page.begin()
    tracker.mark_unread([busy])
    outcome = tracker.record(page.hit()._replace(reads=(subject_of(quiet), subject_of(busy))))
    assert outcome.read == (subject_of(quiet),)


def test_a_hit_that_is_late_on_its_way_hides_no_news(redis: Redis) -> None:
    page = Page(factories.category(), 7)
    page.visit()
    page.begin()
    [call] = read_state.marks(
        7, [page.subject], began=page.began
    )  # the page's time is measured here
    tracker.mark_unread([page.category])
    for _ in range(50):
        redis.ping()  # longer than the page took
    assert scripts.run(call) == ()
    assert is_unread(page)


def test_a_hit_that_is_sent_again_hides_no_news(redis: Redis) -> None:
    page = Page(factories.category(), 7)
    page.visit()
    page.begin()
    [call] = read_state.marks(7, [page.subject], began=page.began)
    scripts.run(call)
    tracker.mark_unread([page.category])
    for _ in range(50):
        redis.ping()
    assert scripts.run(call) == ()
    assert is_unread(page)


def test_a_publication_that_is_sent_again_only_keeps_the_dot_on() -> None:
    page = Page(factories.category(), 7)
    tracker.mark_unread([page.category])
    tracker.mark_unread([page.category])
    assert is_unread(page)
    assert page.is_read_soon()


def test_the_clock_of_redis_set_back_keeps_the_dot_for_one_visit_only(redis: Redis) -> None:
    page = Page(factories.category(), 7)
    tracker.mark_unread([page.category])
    now = int(str(redis.get(f"category:{page.subject}:published")))
    redis.set(
        f"category:{page.subject}:published", now + DAY // 24, ex=86_400
    )  # published an hour from now
    assert not page.visit()
    assert page.is_read_soon()


def slow_answer() -> None:
    """Lets this process learn Redis's time from an answer that took some milliseconds."""
    clock._offsets.clear()
    clock.at(0)
    clock._offsets["default"] -= 20_000
    clock._learnt["default"] -= clock.FRESH


@every_strategy
@pytest.mark.one_server("the clocks of several servers differ")
def test_a_page_right_after_a_publication_of_its_process_marks_it(
    options: dict[str, Any], settings: Any
) -> None:
    settings.READTRACK = options
    page = Page(factories.category(), reader_of(options))
    left = []
    for number in range(100):
        slow_answer()
        tracker.mark_unread([page.category])
        if not page.visit():
            left.append(number)
    assert left == []


@every_strategy
@pytest.mark.one_server("the clocks of several servers differ")
def test_a_page_right_after_a_publication_of_another_process_marks_it(
    options: dict[str, Any], settings: Any, redis: Redis
) -> None:
    settings.READTRACK = options
    page = Page(factories.category(), reader_of(options))
    left = []
    for number in range(100):
        tracker.mark_unread([page.category])
        for _ in range(20):
            redis.ping()  # the way to a browser and back
        slow_answer()
        if not page.visit():
            left.append(number)
    # A process that the machine stopped between the two may keep one. Before: a fifth of them.
    assert len(left) <= 2


@every_strategy
@pytest.mark.one_server("the clocks of several servers differ")
def test_a_page_that_is_marked_again_hides_no_later_news(
    options: dict[str, Any], settings: Any
) -> None:
    settings.READTRACK = options
    page = Page(factories.category(), reader_of(options))
    for _ in range(100):
        slow_answer()
        page.begin()
        tracker.mark_unread([page.category])
        assert not page.record()
        assert is_unread(page)


@pytest.mark.one_server("of several servers no mark teaches a clock")
def test_the_clock_of_redis_set_forward_while_a_page_is_built_hides_no_news(redis: Redis) -> None:
    page = Page(factories.category(), 7)
    page.visit()
    page.begin()
    tracker.mark_unread([page.category])
    # A minute is added to the clock of Redis: what is known of the time before is a minute too
    # early.
    clock._offsets["default"] -= 60_000_000
    redis.set(
        f"category:{page.subject}:published",
        int(str(redis.get(f"category:{page.subject}:published"))) - 60_000_000,
    )
    assert not page.record()
    assert page.visit()


def test_the_clock_of_redis_set_back_while_a_page_is_built_hides_no_news() -> None:
    page = Page(factories.category(), 7)
    page.visit()
    clock._offsets["default"] += 60_000_000  # what is known of the time before is a minute too late
    page.begin()
    page.began -= 5  # it takes seconds, so that a hit late by less hides nothing
    tracker.mark_unread([page.category])
    assert not page.record()
    assert page.is_read_soon()


@pytest.mark.parametrize(("age", "is_read"), [(10, False), (31, True)])
def test_with_rows_that_may_be_old_fresh_news_stays_unread(
    age: int, settings: Any, redis: Redis, *, is_read: bool
) -> None:
    settings.READTRACK = {"DOTS": {"stale_for": 30}}
    page = Page(factories.category(), 7)
    tracker.mark_unread([page.category])
    redis.set(
        f"category:{page.subject}:published",
        int(str(redis.get(f"category:{page.subject}:published"))) - age * 1_000_000,
    )
    assert page.visit() is is_read


def test_a_page_of_any_age_marks_what_was_published_before() -> None:
    page = Page(factories.category(), 7)
    tracker.mark_unread([page.category])
    age = 90 * DAY
    connect().decrby(keys.published(page.subject), age)
    assert not tracker.mark_subjects_read(7, [page.subject], as_of=reports.as_of() - age - DAY)
    assert tracker.mark_subjects_read(7, [page.subject], as_of=reports.as_of() - age + DAY)
    assert not is_unread(page)


def test_a_moment_in_the_future_which_a_clock_set_back_leaves_marks_nothing(redis: Redis) -> None:
    page = Page(factories.category(), 7)
    as_of = reports.as_of() + 60_000_000  # by the clock that was a minute ahead
    tracker.mark_unread([page.category])
    assert tracker.mark_subjects_read(7, [page.subject], as_of=as_of) == []
    assert tracker.mark_subjects_read(7, [page.subject], as_of=2**60) == []
    redis.delete(f"category:{page.subject}:published")
    assert tracker.mark_subjects_read(7, [page.subject], as_of=reports.as_of()) == [page.subject]


@pytest.mark.parametrize("drift", [60_000_000, -60_000_000])
def test_a_moment_is_redis_own_however_far_the_clocks_have_drifted_apart(
    redis: Redis, drift: int
) -> None:
    def now() -> int:
        seconds, microseconds = redis.time()
        return int(seconds) * 1_000_000 + int(microseconds)

    clock.at(0)
    clock._offsets["default"] += drift
    clock._learnt["default"] -= 10
    before = now()
    assert before - 100_000 < reports.as_of() < now()


@every_strategy
@pytest.mark.parametrize("is_followed", [False, True])
def test_a_page_from_before_redis_was_emptied_marks_nothing(
    options: dict[str, Any], settings: Any, redis: Redis, *, is_followed: bool
) -> None:
    settings.READTRACK = options
    page, next_page = (Page(factories.category(), reader_of(options)) for _ in range(2))
    page.visit()
    page.begin()
    as_of = reports.as_of()
    page.query()
    tracker.mark_unread([page.category])
    redis.flushdb()
    if is_followed:  # by something that begins the memory of Redis anew
        tracker.mark_unread([next_page.category])
    assert not page.record()
    assert tracker.mark_subjects_read(page.reader, [page.subject], as_of=as_of) == []
    assert is_unread(page)
    assert page.is_read_soon()


def test_a_memory_of_redis_that_began_in_the_future_begins_now(redis: Redis) -> None:
    page = Page(factories.category(), 7)
    redis.set(
        keys.reads_began(keys.tag(page.subject)), reports.as_of() + DAY
    )  # the clock was set back by a day
    assert not page.visit()
    assert page.is_read_soon()


@pytest.fixture(scope="module")
def threads() -> Iterator[ThreadPoolExecutor]:
    """Returns threads that keep their database connections from one example to the next."""
    with ThreadPoolExecutor(6) as pool:
        yield pool
        barrier = threading.Barrier(6)

        def close() -> None:
            barrier.wait()
            connection.close()

        for done in [pool.submit(close) for _ in range(6)]:
            done.result()


PAUSES = st.lists(st.integers(0, 3), min_size=6, max_size=6)


@some_strategies
@pytest.mark.django_db(transaction=True)
@settings(max_examples=examples(12))
@given(
    visits=st.lists(PAUSES, min_size=3, max_size=3),
    writers=st.lists(PAUSES, min_size=3, max_size=3),
)
def test_a_category_is_read_only_by_readers_whose_pages_showed_all_of_it(
    threads: ThreadPoolExecutor,
    redis: Redis,
    options: dict[str, Any],
    visits: list[list[int]],
    writers: list[list[int]],
) -> None:
    redis.flushdb()
    read_state.begin(0)
    category = factories.category()
    start = threading.Barrier(6)
    with override_settings(READTRACK=options):
        reading = [
            threads.submit(_read, category, number, pauses, start)
            for number, pauses in enumerate(visits)
        ]
        writing = [threads.submit(_write, category, pauses, start) for pauses in writers]
        pages = [future.result() for future in reading]
        for future in writing:
            future.result()
        published = set(Post.objects.filter(category=category).values_list("pk", flat=True))
        for page, seen in pages:
            assert is_unread(page) or seen == published
            assert page.is_read_soon()
        connect().connection_pool.disconnect()


def _pause(milliseconds: int) -> None:
    if milliseconds:
        time.sleep(milliseconds / 1000)


def _read(
    category: Category, number: int, pauses: list[int], start: threading.Barrier
) -> tuple[Page, set[int]]:
    page = Page(category, str(number) if readers.has_ordinals() else number)
    seen: set[int] = set()
    start.wait()
    for before, between in zip(pauses[::2], pauses[1::2], strict=True):
        page.begin()
        page.query()
        _pause(before)
        page.record()
        seen |= page.seen
        _pause(between)
    return page, seen


def _write(category: Category, pauses: list[int], start: threading.Barrier) -> None:
    news = News(category)
    start.wait()
    for before, between in zip(pauses[::2], pauses[1::2], strict=True):
        _pause(before)
        news.commit()
        _pause(between)
        news.publish()
