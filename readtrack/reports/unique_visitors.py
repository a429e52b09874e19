"""Unique visitors: of one object or of many, of all time or of the last days."""

from collections import ChainMap
from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar, overload

from readtrack import buckets
from readtrack.hits import readers
from readtrack.hits.visitors import user_id
from readtrack.models import Tracked
from readtrack.store import scripts, uniques
from readtrack.store.circuit import fail_open
from readtrack.store.uniques import UniquesError as UniquesError
from readtrack.subjects import listed, subject_of, subjects_of

AnyTracked = TypeVar("AnyTracked", bound=Tracked)


@overload
def visitors(objs: Tracked, *, days: int | None = None, at: datetime | None = None) -> int: ...


@overload
def visitors(
    objs: Iterable[AnyTracked], *, days: int | None = None, at: datetime | None = None
) -> dict[AnyTracked, int]: ...


def visitors(objs: Any, *, days: int | None = None, at: datetime | None = None) -> Any:
    """Returns the unique visitors of each object, or of a single one (one round trip, no query).

    All-time numbers are never less than SQL's; while Redis is down they are SQL's. Numbers of the last `days` (UTC,
    today is one of them) are up to an hour old. Raises UniquesError for days that are not kept.
    """
    if isinstance(objs, Tracked):
        return visitors([objs], days=days, at=at)[objs]
    subjects = subjects_of(objs)
    if days is not None:
        recent = uniques.recent_visitors(list(subjects.values()), days=days, at=buckets.now(at))
        return {obj: recent[subject] for obj, subject in subjects.items()}
    calls = [uniques.visitors(some) for some in scripts.sliced(list(subjects.values()))]
    found = ChainMap(*fail_open(scripts.run_all, [], *calls))
    return {obj: max(found.get(subject, 0), obj.visitor_count) for obj, subject in subjects.items()}


def visitors_together(objs: Iterable[Tracked], *, days: int | None = None, at: datetime | None = None) -> int:
    """Returns the number of different visitors of all the objects; a visitor of several objects counts once.

    All-time numbers are never less than SQL's of any of the objects. Raises UniquesError if the strategies do not
    know the number, and redis.RedisError.
    """
    several = list(listed(objs))
    subjects = [subject_of(obj) for obj in several]
    if days is not None:
        return uniques.recent_visitors_together(subjects, days=days, at=buckets.now(at))
    return max(uniques.visitors_together(subjects), max((int(obj.visitor_count) for obj in several), default=0))


def has_seen(user: Any, obj: Tracked) -> bool:
    """Returns True if the signed-in user viewed the object.

    Raises UniquesError if the strategy does not know that ("set" and "bitmap" do), and redis.RedisError.
    """
    if user is None or not user.is_authenticated:
        return False
    subject = subject_of(obj)
    number = readers.number_of(readers.or_none(user.pk))
    return uniques.strategy_of(subject).has_seen(subject, visitor=user_id(user.pk), reader=number)
