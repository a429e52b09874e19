"""Taking over a forum's tables of the times up to which users have read."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.flush.run import flush
from readtrack.threads import reports as threads_reports
from tests.site.models import Board, ReadMark, Reply, Thread, TopicReadTrack
from tests.support import factories, forum
from tests.support.bounds import set_most_bits

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(days=1)


@pytest.fixture(
    autouse=True,
    params=[{}, {"CLUSTER": {"partitions": 16}}, {"DOTS": {"readers": "ordinal"}}],
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
        **{"read_until": "mark_time", **options},
    )
    return {
        name: int(count.replace(",", ""))
        for count, name in re.findall(r"^ +([\d,]+)  (.+)$", capsys.readouterr().out, re.MULTILINE)
    }


def mark(user: Any, thread: Thread | None, at: datetime) -> None:
    TopicReadTrack.objects.create(user=user, topic=thread, mark_time=at)


def mark_any(user: Any, model: Any, pk: Any, at: datetime | None) -> None:
    content_type = ContentType.objects.get_for_model(model)
    ReadMark.objects.create(reader=user, content_type=content_type, object_id=pk, timestamp=at)


OF_ANY = {"user_field": "reader", "read_until": "timestamp"}


def test_a_dry_run_takes_nothing_over(capsys: pytest.CaptureFixture[str], redis: Redis) -> None:
    now = datetime.now(timezone.utc)
    user, thread = factories.user(date_joined=now - DAY), Thread.objects.create(last_post_on=now)
    mark(user, thread, now)
    mark_any(user, Thread, None, now)
    options = {"published": ["last_post_on"], "dry_run": True}
    of_users = {"user_field": "id", "all_of": "site.Thread", "read_until": "date_joined"}
    counts = [
        run(capsys, "site.TopicReadTrack", "topic", **options),
        run(capsys, "site.ReadMark", "readable", **OF_ANY, **options),
        run(capsys, "auth.User", "", **of_users, **options),
    ]
    assert [figures["counted"] for figures in counts] == [1, 1, 1]
    assert redis.keys("positions:*") == []


def test_a_row_says_why_it_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    now = datetime.now(timezone.utc)
    user, thread = factories.user(), Thread.objects.create()
    mark(user, thread, now)
    mark(user, None, now)
    mark(factories.user(), thread, now - 91 * DAY)
    figures = run(capsys, "site.TopicReadTrack", "topic")
    assert (figures["read"], figures["counted"], figures["skipped"]) == (2, 1, 1)
    assert figures["  older than the days of THREADS (50%)"] == 1
    gone, _ = ContentType.objects.get_or_create(app_label="gone", model="gone")
    mark_any(user, Thread, str(thread.pk), now)
    mark_any(user, Thread, str(thread.pk), None)
    mark_any(user, Thread, "0", now)
    mark_any(user, Thread, "none", now)
    mark_any(user, Thread, "9" * 50, now)
    mark_any(user, Board, "1", now)
    mark_any(user, Reply, None, now)
    ReadMark.objects.create(reader=user, content_type=gone, object_id="1", timestamp=now)
    figures = run(capsys, "site.ReadMark", "readable", **OF_ANY)
    assert (figures["read"], figures["counted"], figures["skipped"]) == (7, 1, 6)
    assert figures["  no such object (43%)"] == 3
    for label in ("site.Board", "site.Reply", "?"):
        assert figures[f"  no positions: {label} (14%)"] == 1


def test_a_reader_with_an_id_out_of_bounds_is_left_out(
    capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    set_most_bits(1000)
    mark(factories.user(pk=1001), Thread.objects.create(), datetime.now(timezone.utc))
    figures = run(capsys, "site.TopicReadTrack", "topic")
    left_out = figures.get("  id out of bounds (100%)", 0)
    assert left_out == ("DOTS" not in settings.READTRACK)  # where it has ordinals


def test_who_has_not_been_there_for_long_takes_no_memory(
    capsys: pytest.CaptureFixture[str], redis: Redis
) -> None:
    long_ago = datetime.now(timezone.utc) - 91 * DAY
    user, thread = factories.user(), Thread.objects.create(last_post_on=long_ago)
    Thread.objects.create()
    mark(user, thread, long_ago)
    run(capsys, "site.TopicReadTrack", "topic", published=["last_post_on"])
    assert redis.keys("positions:*") == []


def test_a_time_in_the_future_hides_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    user, thread = factories.user(), Thread.objects.create()
    mark(user, thread, datetime.now(timezone.utc) + 10 * DAY)
    run(capsys, "site.TopicReadTrack", "topic")
    Reply.objects.create(thread=thread)
    assert reports.unread(user, [thread]) == {thread}


def test_a_thread_with_a_post_of_the_future_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    user = factories.user()
    thread = Thread.objects.create(last_post_on=datetime.now(timezone.utc) + DAY)
    run(capsys, "site.TopicReadTrack", "topic", published=["last_post_on"])
    assert reports.unread(user, [thread]) == {thread}
    tracker.mark_read(user, [thread])
    for _ in range(2):
        assert reports.unread(user, [thread]) == set()
        run(capsys, "site.TopicReadTrack", "topic", published=["last_post_on"])


def test_only_a_form_by_reader_takes_times(
    capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    with pytest.raises(CommandError, match="Board has no threads with a time 'name'"):
        run(capsys, "site.ForumReadTrack", "forum", published=["name"])
    with pytest.raises(CommandError, match="no threads with a time 'last_post_on' and 'made'"):
        run(capsys, "site.TopicReadTrack", "topic", published=["last_post_on", "made"])
    with pytest.raises(CommandError, match="TopicReadTrack has no time 'topic'"):
        run(capsys, "site.TopicReadTrack", "topic", read_until="topic")
    with pytest.raises(CommandError, match="The table has no threads with a time 'last_post_on'"):
        run(capsys, "site.ReadMark", "readable", **OF_ANY, published=["last_post_on"])
    settings.READTRACK = {"MODELS": {"site.Thread": {"read_state": True}}}
    with pytest.raises(CommandError, match="Only a model with 'read_state': 'positions' takes"):
        run(capsys, "site.TopicReadTrack", "topic")


def test_times_need_the_part_of_threads(
    capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "readtrack.threads"]
    with pytest.raises(CommandError, match="`--read-until` needs 'readtrack"):
        run(capsys, "site.TopicReadTrack", "topic")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"reads": "site.ReadMark", "category_field": "readable"},
            "ReadMark needs the name of its",
        ),
        ({"reads": "auth.User", "all_of": "site.Thread"}, "User needs the name of its time"),
        (
            {"reads": "site.TopicReadTrack", "category_field": "topic", "published": ["created"]},
            "needs the name of its time, --read-until",
        ),
        (
            {"reads": "site.ReadMark", "category_field": "reader", **OF_ANY},
            "ReadMark has to point by 'reader' at read state",
        ),
        ({"all_of": "site.None"}, "of everything, not site.None"),
        ({"all_of": "site.Board"}, "of everything, not site.Board"),
        ({"user_field": "username"}, "auth.User has to point at a user by 'username'"),
    ],
)
def test_a_table_without_what_times_need_is_refused(options: dict[str, Any], reason: str) -> None:
    of_users = {"reads": "auth.User", "all_of": "site.Thread", "read_until": "date_joined"}
    defaults = {"user_field": "id", **of_users} if "reads" not in options else {}
    with pytest.raises(CommandError, match=reason):
        call_command("readtrack", "import", **{**defaults, **options})


def test_the_thread_of_an_import_keeps_a_post_that_is_published_later(
    capsys: pytest.CaptureFixture[str],
) -> None:
    user = factories.user()
    thread = Thread.objects.create(last_post_on=datetime.now(timezone.utc) - DAY)
    run(capsys, "site.TopicReadTrack", "topic", published=["last_post_on"])
    Thread.objects.update(last_post_on=datetime.now(timezone.utc))
    Reply.objects.create(thread=thread)
    run(capsys, "site.TopicReadTrack", "topic", published=["last_post_on"])
    assert reports.unread_counts(user, [thread]) == {thread: 2}


def test_the_first_unread_reply_of_a_moved_thread_is_found_by_its_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = datetime.now(timezone.utc)
    user, newcomer = factories.user(), factories.user()
    thread = Thread.objects.create(last_post_on=now - DAY)
    replies = Reply.objects.bulk_create(
        Reply(thread=thread, written=now - day * DAY) for day in (4, 3, 2, 1)
    )
    mark(user, thread, now - 3 * DAY + timedelta(hours=2))
    run(capsys, "site.TopicReadTrack", "topic", published=["last_post_on"])
    assert reports.unread_counts(user, [thread]) == {thread: 1}
    assert threads_reports.first_unread(user, thread.replies, written="written") == replies[2]
    assert threads_reports.first_unread(newcomer, thread.replies, written="written") == replies[0]
    assert threads_reports.first_unread(user, thread.replies) == replies[0]


@pytest.mark.usefixtures("new_redis")
def test_the_first_thing_that_a_site_does_may_be_an_import(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = datetime.now(timezone.utc)
    user = factories.user()
    read, unread = [Thread.objects.create(last_post_on=now - DAY) for _ in range(2)]
    mark(user, read, now)
    run(capsys, "site.TopicReadTrack", "topic", published=["last_post_on"])
    assert reports.unread(user, [read, unread]) == {unread}


def test_an_import_waits_until_a_flush_has_restored_lost_read_state(
    capsys: pytest.CaptureFixture[str], redis: Redis
) -> None:
    user = factories.user()
    thread = Thread.objects.create(last_post_on=datetime.now(timezone.utc) - DAY)
    run(capsys, "site.TopicReadTrack", "topic", published=["last_post_on"])
    flush()
    redis.flushdb()
    with pytest.raises(CommandError, match="The next flush restores it"):
        run(capsys, "site.TopicReadTrack", "topic", published=["last_post_on"])
    flush()
    run(capsys, "site.TopicReadTrack", "topic", published=["last_post_on"])
    assert reports.unread_counts(user, [thread]) == {thread: 1}
