"""The different visitors of periods: what SQL is asked, and what Redis unites."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import Any, NamedTuple

from readtrack import buckets
from readtrack.numbers.counted import counts_days
from readtrack.numbers.data import People
from readtrack.numbers.objects import Objects
from readtrack.numbers.reports.people import Days
from readtrack.numbers.scope import Scope, Span
from readtrack.numbers.sql.day_visitors import AskedDays, StoredDay
from readtrack.store import keys, scripts, uniques
from readtrack.store.uniques import Union
from readtrack.subjects import label_in, subject_column

# Days of visitors that are united for a page, at most; each has 12 kB at most. A scope with more,
# such as a year of a category with many objects, has no number of visitors.
MOST_DAYS = 3_000
LIMIT = MOST_DAYS + 1  # rows that are read, by which a scope with more is known

Sketches = Mapping[str, Sequence[StoredDay]]


#: Days of which nobody has numbers.
NO_DAYS = Days(date(1970, 1, 1), date(1970, 1, 1))


def days_of(span: Span) -> Days:
    """Returns the local days of a period. Days of visitors are those of TIME_ZONE."""
    if span.since == span.until:  # a day that a zone has skipped
        return NO_DAYS
    return Days(span.first_day, span.last_day)


class Compared(NamedTuple):
    """Days of the period and of the period before whose visitors can be compared."""

    now: Days
    before: Days

    @classmethod
    def of(cls, scope: Scope, days: Days) -> "Compared | None":
        """Returns the days for a scope with these days; None if visitors are not compared.

        A period up to now is compared without today, because a day of visitors cannot be cut at the
        time of day. So today alone is not compared.
        """
        if scope.before is None or not scope.is_compared:
            return None
        before = days_of(scope.before)
        if not scope.is_present:
            return cls(days, before)
        if days.first == days.last:
            return None
        yesterday = days.last - buckets.DAY
        last_before = min(scope.day_before(yesterday), days.first - buckets.DAY)
        return cls(Days(days.first, yesterday), Days(before.first, last_before))


@dataclass(frozen=True, slots=True)
class PeopleQuestion:
    """Whose visitors are asked for, and in which days."""

    # Labels of models, or the subjects of the objects that filters name; empty if not needed.
    total: Sequence[str]
    shown: Sequence[str]  # subjects whose own visitors a table shows
    days: Days
    compared: Compared | None  # None if the visitors are not compared
    points: Sequence[Days]  # the days of each point of the chart; empty if points are hours
    tag: str  # of the partition that unites sketches of several partitions
    # Groups whose visitors a table shows: their subjects by kind and name.
    groups: Mapping[tuple[str, str], Sequence[str]]

    @classmethod
    def of(
        cls,
        scope: Scope,
        objects: Objects,
        *,
        shown: Sequence[str],
        has_chart: bool,
        groups: Mapping[tuple[str, str], Sequence[str]] = {},
    ) -> "PeopleQuestion":
        """Returns the question for a scope whose first day is known."""
        total: Sequence[str] = []
        if has_chart:
            total = [*objects.stored] if scope.is_listed else objects.labels
        if not all(counts_days(label_in(name)) for name in total):
            total = []  # the number would lack the visitors of some models
        days = days_of(scope.span)
        return cls(
            total=total,
            shown=[subject for subject in shown if counts_days(label_in(subject))],
            days=days,
            compared=Compared.of(scope, days),
            points=_days_of_points(scope),
            tag=keys.tags()[0],
            groups={
                name: subjects
                for name, subjects in groups.items()
                if all(counts_days(label_in(subject)) for subject in subjects)
            },
        )

    @property
    def asked(self) -> list[AskedDays]:
        """Returns the rows of SQL that are needed."""
        total = [*map(subject_column, self.total)]
        asked: list[AskedDays] = []
        if total:
            asked.append(AskedDays(total, *self.days, limit=LIMIT))
        if total and self.compared:
            asked.append(AskedDays(total, *self.compared.before, limit=LIMIT))
        if total and self.points:
            # A single name needs no union of sketches for points that are days.
            days = AskedDays(
                total,
                *self.days,
                has_blocks=False,
                has_sketches=not self._has_numbers_of_points,
                limit=LIMIT,
            )
            asked.append(days)
        if self.shown:
            columns = [*map(subject_column, self.shown)]
            asked.append(AskedDays(columns, *self.days, limit=LIMIT))
        if self.groups:
            asked.append(AskedDays(self._columns_of_groups, *self.days, limit=LIMIT))
        return asked

    @property
    def is_empty(self) -> bool:
        """True if no table shows the visitors of its rows."""
        return not (self.shown or self.groups)

    @property
    def _columns_of_groups(self) -> list[str]:
        """The subjects of all groups, as columns have them."""
        subjects = [subject for names in self.groups.values() for subject in names]
        return [*map(subject_column, subjects)]

    @property
    def _has_numbers_of_points(self) -> bool:
        """True if each point of the chart is a single day of a single name."""
        return len(self.total) == 1 and all(days.first == days.last for days in self.points)

    def calls(self, rows: Sequence[StoredDay]) -> "PeopleCalls":
        """Returns the calls that unite the rows of SQL, with the sketches that only Redis has.

        Some of the rows may be there twice, which changes no union.
        """
        by_name = _by_name(rows)
        shown = {subject: self._union([subject], by_name, self.days) for subject in self.shown}
        groups = self._calls_of_groups(by_name)
        is_cut = self._has_too_many(by_name, self.days)
        if is_cut or not self.total:
            return PeopleCalls(None, None, None, [], shown, groups, is_cut=is_cut)
        total = self._union(self.total, by_name, self.days)
        before = None
        if self.compared and not self._has_too_many(by_name, self.compared.before):
            before = self._union(self.total, by_name, self.compared.before)
        single_days = _by_name(row for row in rows if row.length == 1)
        return PeopleCalls(
            total=total,
            compared=self._compared_call(total, by_name),
            before=before,
            points=[self._point(single_days, days) for days in self.points],
            shown=shown,
            groups=groups,
        )

    def _calls_of_groups(self, by_name: Sketches) -> dict[tuple[str, str], scripts.Call[Any]]:
        """Returns the calls that count the visitors of groups; none if there are too many rows."""
        rows = [row for column in self._columns_of_groups for row in by_name.get(column, ())]
        if len(rows) > MOST_DAYS:
            return {}
        return {
            name: self._union(subjects, by_name, self.days, is_live=False)
            for name, subjects in self.groups.items()
        }

    def _has_too_many(self, stored: Sketches, days: Days) -> bool:
        """Returns True if the whole scope has too many rows on these days, so that SQL was not
        asked for all of them.
        """
        rows = set()
        for name in self.total:
            for row in stored.get(subject_column(name), ()):
                if days.first <= row.day <= days.last:
                    rows.add((row.subject, row.day, row.length))
        return len(rows) > MOST_DAYS

    def _compared_call(
        self, total: scripts.Call[Any], stored: Sketches
    ) -> scripts.Call[Any] | None:
        """Returns the call that counts what the period before is compared with."""
        if self.compared is None:
            return None
        if self.compared.now == self.days:
            return total
        return self._union(self.total, stored, self.compared.now)

    def _point(self, single_days: Sketches, days: Days) -> scripts.Call[Any] | int:
        """Returns the visitors of a point of the chart, or the call that counts them."""
        is_live = self._is_object and bool(days.in_redis)
        if is_live or not self._has_numbers_of_points:
            return self._union(self.total, single_days, days)
        rows = single_days.get(subject_column(self.total[0]), ())
        return max((row.visitors for row in rows if row.day == days.first), default=0)

    @property
    def _is_object(self) -> bool:
        """True if the scope is a single object, whose visitors are live."""
        return len(self.total) == 1 and ":" in self.total[0]

    def _union(
        self, names: Sequence[str], stored: Sketches, days: Days, *, is_live: bool = True
    ) -> scripts.Call[Any]:
        """Returns the call that counts the visitors of these names on these days together.

        With `is_live` the name of an object has Redis's visitors of the last days, too.
        """
        sketches: dict[tuple[str, date, int], bytes] = {}  # each row once
        for name in names:
            for row in stored.get(subject_column(name), ()):
                last_day = row.day + (row.length - 1) * buckets.DAY
                if row.sketch and days.first <= row.day and last_day <= days.last:
                    sketches[row.subject, row.day, row.length] = row.sketch
        tag = self.tag
        live: list[str] = []
        is_object = len(names) == 1 and ":" in names[0]
        if is_object and is_live:  # of models and of several objects it is as of the last flush
            tag = keys.tag(names[0])
            live = days.keys_of(names[0])
        return replace(uniques.union([*sketches.values()], tag=tag, live=live), absent=None)


def _by_name(rows: Iterable[StoredDay]) -> defaultdict[str, list[StoredDay]]:
    """Returns the rows by subject, as columns have it."""
    by_name: defaultdict[str, list[StoredDay]] = defaultdict(list)
    for row in rows:
        by_name[row.subject].append(row)
    return by_name


def _days_of_points(scope: Scope) -> list[Days]:
    """Returns the days of each point of the chart; none if the points are hours."""
    if scope.by == "hour":
        return []
    starts = [*scope.span.starts(scope.by), scope.span.until]
    return [days_of(Span(start, end)) for start, end in pairwise(starts)]


@dataclass(frozen=True, slots=True)
class PeopleCalls:
    """The calls that count the visitors. Their results are None while their server is silent."""

    total: scripts.Call[Union | None] | None
    compared: scripts.Call[Union | None] | None  # may be `total` itself
    before: scripts.Call[Union | None] | None
    points: Sequence[scripts.Call[Union | None] | int]  # a number where no call is needed
    shown: Mapping[str, scripts.Call[Union | None]]
    groups: Mapping[tuple[str, str], scripts.Call[Union | None]]
    is_cut: bool = False

    @property
    def all(self) -> list[scripts.Call[Any]]:
        """Returns all calls, for a round trip."""
        totals = [call for call in (self.total, self.before) if call is not None]
        if self.compared is not None and self.compared is not self.total:
            totals.append(self.compared)
        points = [point for point in self.points if not isinstance(point, int)]
        return [*totals, *points, *self.shown.values(), *self.groups.values()]

    @property
    def people(self) -> People:
        """Returns the results."""
        return People(
            total=_visitors(self.total),
            compared=_visitors(self.compared),
            before=_visitors(self.before),
            is_cut=self.is_cut,
            by_point=[
                point if isinstance(point, int) else _visitors(point) for point in self.points
            ],
            by_subject={subject: _visitors(call) for subject, call in self.shown.items()},
            by_group={name: _visitors(call) for name, call in self.groups.items()},
        )


def _visitors(call: scripts.Call[Union | None] | None) -> int | None:
    """Returns the number of visitors that a call counted; None if it is not known."""
    if call is None or not call.has_result or call.result is None:
        return None
    return call.result.visitors
