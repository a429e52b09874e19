"""What changes counts and read state. Nothing here reads for display, nothing else writes."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote

from django.db import transaction
from django.db.models import Model

from readtrack import archives, buckets, readers, resets, subjects, visitors
from readtrack.hits import Hit, Outcome, Reason
from readtrack.models import Tracked
from readtrack.store import counters, reads, robots, scripts, traces, trending, upkeep
from readtrack.store.connection import fail_open
from readtrack.store.skips import tally
from readtrack.store.traces import Erased, Progress
from readtrack.visitors import Visitor


def record(hit: Hit) -> Outcome:
    """Counts the hit's views and marks what it reads, in one round trip. Raises redis.RedisError."""
    if not hit.views and not hit.reads:
        return Outcome()
    call = counters.record(hit)
    outcome: Outcome = tally.send(call)[0] if tally.is_due else scripts.run(call)
    if outcome.skipped:
        tally.add(outcome.skipped.values(), at=hit.at)
    return outcome


def skip(views: Iterable[str], reason: Reason, *, at: datetime | None = None) -> Outcome:
    """Counts views that are not even tried, and why. For the edges of a request: a lost Redis is no error."""
    skipped = dict.fromkeys(views, reason)
    tally.add(skipped.values(), at=buckets.now(at))
    if tally.is_due:
        fail_open(tally.send, [])
    return Outcome(skipped=skipped)


def mark_robot(names: Iterable[str]) -> None:
    """Makes what the visitors known by those names do not count for a day. Raises redis.RedisError."""
    robots.mark(names)


def forget(pk: Any, *, progress: Progress = int) -> Erased:
    """Erases what Redis holds of the user with that primary key. Raises redis.RedisError."""
    number = pk if isinstance(pk, int) and 0 <= pk <= traces.HIGHEST else None
    user = traces.User(visitors.user_id(pk), reader=quote(str(pk), safe=""), number=number)
    return traces.forget(user, progress=progress)


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


def reset_views(obj: Tracked) -> None:
    """Sets the object's counts to zero in Redis and SQL, for good. The instance itself keeps what it was loaded with.

    Raises redis.RedisError or django.db.Error; then do it again. A transaction that is rolled back undoes SQL's
    side, and the next flush sets it to zero again.
    """
    resets.reset([subjects.token(obj)])


def forget_deleted(sender: type[Tracked], instance: Tracked, *, using: str, **kwargs: Any) -> None:
    """Receives post_delete: what the app holds of the row goes once the row is gone for everybody."""
    transaction.on_commit(partial(_forget, subjects.token(instance)), using=using)


def _forget(token: str) -> None:
    # Redis may be gone, and the row stays deleted: the flush then finds an orphan.
    fail_open(scripts.run, 0, upkeep.remove([token]))
    archives.forget([token])
