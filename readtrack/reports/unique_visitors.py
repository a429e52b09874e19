"""Unique visitors: of one object or of many, of all time or of the last days."""

from collections import ChainMap
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, overload

from django.db.models import Model

from readtrack import buckets
from readtrack.hits import readers
from readtrack.hits.visitors import user_id
from readtrack.reports.live import loaded
from readtrack.sql import row_counts
from readtrack.store import scripts, uniques
from readtrack.store.circuit import fail_open
from readtrack.store.uniques import UniquesError as UniquesError
from readtrack.subjects import AnyModel, counted_subject_of, listed, subject_of


@overload
def visitors(objs: Model, *, days: int | None = None, at: datetime | None = None) -> int: ...


@overload
def visitors(
    objs: Iterable[AnyModel], *, days: int | None = None, at: datetime | None = None
) -> dict[AnyModel, int]: ...


def visitors(objs: Any, *, days: int | None = None, at: datetime | None = None) -> Any:
    """Returns the unique visitors of each object, or of a single one, in one round trip.

    All-time numbers are never less than SQL's; while Redis is down they are SQL's. That takes one query if any object
    does not carry its count: a deferred one, or one without the columns of Tracked. Numbers of the last `days` (UTC,
    today is one of them) are up to an hour old. Raises UniquesError for days that are not kept, and TypeError for an
    object that has no counts.
    """
    if isinstance(objs, Model):
        return visitors([objs], days=days, at=at)[objs]
    subjects = {obj: counted_subject_of(obj) for obj in listed(objs)}
    if days is not None:
        recent = uniques.recent_visitors(list(subjects.values()), days=days, at=buckets.now(at))
        return {obj: recent[subject] for obj, subject in subjects.items()}
    calls = [uniques.visitors(some) for some in scripts.parted(subjects.values())]
    found = ChainMap(*fail_open(scripts.run_all, [], *calls))
    stored = _stored(subjects)
    return {obj: max(found.get(subject, 0), stored[subject]) for obj, subject in subjects.items()}


def _stored(subjects: Mapping[AnyModel, str]) -> dict[str, int]:
    carried = {subject: loaded(obj, "visitor_count") for obj, subject in subjects.items()}
    lacking = [subject for subject, count in carried.items() if count is None]
    found = row_counts.by_subject(lacking) if lacking else {}
    return {
        subject: count if count is not None else found[subject].visitors if subject in found else 0
        for subject, count in carried.items()
    }


def visitors_together(objs: Iterable[Model], *, days: int | None = None, at: datetime | None = None) -> int:
    """Returns the number of different visitors of all the objects; a visitor of several objects counts once.

    All-time numbers are never less than SQL's of any of the objects. Raises UniquesError if the strategies do not
    know the number, and redis.RedisError.
    """
    subjects = {obj: counted_subject_of(obj) for obj in listed(objs)}
    several = list(subjects.values())
    if days is not None:
        return uniques.recent_visitors_together(several, days=days, at=buckets.now(at))
    return max(uniques.visitors_together(several), max(_stored(subjects).values(), default=0))


def has_seen(user: Any, obj: Model, *, at: datetime | None = None) -> bool:
    """Returns True if the signed-in user ever viewed the object; with "daily", on the day of `at` (UTC, default today).

    Raises UniquesError if the strategy does not know that: "set" and "bitmap" know no days, "daily" knows today and
    yesterday, others know nothing. Raises redis.RedisError.
    """
    if user is None or not user.is_authenticated:
        return False
    subject = subject_of(obj)
    number = readers.number_of(readers.or_none(user.pk))
    strategy, day = uniques.strategy_of(subject), buckets.day_bucket(buckets.now(at))
    if at is not None and day not in buckets.day_buckets(strategy.covers_days, until=buckets.now()):
        raise UniquesError(f"The strategy {strategy.name!r} does not know who viewed what on {day}.")
    return strategy.has_seen(subject, visitor=user_id(user.pk), reader=number, day=day)
