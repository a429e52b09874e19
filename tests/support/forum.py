"""A forum of the tests' site: boards, threads and replies, with read state by reader."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.models.signals import post_delete, post_save, pre_delete

from readtrack import receivers
from readtrack.store import read_state, scripts
from readtrack.store.read_state import PageTime
from readtrack.threads import receivers as threads_receivers
from readtrack.threads.forms import Threads, positions_of
from tests.site.models import Board, Forum, Reply, Thread

LABEL = "site.thread"
MODELS: dict[str, Any] = {
    "site.Thread": {"read_state": "positions", "boards": ["board", "board__forum"]},
    "site.Reply": {"news_for": ["thread"], "news_author": "author"},
}
SIGNALS = {
    "on_create": (post_save, Reply),
    "before_delete": (pre_delete, Reply),
    "on_move": (post_save, Thread),
}


@contextmanager
def forum(settings: Any, **overrides: Any) -> Iterator[None]:
    """Makes the forum's models known to readtrack while the block runs."""
    settings.READTRACK = {"MODELS": MODELS, **overrides}
    read_state.begin(0)
    receivers.connect()
    threads_receivers.connect()
    yield
    for name, (signal, model) in SIGNALS.items():
        signal.disconnect(sender=model, dispatch_uid=f"readtrack.{name}")
    for model in (Thread, Board, Forum):
        post_delete.disconnect(sender=model, dispatch_uid="readtrack.on_delete")


def positions() -> Threads:
    """Returns the form of the threads' read state."""
    form = positions_of(LABEL)
    assert form is not None
    return form


def mark_all(reader: Any, *, as_of: int | str = "", board: str = "") -> None:
    """Marks all threads read for the reader, or those of a board."""
    page = PageTime(began=as_of)
    scripts.run_all(*positions().mark_all(reader, page=page, within=board))
