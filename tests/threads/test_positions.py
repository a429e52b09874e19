"""A forum with read state by reader: what its users see, and what becomes of it."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection as database
from django.template import Context, Template
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.cluster import repartitioning
from readtrack.flush import resets
from readtrack.hits import readers
from readtrack.models import PendingPublication
from readtrack.store import keys, read_state, renaming, scripts
from readtrack.subjects import subject_of
from readtrack.threads import reports as threads_reports
from readtrack.threads.positions import BoardPositions, Positions
from readtrack.unread import signing_in, starting
from tests.site.models import Board, Forum, Reply, Thread
from tests.support import factories, forum

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("a_forum"),
]


WITH_HIDDEN_THREADS = {
    **forum.MODELS,
    "site.Thread": {**forum.MODELS["site.Thread"], "is_public": f"{__name__}.is_shown"},
}


@pytest.fixture
def board() -> Board:
    return Board.objects.create(forum=Forum.objects.create(name="Help"), name="Django")


def thread(board: Board | None = None, replies: int = 0, **values: Any) -> Thread:
    made = Thread.objects.create(board=board, **values)
    for _ in range(replies):
        Reply.objects.create(thread=made)
    return made


def is_unread(user: User, *objs: Any) -> list[bool]:
    unread = reports.unread(user, objs)
    return [obj in unread for obj in objs]


def test_a_reply_lights_the_dots_of_its_thread_its_board_and_its_forum(
    ann: User, bob: User, board: Board
) -> None:
    quiet = thread(board)
    busy = thread(board, replies=1)
    assert is_unread(ann, quiet, busy, board, board.forum) == [False, True, True, True]
    tracker.mark_read(ann, [busy])
    assert is_unread(ann, quiet, busy, board, board.forum) == [False] * 4
    assert is_unread(bob, quiet, busy, board, board.forum) == [False, True, True, True]


def test_the_author_of_a_reply_gets_no_dot(ann: User, bob: User) -> None:
    topic = thread()
    Reply.objects.create(thread=topic, author=ann)
    assert is_unread(ann, topic) == [False]
    assert is_unread(bob, topic) == [True]


def test_a_deleted_reply_is_no_news_any_more(ann: User, board: Board) -> None:
    topic = thread(board, replies=2)
    first, second = topic.replies.all()
    first.delete()
    assert reports.unread_counts(ann, [topic]) == {topic: 1}
    second.delete()
    assert is_unread(ann, topic, board) == [False, False]


def test_a_deleted_thread_gives_its_board_no_dot(ann: User, board: Board, redis: Redis) -> None:
    thread(board, replies=1).delete()
    assert is_unread(ann, board) == [False]
    assert redis.keys("positions:news*") == []


def test_replies_that_are_published_together_are_known_each_by_itself(ann: User) -> None:
    topic = thread()
    replies = Reply.objects.bulk_create([Reply(thread=topic) for _ in range(5)])
    tracker.publish(replies)
    assert reports.unread_counts(ann, [topic]) == {topic: 5}
    tracker.unpublish(replies[:2])
    assert reports.unread_counts(ann, [topic]) == {topic: 3}


def test_a_publication_waits_in_the_outbox_with_its_post_while_redis_is_down(
    ann: User, settings: Settings
) -> None:
    topic = thread(replies=1)
    tracker.mark_read(ann, [topic])
    caches = settings.CACHES
    settings.CACHES = {"default": {**caches["default"], "LOCATION": "redis://127.0.0.1:1/0"}}
    reply = Reply.objects.create(thread=topic)
    settings.CACHES = caches
    assert PendingPublication.objects.get(sent=None).post == subject_of(reply)
    tracker.resend()
    assert threads_reports.first_unread(ann, topic.replies) == reply


def test_all_threads_are_read_without_a_query(ann: User, board: Board) -> None:
    topics = [thread(board, replies=1) for _ in range(3)]
    with CaptureQueriesContext(database) as queries:
        tracker.mark_all_read(ann, Thread)
    assert len(queries) == 0
    assert is_unread(ann, *topics, board) == [False] * 4


def test_the_threads_of_a_board_are_read_and_others_are_not(ann: User, board: Board) -> None:
    other_board = Board.objects.create(name="Python")
    here, there = thread(board, replies=1), thread(other_board, replies=1)
    tracker.mark_all_read(ann, Thread, within=board)
    assert is_unread(ann, here, there, board, other_board) == [False, True, False, True]
    tracker.mark_all_read(ann, Thread, within=other_board)
    assert is_unread(ann, there, other_board) == [False, False]


def test_threads_older_than_an_age_are_read(ann: User) -> None:
    topic = thread(replies=1)
    tracker.mark_all_read(ann, Thread, older_than=timedelta(days=7))
    assert is_unread(ann, topic) == [True]
    tracker.mark_all_read(ann, Thread, older_than=timedelta(0))
    assert is_unread(ann, topic) == [False]


def test_only_positions_know_boards_and_ages(ann: User, board: Board, settings: Settings) -> None:
    with pytest.raises(TypeError, match=r"names no boards of auth\.user"):
        tracker.mark_all_read(ann, Thread, within=ann)
    settings.READTRACK = {"MODELS": {"site.Thread": {"read_state": True}}}
    for options in ({"within": board}, {"older_than": timedelta(1)}):
        with pytest.raises(TypeError, match="are for a model whose read state is kept by reader"):
            tracker.mark_all_read(ann, Thread, **options)


def test_an_anonymous_user_marks_nothing(redis: Redis) -> None:
    thread(replies=1)
    tracker.mark_all_read(None, Thread)
    assert redis.keys("positions:site*") == []


def test_a_thread_that_is_moved_takes_its_dot_along(ann: User, board: Board) -> None:
    topic = thread(board, replies=1)
    new_board = Board.objects.create(name="Python")
    topic.board = new_board
    topic.save()
    assert is_unread(ann, board, new_board) == [False, True]
    tracker.mark_all_read(ann, Thread, within=board)
    assert is_unread(ann, topic) == [True]


@pytest.mark.parametrize("has_board", [True, False])
def test_a_thread_that_nobody_has_read_stays_unread_in_a_board_that_was_marked_before(
    ann: User, bob: User, board: Board, *, has_board: bool
) -> None:
    old_board = Board.objects.create(name="Python")
    topic = thread(old_board if has_board else None, replies=1)
    tracker.mark_all_read(ann, Thread, within=board)
    move(topic, board)
    assert is_unread(ann, topic, board, board.forum) == [True] * 3
    tracker.mark_all_read(ann, Thread, within=board)
    assert is_unread(ann, topic, board, board.forum) == [False] * 3
    assert is_unread(bob, topic, board, board.forum) == [True] * 3


@pytest.mark.parametrize("moves", [1, 2, 3])
def test_a_thread_that_was_read_by_the_mark_of_its_board_stays_read_wherever_it_is_moved(
    ann: User, bob: User, board: Board, moves: int
) -> None:
    topic = thread(board, replies=1)
    tracker.mark_all_read(ann, Thread, within=board)
    for number in range(moves):
        new_board = Board.objects.create(name=f"Python {number}")
        move(topic, new_board)
        assert is_unread(ann, topic, board, new_board) == [False] * 3
        assert is_unread(bob, topic, board, new_board) == [True, False, True]
    for _ in range(3):
        tracker.mark_all_read(ann, Thread, within=board)  # the topic is there no more
        assert is_unread(ann, topic, new_board) == [False, False]
    move(topic, board)
    assert is_unread(ann, topic, board) == [False, False]
    Reply.objects.create(thread=topic)
    assert is_unread(ann, topic, board) == [True, True]


def test_a_mark_of_the_board_that_a_thread_has_left_says_nothing_of_what_came_before(
    ann: User, board: Board
) -> None:
    topic, other = thread(board, replies=1), thread(board, replies=1)
    tracker.mark_all_read(ann, Thread, within=board)
    Reply.objects.create(thread=topic)
    new_board = Board.objects.create(name="Python")
    move(topic, new_board)
    Reply.objects.create(thread=other)
    tracker.mark_all_read(ann, Thread, within=board)
    assert reports.unread_counts(ann, [topic, other]) == {topic: 1, other: 0}
    assert is_unread(ann, board, new_board) == [False, True]


def test_a_hidden_thread_that_is_shown_later_is_news_in_a_board_that_was_marked(
    ann: User, board: Board, settings: Settings
) -> None:
    settings.READTRACK = {**settings.READTRACK, "MODELS": WITH_HIDDEN_THREADS}
    topic = thread(board, is_hidden=True, replies=1)
    tracker.mark_all_read(ann, Thread, within=board)
    topic.is_hidden = False
    topic.save()
    assert is_unread(ann, topic, board) == [True, True]


def move(topic: Thread, board: Board) -> None:
    topic.board = board
    topic.save()


def test_a_thread_that_is_saved_without_its_board_asks_redis_nothing(
    board: Board, django_capture_on_commit_callbacks: Any
) -> None:
    topic = thread(board)
    with django_capture_on_commit_callbacks() as callbacks:
        topic.save(update_fields=["is_hidden"])
    assert callbacks == []


def is_shown(row: Thread) -> bool:
    """Returns True for a thread that everybody may see."""
    return not row.is_hidden


def test_a_thread_that_only_some_may_see_gives_its_board_no_dot(
    ann: User, board: Board, settings: Settings
) -> None:
    settings.READTRACK = {**settings.READTRACK, "MODELS": WITH_HIDDEN_THREADS}
    topic = thread(board, is_hidden=True, replies=1)
    assert is_unread(ann, topic, board) == [True, False]
    shown = thread(board, replies=1)
    assert is_unread(ann, shown, board) == [True, True]


def test_the_boards_of_a_loaded_thread_take_no_query(board: Board) -> None:
    topic = Thread.objects.select_related("board").get(pk=thread(board).pk)
    outsider = Thread.objects.get(pk=thread(board).pk)
    with CaptureQueriesContext(database) as queries:
        Reply.objects.create(thread=topic)
    with CaptureQueriesContext(database) as queries_of_outsider:
        Reply.objects.create(thread=outsider)  # its board's forum is not loaded
    assert len(queries_of_outsider) == len(queries) + 1


def test_a_reply_may_have_a_thread_that_is_not_loaded_yet(ann: User, board: Board) -> None:
    topic = thread(board)
    lazy: Any = SimpleLazyObject(lambda: Thread.objects.get(pk=topic.pk))
    tracker.mark_all_read(ann, Thread)
    Reply.objects.create(thread=lazy)
    assert is_unread(ann, topic, board) == [True, True]


def test_a_new_account_starts_as_read(board: Board, settings: Settings) -> None:
    settings.READTRACK = {
        **settings.READTRACK,
        "DOTS": {**settings.READTRACK.get("DOTS", {}), "start_as_read": True},
    }
    topic = thread(board, replies=1)
    carol = factories.user()
    assert is_unread(carol, topic, board) == [False, False]
    Reply.objects.create(thread=topic)
    assert is_unread(carol, topic, board) == [True, True]


def test_all_users_start_as_read_by_one_write(
    ann: User, bob: User, board: Board, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = [thread(board, replies=1) for _ in range(3)]
    call_command("readtrack", "start-as-read", model=["site.Thread"], dry_run=True)
    assert "It would mark 3 objects read, 0 B each, 0 B in all." in capsys.readouterr().out
    assert is_unread(ann, *topics) == [True] * 3
    assert starting.start_as_read(Thread) == 3
    assert starting.start_as_read(Board) == 0
    for user in (ann, bob):
        assert is_unread(user, *topics, board) == [False] * 4
    Reply.objects.create(thread=topics[0])
    assert is_unread(ann, *topics, board) == [True, False, False, True]


def test_the_page_of_a_thread_marks_it_and_that_of_a_board_marks_nothing(
    ann: User, board: Board
) -> None:
    from django.views.generic import DetailView

    from readtrack.request import Recorder

    topic = thread(board, replies=1)
    recorder = Recorder()
    for obj in (topic, board):
        recorder.see({"view": DetailView(), "object": obj})
    assert [*recorder.reads] == [subject_of(topic)]


def test_a_template_shows_dots_counts_and_the_first_new_reply(ann: User, board: Board) -> None:
    topic = thread(board, replies=2)
    text = (
        "{% load readtrack %}{% unread_dot topic as is_new %}{% unread_count topic as items %}"
        "{% unread_dot board as board_is_new %}{% first_unread topic.replies as reply %}"
        "{{ is_new }} {{ items }} {{ board_is_new }} {{ reply.pk|default:'none' }}"
    )
    request = RequestFactory().get("/")
    request.user = ann
    context = {"topic": topic, "board": board, "request": request}
    assert Template(text).render(Context(context)) == f"True 2 True {topic.replies.all()[0].pk}"
    tracker.mark_read(ann, [topic])
    assert Template(text).render(Context(context)) == "False 0 False none"


def test_more_than_99_new_replies_are_shown_as_99_and_more(ann: User) -> None:
    topic = thread(replies=100)
    text = Template("{% load readtrack %}{% unread_count topic %}")
    html = text.render(Context({"topic": topic, "user": ann}))
    assert 'title="99+">99+ ' in html
    assert reports.unread_counts(ann, [topic]) == {topic: 100}


def test_a_front_end_reads_and_marks_threads_and_boards(ann: User, board: Board) -> None:
    topic, other = thread(board, replies=1), thread(board, replies=1)
    browser = factories.browser(ann)
    names = [subject_of(topic), subject_of(other), subject_of(board)]
    answer = browser.get(reverse("readtrack:unread"), {"category": names}).json()
    assert [answer["categories"][name]["unread"] for name in names] == [True, True, True]
    body = {"category": [subject_of(topic)], "as_of": answer["as_of"]}
    marked = browser.post(reverse("readtrack:read"), body).json()
    assert marked == {"read": [subject_of(topic)], "unread": []}
    assert is_unread(ann, topic, other, board) == [False, True, True]
    marked = browser.post(reverse("readtrack:read"), {"category": [subject_of(board)]}).json()
    assert marked == {"read": [subject_of(board)], "unread": []}
    assert is_unread(ann, topic, other, board) == [False, False, False]


def test_the_time_up_to_which_a_thread_is_read(ann: User) -> None:
    topic = thread(replies=1)
    assert threads_reports.read_until(ann, topic) is None
    before = reports.as_of()
    tracker.mark_read(ann, [topic])
    read_until = threads_reports.read_until(ann, topic)
    assert read_until is not None
    assert before <= read_until.timestamp() * 1_000_000 <= reports.as_of() + 2_000
    assert threads_reports.read_until(None, topic) is None


def test_the_first_unread_reply_takes_one_query(ann: User) -> None:
    topic = thread(replies=3)
    tracker.mark_read(ann, [topic])
    new = [Reply.objects.create(thread=topic) for _ in range(2)]
    with CaptureQueriesContext(database) as queries:
        assert threads_reports.first_unread(ann, topic.replies) == new[0]
    assert len(queries) == 1
    assert threads_reports.first_unread(ann, Reply.objects.all(), of=topic) == new[0]
    assert threads_reports.first_unread(ann, topic.replies.order_by("-pk")) == new[1]
    assert threads_reports.first_unread(None, topic.replies) is None


def test_without_redis_there_is_no_first_unread_reply(ann: User, settings: Settings) -> None:
    topic = thread(replies=1)
    settings.CACHES = {
        "default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    }
    assert threads_reports.first_unread(ann, topic.replies) is None
    assert threads_reports.read_until(ann, topic) is None


def test_who_has_read_nothing_begins_with_the_first_reply_that_was_published(ann: User) -> None:
    topic = thread()
    Reply.objects.bulk_create([Reply(thread=topic)])  # published by nobody
    assert threads_reports.first_unread(ann, topic.replies) is None
    replies = [Reply.objects.create(thread=topic) for _ in range(2)]
    assert threads_reports.first_unread(ann, topic.replies) == replies[0]


def test_after_many_replies_the_first_unread_one_is_found_by_its_time(ann: User) -> None:
    topic = thread(replies=1)
    old = topic.replies.get()
    Reply.objects.update(written=old.written - timedelta(hours=2))
    tracker.mark_read(ann, [topic])
    new = [Reply.objects.create(thread=topic) for _ in range(101)]
    assert threads_reports.first_unread(ann, topic.replies, written="written") == new[0]
    assert threads_reports.first_unread(ann, topic.replies) == old


def test_news_without_a_post_never_hides_a_reply(ann: User) -> None:
    topic = thread(replies=1)
    tracker.mark_read(ann, [topic])
    tracker.mark_unread([topic])
    assert threads_reports.first_unread(ann, topic.replies) == topic.replies.first()


def test_a_thread_of_another_form_has_no_positions(ann: User) -> None:
    category = factories.category()
    for ask in (
        threads_reports.read_until,
        lambda user, obj: threads_reports.first_unread(user, obj.post_set),
    ):
        with pytest.raises(TypeError, match="has no positions of readers; write into the settings"):
            ask(ann, category)
    with pytest.raises(TypeError, match="Name the thread"):
        threads_reports.first_unread(ann, Reply.objects.all())


@pytest.mark.needs_parts("numbers")
def test_readers_of_a_thread_are_not_known(
    ann: User, board: Board, noon: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from readtrack.numbers.flush import readers as flush_readers

    topic = thread(board, replies=1)
    tracker.mark_read(ann, [topic])
    category = factories.category()
    assert reports.reader_counts([topic, board, category]) == {category: 0}
    assert flush_readers.store(at=noon, faults=_no_faults()) >= 0
    call_command("readtrack", "show", subject_of(topic))
    lines = capsys.readouterr().out.splitlines()
    assert any("readers" in line and "kept by reader" in line for line in lines)
    assert any("last publication" in line and "UTC" in line for line in lines)


def _no_faults() -> Any:
    from readtrack.sql.faults import Faults

    return Faults()


@pytest.mark.needs_parts("dashboard")
def test_the_dashboard_lists_no_readers_of_threads_and_boards(
    admin_client: Client, board: Board
) -> None:
    topic = thread(board, replies=1)
    category = factories.category(name="A category")
    url = reverse("admin:readtrack_dashboard_changelist")
    html = admin_client.get(url, {"tab": "sections"}).text
    assert str(category) in html
    for obj in (topic, board, board.forum):
        assert str(obj) not in html


def test_what_a_visitor_has_read_before_signing_in_leaves_threads_alone(
    ann: User, settings: Settings
) -> None:
    settings.READTRACK = {
        **settings.READTRACK,
        "DOTS": {**settings.READTRACK.get("DOTS", {}), "anonymous": 1_000_000},
    }
    topic, category = thread(replies=1), factories.category()
    anonymous = f"{readers.ANONYMOUS}visitor"
    read_state.begin(0)
    tracker.mark_subjects_read(anonymous, [subject_of(topic), subject_of(category)])
    reader = readers.reader_by_id(ann.pk)
    assert signing_in.take_over(anonymous, reader) == 1
    assert is_unread(ann, topic, category) == [True, False]


@pytest.mark.needs_parts("metrics")
def test_the_memory_of_positions_is_estimated() -> None:
    from readtrack.metrics import budget

    thread(replies=1)
    assert budget.site_size().threads == 1
    assert budget.site_size().categories == 0
    projected = budget.budget(threads=1_000_000, readers=999_999, posts=10).projected
    patterns = ["positions:{model}:{reader}", "positions:news:{subject}"]
    hashes, news = [projected[pattern] for pattern in patterns]
    assert news.keys == 1_000_000
    assert 200 < news.each < 600
    assert hashes.keys == 1_000_000 * min(len(keys.tags()), 20)
    assert 80 < hashes.each < 500


def test_erasing_a_user_removes_the_positions(ann: User, bob: User, redis: Redis) -> None:
    topic = thread(replies=1)
    for user in (ann, bob):
        tracker.mark_read(user, [topic])
    would_erase = tracker.erase(ann.pk, is_dry_run=True)
    assert tracker.erase(ann.pk) == would_erase
    assert would_erase.of_parts == 1
    assert is_unread(ann, topic) == [True]
    assert is_unread(bob, topic) == [False]


def test_a_renamed_model_keeps_what_was_read(ann: User, board: Board, settings: Settings) -> None:
    read = [thread(board, replies=1) for _ in range(20)]
    tracker.mark_read(ann, read)
    unread = thread(board, replies=1)
    with renaming.turn():
        assert renaming.move(renaming.Rename("site.thread", "site.topic")) > 0
    reader = readers.reader_by_id(ann.pk)
    form = Positions("site.topic")
    for topic, number in [*[(topic, 0) for topic in read], (unread, 1)]:
        subject = f"site.topic:{topic.pk}"
        assert scripts.run(form.unread(reader, [subject])) == {subject: number}
    boards = BoardPositions([form]).unread_calls(reader, [subject_of(board)])
    assert max(call[subject_of(board)] for call in scripts.run_all(*boards)) == 1


@pytest.mark.one_server("begins without partitions, which a cluster refuses")
def test_more_partitions_keep_what_was_read(ann: User, bob: User, settings: Settings) -> None:
    options = settings.READTRACK
    before = len(keys.tags())
    board = Board.objects.create(name="Django")
    others = Board.objects.create(name="Python")
    read = [thread(board, replies=1) for _ in range(20)]
    tracker.mark_read(ann, read)
    tracker.mark_all_read(bob, Thread, within=others)
    unread = [thread(board, replies=1) for _ in range(20)]
    away = thread(others, replies=1)
    tracker.mark_all_read(bob, Thread, within=others)
    more = 16 if before == 1 else 4 * before
    settings.READTRACK = {**options, "CLUSTER": {"partitions": more}}
    for _ in range(2):
        repartitioning.move(before)
        assert is_unread(ann, *read) == [False] * 20
        assert is_unread(ann, *unread, board) == [True] * 21
        assert is_unread(bob, away, board, others) == [False, True, False]


def test_the_reset_of_a_model_forgets_its_publications(ann: User, redis: Redis) -> None:
    topic = thread(replies=1)
    assert resets.reset_model(Thread) == 1
    assert redis.keys("positions:news*") == []
    assert is_unread(ann, topic) == [False]
