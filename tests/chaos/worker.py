"""One process of the chaos run: `python -m tests.chaos.worker record|browse|flush|import JOURNAL`."""

import random
import signal
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import django
from django.db import Error, connection

from tests.chaos.journal import Entry, Journal

BREATH = 0.003  # seconds between two views of one recorder
PAUSE = 0.1  # seconds between two flushes, or after a failure

is_leaving = False


def record(journal: Journal) -> None:
    """Views posts until SIGTERM. First sends the hit again whose answer a killed recorder did not
    hear.
    """
    pks = [
        int(pk) for pk in (journal.path.parent / "posts").read_text().split()
    ]  # SQL may be down right now
    weights = [1 / rank for rank in range(1, len(pks) + 1)]
    if unanswered := journal.unanswered():
        _view(unanswered.pk, unanswered.visitor, journal)
    while not is_leaving:
        _view(random.choices(pks, weights)[0], uuid.uuid4().hex, journal)
        time.sleep(BREATH)


def _view(pk: int, visitor: str, journal: Journal) -> None:
    """Sends the hit until Redis answers. A repeat means that an earlier try counted."""
    from readtrack import buckets, tracker
    from readtrack.hits.hit import Hit
    from readtrack.hits.visitors import Visitor
    from readtrack.store.connection import RedisError
    from readtrack.subjects import subject_of_row
    from tests.site.models import Post

    hit = Hit(Visitor(visitor), buckets.now(), views=(subject_of_row(Post, pk),))
    while True:
        journal.write(Entry(is_answer=False, at=time.time(), pk=pk, visitor=visitor))
        try:
            tracker.record(hit)
        except RedisError:
            time.sleep(PAUSE)
        else:
            journal.write(Entry(is_answer=True, at=time.time(), pk=pk, visitor=visitor))
            return


def browse(journal: Journal) -> None:
    """Opens pages as new visitors until SIGTERM. Writes the time, the post, the status and 1 for a
    counted view.
    """
    from tests.support.factories import BROWSER, browser

    pks = [int(pk) for pk in (journal.path.parent / "posts").read_text().split()]
    with journal.path.open("a", buffering=1) as file:
        while not is_leaving:
            pk = random.choice(pks)
            response = browser(headers={"user-agent": f"{BROWSER} {uuid.uuid4().int}"}).get(
                f"/posts/{pk}/"
            )
            counted = response.headers.get("X-Readtrack", "").startswith("counted")
            file.write(f"{time.time():.6f} {pk} {response.status_code} {counted:d}\n")


def flush(journal: Journal) -> None:
    """Flushes again and again, even after failures."""
    from readtrack.flush.run import flush
    from readtrack.store.connection import RedisError

    while not is_leaving:
        try:
            flush()
        except (RedisError, Error):
            connection.close()
        time.sleep(random.random() * PAUSE)


def take_over(journal: Journal) -> None:
    """Imports a log that grows meanwhile, over and over, in batches so small that a kill meets any
    step of them.
    """
    from readtrack.imports import ledger, weblog
    from readtrack.store.connection import RedisError
    from tests.imports.weblogs import line
    from tests.support.factories import BROWSER

    ledger.VIEWS, weblog.LINES_AT_ONCE = 20, 10
    pks = (journal.path.parent / "posts").read_text().split()
    path = journal.path.with_suffix(".access")
    while True:
        lines = [
            line(f"/posts/{random.choice(pks)}/", agent=f"{BROWSER} {uuid.uuid4().int}")
            for _ in range(100)
        ]
        with path.open(
            "ab", buffering=0
        ) as file:  # in one write, so that a kill leaves whole lines
            file.write("".join(f"{text}\n" for text in lines).encode())
        try:
            weblog.Importer().run([str(path)])
        except (RedisError, Error):
            connection.close()
        time.sleep(random.random() * PAUSE)


def _leave(*_: object) -> None:
    global is_leaving
    is_leaving = True


WORK: dict[str, Callable[[Journal], None]] = {
    "record": record,
    "browse": browse,
    "flush": flush,
    "import": take_over,
}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _leave)
    django.setup()
    WORK[sys.argv[1]](Journal(Path(sys.argv[2])))
