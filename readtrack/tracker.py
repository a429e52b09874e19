"""What a site calls to change counts and read state. Nothing here reads for display."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.db.models import Model, QuerySet

from readtrack import buckets
from readtrack.flush import resets
from readtrack.hits import readers, visitors
from readtrack.hits.hit import Hit, Outcome, Reason
from readtrack.hits.visitors import Visitor
from readtrack.models import Tracked
from readtrack.store import breakdowns, erasure, read_state, recording, scripts
from readtrack.store.circuit import fail_open
from readtrack.store.erasure import Erased, Progress
from readtrack.store.scripts import Call
from readtrack.store.skips import tally
from readtrack.store.trending import refresh_lists
from readtrack.subjects import check_stage, subject_of, subject_of_row, subjects_of
from readtrack.unread.publishing import mark_unread as mark_unread
from readtrack.unread.publishing import publish as publish
from readtrack.unread.publishing import publish_to as publish_to
from readtrack.unread.publishing import resend as resend


def record(hit: Hit) -> Outcome:
    """Counts the hit's views and steps and marks what it reads, in one round trip. Raises redis.RedisError.

    Views come first: a step taken on the page that is viewed comes after it.
    """
    viewed = [recording.record(hit)] if hit.views else []
    read = [read_state.mark(hit)] if hit.reads else []
    steps = [breakdowns.step(subject, stage, visitor=hit.visitor, at=hit.at) for subject, stage in hit.steps]
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


def skip(views: Iterable[str], reason: Reason, *, is_alone: bool = True, at: datetime | None = None) -> Outcome:
    """Counts views that are not even tried, and why. For the edges of a request: a lost Redis is no error.

    One that is not alone waits for what the request records besides, and goes along with it.
    """
    skipped = dict.fromkeys(views, reason)
    tally.add(skipped.values(), at=buckets.now(at))
    if is_alone and tally.is_due:
        fail_open(tally.send, [])
    return Outcome(skipped=skipped)


def mark_robot(names: Iterable[str]) -> None:
    """Makes what the visitors known by those names do not count for a day. Raises redis.RedisError."""
    recording.mark_robots(names)


def erase(pk: Any, *, progress: Progress = int) -> Erased:
    """Erases what Redis holds of the user with that primary key. Raises redis.RedisError."""
    number = pk if isinstance(pk, int) and 0 <= pk <= erasure.HIGHEST else None
    user = erasure.ErasedUser(visitors.user_id(pk), reader=quote(str(pk), safe=""), number=number)
    return erasure.erase(user, progress=progress)


def step(obj: Tracked, stage: str, *, visitor: Visitor) -> bool:
    """Takes the visitor to a stage of the object's funnel, in one round trip; whether that was new within the hour.

    Raises ValueError for a stage that FUNNEL lacks, and redis.RedisError.
    """
    check_stage(stage)
    return scripts.run(breakdowns.step(subject_of(obj), stage, visitor=visitor, at=buckets.now()))


def mark_read(user: Any, objs: Iterable[Model], *, as_of: int | None = None) -> None:
    """Marks the categories read for the user, in one round trip for every 1,000.

    With `as_of`, which `reports.as_of()` gave before they were looked at, only those without news since.
    Raises redis.RedisError, and readers.ReaderError for a user id out of bounds.
    """
    mark_subjects_read(readers.reader_of(user), list(subjects_of(objs).values()), as_of=as_of)


def mark_all_read(user: Any, objs: type[Model] | Iterable[Model], *, as_of: int | None = None) -> None:
    """`mark_read` for every row of a model, or of a queryset, without loading the rows."""
    if isinstance(objs, type):
        objs = objs._default_manager.all()
    if not isinstance(objs, QuerySet):
        mark_read(user, objs, as_of=as_of)
        return
    pks = objs.values_list("pk", flat=True)
    subjects = [subject_of_row(objs.model, pk) for pk in pks.iterator()]
    mark_subjects_read(readers.reader_of(user), subjects, as_of=as_of)


def mark_subjects_read(reader: readers.Reader, subjects: Sequence[str], *, as_of: int | None = None) -> list[str]:
    """`mark_read` by names; gives those now read."""
    at = buckets.now()
    found: list[str] = []
    for some in scripts.sliced(subjects):
        found += record(Hit(Visitor(""), at, reads=tuple(some), reader=reader, as_of=as_of)).read
    return found


amark_read = sync_to_async(mark_read)
amark_all_read = sync_to_async(mark_all_read)
amark_unread = sync_to_async(mark_unread)
apublish = sync_to_async(publish)


def refresh_trending(*, at: datetime | None = None) -> int:
    """Computes anew what is trending; gives the number of subjects. Raises redis.RedisError."""
    return refresh_lists(at=buckets.now(at))


def reset_views(obj: Tracked) -> None:
    """Sets the object's counts to zero in Redis and SQL, for good. The instance itself keeps what it was loaded with.

    Raises redis.RedisError or django.db.Error; then do it again. A transaction that is rolled back undoes SQL's
    side, and the next flush sets it to zero again.
    """
    resets.reset([subject_of(obj)])
