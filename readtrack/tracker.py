"""What changes counts and read state. Nothing here reads for display, nothing else writes."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Model

from readtrack import buckets, readers, subjects
from readtrack.hits import Hit, Outcome
from readtrack.models import Tracked
from readtrack.store import counters, reads, scripts, trending
from readtrack.store.connection import fail_open
from readtrack.visitors import Visitor


def record(hit: Hit) -> Outcome:
    """Counts the hit's views and marks what it reads, in one round trip. Raises redis.RedisError."""
    if not hit.views and not hit.reads:
        return Outcome()
    return scripts.run(counters.record(hit))


def mark_read(user: Any, objs: Iterable[Model]) -> None:
    """Marks the categories read for the user, in one round trip. Raises redis.RedisError."""
    tokens = tuple(subjects.token(obj) for obj in objs)
    record(Hit(Visitor(""), buckets.now(), reads=tokens, reader=readers.number(user)))


def mark_unread(objs: Iterable[Model]) -> None:
    """Makes the categories unread for everybody, in one round trip. Raises redis.RedisError."""
    _publish([subjects.token(obj) for obj in objs])


def publish_on_commit(sender: type[Tracked], instance: Tracked, *, created: bool, using: str, **kwargs: Any) -> None:
    """Receives post_save: news makes its categories unread once everybody can see it."""
    if kwargs.get("raw") or not instance.is_news(created=created):
        return
    tokens = list(subjects.categories_of(instance))
    # A page that saves a post is still served when Redis is gone; the dots then stay as they are.
    transaction.on_commit(partial(fail_open, _publish, None, tokens), using=using)


def _publish(tokens: Sequence[str]) -> None:
    if tokens:
        scripts.run(reads.publish(tokens))


def refresh_trending(*, at: datetime | None = None) -> int:
    """Computes anew what is trending; gives the number of subjects. Raises redis.RedisError."""
    return trending.refresh(at=buckets.now(at))
