"""What changes counts and read state. Nothing here reads for display, nothing else writes."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.db import transaction
from django.db.models import Model, QuerySet

from readtrack import archives, buckets, readers, resets, subjects, visitors
from readtrack.hits import Hit, Outcome, Reason
from readtrack.models import Readership, Tracked, UnsentNews
from readtrack.store import counters, reads, robots, scripts, tallies, traces, trending, upkeep
from readtrack.store.connection import fail_open
from readtrack.store.reads import News
from readtrack.store.scripts import Call
from readtrack.store.skips import tally
from readtrack.store.traces import Erased, Progress
from readtrack.visitors import Visitor


def record(hit: Hit) -> Outcome:
    """Counts the hit's views and steps and marks what it reads, in one round trip. Raises redis.RedisError.

    Views come first: a step taken on the page that is viewed comes after it.
    """
    viewed = [counters.record(hit)] if hit.views else []
    read = [reads.mark(hit)] if hit.reads else []
    steps = [tallies.step(token, stage, visitor=hit.visitor, at=hit.at) for token, stage in hit.steps]
    answers = _answers([*viewed, *read, *steps])
    outcome: Outcome = answers[0] if viewed else Outcome()
    if outcome.skipped:
        tally.add(outcome.skipped.values(), at=hit.at)
    if len(answers) == len(viewed):
        return outcome
    taken = zip(hit.steps, answers[len(viewed) + len(read) :], strict=True)
    return outcome._replace(
        read=answers[len(viewed)] if read else (), steps=tuple(step for step, is_new in taken if is_new)
    )


def _answers(calls: list[Call[Any]]) -> list[Any]:
    """What the calls give; what is due of the tally rides along, and one call alone goes the shortest way."""
    if not calls:
        return []
    if len(calls) > 1 or tally.is_due:
        return tally.send(*calls)[: len(calls)]
    return [scripts.run(calls[0])]


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


def step(obj: Tracked, stage: str, *, visitor: Visitor) -> bool:
    """Takes the visitor to a stage of the object's funnel, in one round trip; whether that was new within the hour.

    Raises ValueError for a stage that FUNNEL lacks, and redis.RedisError.
    """
    subjects.check_stage(stage)
    return scripts.run(tallies.step(subjects.token(obj), stage, visitor=visitor, at=buckets.now()))


def mark_read(user: Any, objs: Iterable[Model], *, as_of: int | None = None) -> None:
    """Marks the categories read for the user, in one round trip for every 1,000.

    With `as_of`, which `reports.as_of()` gave before they were looked at, only those without news since.
    Raises redis.RedisError, and readers.ReaderError for a user id out of bounds.
    """
    mark_tokens_read(readers.reader_of(user), [subjects.token(obj) for obj in objs], as_of=as_of)


def mark_all_read(user: Any, objs: type[Model] | Iterable[Model]) -> None:
    """`mark_read` for every row of a model, or of a queryset, without loading the rows."""
    if isinstance(objs, type):
        objs = objs._default_manager.all()
    if not isinstance(objs, QuerySet):
        mark_read(user, objs)
        return
    pks = objs.values_list("pk", flat=True)
    mark_tokens_read(readers.reader_of(user), [subjects.token_of(objs.model, pk) for pk in pks.iterator()])


def mark_tokens_read(reader: readers.Reader, tokens: Sequence[str], *, as_of: int | None = None) -> list[str]:
    """`mark_read` by names; gives those now read."""
    at = buckets.now()
    found: list[str] = []
    for some in scripts.sliced(tokens):
        found += record(Hit(Visitor(""), at, reads=tuple(some), reader=reader, as_of=as_of)).read
    return found


def mark_unread(objs: Iterable[Model]) -> None:
    """Makes the categories unread for everybody, at once, in one round trip. Raises redis.RedisError."""
    _send([News(subjects.token(obj)) for obj in objs])


def publish(posts: Iterable[Tracked], *, using: str | None = None) -> None:
    """Makes unread, on commit, what these rows are news for: call it where no `save()` does.

    That is after bulk_create and update, in imports, and when the time of scheduled posts has come.
    """
    found: dict[str, list[Any]] = {}
    own: list[News] = []
    for post in posts:
        author = _author(post)
        for token in subjects.categories_of(post):
            found.setdefault(token, []).append(author)
        if subjects.has_read_state(type(post)):
            own.append(News(subjects.token(post), author=author, is_own=author is not None))
    _send_on_commit([*_news(found), *own], using=using)


def publish_to(categories: Iterable[Model], posts: Sequence[Tracked], *, using: str | None = None) -> None:
    """`publish` to these categories only, whatever else the rows are news for."""
    authors = [_author(post) for post in posts]
    _send_on_commit(_news({subjects.token(obj): authors for obj in categories}), using=using)


def _author(post: Tracked) -> readers.Reader | None:
    pk = subjects.author_of(post)
    return None if pk is None else readers.or_none(pk)


def _news(found: dict[str, list[Any]]) -> list[News]:
    """One for each category; its author is spared the dot if all is by one."""
    return [News(token, len(by), by[0] if len(set(by)) == 1 else None) for token, by in found.items()]


def _send_on_commit(news: list[News], *, using: str | None) -> None:
    if news:
        # Robust, for the post is saved: whatever fails here is logged, and the page served.
        transaction.on_commit(partial(_send_or_keep, news), using=using, robust=True)


def _send_or_keep(news: Sequence[News]) -> None:
    if not fail_open(_send, False, news):  # noqa: FBT003 - what it gives
        UnsentNews.objects.bulk_create(UnsentNews(token=entry.token) for entry in news)


def resend() -> int:
    """Sends the news that was kept while Redis was gone; gives how much. Raises redis.RedisError."""
    kept = dict(UnsentNews.objects.order_by("pk").values_list("pk", "token")[: scripts.SLICE])
    _send([News(token) for token in dict.fromkeys(kept.values())])
    UnsentNews.objects.filter(pk__in=kept).delete()
    return len(kept)


def _send(news: Sequence[News]) -> bool:
    for some in scripts.sliced(news):
        scripts.run(reads.publish(some))
    return True


amark_read = sync_to_async(mark_read)
amark_all_read = sync_to_async(mark_all_read)
amark_unread = sync_to_async(mark_unread)
apublish = sync_to_async(publish)


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


def forget_read_state(sender: type[Model], instance: Model, *, using: str, **kwargs: Any) -> None:
    """Receives post_delete of what carries dots: who had read it goes with it."""
    transaction.on_commit(partial(_forget_read_state, subjects.token(instance)), using=using)


def _forget_read_state(token: str) -> None:
    fail_open(reads.remove, None, token)
    archives.forget([token], models=[Readership])


def _forget(token: str) -> None:
    # Redis may be gone, and the row stays deleted: the flush then finds an orphan.
    fail_open(scripts.run, 0, upkeep.remove([token]))
    archives.forget([token])
