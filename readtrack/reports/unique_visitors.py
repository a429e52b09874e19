"""Unique visitors for display: of one object or many, together, of the last days, and whether somebody was one."""

from collections import ChainMap
from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar, overload

from readtrack import buckets
from readtrack.hits import readers
from readtrack.hits.visitors import user_id
from readtrack.models import Tracked
from readtrack.store import daily_visitors, scripts, uniques
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
    """The unique visitors of each object, or of the one given, in one round trip and without a query.

    All-time numbers are never less than SQL's, and are SQL's with Redis gone. Those of the last `days` (UTC, today
    being one) are up to an hour old, and raise UniquesError where nothing was kept that tells.
    """
    if isinstance(objs, Tracked):
        return visitors([objs], days=days, at=at)[objs]
    subjects = subjects_of(objs)
    if days is not None:
        recent = daily_visitors.visitors(list(subjects.values()), days=days, at=buckets.now(at))
        return {obj: recent[subject] for obj, subject in subjects.items()}
    found = fail_open(_visitors, {}, list(subjects.values()))
    return {obj: max(found.get(subject, 0), obj.visitor_count) for obj, subject in subjects.items()}


def _visitors(subjects: list[str]) -> dict[str, int]:
    return dict(ChainMap(*scripts.run_all(*(uniques.visitors(some) for some in scripts.sliced(subjects)))))


def visitors_together(objs: Iterable[Tracked], *, days: int | None = None, at: datetime | None = None) -> int:
    """How many different visitors the objects had in all; who viewed several is one.

    All-time numbers are never less than what SQL knows of any of them. Raises UniquesError where their strategies
    cannot tell, and redis.RedisError.
    """
    several = list(listed(objs))
    subjects = [subject_of(obj) for obj in several]
    if days is not None:
        return daily_visitors.visitors_together(subjects, days=days, at=buckets.now(at))
    return max(uniques.visitors_together(subjects), max((int(obj.visitor_count) for obj in several), default=0))


def has_seen(user: Any, obj: Tracked) -> bool:
    """Whether the signed-in user viewed the object.

    Raises UniquesError where the strategy cannot tell ("set" and "bitmap" can), and redis.RedisError.
    """
    if user is None or not user.is_authenticated:
        return False
    subject = subject_of(obj)
    number = readers.number_of(readers.or_none(user.pk))
    return uniques.strategy_of(subject).has_seen(subject, visitor=user_id(user.pk), reader=number)
