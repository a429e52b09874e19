"""Making categories unread: what posts are news for, sent on commit, and kept in SQL while Redis is gone."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Model

from readtrack.hits import readers
from readtrack.models import Tracked, UnsentPublication
from readtrack.store import read_state, scripts
from readtrack.store.circuit import fail_open
from readtrack.store.read_state import Publication
from readtrack.subjects import listed, subject_of, subjects_of
from readtrack.unread import categories


def mark_unread(objs: Iterable[Model]) -> None:
    """Makes the categories unread for everybody, at once, in one round trip. Raises redis.RedisError."""
    _send([Publication(subject) for subject in subjects_of(objs).values()])


def publish(posts: Iterable[Tracked], *, using: str | None = None) -> None:
    """Makes unread, on commit, what these rows are news for: call it where no `save()` does.

    That is after bulk_create and update, in imports, and when the time of scheduled posts has come.
    """
    found: dict[str, list[Any]] = {}
    own: list[Publication] = []
    for post in listed(posts):
        author = _author(post)
        for subject in categories.of(post):
            found.setdefault(subject, []).append(author)
        if categories.has_read_state(type(post)):
            own.append(Publication(subject_of(post), author=author, is_own=author is not None))
    _send_on_commit([*_news(found), *own], using=using)


def publish_to(objs: Iterable[Model], posts: Sequence[Tracked], *, using: str | None = None) -> None:
    """`publish` to these categories only, whatever else the rows are news for."""
    authors = [_author(post) for post in listed(posts)]
    _send_on_commit(_news(dict.fromkeys(subjects_of(objs).values(), authors)), using=using)


def resend() -> int:
    """Sends the news that was kept while Redis was gone; gives how much. Raises redis.RedisError."""
    kept = dict(UnsentPublication.objects.order_by("pk").values_list("pk", "subject")[: scripts.SLICE])
    _send([Publication(subject) for subject in dict.fromkeys(kept.values())])
    UnsentPublication.objects.filter(pk__in=kept).delete()
    return len(kept)


def _author(post: Tracked) -> readers.Reader | None:
    pk = categories.author_of(post)
    return None if pk is None else readers.or_none(pk)


def _news(found: dict[str, list[Any]]) -> list[Publication]:
    """One for each category; its author is spared the dot if all is by one."""
    return [Publication(subject, len(by), by[0] if len(set(by)) == 1 else None) for subject, by in found.items()]


def _send_on_commit(news: list[Publication], *, using: str | None) -> None:
    if news:
        # Robust, for the post is saved: whatever fails here is logged, and the page served.

        def send() -> None:  # no partial: what it raises Django 5.2 logs by its name
            _send_or_keep(news)

        transaction.on_commit(send, using=using, robust=True)


def _send_or_keep(news: Sequence[Publication]) -> None:
    if not fail_open(_send, False, news):  # noqa: FBT003 - what it gives
        UnsentPublication.objects.bulk_create(UnsentPublication(subject=entry.subject) for entry in news)


def _send(news: Sequence[Publication]) -> bool:
    for some in scripts.sliced(news):
        scripts.run(read_state.publish(some))
    return True
