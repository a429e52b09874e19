"""A state machine: a forum whose replies come late, move, merge and go, beside a plain model of it.

After each step all dots, all numbers and the first unread reply of each thread are those of the
model, for every reader.
"""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import Phase
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.store import connection, read_state, scripts
from readtrack.subjects import subject_of
from readtrack.threads import reports as threads_reports
from readtrack.threads.boards import boards_of
from tests.site.models import Board, Forum, Reply, Thread
from tests.support import factories, forum
from tests.support.depth import examples

THREADS, BOARDS, READERS = 3, 2, 2
STEPS = 40
THREAD = st.integers(0, THREADS - 1)
BOARD = st.integers(0, BOARDS - 1)
READER = st.integers(0, READERS - 1)
NUMBER = st.integers(0, 1_000)  # chooses one of a list
START = datetime(2026, 1, 1, tzinfo=timezone.utc)


class Model:
    """What is unread by the plainest rule: a publication that is not before a reader's position."""

    def __init__(self) -> None:
        self.step = 0  # the time of the model
        self.news: dict[int, dict[str, int]] = {thread: {} for thread in range(THREADS)}
        # The moves of each thread: from which step it is in which board, the first one first.
        self.moves: dict[int, list[tuple[int, int]]] = {}
        self.positions: dict[Any, int] = {}

    def tick(self) -> int:
        self.step += 1
        return self.step

    def mark(self, *name: Any, step: int) -> None:
        self.positions[name] = max(step, self.positions.get(name, 0))

    def board_of(self, thread: int, *, step: int | None = None) -> int:
        """Returns the board of the thread now, or at an earlier step."""
        boards = [board for since, board in self.moves[thread] if step is None or since <= step]
        return boards[-1]

    def mark_board(self, reader: int, board: int, *, step: int) -> None:
        """Marks the threads read that were in the board at that step."""
        for thread in self.moves:
            if self.board_of(thread, step=step) == board:
                self.mark(reader, "thread", thread, step=step)

    def read_until(self, reader: int, thread: int) -> int:
        names = [
            (reader, "thread", thread),
            (reader, "forum"),
            (reader, "all"),
            ("everybody",),
        ]
        return max(self.positions.get(name, 0) for name in names)

    def new(self, reader: int, thread: int) -> set[str]:
        """Returns the posts that are new to the reader in the thread."""
        position = self.read_until(reader, thread)
        return {post for post, step in self.news[thread].items() if step >= position}

    def publish(self, thread: int, post: str, author: int | None) -> None:
        step = self.tick()
        if author is not None and not self.new(author, thread):
            self.mark(author, "thread", thread, step=step + 1)
            self.tick()
        self.news[thread][post] = step


