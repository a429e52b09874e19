"""Moving in from other apps: each thread is unread for each reader as it was before."""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple, TypeAlias

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.utils.timezone import get_default_timezone, make_naive
from pytest_django import Settings
from redis import Redis

from readtrack import reports
from readtrack.store import keys
from tests.site.models import (
    Board,
    Category,
    Forum,
    ForumReadTrack,
    ReadCategory,
    ReadMark,
    ReadThread,
    Thread,
    TopicReadTrack,
)
from tests.support import factories, forum
from tests.support.depth import examples

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(days=1)
Times: TypeAlias = dict[tuple[Any, Any], datetime]  # by the primary keys of user and object

READ_DAYS = 40  # also Misago's default for its readtracker_cutoff


@pytest.fixture(
    autouse=True,
    params=[
        {},
        {"CLUSTER": {"partitions": 16}},
        {"DOTS": {"readers": "ordinal"}},
        {"USE_TZ": False},
    ],
    ids=["1 partition", "16 partitions", "by name", "naive times"],
)
def _forum(request: pytest.FixtureRequest, settings: Settings) -> Iterator[None]:
    options = {**request.param}
    settings.TIME_ZONE = "America/New_York"
    settings.USE_TZ = options.pop("USE_TZ", True)
    with forum.forum(settings, THREADS={"days": READ_DAYS}, **options):
        yield


class Tables:
    """A forum of random boards, threads and readers."""

    def __init__(self, chance: random.Random) -> None:
        """Makes boards, threads with and without posts, and readers, of whom one is inactive."""
        self.chance = chance
        self.now = datetime.now(timezone.utc)
        self.boards = [Board.objects.create(forum=Forum.objects.create()) for _ in range(3)]
        self.threads = [self.thread() for _ in range(40)]
        self.readers = [self.reader(is_active=number != 1) for number in range(6)]

    def thread(self) -> Thread:
        posted_on = self.chance.choice([self.time(), self.time(), self.time(), None])
        board = self.chance.choice(self.boards)
        return Thread.objects.create(board=board, created=self.time(), last_post_on=posted_on)

    def reader(self, *, is_active: bool) -> User:
        just_before = self.time() - timedelta(microseconds=10)
        return factories.user(is_active=is_active, date_joined=just_before)

    def time(self) -> datetime:
        """Returns one of few times, so that some are equal, and some differ by a microsecond."""
        days = self.chance.randrange(READ_DAYS + 10) + 0.5
        return for_field(self.now - DAY * days + timedelta(microseconds=self.chance.randrange(3)))

    def time_beside(self, thread: Thread) -> datetime:
        """Returns any time, or that of the thread's last post."""
        return self.chance.choice([self.time(), last_post(thread)])

    def time_beside_any(self) -> datetime:
        """Returns any time, or that of any thread's last post."""
        return self.time_beside(self.chance.choice(self.threads))

    def pairs(self, objects: Sequence[Any], *, share: float) -> Iterator[tuple[User, Any]]:
        """Yields some of the pairs of readers and objects. The last reader has none."""
        for reader in self.readers[:-1]:
            for obj in objects:
                if self.chance.random() < share:
                    yield reader, obj

    def known_threads(self) -> list[Thread]:
        """Returns the threads that were published to within READ_DAYS."""
        earliest = for_field(self.now - DAY * READ_DAYS)
        return [thread for thread in self.threads if last_post(thread) > earliest]


def for_field(time: datetime) -> datetime:
    """Returns the time as a DateTimeField takes it."""
    return time if django_settings.USE_TZ else make_naive(time, get_default_timezone())


def last_post(thread: Thread) -> datetime:
    """Returns the time of the last post, as these apps know it."""
    time = thread.last_post_on or thread.created
    assert time is not None
    return time


class Import(NamedTuple):
    """The options of one import."""

    reads: str
    options: dict[str, Any]


PUBLISHED = ["last_post_on", "created"]


