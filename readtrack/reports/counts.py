"""Live views and unique visitors of objects, each in one round trip for a whole list."""

from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Model

from readtrack import buckets
from readtrack.hits import exclusions, readers
from readtrack.hits.hit import Hit, refusal
from readtrack.hits.visitors import signed_in, user_id, visitor
from readtrack.reports.page_state import loaded, page_state
from readtrack.sql import row_counts
from readtrack.store import recording, scripts, uniques
from readtrack.store.circuit import fail_open, present_page
from readtrack.subjects import AnyModel, counted_subject_of, listed, subject_of


def views(objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """Returns the views of each object (live, one round trip), never less than SQL stores.

    Makes one query for each table of objects that do not carry their count (deferred, or without
    the columns of Tracked), and one for objects that SQL has views of and whose count Redis began
    anew since the last flush. Makes no other query. A view that `request.readtrack.view` has
    announced in the present request is included if it is going to count; that takes another round
    trip. Raises TypeError for an object that has no counts.
    """
    subjects = {obj: counted_subject_of(obj) for obj in listed(objs)}
    state = page_state(counts={subject: loaded(obj) for obj, subject in subjects.items()})
    announced = _announced_views(subjects.values())
    return {obj: state.views[subject] + (subject in announced) for obj, subject in subjects.items()}


def _announced_views(subjects: Iterable[str]) -> Collection[str]:
    """Returns those of the subjects whose view by the present request will count, although it is
    not recorded yet.
    """
    page = present_page.get()
    request: Any = page.request if page else None
    if not request:
        return ()
    announced = tuple(subject for subject in subjects if subject in request.readtrack.views)
    if not announced:
        return ()
    user = signed_in(request)
    # There is no response yet. It is taken for a success.
    reason = refusal(request.method, 200, request.META, is_anonymous=user is None)
    if reason or exclusions.is_excluded(request, user):
        return ()
    hit = Hit(visitor(request, user), buckets.now(), views=announced)
    return fail_open(recording.will_count, [], hit)


def visitors(
    objs: Iterable[AnyModel], *, days: int | None = None, at: datetime | None = None
) -> dict[AnyModel, int]:
    """Returns the unique visitors of each object, in one round trip.

    All-time numbers are never less than SQL's; while Redis is down they are SQL's. That takes one
    query if any object does not carry its count: a deferred one, or one without the columns of
    Tracked. Numbers of the last `days` (UTC, today is one of them) are up to an hour old. Raises
    UniquesError for days that are not kept, and TypeError for an object that has no counts.
    """
    subjects = {obj: counted_subject_of(obj) for obj in listed(objs)}
    if days is not None:
        recent = uniques.recent_visitors(list(subjects.values()), days=days, at=buckets.now(at))
        return {obj: recent[subject] for obj, subject in subjects.items()}
    calls = [uniques.visitors(part) for part in scripts.parted(subjects.values())]
    live = ChainMap(*fail_open(scripts.run_all, [], *calls))
    stored = _stored_visitors(subjects)
    return {obj: max(live.get(subject, 0), stored[subject]) for obj, subject in subjects.items()}


def _stored_visitors(subjects: Mapping[AnyModel, str]) -> dict[str, int]:
    """Returns SQL's visitors by subject, of objects that are given with their subjects."""
    carried = {subject: loaded(obj, "visitor_count") for obj, subject in subjects.items()}
    stored = {subject: count or 0 for subject, count in carried.items()}
    lacking = [subject for subject, count in carried.items() if count is None]
    for subject, counts in row_counts.by_subject(lacking).items():
        stored[subject] = counts.visitors
    return stored


def visitors_together(objs: Iterable[Model]) -> int:
    """Returns the number of different visitors of all the objects; a visitor of several objects
    counts once.

    All-time numbers are never less than SQL's of any of the objects. Raises UniquesError if the
    strategies do not know the number, and redis.RedisError.
    """
    subjects = {obj: counted_subject_of(obj) for obj in listed(objs)}
    live = uniques.visitors_together(list(subjects.values()))
    stored = _stored_visitors(subjects).values()
    return max(live, max(stored, default=0))


def has_seen(user: Any, obj: Model, *, at: datetime | None = None) -> bool:
    """Returns True if the signed-in user ever viewed the object; with "daily", on the day of `at`
    (UTC, default today).

    Raises UniquesError if the strategy does not know that: "set" and "bitmap" know no days, "daily"
    knows today and yesterday, the other strategies know nothing. Raises redis.RedisError.
    """
    if user is None or not user.is_authenticated:
        return False
    subject = subject_of(obj)
    number = readers.number_of(readers.or_none(user.pk))
    strategy = uniques.strategy_of(subject)
    day = buckets.day_bucket(buckets.now(at))
    if at is not None and day not in buckets.day_buckets(strategy.covers_days, until=buckets.now()):
        raise uniques.UniquesError(
            f"The strategy {strategy.name!r} does not know who viewed what on {day}."
        )
    return strategy.has_seen(subject, visitor=user_id(user.pk), reader=number, day=day)
