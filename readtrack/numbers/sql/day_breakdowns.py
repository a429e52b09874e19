"""What the hashes of an object gained by the day of TIME_ZONE, by value of a dimension or stage of
a funnel.

The gains of whole models are kept by the hour (breakdown_history.py). Those of objects are in a
table of their own, because there are so many of them: a day is one row for each value, is never
thinned, and is deleted as a whole.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from django.db.models import Avg, Case, CharField, Count, Max, Q, QuerySet, Sum, When
from django.db.models import Value as Constant

from readtrack.numbers.models import Breakdown, DayBreakdown
from readtrack.numbers.sql import period_gains
from readtrack.numbers.sql.breakdown_history import OTHER, Gains, add_sums
from readtrack.numbers.sql.period_numbers import number_of_part
from readtrack.sql import databases
from readtrack.store import scripts
from readtrack.subjects import label_in

VALUES = 50  # fields that one day keeps of an object and a kind of hash, beside "other"
HASHES_AT_ONCE = 100  # hashes whose lighter fields one query deletes
# The SQL expression for the field where subjects are given. No index has it, so databases without
# statistics take the primary key, and do not read all other subjects with the value.
NO_INDEX = "COALESCE(field, '')"
KEYS = ("subject", "kind", "day", "field")  # the primary key of a row

Gain = tuple[str, str, str]  # the subject as columns have it, the kind of a hash, and its field
HashName = tuple[str, str]  # a subject as columns have it, and a kind


class Days(NamedTuple):
    """A period of whole days of TIME_ZONE, the last one included."""

    first: date
    last: date

    @property
    def number(self) -> int:
        """How many days the period has."""
        return (self.last - self.first).days + 1

    @property
    def condition(self) -> str:
        """The SQL condition for the rows of these days."""
        return f"day BETWEEN '{self.first.isoformat()}' AND '{self.last.isoformat()}'"


class Value(NamedTuple):
    """A value of a dimension: the kind of its hashes (`views:country`), and its field in them."""

    kind: str
    field: str


class PointGain(NamedTuple):
    """What a subject (as columns have it) gained by one value in a point, which is some days."""

    subject: str
    number: int  # of the point, from 0
    views: int


def add_gains(
    new: Mapping[Gain, int], *, day: date, full_hashes: Collection[HashName] | None = None
) -> None:
    """Adds the new gains to the gains of that day.

    If an object has too many fields of a kind, the least frequent ones are added up in "other".
    Only `full_hashes` may have too many, by default all. The caller has to call `lock_history`,
    because the fields are counted after that.
    """
    added = []
    names = set()
    for (subject, hash_kind, field), gain in new.items():
        added.append((subject, hash_kind, day, field, gain))
        names.add((subject, hash_kind))
    databases.add(DayBreakdown, KEYS, "count", rows=added)
    if full_hashes is not None:
        names.intersection_update(full_hashes)
    if names:
        _add_up_least_frequent(names, day=day)


def _add_up_least_frequent(names: Collection[HashName], *, day: date) -> None:
    """Adds up the least frequent fields of those of the hashes that have too many on that day."""
    rows = databases.rows(DayBreakdown).filter(
        day=day,
        subject__in={subject for subject, _ in names},
        kind__in={hash_kind for _, hash_kind in names},
    )
    number_of_fields = Count("field", filter=~Q(field=OTHER))
    numbers = rows.order_by().values_list("subject", "kind").annotate(number=number_of_fields)
    full = {(subject, hash_kind) for subject, hash_kind, _ in numbers.filter(number__gt=VALUES)}
    if not full:
        return
    excess_of_hashes: dict[HashName, list[str]] = {}
    sums = []
    for name, counts in _stored_by_hash(rows).items():
        if name in full:
            excess_fields = _excess_fields(counts)
            excess_of_hashes[name] = excess_fields
            sums.append((*name, day, OTHER, sum(counts[field] for field in excess_fields)))
    _delete(rows, excess_of_hashes)
    databases.add(DayBreakdown, KEYS, "count", rows=sums)


def _stored_by_hash(rows: "QuerySet[DayBreakdown]") -> defaultdict[HashName, Counter[str]]:
    """Returns the gains that these rows have, by the name of the hash."""
    stored: defaultdict[HashName, Counter[str]] = defaultdict(Counter)
    for subject, hash_kind, field, count in rows.values_list("subject", "kind", "field", "count"):
        stored[subject, hash_kind][field] = count
    return stored


def _excess_fields(counts: Counter[str]) -> list[str]:
    """Returns the fields of a hash beyond the VALUES most frequent ones."""
    fields = [field for field, _count in counts.most_common() if field != OTHER]
    return fields[VALUES:]


def _delete(rows: "QuerySet[DayBreakdown]", fields_of_hashes: Mapping[HashName, list[str]]) -> None:
    """Deletes the rows with these fields, which are added up in "other"."""
    for portion in scripts.sliced([*fields_of_hashes.items()], HASHES_AT_ONCE):
        conditions = [
            Q(subject=subject, kind=hash_kind, field__in=fields)
            for (subject, hash_kind), fields in portion
        ]
        rows.filter(reduce(or_, conditions)).delete()


def gains(columns: Collection[str], kinds: Collection[str], periods: Sequence[Days]) -> list[Gains]:
    """Returns what the objects gained in each of these periods, by kind and label of their model.

    `columns` are the subjects as columns have them. Makes one query for each SLICE of them. A kind
    and model with a row in any of the periods has an entry for each of them.
    """
    conditions = [Q(day__gte=days.first, day__lte=days.last) for days in periods]
    gains_of_periods: list[Gains] = [defaultdict(Counter) for _ in periods]
    for portion in scripts.sliced([*columns]):
        rows = databases.rows(DayBreakdown).filter(subject__in=portion, kind__in=kinds)
        rows = rows.annotate(label=_label({label_in(subject) for subject in portion}))
        add_sums(gains_of_periods, rows, label="label", conditions=conditions)
    return gains_of_periods


def gains_of_each(
    columns: Collection[str], kinds: Collection[str], periods: Sequence[Days]
) -> list[Gains]:
    """Returns what each of a few objects gained in each of these periods, by kind and column.

    `columns` are the subjects as columns have them. Makes one query.
    """
    conditions = [Q(day__gte=days.first, day__lte=days.last) for days in periods]
    gains_of_periods: list[Gains] = [defaultdict(Counter) for _ in periods]
    rows = databases.rows(DayBreakdown).filter(subject__in=columns, kind__in=kinds)
    add_sums(gains_of_periods, rows, label="subject", conditions=conditions)
    return gains_of_periods


def by_day(column: str, hash_kind: str, days: Days) -> dict[date, Counter[str]]:
    """Returns what an object gained on each of these days, by field. Makes one query.

    `column` is the subject as columns have it. A day without a gain is missing.
    """
    rows = databases.rows(DayBreakdown).filter(
        subject=column, kind=hash_kind, day__gte=days.first, day__lte=days.last
    )
    gained: defaultdict[date, Counter[str]] = defaultdict(Counter)
    for day, field, count in rows.order_by("day").values_list("day", "field", "count"):
        gained[day][field] += count
    return dict(gained)


def _label(labels: Collection[str]) -> Case:
    """Returns the SQL expression for the label of a row's model, which is one of the labels."""
    is_label = [
        When(subject__startswith=f"{label}:", then=Constant(label)) for label in sorted(labels)
    ]
    return Case(*is_label, output_field=CharField())


