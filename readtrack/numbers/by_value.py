"""Views with a chosen value of a dimension, such as one source.

Views are the only number that is stored by value: those of whole models by the hour, those of
objects by the day. Two values are not stored together, so nothing but the views with each of them
is known of two.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from readtrack import local_time
from readtrack.numbers.data import ByValue, Hashes
from readtrack.numbers.objects import CANDIDATES, MOST, Objects
from readtrack.numbers.people import days_of
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql import breakdown_history, day_breakdowns
from readtrack.numbers.sql import hashes as stored_hashes
from readtrack.numbers.sql.day_breakdowns import Days, Value
from readtrack.numbers.sql.period_steps import Steps
from readtrack.subjects import subject_column

# Rows of days that are read to find the best objects of whole models, at most. In a longer period
# fewer objects are compared.
MOST_ROWS = 40_000


#: The tables that compare objects by value.
TABLES = {"most-viewed", "grew-most"}


class Compared(NamedTuple):
    """The objects of a scope, compared by one value or by several."""

    steps: Mapping[str, Steps]  # views with the only value, by column, then by index of the point
    hashes: Hashes  # views with each of several values, by kind and subject
    comparison: ByValue


#: What a scope has whose tables compare no objects.
NOT_COMPARED = Compared({}, {}, ByValue(0, is_cut=False, is_compared_by_day=False))


class Points(NamedTuple):
    """The views with a value by index of the point, as `Bounds` has it."""

    views: list[int]
    is_before_whole: bool  # False if nothing was stored by value until the period before had begun


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
    trending: Iterable[str],
    first_hours: Sequence[int],
    by_growth: bool,
) -> Compared:
    """Compares the objects of the scope by its values, and chooses the best ones of whole models.

    `first_hours` are those of the points. `trending` are subjects that no list may have yet.
    """
    subjects = [*objects.stored]
    is_cut = objects.is_cut
    if not scope.is_listed:
        most = _most_candidates(scope)
        subjects = objects.candidates(trending, limit=most)
        is_cut = len(subjects) >= most
    comparison = ByValue(len(subjects), is_cut, scope.compares_days)
    hashes: Hashes = {}
    steps: Mapping[str, Steps] = {subject_column(subject): {} for subject in subjects}
    if scope.is_joint:
        hashes = _views_with_each(scope, subjects)
    else:
        limit = len(subjects) if scope.is_listed else CANDIDATES
        best = _steps_of_best(
            scope, [*steps], first_hours=first_hours, limit=limit, by_growth=by_growth
        )
        steps = {**steps, **best}
    if not scope.is_listed:
        subjects_with_values = {subject for _, subject in hashes}
        objects.stored = dict.fromkeys(
            subject
            for subject in subjects
            if steps[subject_column(subject)] or subject in subjects_with_values
        )
    return Compared(steps, hashes, comparison)


def _most_candidates(scope: Scope) -> int:
    """Returns how many objects of whole models are compared at most."""
    if scope.is_all_time:  # a single row of each is read
        return MOST
    days = sum((period.last - period.first).days + 1 for period in periods_of(scope))
    return min(MOST, max(CANDIDATES, MOST_ROWS // days))


def _steps_of_best(
    scope: Scope,
    columns: Sequence[str],
    *,
    first_hours: Sequence[int],
    limit: int,
    by_growth: bool,
) -> dict[str, Steps]:
    """Returns the views with the value by point, of the best of the subjects, by column.

    `columns` are the subjects as columns have them. Of all time the views of the objects of whole
    models are those that SQL has stored, all of them in the last point.
    """
    [value] = values_of(scope)
    steps: defaultdict[str, Steps] = defaultdict(dict)
    if scope.is_all_time and not scope.is_listed:
        views = day_breakdowns.views_with_values(columns, [value], None)
        for (column, _), count in views.most_common(limit):
            steps[column] = {len(first_hours) - 1: count}
        return steps
    days = day_breakdowns.days_of_best(
        columns, value, periods_of(scope), limit=limit, by_growth=by_growth
    )
    for gain in days:
        steps_of_subject = steps[gain.subject]
        index = _index_of_day(gain.day, first_hours)
        steps_of_subject[index] = steps_of_subject.get(index, 0) + gain.views
    return steps


def points_of_models(
    scope: Scope, objects: Objects, *, first_hours: Sequence[int], until: int
) -> Points:
    """Returns the views with the value of all objects of the models by point.

    `first_hours` are those of the points, the last of which ends before the hour `until`.
    """
    [value] = values_of(scope)
    views = [0] * len(first_hours)
    hours = breakdown_history.hours_of_value(
        objects.labels, value.kind, value.field, since=first_hours[0], until=until
    )
    for hour, count in hours.gains.items():
        views[bisect_right(first_hours, hour) - 1] += count
    is_before_whole = hours.first_hour is None or hours.first_hour < first_hours[0]
    return Points(views, is_before_whole)


def points_of_objects(compared: Compared, *, length: int) -> Points:
    """Returns the views with the value of the compared objects by point. `length` is how many."""
    views = [0] * length
    for steps in compared.steps.values():
        for index, count in steps.items():
            views[index] += count
    return Points(views, is_before_whole=True)  # the objects may be new


def _index_of_day(day: date, first_hours: Sequence[int]) -> int:
    """Returns the index of the point in which the day begins."""
    hour = local_time.first_hour_from(local_time.day_start(day))
    # A period that begins at a publication has a part of its first day.
    return max(0, bisect_right(first_hours, hour) - 1)


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
