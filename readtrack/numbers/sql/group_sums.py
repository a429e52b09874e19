"""What categories, authors and ages of a model's objects gained: their views and reads by the hour,
by the day and by the month.

Full flushes add these sums up from the history of the objects (`readtrack.numbers.flush.groups`).
So they can be added up again at any time, and no view counts twice.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any, Literal

from django.db.models import IntegerField, Q, QuerySet, Sum, Value

from readtrack import buckets
from readtrack.numbers import local_time
from readtrack.numbers.models import BreakdownHistory
from readtrack.numbers.sql import history_marks
from readtrack.numbers.sql.breakdown_history import MOST_GROUPS
from readtrack.numbers.sql.history_lock import lock_history
from readtrack.numbers.sql.history_marks import NO_MARKS, Marks
from readtrack.numbers.sql.memberships import GROUPS, OTHER, Group
from readtrack.sql import databases

Number = Literal["views", "reads"]
Name = tuple[str, Number, str]  # the kind of the group, the number, and the name of the group
HourName = tuple[str, int, str]  # the kind of rows, the hour, and the name of the group

NUMBERS: Sequence[Number] = ("views", "reads")
WITH_VISITORS: Sequence[Group] = ("section", "author")  # whose visitors are stored by day


def kind_of(group: str, number: Number) -> str:
    """Returns the kind of the rows of BreakdownHistory by the hour."""
    return f"{group}:{number}"


def _kind_of_days(kind: str) -> str:
    """Returns the kind of the rows by the day. They have the first hour of their day, or, once
    history is thinned, its last one.
    """
    return f"{kind}:day"


def _kind_of_months(kind: str) -> str:
    """Returns the kind of the rows by the month, which have an hour of its first day."""
    return f"{kind}:month"


def visitors_of(label: str, group: str, name: str) -> str:
    """Returns the subject under which DayVisitors has the visitors of a group of a model.

    No object has such a subject, because braces in primary keys are encoded.
    """
    return f"{label}:{{{group}}}{name}"


KINDS = [kind_of(group, number) for group in GROUPS for number in NUMBERS]
KINDS_OF_DAYS = [_kind_of_days(kind) for kind in KINDS]
KINDS_OF_MONTHS = [_kind_of_months(kind) for kind in KINDS]


def newest_hour(label: str) -> int | None:
    """Returns the newest hour of which the model has sums; None without sums."""
    # In a part of its own for each kind, because an index has the newest hour of one kind at once.
    # For all kinds together the database would read all their rows.
    of_kind = databases.statement(BreakdownHistory, "newest_hour_of_kind")
    statement = " UNION ALL ".join([of_kind] * len(KINDS))
    parameters: list[str] = []
    for kind in KINDS:
        parameters += (label, kind)
    with databases.of(BreakdownHistory).cursor() as cursor:
        cursor.execute(statement, parameters)
        hours = [hour for (hour,) in cursor.fetchall() if hour is not None]
    return max(hours, default=None)


def replace(
    label: str,
    sums: Mapping[HourName, int],
    *,
    hours: range,
    newest: int | None,
    marks: Marks,
) -> bool:
    """Stores the sums of a model in these hours in place of those that it had, and adds up the days
    anew.

    `newest` is the `newest_hour` before the sums were read, and `marks` are those that the hours
    had then. If the newest hour has changed, because another flush or an import came in between,
    nothing is stored: returns False.
    """
    write = partial(_replace, label, sums, hours=hours, newest=newest, marks=marks)
    return databases.retried(databases.of(BreakdownHistory), write)


def _replace(
    label: str,
    sums: Mapping[HourName, int],
    *,
    hours: range,
    newest: int | None,
    marks: Marks,
) -> bool:
    with databases.own_transaction(databases.of(BreakdownHistory)):
        lock_history()
        if newest_hour(label) != newest:
            return False
        rows = databases.rows(BreakdownHistory).filter(subject=label)
        replaced = Q(kind__in=KINDS, hour__gte=hours.start, hour__lt=hours.stop)
        rows.filter(replaced | Q(kind=history_marks.KIND)).delete()
        _insert(label, _with_others(sums), marks)
        days = buckets.local_days(
            buckets.hour_start(hours.start), buckets.hour_start(hours.stop - 1)
        )
        for day in days:
            hours_of_day = _hours_between(day, day + buckets.DAY)
            _add_up(label, hours_of_day, of=KINDS, kinds=KINDS_OF_DAYS)
        for month in sorted({day.replace(day=1) for day in days}):
            hours_of_month = _hours_between(month, local_time.month_after(month))
            _add_up(label, hours_of_month, of=KINDS_OF_DAYS, kinds=KINDS_OF_MONTHS)
    return True


def _hours_between(first: date, until: date) -> range:
    """Returns the hours of the days of TIME_ZONE from the first one on; `until` is exclusive."""
    return range(local_time.first_hour_of(first), local_time.first_hour_of(until))


def _add_up(label: str, hours: range, *, of: Sequence[str], kinds: Sequence[str]) -> None:
    """Stores the sums of the kinds `of` in a period as those of the longer `kinds`, at its first
    hour.
    """
    rows = databases.rows(BreakdownHistory).filter(
        subject=label, hour__gte=hours.start, hour__lt=hours.stop
    )
    rows.filter(kind__in=kinds).delete()
    longer_kinds = dict(zip(of, kinds, strict=True))
    parts = rows.filter(kind__in=of).order_by().values_list("kind", "field")
    sums: dict[HourName, int] = {}
    for kind, name, count in parts.annotate(Sum("count")):
        sums[longer_kinds[kind], hours.start, name] = int(count)
    _insert(label, _with_others(sums))


def _insert(label: str, sums: Mapping[HourName, int], marks: Marks = NO_MARKS) -> None:
    """Inserts rows for the sums and the marks, whose earlier rows are deleted."""
    rows = [(label, kind, hour, name, count) for (kind, hour, name), count in sums.items() if count]
    rows += [(label, history_marks.KIND, hour, mark, 0) for hour, mark in marks.items()]
    # Not bulk_create, which takes a multiple of the time, while other flushes wait for the lock.
    databases.upsert(BreakdownHistory, ("subject", "kind", "hour", "field"), ("count",), rows=rows)


def _with_others(sums: Mapping[HourName, int]) -> Mapping[HourName, int]:
    """Returns the sums, with those beyond the MOST_GROUPS highest ones of each hour in OTHER."""
    sizes = Counter((kind, hour) for kind, hour, _name in sums)
    if not sums or max(sizes.values()) <= MOST_GROUPS:
        return sums
    kept: Counter[HourName] = Counter()
    rank: Counter[tuple[str, int]] = Counter()  # of the present group in its kind and hour
    for (kind, hour, name), count in Counter(sums).most_common():
        rank[kind, hour] += 1
        is_kept = rank[kind, hour] <= MOST_GROUPS
        kept[kind, hour, name if is_kept else OTHER] += count
    return kept


def forget(labels: Collection[str], *, since: int) -> None:
    """Deletes the sums from the day of that hour (since 1970) on, because older history has
    changed.

    The next full flush adds them up again. The caller has to call `lock_history`.
    """
    day = buckets.local_day(since)
    rows = databases.rows(BreakdownHistory).filter(subject__in=labels)
    first_hour = local_time.first_hour_of(day)
    hours_and_days = Q(kind__in=[*KINDS, *KINDS_OF_DAYS], hour__gte=first_hour)
    rows.filter(hours_and_days | Q(kind=history_marks.KIND)).delete()
    first_hour_of_month = local_time.first_hour_of(day.replace(day=1))
    rows.filter(kind__in=KINDS_OF_MONTHS, hour__gte=first_hour_of_month).delete()


def forget_in_own_transaction(labels: Collection[str], *, since: int) -> None:
    """Does what `forget` does, in a transaction that locks history."""
    with databases.own_transaction(databases.of(BreakdownHistory)):
        lock_history()
        forget(labels, since=since)


def gains(
    labels: Sequence[str], groups: Sequence[str], spans: Sequence[range]
) -> list[dict[str, dict[Name, int]]]:
    """Returns what the groups of these kinds gained in each range of hours, by label and name.

    Makes one query. Whole days and months are read as such, so that a year takes few rows.
    """
    gains_of_spans: list[dict[str, dict[Name, int]]] = [defaultdict(Counter) for _ in spans]
    querysets = [*_querysets(labels, groups, spans)]
    if not querysets:
        return gains_of_spans
    first, *others = querysets
    rows = first.union(*others, all=True) if others else first
    for label, kind, name, number_of_span, count in rows:
        group, number, *_ = kind.split(":")
        gains_of_spans[number_of_span][label][group, number, name] += int(count)
    return gains_of_spans


def _querysets(
    labels: Sequence[str], groups: Sequence[str], spans: Sequence[range]
) -> "Iterator[QuerySet[Any]]":
    """Yields a queryset for each part of the ranges that consists of months, of days or of
    hours.
    """
    kinds = [kind_of(group, number) for group in groups for number in NUMBERS]
    kinds_of_days = [*map(_kind_of_days, kinds)]
    kinds_of_months = [*map(_kind_of_months, kinds)]
    for number_of_span, span in enumerate(spans):
        days = _whole_days(span)
        months = _whole_months(days)
        parts = [
            (kinds_of_months, months),
            (kinds_of_days, range(days.start, months.start)),
            (kinds_of_days, range(months.stop, days.stop)),
            (kinds, range(span.start, days.start)),
            (kinds, range(days.stop, span.stop)),
        ]
        for kinds_of_part, hours in parts:
            if not hours:
                continue
            rows = databases.rows(BreakdownHistory).filter(
                subject__in=labels,
                kind__in=kinds_of_part,
                hour__gte=hours.start,
                hour__lt=hours.stop,
            )
            number = Value(number_of_span, output_field=IntegerField())
            rows = rows.order_by().values_list("subject", "kind", "field")
            yield rows.annotate(number_of_span=number, sum_of_part=Sum("count"))


def _whole_days(span: range) -> range:
    """Returns the hours of the whole days in a range of hours; an empty range without a whole
    day.
    """
    if not span:
        return range(span.start, span.start)
    first_day = buckets.local_day(span.start)
    first_hour = local_time.first_hour_of(first_day)
    if first_hour < span.start:
        first_hour = local_time.first_hour_of(first_day + buckets.DAY)
    # The day of the hour after the range is the first one that is not whole, unless that hour is in
    # the future: then the day has no more than the range.
    end_day = buckets.local_day(span.stop)
    if span.stop > buckets.hour_index(buckets.now()):
        end_day += buckets.DAY
    end_hour = local_time.first_hour_of(end_day)
    if first_hour >= end_hour:
        return range(span.start, span.start)
    return range(first_hour, end_hour)


def _whole_months(days: range) -> range:
    """Returns the hours of the whole months in a range of whole days, as `_whole_days` does it."""
    if not days:
        return range(days.start, days.start)
    first_day = buckets.local_day(days.start)
    first_month = first_day if first_day.day == 1 else local_time.month_after(first_day)
    end_month = buckets.local_day(days.stop).replace(day=1)
    if days.stop > buckets.hour_index(buckets.now()):
        end_month = local_time.month_after(end_month)
    if first_month >= end_month:
        return range(days.start, days.start)
    return _hours_between(first_month, end_month)