class Machina:
    """The tables of django-machina and pybbm: TopicReadTrack and ForumReadTrack."""

    imports = (
        Import(
            "site.TopicReadTrack",
            {"category_field": "topic", "read_until": "mark_time", "published": PUBLISHED},
        ),
        Import("site.ForumReadTrack", {"category_field": "forum", "read_until": "mark_time"}),
    )

    def __init__(self, tables: Tables) -> None:
        """Fills the tables."""
        TopicReadTrack.objects.bulk_create(
            TopicReadTrack(user=user, topic=topic, mark_time=tables.time_beside(topic))
            for user, topic in tables.pairs(tables.threads, share=0.5)
        )
        ForumReadTrack.objects.bulk_create(
            ForumReadTrack(user=user, forum=board, mark_time=tables.time_beside_any())
            for user, board in tables.pairs(tables.boards, share=0.5)
        )
        self.topic_times: Times = {
            (track.user_id, track.topic_id): track.mark_time
            for track in TopicReadTrack.objects.all()
        }
        self.forum_times: Times = {
            (track.user_id, track.forum_id): track.mark_time
            for track in ForumReadTrack.objects.all()
        }

    def times(self, user: User, thread: Thread) -> tuple[datetime | None, datetime | None]:
        """Returns the time of the user's mark of the topic, and of that of the forum."""
        topic_time = self.topic_times.get((user.pk, thread.pk))
        return topic_time, self.forum_times.get((user.pk, thread.board_id))

    def is_unread(self, user: User, thread: Thread) -> bool:
        """The rule of django-machina: only without a mark of the topic, that of the forum counts."""
        topic_time, forum_time = self.times(user, thread)
        time = topic_time or forum_time
        return not time or last_post(thread) > time

    def is_read_by_board(self, user: User, thread: Thread) -> bool:
        """Returns True if the mark of the forum is later than that of the topic, and counts here.

        In django-machina that comes of a topic's move alone, because a new mark of a forum deletes
        those of its topics.
        """
        topic_time, forum_time = self.times(user, thread)
        if topic_time is None or forum_time is None:
            return False
        return topic_time < last_post(thread) <= forum_time


class Pybbm(Machina):
    """The same tables by the rule of pybbm."""

    def is_unread(self, user: User, thread: Thread) -> bool:
        """The rule of pybbm: one of the marks is as late as the last post."""
        return not any(time and time >= last_post(thread) for time in self.times(user, thread))


class Misago:
    """The tables of Misago: ReadThread, ReadCategory, and the users with the time of their arrival."""

    imports = (
        Import(
            "site.ReadThread",
            {"category_field": "thread", "read_until": "read_time", "published": PUBLISHED},
        ),
        Import("site.ReadCategory", {"category_field": "category", "read_until": "read_time"}),
        Import(
            "auth.User",
            {"user_field": "id", "all_of": "site.Thread", "read_until": "date_joined"},
        ),
    )

    def __init__(self, tables: Tables) -> None:
        """Fills the tables."""
        self.tables = tables
        ReadThread.objects.bulk_create(
            ReadThread(
                user=user,
                category=thread.board,
                thread=thread,
                read_time=tables.time_beside(thread),
            )
            for user, thread in tables.pairs(tables.threads, share=0.5)
        )
        ReadCategory.objects.bulk_create(
            ReadCategory(user=user, category=board, read_time=tables.time_beside_any())
            for user, board in tables.pairs(tables.boards, share=0.5)
        )
        self.thread_times: Times = {
            (read.user_id, read.thread_id): read.read_time for read in ReadThread.objects.all()
        }
        self.category_times: Times = {
            (read.user_id, read.category_id): read.read_time for read in ReadCategory.objects.all()
        }

    def is_unread(self, user: User, thread: Thread) -> bool:
        """The rule of Misago: nothing from before the user came, or before the site's cutoff."""
        cutoff = for_field(self.tables.now - DAY * READ_DAYS)
        if last_post(thread) < max(user.date_joined, cutoff):
            return False
        category_time = self.category_times.get((user.pk, thread.board_id))
        if category_time and last_post(thread) <= category_time:
            return False
        thread_time = self.thread_times.get((user.pk, thread.pk))
        return not thread_time or last_post(thread) > thread_time


