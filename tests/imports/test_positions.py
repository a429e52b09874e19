"""Taking over a forum's tables of the times up to which users have read."""

import random
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import product
from typing import Any

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.subjects import subject_of
from tests.site.models import Board, BoardMark, Forum, Reply, Thread, ThreadMark
from tests.support import factories, forum

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(days=1)


@pytest.fixture(
    autouse=True,
    params=[{}, {"PARTITIONS": 16}, {"READERS": "ordinal"}],
    ids=["1 partition", "16 partitions", "by name"],
)
def _forum(request: pytest.FixtureRequest, settings: Settings) -> Iterator[None]:
    with forum.forum(settings, **request.param):
        yield


def run(capsys: pytest.CaptureFixture[str], reads: str, category: str, **options: Any) -> Any:
    """Returns the figures of an import."""
    call_command(
        "readtrack",
        "import",
        reads=reads,
        category_field=category,
        read_until="read_on",
        **options,
    )
    return {
        name: int(count.replace(",", ""))
        for count, name in re.findall(r"^ +([\d,]+)  (.+)$", capsys.readouterr().out, re.MULTILINE)
    }


def is_unread(user: Any, thread: Thread) -> bool:
    """The rule of django-machina, pybbm and Misago: the last post is later than the user's mark of
    the thread and than that of its board.
    """
    marks: list[Any] = [
        *ThreadMark.objects.filter(user=user, thread=thread),
        *BoardMark.objects.filter(user=user, board=thread.board),
    ]
    last_post_on = thread.last_post_on
    return all(last_post_on > mark.read_on for mark in marks if last_post_on and mark.read_on)


def test_every_thread_is_unread_for_every_reader_as_it_was_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    chance = random.Random(7)
    now = datetime.now(timezone.utc)
    boards = [Board.objects.create(forum=Forum.objects.create()) for _ in range(3)]
    users = [factories.user() for _ in range(5)]

    def time() -> datetime:
        return now - DAY * chance.randrange(1, 60) - timedelta(seconds=chance.randrange(3))

    threads = [
        Thread.objects.create(board=chance.choice(boards), last_post_on=time()) for _ in range(40)
    ]
    old = Thread.objects.create(board=boards[0], last_post_on=now - 100 * DAY)
    empty = Thread.objects.create(board=boards[0])
    for user, thread in product(users, threads):
        if chance.random() < 0.6:
            read_on = chance.choice([time(), thread.last_post_on])
            ThreadMark.objects.create(user=user, thread=thread, read_on=read_on)
    for user, board in product(users, boards):
        if chance.random() < 0.4:
            BoardMark.objects.create(user=user, board=board, read_on=now - 40 * DAY)
    ThreadMark.objects.create(user=None, thread=old, read_on=now)
    for _ in range(2):
        counts = run(capsys, "site.ThreadMark", "thread", published="last_post_on")
        assert counts["counted"] == ThreadMark.objects.count() - 1
        run(capsys, "site.BoardMark", "board")
    for user in users:
        unread = {thread for thread in threads if is_unread(user, thread)}
        assert reports.unread(user, [*threads, old, empty]) == unread
        assert reports.unread(user, boards) == {thread.board for thread in unread}
    Reply.objects.create(thread=threads[0])
    assert all(threads[0] in reports.unread(user, threads) for user in users)


def test_marks_of_any_object_are_taken_over_by_a_loop() -> None:
    """The rule of django-unread: a mark of the object, or one of everything, by a content type."""
    now = datetime.now(timezone.utc)
    user = factories.user()
    times = [now - DAY * number for number in range(1, 7)]
    threads = [Thread.objects.create(last_post_on=time) for time in times]
    call_command(
        "readtrack",
        "import",
        reads="site.ThreadMark",
        category_field="thread",
        read_until="read_on",
        published="last_post_on",
    )
    content_type = ContentType.objects.get_for_model(Thread)
    marks = [
        (content_type, threads[0].pk, now),
        (content_type, threads[1].pk, times[1] - DAY),
        (content_type, None, times[4] + timedelta(seconds=1)),
    ]
    for _, pk, read_on in marks:
        as_of = int(read_on.timestamp() * 1_000_000) + 1
        if pk is None:
            tracker.mark_all_read(user, Thread, as_of=as_of)
        else:
            tracker.mark_read(user, [Thread(pk=pk)], as_of=as_of)
    assert reports.unread(user, threads) == {threads[1], threads[2], threads[3]}


def test_a_dry_run_takes_nothing_over(capsys: pytest.CaptureFixture[str], redis: Redis) -> None:
    thread = Thread.objects.create(last_post_on=datetime.now(timezone.utc))
    ThreadMark.objects.create(user=factories.user(), thread=thread, read_on=thread.last_post_on)
    options = {"published": "last_post_on", "dry_run": True}
    assert run(capsys, "site.ThreadMark", "thread", **options)["counted"] == 1
    assert redis.keys("positions:*") == []


def test_a_time_in_the_future_hides_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    user, thread = factories.user(), Thread.objects.create()
    ThreadMark.objects.create(
        user=user, thread=thread, read_on=datetime.now(timezone.utc) + 10 * DAY
    )
    run(capsys, "site.ThreadMark", "thread")
    Reply.objects.create(thread=thread)
    assert reports.unread(user, [thread]) == {thread}


def test_only_a_form_by_reader_takes_times(
    capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    with pytest.raises(CommandError, match="has no threads with a time 'name'"):
        run(capsys, "site.BoardMark", "board", published="name")
    with pytest.raises(CommandError, match="has no threads with a time 'last_past_on'"):
        run(capsys, "site.ThreadMark", "thread", published="last_past_on")
    with pytest.raises(CommandError, match="ThreadMark has no time 'red_on'"):
        call_command(
            "readtrack",
            "import",
            reads="site.ThreadMark",
            category_field="thread",
            read_until="red_on",
        )
    settings.READTRACK = {"MODELS": {"site.Thread": {"read_state": True}}}
    with pytest.raises(CommandError, match="Only a model with 'read_state': 'positions' takes"):
        run(capsys, "site.ThreadMark", "thread")


def test_the_thread_of_an_import_keeps_a_post_that_is_published_later(
    capsys: pytest.CaptureFixture[str],
) -> None:
    user = factories.user()
    thread = Thread.objects.create(last_post_on=datetime.now(timezone.utc) - DAY)
    run(capsys, "site.ThreadMark", "thread", published="last_post_on")
    Reply.objects.create(thread=thread)
    run(capsys, "site.ThreadMark", "thread", published="last_post_on")
    assert reports.unread_counts(user, [thread]) == {thread: 2}
    assert subject_of(thread)
