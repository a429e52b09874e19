"""Boards and threads for the forum to begin with. Nothing of it is new to anybody."""

from datetime import timedelta
from random import Random

from django.contrib.auth.models import User
from django.utils import timezone

from demo_project.blog.headlines import SECTIONS
from demo_project.forum.models import Board, Reply, Thread
from demo_project.forum.words import remark

BOARDS = {
    "Letters to the editor": "What we got wrong, and what we left out.",
    "Around town": "Places, people, and things that were lost and found.",
    "The back room": "How this paper is made.",
}
THREADS = 12  # of a board
REPLIES = 6  # of a thread at most, to begin with


def add_forum() -> int:
    """Adds the boards that are missing, with their threads. Returns the number of boards."""
    known = set(Board.objects.values_list("name", flat=True))
    boards = [
        Board.objects.create(name=name, description=description)
        for name, description in BOARDS.items()
        if name not in known
    ]
    for board in boards:
        _add_threads(board)
    return len(boards)


def _add_threads(board: Board) -> None:
    """Adds threads with replies to the board, without telling readtrack."""
    rng = Random(board.name)
    authors = list(User.objects.filter(is_staff=False).order_by("pk"))
    now = timezone.now()
    for number in range(THREADS):
        title, topic = rng.choice(rng.choice(SECTIONS).headlines)
        last_reply_at = now - timedelta(hours=5 * number, minutes=rng.randrange(240))
        thread = Thread.objects.create(board=board, title=title, last_reply_at=last_reply_at)
        Reply.objects.bulk_create(
            Reply(
                thread=thread,
                author=rng.choice(authors),
                text=remark(topic, rng),
                written_at=last_reply_at - timedelta(minutes=17 * back),
            )
            for back in reversed(range(rng.randint(1, REPLIES)))
        )