class Unread:
    """The table of unread: ReadMark, which names any object, or none for everything."""

    imports = (
        Import(
            "site.ReadMark",
            {
                "user_field": "reader",
                "category_field": "readable",
                "read_until": "timestamp",
                "published": PUBLISHED,
            },
        ),
    )

    def __init__(self, tables: Tables) -> None:
        """Fills the table. Most readers got a mark of everything when they came."""
        of_objects = [
            ReadMark(reader=reader, readable=thread, timestamp=tables.time_beside(thread))
            for reader, thread in tables.pairs(tables.threads, share=0.5)
        ]
        of_everything = [
            ReadMark(
                reader=reader,
                content_type=ContentType.objects.get_for_model(model),
                timestamp=reader.date_joined,
            )
            for reader in tables.readers[:-2]
            for model in (Thread, Category)
        ]
        of_boards = [
            ReadMark(reader=reader, readable=board, timestamp=tables.time())
            for reader, board in tables.pairs(tables.boards, share=0.5)
        ]
        ReadMark.objects.bulk_create([*of_objects, *of_everything, *of_boards])
        type_of_threads = ContentType.objects.get_for_model(Thread)
        self.times = {
            (mark.reader_id, mark.object_id): mark.timestamp
            for mark in ReadMark.objects.filter(content_type=type_of_threads)
        }

    def is_unread(self, user: User, thread: Thread) -> bool:
        """The rule of unread: no mark of the object is as late, and the global one is earlier."""
        time = self.times.get((user.pk, str(thread.pk)))
        if time and time >= last_post(thread):
            return False
        global_time = self.times.get((user.pk, None))
        return not global_time or last_post(thread) > global_time


def take(imports: Sequence[Import]) -> None:
    for reads, options in imports:
        call_command("readtrack", "import", reads=reads, **options)


def state(redis: Redis) -> dict[Any, Any]:
    """Returns the positions of all readers, and the publications and boards of all threads."""
    return {key: redis.dump(key) for key in redis.scan_iter(f"{keys.prefix()}positions*")}


@pytest.mark.parametrize("app_class", [Machina, Pybbm, Misago, Unread])
@pytest.mark.parametrize("seed", range(examples(1)))
def test_every_thread_is_unread_for_every_reader_as_it_was_before(
    app_class: Any, seed: int, redis: Redis
) -> None:
    tables = Tables(random.Random(f"{seed} of {app_class.__name__}"))
    app = app_class(tables)
    for thread in tables.threads[:4]:
        thread.delete()
    del tables.threads[:4]
    take(app.imports)
    first_state = state(redis)
    take(app.imports)
    assert first_state
    assert state(redis) == first_state
    number_unread = 0
    for reader in tables.readers:
        unread = {thread for thread in tables.known_threads() if app.is_unread(reader, thread)}
        if app_class is Machina:
            unread -= {thread for thread in unread if app.is_read_by_board(reader, thread)}
        number_unread += len(unread)
        assert reports.unread(reader, tables.threads) == unread
        assert reports.unread(reader, tables.boards) == {thread.board for thread in unread}
    assert 20 < number_unread < 200


def test_of_more_than_500_threads_of_a_reader_the_oldest_count_as_read() -> None:
    reader, board = factories.user(), Board.objects.create()
    now = for_field(datetime.now(timezone.utc))
    threads = Thread.objects.bulk_create(
        Thread(board=board, last_post_on=now - timedelta(minutes=number))
        for number in range(1, 701)
    )
    unread = threads[::7]
    TopicReadTrack.objects.bulk_create(
        TopicReadTrack(user=reader, topic=thread, mark_time=last_post(thread))
        for thread in threads
        if thread not in unread
    )
    take(Machina.imports)
    newest = set(unread) & set(threads[:550])  # of these the reader has some 470 positions
    found = reports.unread(reader, threads)
    if keys.is_divided():  # each has few enough of them
        assert found == set(unread)
    else:
        assert newest < found < set(unread)