class ForumMachine(RuleBasedStateMachine):
    """Steps of a forum. Each is done in readtrack and in the model."""

    redis: Redis

    @initialize()
    def begin(self) -> None:
        self.redis.flushdb()
        read_state.begin(0)
        Thread.objects.all().delete()
        self.model = Model()
        self.users = [factories.user() for _ in range(READERS)]
        self.forum = Forum.objects.create(name="Help")
        self.boards = [Board.objects.create(forum=self.forum) for _ in range(BOARDS)]
        self.threads = [Thread.objects.create(board=self.boards[0]) for _ in range(THREADS)]
        self.model.moves = {thread: [(0, 0)] for thread in range(THREADS)}
        self.written = 0
        self.waiting: list[tuple[Reply, int]] = []  # rows that are committed, and not yet published
        self.published: list[Reply] = []
        self.tokens: dict[str, tuple[int, int]] = {}  # of a post: its thread, and its publication
        self.pages: list[tuple[int, int, int, int]] = []  # reader, thread, as_of, step

    def send(self, thread: int, reply: Reply, author: int | None, number: int) -> None:
        subject = subject_of(self.threads[thread])
        publication = read_state.Publication(
            subject,
            author=None if author is None else self.users[author].pk,
            token=f"{reply.pk}-{number}",
            post=subject_of(reply),
            within=tuple(boards_of([subject])[subject]),
        )
        scripts.run_all(*read_state.publish([publication]))

    @rule(thread=THREAD)
    def write(self, thread: int) -> None:
        self.written += 1
        written = START + timedelta(minutes=self.written)
        reply = Reply.objects.create(thread=self.threads[thread], written=written)
        self.waiting.append((reply, thread))

    @precondition(lambda self: self.waiting)
    @rule(number=NUMBER, author=st.none() | READER)
    def publish(self, number: int, author: int | None) -> None:
        """Publishes one of the written rows, perhaps long after later ones."""
        reply, thread = self.waiting.pop(number % len(self.waiting))
        self.publish_in(thread, reply, author)

    def publish_in(self, thread: int, reply: Reply, author: int | None = None) -> None:
        number = self.model.step
        self.model.publish(thread, subject_of(reply), author)
        self.send(thread, reply, author, number)
        self.tokens[subject_of(reply)] = (thread, number)
        self.published.append(reply)

    @rule(thread=THREAD, author=st.none() | READER)
    def reply(self, thread: int, author: int | None) -> None:
        self.write(thread)
        reply, _ = self.waiting.pop()
        self.publish_in(thread, reply, author)

    @rule(thread=THREAD, number=st.integers(2, 3))
    def discuss(self, thread: int, number: int) -> None:
        for _ in range(number):
            self.reply(thread, None)

    @rule(reader=READER, thread=THREAD, author=st.none() | READER)
    def reply_while_somebody_reads(self, reader: int, thread: int, author: int | None) -> None:
        self.begin_page(reader, thread)
        self.reply(thread, author)
        self.end_page(len(self.pages) - 1)

    @precondition(lambda self: self.published)
    @rule(number=NUMBER)
    def send_again(self, number: int) -> None:
        reply = self.published[number % len(self.published)]
        thread, token = self.tokens[subject_of(reply)]
        self.send(thread, reply, None, token)

    @rule(reader=READER, thread=THREAD)
    def begin_page(self, reader: int, thread: int) -> None:
        self.pages.append((reader, thread, connection.server_time(), self.model.tick()))

    @precondition(lambda self: self.pages)
    @rule(number=NUMBER)
    def end_page(self, number: int) -> None:
        reader, thread, as_of, step = self.pages.pop(number % len(self.pages))
        tracker.mark_read(self.users[reader], [self.threads[thread]], as_of=as_of)
        self.model.mark(reader, "thread", thread, step=step)

    @rule(reader=READER, thread=THREAD)
    def mark(self, reader: int, thread: int) -> None:
        tracker.mark_read(self.users[reader], [self.threads[thread]])
        self.model.mark(reader, "thread", thread, step=self.model.tick())

    @rule(reader=READER, board=st.none() | BOARD, is_all=st.booleans())
    def mark_all(self, reader: int, board: int | None, *, is_all: bool) -> None:
        """Marks everything, the threads of a board, or those of the forum."""
        user = self.users[reader]
        if board is not None:
            tracker.mark_all_read(user, Thread, within=self.boards[board])
            self.model.mark_board(reader, board, step=self.model.tick())
        elif is_all:
            tracker.mark_all_read(user, Thread)
            self.model.mark(reader, "all", step=self.model.tick())
        else:
            tracker.mark_all_read(user, Thread, within=self.forum)
            self.model.mark(reader, "forum", step=self.model.tick())

    @precondition(lambda self: self.pages)
    @rule(number=NUMBER, board=BOARD)
    def mark_board_of_page(self, number: int, board: int) -> None:
        """Marks what a page showed of a board, perhaps long after the page began."""
        reader, _, as_of, step = self.pages[number % len(self.pages)]
        tracker.mark_all_read(self.users[reader], Thread, within=self.boards[board], as_of=as_of)
        self.model.mark_board(reader, board, step=step)

    @precondition(lambda self: self.pages)
    @rule(number=NUMBER, reader=st.none() | READER)
    def mark_older(self, number: int, reader: int | None) -> None:
        """Marks what is older than a page, for one reader or for everybody."""
        _, _, as_of, step = self.pages[number % len(self.pages)]
        if reader is not None:
            tracker.mark_all_read(self.users[reader], Thread, as_of=as_of)
            self.model.mark(reader, "all", step=step)
        elif step >= self.model.positions.get(("everybody",), 0):
            scripts.run_all(*forum.positions().mark_all_for_everybody(as_of=as_of))
            self.model.mark("everybody", step=step)

    @precondition(lambda self: self.published)
    @rule(number=NUMBER, is_told=st.booleans())
    def delete(self, number: int, *, is_told: bool) -> None:
        reply = self.published.pop(number % len(self.published))
        post = subject_of(reply)
        thread, _ = self.tokens[post]
        if is_told:
            self.withdraw(thread, post)
        Reply.objects.filter(pk=reply.pk)._raw_delete("default")

    def withdraw(self, thread: int, post: str) -> None:
        subject = subject_of(self.threads[thread])
        scripts.run_all(*read_state.unpublish([subject], post=post, token_start=""))
        self.model.news[thread].pop(post, None)

    @precondition(lambda self: self.published)
    @rule(number=NUMBER, to=THREAD)
    def move(self, number: int, to: int) -> None:
        """Moves a reply to another thread, where it is new."""
        reply = self.published.pop(number % len(self.published))
        thread, _ = self.tokens[subject_of(reply)]
        self.withdraw(thread, subject_of(reply))
        Reply.objects.filter(pk=reply.pk).update(thread=self.threads[to])
        self.publish_in(to, reply)

    @rule(thread=THREAD, to=THREAD)
    def merge(self, thread: int, to: int) -> None:
        """Moves all rows of a thread without a word to readtrack."""
        Reply.objects.filter(thread=self.threads[thread]).update(thread=self.threads[to])

    @rule(thread=THREAD, board=BOARD)
    def move_thread(self, thread: int, board: int) -> None:
        topic = self.threads[thread]
        Thread.objects.filter(pk=topic.pk).update(board=self.boards[board])
        subject = subject_of(topic)
        scripts.run(forum.positions().place(subject, boards_of([subject])[subject]))
        self.model.moves[thread].append((self.model.tick(), board))

    @invariant()
    def equals_the_model(self) -> None:
        rows_of = {topic: [*topic.replies.all()] for topic in self.threads}
        for reader, user in enumerate(self.users):
            objs = [*self.threads, *self.boards, self.forum]
            counts = reports.unread_counts(user, objs)
            new = {thread: self.model.new(reader, thread) for thread in range(THREADS)}
            expected = [len(new[thread]) for thread in range(THREADS)]
            for board in range(BOARDS):
                threads = [each for each in new if self.model.board_of(each) == board]
                expected.append(int(any(new[thread] for thread in threads)))
            expected.append(int(any(new.values())))
            assert [counts[obj] for obj in objs] == expected
            for thread, topic in enumerate(self.threads):
                unread = [row for row in rows_of[topic] if subject_of(row) in new[thread]]
                first = threads_reports.first_unread(user, topic.replies)
                assert first == next(iter(unread), None)
                for row in unread:  # never behind something unread
                    assert isinstance(first, Reply)
                    assert (first.written, first.pk) <= (row.written, row.pk)


@pytest.mark.django_db
@pytest.mark.parametrize(("partitions", "number"), [(1, 8), (16, 20)])
@pytest.mark.one_server("begins without partitions, which a cluster refuses")
def test_dots_numbers_and_first_unread_replies_are_those_of_a_plain_model(
    partitions: int, number: int, redis: Redis, settings: Settings
) -> None:
    ForumMachine.redis = redis
    with forum.forum(settings, CLUSTER={"partitions": partitions}):
        run_state_machine_as_test(
            ForumMachine,
            settings=hypothesis_settings(
                max_examples=examples(number),
                stateful_step_count=STEPS,
                phases=[Phase.generate],  # to shrink a case takes thousands of round trips
            ),
        )
