"""Views with a chosen value of a dimension, such as one source.

Views are the only number that is stored by value: those of whole models by the hour, those of
objects by the day. Two values are not stored together, so nothing but the views with each of them
is known of two.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from heapq import nlargest
from typing import Any, NamedTuple

from readtrack import buckets
from readtrack.numbers import local_time
from readtrack.numbers.data import ByValue, Hashes
from readtrack.numbers.objects import CANDIDATES, MOST, Objects
from readtrack.numbers.order import place_among_equals
from readtrack.numbers.people import days_of
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql import breakdown_history, day_breakdowns
from readtrack.numbers.sql import hashes as stored_hashes
from readtrack.numbers.sql.day_breakdowns import Days, PointGain, Value
from readtrack.numbers.sql.period_steps import Steps
from readtrack.subjects import subject_column

# Rows of days that are read to find the best objects of whole models, at most. A value with more of
# them is that of many objects, which are looked for among those that were viewed most.
MOST_ROWS = 40_000

#: The tables that compare objects by value.
TABLES = {"most-viewed", "grew-most"}


class Compared(NamedTuple):
    """The objects of a scope, compared by one value or by several."""

    steps: Mapping[str, Steps]  # views with the only value, by column, then by index of the point
    hashes: Hashes  # views with each of several values, by kind and subject
    comparison: ByValue


#: What a scope has whose tables compare no objects.
NOT_COMPARED = Compared({}, {}, ByValue(is_compared_by_day=False))


def values_of(scope: Scope) -> list[Value]:
    """Returns the chosen values of dimensions."""
    return [
        Value(f"views:{dimension}", value[: stored_hashes.FIELD_LENGTH])
        for dimension, value in scope.values.items()
    ]


def periods_of(scope: Scope) -> list[Days]:
    """Returns the days of the period, and those of the one before if days are compared."""
    if scope.is_all_time:
        return [Days(local_time.FIRST_DAY, days_of(scope.span).last)]
    periods = [Days(*days_of(scope.span))]
    if scope.compares_days and scope.before is not None:
        periods.append(Days(*days_of(scope.before)))
    return periods


def compared_periods_of(scope: Scope) -> list[Days]:
    """Returns the days of the period; if days are compared, also those that are, and those of the
    period before.
    """
    now, *before = periods_of(scope)
    if not before or scope.compared is None:
        return [now]
    return [now, Days(*days_of(scope.compared)), *before]


def compared(
    scope: Scope,
    objects: Objects,
    *,
    first_hours: Sequence[int],
    limit: int,
    by_growth: bool,
) -> Compared:
    """Compares the objects of the scope by its values, and chooses the best ones of whole models,
    `limit` at most.

    `first_hours` are those of the points.
    """
    comparison = ByValue(scope.compares_days)
    if scope.is_joint:
        subjects = [*objects.stored]
        if not scope.is_listed:
            subjects = _subjects_with_each(scope, objects, limit=limit)
        hashes = _views_with_each(scope, subjects)
        if not scope.is_listed:
            objects.stored = dict.fromkeys(subject for _, subject in hashes)
        return Compared(_no_steps(objects), hashes, comparison)
    if not scope.is_listed:
        steps = _steps_of_all(
            scope, objects, first_hours=first_hours, limit=limit, by_growth=by_growth
        )
        objects.stored = dict.fromkeys(steps)
        return Compared(steps, {}, comparison)
    starts = _starts_of_points(first_hours)
    [value] = values_of(scope)
    without = _no_steps(objects)
    gains = day_breakdowns.gains_by_point([*without], value, periods_of(scope), starts=[*starts])
    return Compared({**without, **_steps(gains, [*starts.values()])}, {}, comparison)


def _no_steps(objects: Objects) -> dict[str, Steps]:
    return {subject_column(subject): {} for subject in objects.stored}


def _subjects_with_each(scope: Scope, objects: Objects, *, limit: int) -> list[str]:
    """Returns the best objects of whole models that had views with each of the values."""
    days = periods_of(scope)[0]
    if _is_of_many(scope, [days]):
        return objects.candidates(limit=_most_candidates(scope))
    return day_breakdowns.best_with_each(objects.labels, values_of(scope), days, limit=limit)


def _steps_of_all(
    scope: Scope,
    objects: Objects,
    *,
    first_hours: Sequence[int],
    limit: int,
    by_growth: bool,
) -> Mapping[str, Steps]:
    """Returns the views with the value by point, of the best objects of whole models, by column.

    Of all time they are those that SQL has stored of the most viewed objects, all of them in the
    last point.
    """
    if not scope.is_all_time:
        columns = None
        if _is_of_many(scope, periods_of(scope)):
            best = objects.candidates(limit=_most_candidates(scope))
            columns = [*map(subject_column, best)]
        starts = _starts_of_points(first_hours)
        [value] = values_of(scope)
        gains = day_breakdowns.gains_of_best_by_point(
            columns,
            value,
            periods_of(scope),
            starts=[*starts],
            ranked_by=_ranked_by(scope, by_growth=by_growth),
            labels=objects.labels,
            limit=limit,
        )
        return _steps(gains, [*starts.values()])
    columns = [*map(subject_column, objects.candidates(limit=MOST))]
    views = day_breakdowns.views_with_values(columns, values_of(scope), None)
    views_by_column = {column: count for (column, _), count in views.items()}

    def rank(column: str) -> tuple[int, Any]:
        return views_by_column[column], place_among_equals(column)

    best = nlargest(limit, views_by_column, key=rank)
    return {column: {len(first_hours) - 1: views_by_column[column]} for column in best}


def _is_of_many(scope: Scope, periods: Sequence[Days]) -> bool:
    """Returns True if too many objects had views with the values to look through all of them."""
    return scope.is_all_time or day_breakdowns.has_many(values_of(scope), periods, many=MOST_ROWS)


def _most_candidates(scope: Scope) -> int:
    """Returns how many of the most viewed objects are looked through."""
    if scope.is_all_time:  # a single row of each is read
        return MOST
    days = sum(period.number for period in periods_of(scope))
    return min(MOST, max(CANDIDATES, MOST_ROWS // days))


def _ranked_by(scope: Scope, *, by_growth: bool) -> Mapping[Days, int]:
    """Returns the days whose views choose the best objects, and by what the views are multiplied.

    Growth is that of the days that are compared, without today.
    """
    now, *compared_and_before = compared_periods_of(scope)
    if not by_growth or not compared_and_before:
        return {now: 1}
    compared_days, before = compared_and_before
    return {compared_days: 1, before: -1}


def _starts_of_points(first_hours: Sequence[int]) -> dict[date, int]:
    """Returns the index of the point in which a day begins, by the first day of these points.

    A point within a day has none.
    """
    # A period that begins at a publication has a part of its first day.
    starts = {date.min: 0}
    for index, hour in enumerate(first_hours):
        day = local_time.day_of(buckets.hour_start(hour))
        if local_time.first_hour_from(local_time.day_start(day)) < hour:
            day += buckets.DAY
        starts[day] = index
    return starts


def _steps(gains: Sequence[PointGain], indexes: Sequence[int]) -> Mapping[str, Steps]:
    """Returns the gains by column, then by index of the point. `indexes` are those of the points
    that the gains have by their number.
    """
    steps: defaultdict[str, Steps] = defaultdict(dict)
    for gain in gains:
        steps[gain.subject][indexes[gain.number]] = gain.views
    return steps


def points_of_models(
    scope: Scope, objects: Objects, *, first_hours: Sequence[int], until: int
) -> list[int]:
    """Returns the views with the value of all objects of the models by point.

    `first_hours` are those of the points, the last of which ends before the hour `until`.
    """
    [value] = values_of(scope)
    views = [0] * len(first_hours)
    gains = breakdown_history.gains_of_value(
        objects.labels, value.kind, value.field, since=first_hours[0], until=until
    )
    for hour, count in gains.items():
        views[bisect_right(first_hours, hour) - 1] += count
    return views


def points_of_objects(compared: Compared, *, length: int) -> list[int]:
    """Returns the views with the value of the compared objects by point. `length` is how many."""
    views = [0] * length
    for steps in compared.steps.values():
        for index, count in steps.items():
            views[index] += count
    return views


def _views_with_each(scope: Scope, subjects: Sequence[str]) -> Hashes:
    """Returns the views of the subjects with each of several values, by kind and subject.

    They are those of the period; of all time they are those that SQL has stored.
    """
    subject_by_column = {subject_column(subject): subject for subject in subjects}
    values = values_of(scope)
    days = None if scope.is_all_time else periods_of(scope)[0]
    hashes: dict[tuple[str, str], Counter[str]] = {}
    fields = dict(values)
    views = day_breakdowns.views_with_values([*subject_by_column], values, days)
    for (column, hash_kind), count in views.items():
        name = (hash_kind, subject_by_column[column])
        hashes[name] = Counter({fields[hash_kind]: count})
    return hashes


def only_chosen(scope: Scope, hashes: Hashes) -> Hashes:
    """Returns what the hashes have of the only chosen value."""
    [value] = values_of(scope)
    chosen: dict[tuple[str, str], Counter[str]] = {}
    for (hash_kind, subject), counts in hashes.items():
        if hash_kind == value.kind:
            chosen[hash_kind, subject] = +Counter({value.field: counts[value.field]})
    return chosen


def gains_of_objects(
    objects: Objects, kinds: Sequence[str], periods: Sequence[Days]
) -> Sequence[Hashes]:
    """Returns what the objects of the scope gained in each period, by kind and label of the
    model.
    """
    columns = [subject_column(subject) for subject in objects.first]
    return day_breakdowns.gains(columns, kinds, periods)
