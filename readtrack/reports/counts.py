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
from readtrack.reports.page_state import count_in_memory, page_state
from readtrack.sql import row_counts
from readtrack.store import recording, scripts, uniques
from readtrack.store.circuit import fail_open, present_page
from readtrack.subjects import AnyModel, counted_subject_of, listed, subject_of


def views(objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """Returns the live views of each object in one round trip, never less than SQL stores.

    Makes no query for objects that were loaded with their count. Otherwise it makes one query for
    each table of objects without it (deferred, or without the columns of Tracked). It makes one
    more query if Redis began a count anew since the last flush. If `request.readtrack.view` has
    announced a view in the present request that is going to count, the view is included; that
    takes another round trip. Raises TypeError for an object that has no counts.
    """
    subjects = {obj: counted_subject_of(obj) for obj in listed(objs)}
    state = page_state(counts={subject: count_in_memory(obj) for obj, subject in subjects.items()})
    announced = _announced_views(subjects.values())
    views_by_obj: dict[AnyModel, int] = {}
    for obj, subject in subjects.items():
        views_by_obj[obj] = state.views[subject]
        if subject in announced:
            views_by_obj[obj] += 1
    return views_by_obj


def _announced_views(subjects: Iterable[str]) -> Collection[str]:
    """Returns those of the subjects that the present request views, if the views will count.

    Views are recorded after the page is made, so the counts do not include them yet.
    """
    page = present_page.get()
    if page is None or page.request is None:
        return ()
    request = page.request
    announced = tuple(subject for subject in subjects if subject in request.readtrack.views)
    if not announced:
        return ()
    user = signed_in(request)
    # There is no response yet, so its status is taken to be 200.
    reason = refusal(request.method, 200, request.META, is_anonymous=user is None)
    if reason or exclusions.is_excluded(request, user):
        return ()
    hit = Hit(visitor(request, user), buckets.now(), views=announced)
    return fail_open(recording.will_count, [], hit)


def visitors(objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """Returns the number of unique visitors of each object, in one round trip.

    The number is never less than SQL's, and while Redis is down it is SQL's. It takes a query if
    any object was loaded without its count (deferred, or without the columns of Tracked). Raises
    TypeError for an object that has no counts.
    """
    subjects = {obj: counted_subject_of(obj) for obj in listed(objs)}
    calls = [uniques.visitors(portion) for portion in scripts.parted(subjects.values())]
    live = ChainMap(*fail_open(scripts.run_all, [], *calls))
    stored = stored_visitors(subjects)
    return {obj: max(live.get(subject, 0), stored[subject]) for obj, subject in subjects.items()}


def stored_visitors(subjects: Mapping[AnyModel, str]) -> dict[str, int]:
    """Returns SQL's number of visitors by subject.

    `subjects` has the subjects by object. Reads the numbers that the objects were not loaded with.
    """
    stored: dict[str, int] = {}
    not_loaded: list[str] = []
    for obj, subject in subjects.items():
        count = count_in_memory(obj, "visitor_count")
        stored[subject] = count or 0
        if count is None:
            not_loaded.append(subject)
    for subject, counts in row_counts.by_subject(not_loaded).items():
        stored[subject] = counts.visitors
    return stored


def visitors_together(of: Iterable[Model]) -> int:
    """Returns the number of different visitors of all objects together. A visitor of several
    objects counts once.

    It is never less than SQL's number for any of them. Raises UniquesError if the strategies of the
    objects cannot tell, and redis.RedisError.
    """
    subjects = {obj: counted_subject_of(obj) for obj in listed(of)}
    live = uniques.visitors_together(list(subjects.values()))
    stored = stored_visitors(subjects).values()
    return max(live, max(stored, default=0))


def has_seen(user: Any, obj: Model, *, at: datetime | None = None) -> bool:
    """Returns True if the signed-in user has viewed the object.

    The strategies "set" and "bitmap" know whether the user ever viewed it; they know no days, so
    `at` is not possible. "daily" knows about the day of `at` (in TIME_ZONE), which is today by
    default, or may be yesterday. Raises UniquesError for anything else, and redis.RedisError.
    """
    if user is None or not user.is_authenticated:
        return False
    subject = subject_of(obj)
    number = readers.number_of(readers.reader_or_none(user.pk))
    strategy = uniques.strategy_of(subject)
    known_days = [*map(buckets.day_bucket, strategy.known_days())]
    day = buckets.local_day_bucket(buckets.now(at))
    if at is not None and day not in known_days:
        raise uniques.UniquesError(
            f"The strategy {strategy.name!r} does not know who viewed what on {day}."
        )
    return strategy.has_seen(subject, visitor=user_id(user.pk), reader=number, day=day)
