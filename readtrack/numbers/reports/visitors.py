"""Unique visitors of objects, of models and of the site in a period."""

from collections import ChainMap
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from django.db.models import Model

from readtrack import buckets
from readtrack.numbers.reports import people
from readtrack.numbers.sql import history
from readtrack.reports import counts
from readtrack.store import keys, scripts, uniques
from readtrack.store.circuit import fail_open
from readtrack.subjects import (
    AnyModel,
    counted_models,
    counted_subject_of,
    label_of,
    listed,
    subject_column,
)


def visitors(
    objs: Iterable[AnyModel],
    *,
    days: int | None = None,
    since: date | None = None,
    until: date | None = None,
) -> dict[AnyModel, int]:
    """Returns the number of unique visitors of each object, in one round trip.

    The number of all time is never less than SQL's, and while Redis is down it is SQL's. It takes a
    query if any object was loaded without its count (deferred, or without the columns of Tracked).

    A period is the last `days`, today included, or `since` with or without `until`, which are days
    or times. It is counted by whole days of TIME_ZONE; `until` is exclusive. It takes a query and a
    round trip for 100 objects. While Redis is down, the number is that of the day with the most
    visitors. Raises UniquesError where the visitors of days are not counted (without history, or by
    the strategy "none"), ValueError for an impossible period, and TypeError for an object that has
    no counts.
    """
    objs = listed(objs)
    if _is_period(days, since, until):
        subjects = {obj: counted_subject_of(obj) for obj in objs}
        period = people.days_of(days=days, since=since, until=until)
        in_period = _visitors_in_period([*subjects.values()], period)
        return {obj: in_period[subject] for obj, subject in subjects.items()}
    return counts.visitors(objs)


def _is_period(*bounds: Any) -> bool:
    """Returns True if any of the bounds of a period is given."""
    return any(bound is not None for bound in bounds)


def _visitors_in_period(subjects: Sequence[str], period: people.Days) -> dict[str, int]:
    """Returns the visitors of each subject in the period, exact ones where they are known."""
    if not subjects:
        return {}
    sets = fail_open(_visitors_by_daily_sets, None, subjects, period)
    if sets is not None:
        return sets
    numbers = people.visitors_in(subjects, period)
    exact_subjects = [subject for subject in subjects if uniques.strategy_of(subject).name == "set"]
    return {**numbers, **_of_whole_life(exact_subjects, period)}


def _visitors_by_daily_sets(
    subjects: Sequence[str], first_and_last: tuple[date, date]
) -> dict[str, int] | None:
    """Returns the exact number of visitors of each subject on these days, by its daily sets.

    Returns None if the subjects have different strategies, or if theirs keeps no daily sets, or
    none of days so long ago. Raises UniquesError if the sets of a subject have too many members,
    and redis.RedisError.
    """
    strategies = {uniques.strategy_of(subject) for subject in subjects}
    if len(strategies) != 1:
        return None
    known_days = strategies.pop().known_days()
    first, last = first_and_last
    if not known_days or first < known_days[0]:
        return None
    days = [day for day in known_days if first <= day <= last]
    visitors_by_subject = {}
    for subject in subjects:
        visitors_by_subject[subject] = uniques.count_union(
            keys.unique_day(buckets.day_bucket(day), subject) for day in days
        )
    return visitors_by_subject


def _of_whole_life(subjects: Sequence[str], period: people.Days) -> dict[str, int]:
    """Returns the visitors of all time of those subjects that had all their views in the period."""
    if not subjects or not period.has_today:
        return {}
    columns = {subject_column(subject): subject for subject in subjects}
    earlier = history.views_before(columns, period.hours.start)
    young = [subject for column, subject in columns.items() if not earlier.get(column)]
    calls = [uniques.visitors(portion) for portion in scripts.parted(young)]
    return {**ChainMap(*fail_open(scripts.run_all, [], *calls))}


def visitors_together(
    of: Iterable[Model] | type[Model] | None = None,
    *,
    days: int | None = None,
    since: date | None = None,
    until: date | None = None,
) -> int:
    """Returns the number of different visitors of all objects together. A visitor of several
    objects counts once.

    Of objects without a period, it is never less than SQL's number for any of them. Raises
    UniquesError if the strategies of the objects cannot tell, and redis.RedisError.

    With a period, as `visitors` takes it, it may also be of a model, or (None) of the whole site;
    these are as of the last flush. Raises ValueError for a model or the site without a period.
    """
    if of is None or isinstance(of, type):
        models = counted_models() if of is None else [of]
        period = people.days_of(days=days, since=since, until=until)
        return people.visitors_of_models([label_of(model) for model in models], period)
    objs = listed(of)
    if _is_period(days, since, until):
        subjects = [counted_subject_of(obj) for obj in objs]
        period = people.days_of(days=days, since=since, until=until)
        return people.visitors_of_all(subjects, period)
    return counts.visitors_together(objs)