def gains_by_point(
    columns: Sequence[str], value: Value, periods: Sequence[Days], *, starts: Sequence[date]
) -> list[PointGain]:
    """Returns what each of the subjects gained by the value in each point of the periods.

    `columns` are the subjects as columns have them. `starts` are the first days of the points; days
    before them are in the first point. A point without a gain is missing. Makes one query.
    """
    if not columns:
        return []
    condition, subjects = period_gains.among(columns)
    statement = _points_statement(NO_INDEX, periods, starts, condition=condition)
    return _point_gains(statement, [*value, *subjects])


def gains_of_best_by_point(
    columns: Sequence[str] | None,
    value: Value,
    periods: Sequence[Days],
    *,
    starts: Sequence[date],
    ranked_by: Mapping[Days, int],
    limit: int,
    labels: Sequence[str] = (),
) -> list[PointGain]:
    """Returns what the best of the subjects, `limit` at most, gained by the value in each point of
    the periods.

    `columns` are the subjects as columns have them; None are all of the models with the `labels`.
    The best have the highest sum of their views on the days of `ranked_by`, each times the number
    that these days have there, such as -1. `starts` are those of `gains_by_point`. Makes one query.
    """
    if not columns and not (columns is None and labels):
        return []
    weights = [f"WHEN {days.condition} THEN {weight}.0" for days, weight in ranked_by.items()]
    condition, subjects = _among(columns, labels)
    best = databases.statement(
        DayBreakdown,
        "best_of_value",
        count=databases.of(DayBreakdown).ops.quote_name("count"),
        field="field" if columns is None else NO_INDEX,
        days=_on_any_of([*ranked_by]),
        condition=condition,
        weight=f"CASE {' '.join(weights)} END",
        limit=int(limit),
    )
    statement = _points_statement("field", periods, starts, condition=f"subject IN ({best})")
    return _point_gains(statement, [*value, *value, *subjects])


def _among(columns: Sequence[str] | None, labels: Sequence[str]) -> tuple[str, Sequence[Any]]:
    """Returns the SQL condition for the rows of these subjects, or of all of the models with these
    labels, and its parameters.
    """
    if columns is not None:
        return period_gains.among(columns)
    condition = " OR ".join([period_gains.OF_LABEL] * len(labels))
    return condition, [*map(period_gains.pattern, labels)]


def _points_statement(
    field: str, periods: Sequence[Days], starts: Sequence[date], *, condition: str
) -> str:
    """Returns the SQL statement for what subjects that meet the condition gained in each point.

    Its parameters are a value, and those of the condition. `field` is the SQL expression for the
    field.
    """
    return databases.statement(
        DayBreakdown,
        "gains_by_point",
        point=number_of_part("day", [f"'{start.isoformat()}'" for start in starts]),
        count=databases.of(DayBreakdown).ops.quote_name("count"),
        field=field,
        days=_on_any_of(periods),
        condition=condition,
    )


def _on_any_of(periods: Sequence[Days]) -> str:
    """Returns the SQL condition for the rows of the days of these periods."""
    return " OR ".join(days.condition for days in periods)


def _point_gains(statement: str, parameters: Sequence[Any]) -> list[PointGain]:
    """Returns the rows that the statement finds."""
    with databases.of(DayBreakdown).cursor() as cursor:
        cursor.execute(statement, parameters)
        rows = cursor.fetchall()
    return [PointGain(subject, number, int(views)) for subject, number, views in rows]


def has_many(values: Sequence[Value], periods: Sequence[Days], *, many: int) -> bool:
    """Returns True if these values have so many rows, of all objects, on the days of the periods.

    Makes one query, which reads no more of them, and only in the index.
    """
    is_value = [Q(kind=value.kind, field=value.field) for value in values]
    is_on_days = [Q(day__gte=days.first, day__lte=days.last) for days in periods]
    rows = databases.rows(DayBreakdown).filter(reduce(or_, is_value), reduce(or_, is_on_days))
    return rows.order_by().values("day")[:many].count() >= many


def best_with_each(
    labels: Sequence[str], values: Sequence[Value], days: Days, *, limit: int
) -> list[str]:
    """Returns the subjects (as columns have them) of the models that had views with each of the
    values on the days, those with the most of the first value first, `limit` at most. Makes one
    query.
    """
    of_models = [Q(subject__startswith=f"{label}:") for label in labels]
    is_value = [Q(kind=value.kind, field=value.field) for value in values]
    if not of_models:
        return []
    rows = databases.rows(DayBreakdown).filter(
        reduce(or_, of_models), reduce(or_, is_value), day__gte=days.first, day__lte=days.last
    )
    subjects = rows.order_by().values("subject")
    views_with_first = Sum("count", filter=is_value[0])
    subjects = subjects.annotate(kinds=Count("kind", distinct=True), views=views_with_first)
    best = subjects.filter(kinds=len(values)).order_by("-views", "subject")
    return [*best.values_list("subject", flat=True)[:limit]]


def views_with_values(
    columns: Collection[str], values: Sequence[Value], days: Days | None
) -> Counter[HashName]:
    """Returns the views with each of the values, by subject (as columns have it) and kind.

    They are those of the days, or with None those of all time that SQL has stored. Makes one query
    for each SLICE of the `columns`, which are the subjects.
    """
    views: Counter[HashName] = Counter()
    is_value = reduce(or_, [Q(kind=value.kind, field=value.field) for value in values])
    for portion in scripts.sliced([*columns]):
        if days is None:
            rows = databases.rows(Breakdown).filter(is_value, subject__in=portion)
        else:
            rows = databases.rows(DayBreakdown).filter(
                is_value, subject__in=portion, day__gte=days.first, day__lte=days.last
            )
        sums = rows.order_by().values_list("subject", "kind").annotate(Sum("count"))
        for subject, hash_kind, count in sums:
            views[subject, hash_kind] += int(count)
    return views


def values_of_a_day() -> float:
    """Returns how many values of a dimension an object had on the newest day, on average.

    It is 0 if no day is stored.
    """
    rows = databases.rows(DayBreakdown).filter(kind__startswith="views:")
    newest = rows.aggregate(day=Max("day"))["day"]
    if newest is None:
        return 0.0
    values_of_hashes = (
        rows.filter(day=newest).values("subject", "kind").annotate(values_=Count("*"))
    )
    average = values_of_hashes.aggregate(average=Avg("values_"))["average"]
    return float(average)


def delete_fields(subject: str, hash_kind: str, fields: Collection[str]) -> None:
    """Deletes the gains of these fields of an object's hash on all days.

    `subject` is as columns have it.
    """
    rows = databases.rows(DayBreakdown).filter(subject=subject, kind=hash_kind)
    rows.filter(field__in=fields).delete()


def delete_before(day: date) -> int:
    """Deletes the gains of earlier days. Returns the number of deleted rows."""
    deleted, _ = databases.rows(DayBreakdown).filter(day__lt=day).delete()
    return deleted
