"""Loads the numbers of a scope: SQL's, and Redis's where it answers, in two round trips."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache
from itertools import chain, product
from operator import itemgetter
from time import monotonic
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Model, QuerySet

from readtrack import buckets, subjects
from readtrack.hits.stages import ENGAGED, SEEN
from readtrack.numbers import (
    by_value,
    dimensions,
    groups,
    hours_of_models,
    live_counters,
    local_time,
    publications,
    recent_minutes,
)
from readtrack.numbers.counted import counts_days
from readtrack.numbers.data import (
    ByValue,
    ChartData,
    Counts,
    DayNote,
    Entry,
    GainedByPoint,
    Hashes,
    People,
    PeriodHashes,
    PeriodStages,
    ScopeData,
    SectionReaders,
)
from readtrack.numbers.objects import (
    CANDIDATES,
    MOST,
    OF_FEW,
    Objects,
    Order,
    PeriodViews,
)
from readtrack.numbers.options import enters_funnel, numbers_options
from readtrack.numbers.order import place_among_equals
from readtrack.numbers.people import PeopleCalls, PeopleQuestion, days_of
from readtrack.numbers.reports import funnels
from readtrack.numbers.reports.hashes import hashes as merged_hashes
from readtrack.numbers.reports.people import visitors_in
from readtrack.numbers.reports.time_series import merged
from readtrack.numbers.rising import RECENT_MINUTES
from readtrack.numbers.saved import NOTHING_SAVED, FlushNotesDays, flush_notes_days
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql import breakdown_history, history, period_steps
from readtrack.numbers.sql.first_hours import NO_HOURS_ASKED, AskedHours, FirstHours
from readtrack.numbers.sql.memberships import Group
from readtrack.numbers.sql.usual import Band
from readtrack.numbers.usual import UsualQuestion
from readtrack.numbers.usual_now import LEAST_TIME, MINUTES, Story
from readtrack.reports.page_state import PageQuestion
from readtrack.sql import read_states, row_counts, runs
from readtrack.store import counters, keys, read_state, scripts, skips, trending, uniques
from readtrack.store.circuit import fail_open
from readtrack.subjects import label_in, label_of, subject_column

SKIP_HOURS = 48  # for which Redis keeps skips
RISING = 10  # stories whose views of the last minutes are read: those that trend most
MORE_ROWS = 3  # objects whose visitors are read beside those that a table has rows for
ACCOUNTS_AGE = 300  # seconds for which the number of accounts is kept
#: Tables of objects in another order than by views; the first table of a tab decides.
ORDERS: Mapping[str, Order] = {"grew-most": "growth", "really-read": "reads", "funnel": "reads"}
#: Tables that have a row for each object.
OF_OBJECTS = {"most-viewed", "really-read", *OF_FEW}
#: Those that draw a line for each object.
WITH_TREND = {"most-viewed", "grew-most", "still-read", "below-usual"}


@dataclass(frozen=True, slots=True)
class Needs:
    """The numbers that some tables need of a scope."""

    scope: Scope
    tables: Sequence[str]
    candidates: int = CANDIDATES  # objects of whole models whose numbers are computed
    sees_all: bool = True  # numbers of the whole site may stand beside those of an object

    @property
    def alone(self) -> str:
        """Returns the table of a few objects that needs no others; "" if there are others."""
        of_objects = [name for name in self.tables if name in OF_OBJECTS]
        if len(of_objects) != 1 or self.scope.values or self.order == "growth":
            return ""
        return of_objects[0] if of_objects[0] in OF_FEW else ""

    @property
    def also(self) -> list[str]:
        """Returns the tables of a few objects that are needed beside those with most views."""
        if self.scope.values:
            return []
        has_growth_only = self.order == "growth"
        return [
            name
            for name in OF_FEW
            if name in self.tables and not (name == "grew-most" and has_growth_only)
        ]

    @property
    def order(self) -> Order:
        """Returns the order of the objects."""
        return ORDERS.get(self.tables[0], "views")

    @property
    def order_of_candidates(self) -> Order:
        """Returns the order by which the best objects are found, of which some are shown."""
        return "views" if self.scope.values else self.order

    @property
    def has_chart(self) -> bool:
        """Returns True if numbers are shown by point."""
        return "over-time" in self.tables

    @property
    def has_known_chart(self) -> bool:
        """Returns True if numbers by point are known: of several values together none are."""
        return self.has_chart and not self.scope.is_joint

    @property
    def has_changes(self) -> bool:
        """Returns True if a table has changes since a period nearby. Then it has to be known
        whether history goes back to it.
        """
        has_rows = bool(self.has_entries or self.groups or self.gained_kinds)
        return has_rows and self.scope.is_compared_nearby

    @property
    def dated_kinds(self) -> list[str]:
        """Returns the kinds of hashes of which it has to be known when they were first gained.

        A dimension may have been turned on since the period before. Of all time nothing is earlier.
        """
        has_dates = numbers_options().history and not self.scope.is_all_time
        if not has_dates or self.scope.is_joint:
            return []
        if self.scope.values and (self.has_chart or self.has_entries):
            return [value.kind for value in by_value.values_of(self.scope)]
        return self.gained_kinds

    def asked_hours(self, objects: Objects) -> AskedHours:
        """Returns of what it has to be known how far back history goes."""
        names = objects.model_columns if self.has_chart or self.has_changes else []
        kinds = self.dated_kinds
        return AskedHours(names, objects.labels if kinds else [], kinds)

    @property
    def has_visitors(self) -> bool:
        """Returns True if the visitors of the whole scope are shown: they have no values."""
        return self.has_chart and not self.scope.values

    @property
    def has_recent(self) -> bool:
        """Returns True if the people of the last minutes are shown: they have no values."""
        return "now" in self.tables and not self.scope.values

    @property
    def has_model_points(self) -> bool:
        """Returns True if the chart's points are of whole models."""
        return self.has_chart and not self.scope.is_listed and not self.scope.values

    @property
    def has_entries(self) -> bool:
        """Returns True if single objects are compared, or the chart adds up their points."""
        tables_of_objects = by_value.TABLES if self.scope.values else OF_OBJECTS
        has_table_of_objects = not tables_of_objects.isdisjoint(self.tables)
        is_added_up = self.has_chart or bool(self.groups)
        return has_table_of_objects or (is_added_up and self.scope.is_listed)

    @property
    def groups(self) -> list[Group]:
        """Returns the kinds of groups that the tables show: they have no values."""
        if self.scope.values:
            return []
        return groups.groups_of_tables(self.tables)

    @property
    def has_best(self) -> bool:
        """Returns True if the best of too many objects that filters name are those of the period.

        Otherwise they are those of all time, which saves the query that groups and the funnel cost.
        """
        if "most-viewed" in self.tables:
            return True
        return not self.groups and "funnel" not in self.tables

    @property
    def has_gains(self) -> bool:
        """Returns True if breakdowns show what was gained in the period.

        Of single objects all time is that of their counts, which began before the gains.
        """
        is_by_counts = self.scope.is_listed and self.scope.is_all_time and not self.scope.values
        return numbers_options().history and not is_by_counts

    @property
    def gained_kinds(self) -> list[str]:
        """Returns the kinds of hashes whose gains are read."""
        kinds = _breakdown_kinds(self.tables) if self.has_gains else []
        if not self.scope.values:
            return kinds
        if self.scope.is_joint:
            return []
        [value] = by_value.values_of(self.scope)
        return [value.kind] if value.kind in kinds else []

    @property
    def object_kinds(self) -> list[str]:
        """Returns the kinds of hashes that are read for each object."""
        if self.scope.values:  # see by_value
            return []
        hash_kinds = []
        if "really-read" in self.tables:
            hash_kinds.append("reading")
        if not self.has_gains:
            hash_kinds += _breakdown_kinds(self.tables)
        return hash_kinds

    @property
    def is_chosen_by_trend(self) -> bool:
        """Returns True if objects of whole models are needed, which include trending objects."""
        if self.scope.is_listed or self.scope.values:
            return False
        return self.has_entries or "trending" in self.tables or bool(self.object_kinds)

    @property
    def has_views_outside(self) -> bool:
        """Returns True if the funnel begins with the views of models that do not enter it."""
        if not (self.has_gains and "funnel" in self.tables) or self.scope.values:
            return False
        return not all(enters_funnel(model) for model in self.scope.models)

    @property
    def has_points(self) -> bool:
        """Returns True if numbers are divided among points of time."""
        return self.has_chart or self.has_entries or self.has_views_outside

    @property
    def is_divided(self) -> bool:
        """Returns True if the points of a period are shown one by one, in a chart or as a trend."""
        return self.has_chart or not WITH_TREND.isdisjoint(self.tables)

    @property
    def has_usual(self) -> bool:
        """Returns True if objects are compared with what is usual at their present age."""
        if not (numbers_options().history and self.has_live_counts) or self.scope.values:
            return False
        if "object" in self.scope.chosen:
            return self.has_chart
        has_column = not {"most-viewed", "grew-most", "below-usual"}.isdisjoint(self.tables)
        return has_column and self.scope.is_present

    @property
    def has_views_of_site(self) -> bool:
        """Returns True if the views of the whole site stand beside those of the only object."""
        return self.sees_all and "object" in self.scope.chosen and not self.scope.values

    @property
    def has_live_counts(self) -> bool:
        """Returns True if the counts of all time of single objects are needed."""
        if self.scope.values:
            return False
        return bool(self.object_kinds) or (self.has_entries and self.scope.is_present)


def _breakdown_kinds(tables: Sequence[str]) -> list[str]:
    """Returns the kinds of hashes that the tables of dimensions and of the funnel add up."""
    hash_kinds = []
    for table in tables:
        if table == "funnel":
            hash_kinds.append("funnel")
        elif table.startswith("by-"):
            hash_kinds.append("views:" + table.removeprefix("by-"))
    return hash_kinds


@dataclass(frozen=True, slots=True)
class Bounds:
    """The points of time among which numbers are divided.

    A point has an index: the parts of the period before come first, then one point for the hours
    between the two periods (the gap), then the points of the period. Without a period before there
    are only the points of the period. The gap is one point however long it is, such as the eleven
    months between this month and that of a year ago. If the last point is compared up to the last
    whole hour, a further point has the rest of it.
    """

    first_hours: list[int]  # the first hour (since 1970) of each point
    until: int  # the hour in which the period ends, exclusive
    starts: list[datetime]  # the starts of the period's points, for the chart
    gap_index: int  # the index of the gap; -1 if there is no period before
    indexes_before: range  # the indexes of the parts of the period before
    indexes_beside: list[range]  # those of the parts beside each point; empty for sums
    compared_indexes: range  # the indexes of the points that are compared

    @classmethod
    def of(cls, scope: Scope) -> "Bounds":
        """Returns the bounds of the two periods of a scope."""
        hours = scope.span.first_hours(scope.by)
        starts = scope.span.starts(scope.by)
        return cls._joined(scope, scope.hours_beside(), hours, starts=starts)

    @classmethod
    def of_sums(cls, scope: Scope) -> "Bounds":
        """Returns the bounds of the two periods of a scope, each of which is a single point."""
        first_start = scope.span.starts(scope.by)[:1]  # none in a period without hours
        return cls._joined(scope, [], [scope.span.hours.start], starts=first_start)

    @classmethod
    def _joined(
        cls, scope: Scope, beside: list[range], hours: list[int], *, starts: list[datetime]
    ) -> "Bounds":
        """Returns the bounds of the points that begin with these hours, and of what is beside
        them.
        """
        bounds_before: list[int] = []  # those of the parts, the last of which is that of the gap
        hours_before = range(0)
        if scope.before:
            hours_before = scope.before.hours
            parts = [hours_before, *filter(None, beside)]
            bounds_before = sorted({hour for part in parts for hour in (part.start, part.stop)})
            hours = [max(bounds_before[-1], hour) for hour in hours]
        first_index = len(bounds_before)
        first_hours = [*bounds_before, *hours]
        end_of_compared = len(first_hours)
        rest = scope.first_hour_not_compared
        if rest is not None:
            if hours[-1] < rest < scope.span.hours.stop:
                first_hours.append(rest)
            end_of_compared = bisect_left(first_hours, rest, first_index)
        return cls(
            first_hours=first_hours,
            until=scope.span.hours.stop,
            starts=starts,
            gap_index=first_index - 1,
            indexes_before=_indexes(bounds_before, hours_before),
            indexes_beside=[_indexes(bounds_before, part) for part in beside],
            compared_indexes=range(first_index, end_of_compared),
        )

    @property
    def last_index(self) -> int:
        """Returns the index of the last point."""
        return len(self.first_hours) - 1

    @property
    def indexes(self) -> range:
        """Returns the indexes of the points of the period."""
        return range(self.gap_index + 1, len(self.first_hours))

    @property
    def closing_indexes(self) -> list[int]:
        """Returns the indexes of the points that end a sum, and of those right before a sum."""
        ends = (self.indexes_before.start, self.indexes_before.stop, self.gap_index + 1)
        closing = {end - 1 for end in (*ends, self.compared_indexes.stop)}
        return sorted(index for index in {*closing, self.last_index} if index >= 0)

    def of_starts(self, points: Sequence[Counts]) -> list[Counts]:
        """Returns the points of the period, one for each of its starts, out of all points."""
        *earlier, last = self.indexes
        count = max(1, len(self.starts))
        if len(earlier) < count:
            return [points[index] for index in self.indexes]
        *whole, begun = earlier
        return [*(points[index] for index in whole), _total([points[begun], points[last]])]


def _indexes(bounds: Sequence[int], hours: range) -> range:
    """Returns the indexes of the parts between these bounds that make up the hours."""
    if not hours:
        return range(0)
    return range(bisect_left(bounds, hours.start), bisect_left(bounds, hours.stop))


@dataclass(frozen=True, slots=True)
class FirstAnswers:
    """The results of the first round trip to Redis; empty without Redis.

    A result is None if its server of a cluster does not answer.
    """

    skips: list[Any]  # one result: a counter for each hour, latest hour first
    trending_heads: list[Any]  # one result for each partition
    recent: list[Any]  # one result for each partition: a number, or a sketch of visitors
    model_hours: list[Any]  # the last hours of models
    have_begun: list[bool]  # whether each partition has its read state

    @property
    def is_live(self) -> bool:
        """Returns False if Redis does not answer."""
        return any(answer is not None for answer in (*self.skips, *self.recent))

    @property
    def is_whole(self) -> bool:
        """Returns False if Redis, or a server of a cluster, does not answer."""
        return self.is_live and None not in (*self.skips, *self.recent)


@dataclass(frozen=True, slots=True)
class LiveCounts:
    """The counts of all time of the scope's objects, from the second round trip."""

    stored: Mapping[str, int]  # SQL's views by subject
    views: Mapping[str, int]  # the live views by subject
    hashes: Mapping[counters.Name, live_counters.Hash]


@dataclass(frozen=True, slots=True)
class ModelColumns:
    """The names under which history has the numbers of whole models."""

    views: list[str]  # one for each model and partition
    reads: list[str]  # one for each model
    seen: list[str]  # likewise

    @classmethod
    def of(cls, objects: Objects) -> "ModelColumns":
        """Returns the names of the models of the objects."""
        reads = [history.of_reads(label) for label in objects.labels]
        seen = [history.of_stage("seen", label) for label in objects.labels]
        return cls(objects.model_columns, reads, seen)


@dataclass(frozen=True, slots=True)
class ScopeNumbers:
    """The answers of SQL and Redis about the whole scope. The chart is made of them."""

    asked: Scope
    scope: Scope  # the same, but "all time" begins with the first hour of history
    bounds: Bounds
    columns: ModelColumns
    sums: Mapping[str, history.Sums]  # by name; empty without points of whole models
    entries: Sequence[Entry]
    answers: FirstAnswers
    # The views with the chosen value by index of the point; None unless one is chosen.
    points_of_value: Sequence[int] | None
    is_begun_before: bool  # True if what is shown was counted before the first of the points


def load(
    scope: Scope,
    tables: Sequence[str],
    *,
    sees_all: bool = True,
    row_limit: int = 0,
    candidates: int = CANDIDATES,
    obj: Model | None = None,
) -> ScopeData:
    """Returns the numbers that the tables need, in at most two round trips to Redis.

    `row_limit` is the number of rows of objects that a table needs, 0 for all. The objects of whole
    models are the best of as many `candidates`. `obj` is the only object of the scope, where the
    caller has loaded it. With `sees_all` the chart has the notes of the whole site, and those
    numbers of it that stand beside an object.

    SQL's counts are read before Redis's, because what is settled and written in between would
    count twice.
    """
    needs = Needs(scope, tables, candidates, sees_all)
    objects = Objects(scope, needs.order_of_candidates, obj)
    if scope.is_listed:
        objects.choose(has_best=needs.has_best)
    # The scope of all time has a span of today only, until its first day is looked up.
    scope_with_start = _with_first_day(scope, objects) if needs.has_points else scope
    bounds_of = Bounds.of if needs.is_divided else Bounds.of_sums
    bounds = bounds_of(scope_with_start)
    columns = ModelColumns.of(objects)
    sums = _model_sums(needs, columns=columns, bounds=bounds)

    answers = _first_answers(needs, objects)
    trending_now = _trending(needs, objects, answers=answers)
    _choose_by_tables(needs, objects, trending=trending_now)
    with_value = _with_value(needs, objects, bounds=bounds, row_limit=row_limit)

    asked_hours = needs.asked_hours(objects)
    steps, hours_with_steps = _steps_or_by_value(
        needs, objects, bounds=bounds, with_value=with_value, asked_hours=asked_hours
    )
    best = _best_as_saved(needs, objects, bounds=bounds, steps=steps, row_limit=row_limit)
    shown = _shown_with_visitors(needs, best, row_limit=row_limit)
    groups_of_models = _groups_of_models(needs, objects)
    question = PeopleQuestion.of(
        scope_with_start,
        objects,
        shown=shown,
        has_chart=needs.has_visitors,
        groups=groups.visitors_asked(groups_of_models),
    )
    usual_question = UsualQuestion.of(
        scope,
        objects,
        shown=_shown_with_usual(needs, [*best, *objects.low]),
        now=_viewed_now(needs, objects, trending_now=trending_now),
        has_model_points=needs.has_model_points,
    )
    saved = _saved(
        scope_with_start,
        question,
        usual_question,
        asked_hours=asked_hours,
        found_hours=hours_with_steps,
        is_needed=needs.has_chart,
    )
    late_kinds = _late_kinds(scope, bounds, saved.first_hours)
    is_begun_before = _is_begun_before(needs, bounds, saved.first_hours)
    people_calls = question.calls(saved.days)
    union_calls = _union_calls(scope, answers)
    minute_calls = recent_minutes.by_minute(usual_question.now, MINUTES, at=usual_question.at)
    counts = _live_counts(
        needs, objects, other_calls=[*union_calls, *people_calls.all, *minute_calls]
    )
    minutes = _minutes_now(minute_calls)
    hashes = _hashes(needs, objects, counts=counts)
    gains = _gains(needs, objects, hashes=hashes)
    entries = _entries(needs, objects, bounds=bounds, steps=steps, counts=counts)
    group_rows = {**groups_of_models, **_groups_of_entries(needs, entries)}
    usual = usual_question.compared(saved.usual, counts.views if counts else {})
    chart = None
    if needs.has_known_chart:
        numbers = ScopeNumbers(
            asked=scope,
            scope=scope_with_start,
            bounds=bounds,
            columns=columns,
            sums=sums,
            entries=entries,
            answers=answers,
            points_of_value=_points_of_value(
                scope_with_start, objects, bounds=bounds, with_value=with_value
            ),
            is_begun_before=is_begun_before,
        )
        usual_points = usual_question.points(scope_with_start, saved.usual, comparisons=usual)
        chart = _chart(
            numbers,
            saved,
            usual_points,
            usual_days=usual_question.days(scope_with_start, saved.usual),
            has_notes=sees_all,
        )
    sections = _sections(needs, is_whole=answers.is_whole)
    return ScopeData(
        asked=scope,
        scope=scope_with_start,
        objects=objects,
        row_limit=row_limit or None,
        is_compared=scope.is_compared,
        is_before_known=_is_before_known(
            needs,
            is_begun_before=is_begun_before,
            late_kinds=late_kinds,
            entries=entries,
            gains=gains,
            group_rows=group_rows,
            chart=chart,
        ),
        late_kinds=late_kinds,
        first_gains=_first_gains(saved.first_hours),
        by_value=_comparison(with_value),
        has_gains=needs.has_gains,
        starts=bounds.starts,
        gap_index=bounds.gap_index,
        is_live=answers.is_live,
        is_whole=answers.is_whole,
        is_read_state_lost=read_states.is_lost(has_begun=all(answers.have_begun)),
        # The only result; no skips if Redis, or the server that has them, does not answer.
        skips=next(filter(None, answers.skips), []),
        trending=_trending_until_now(trending_now, minutes),
        entries=entries,
        people=_people(people_calls, needs, entries, row_limit=row_limit),
        usual=usual,
        hashes={**hashes, **_hashes_of_values(with_value)},
        live_views=counts.views if counts else {},
        site_views=_site_views(needs, bounds=bounds, steps=steps),
        engaged=_engaged(needs, bounds=bounds, steps=steps),
        gains=gains,
        stages=_stages(needs, objects, bounds=bounds, gains=gains, steps=steps, counts=counts),
        counted_since=_counted_since(saved.first_hours),
        stories_now=_stories_now(usual_question, saved, minutes, counts=counts),
        recent=_recent(answers, union_calls) if needs.has_recent else None,
        chart=chart,
        sections=sections,
        accounts=_accounts_beside(sections),
        groups=group_rows,
        group_titles=groups.titles(
            group_rows,
            row_limit=row_limit,
            known={section.subject: section.category for section in sections},
        ),
    )


def _choose_by_tables(
    needs: Needs, objects: Objects, *, trending: Sequence[tuple[str, int]]
) -> None:
    """Chooses the objects that the tables show, unless filters have named them."""
    if needs.scope.is_listed:
        objects.find_few(needs.also, is_alone=bool(needs.alone))
    elif needs.alone:
        objects.choose_for(needs.alone)
    elif needs.is_chosen_by_trend:
        objects.choose(
            (subject for subject, _ in trending),
            limit=needs.candidates,
            also=needs.also,
        )


def _groups_of_models(needs: Needs, objects: Objects) -> groups.Rows:
    """Returns the numbers of the groups of whole models; none where filters name the objects."""
    if needs.scope.is_listed:
        return {}
    return groups.rows_of_models(needs.scope, objects.labels, needs.groups)


def _groups_of_entries(needs: Needs, entries: Sequence[Entry]) -> groups.Rows:
    """Returns the numbers of the groups of the objects that filters name; none without such
    filters.
    """
    if not needs.scope.is_listed:
        return {}
    return groups.rows_of_entries(needs.scope, entries, needs.groups)


def _with_value(
    needs: Needs,
    objects: Objects,
    *,
    bounds: Bounds,
    row_limit: int,
) -> by_value.Compared | None:
    """Returns the objects of the scope compared by its chosen values; None without such a value.

    Chooses the best objects of whole models; for a file, which has no limit, MOST.
    """
    if not needs.scope.values:
        return None
    if not needs.has_entries:
        return by_value.NOT_COMPARED
    return by_value.compared(
        needs.scope,
        objects,
        first_hours=bounds.first_hours,
        limit=needs.candidates if row_limit else MOST,
        by_growth=needs.order == "growth",
    )


def _steps_or_by_value(
    needs: Needs,
    objects: Objects,
    *,
    bounds: Bounds,
    with_value: by_value.Compared | None,
    asked_hours: AskedHours,
) -> tuple[Mapping[str, period_steps.Steps], FirstHours | None]:
    """Returns the views of each point by name in history, those with the chosen value if there is
    one; and the first hours, or None where another query has to find them.
    """
    if with_value is not None:
        return with_value.steps, None
    return _steps(needs, objects, bounds=bounds, asked_hours=asked_hours)


def _hashes_of_values(with_value: by_value.Compared | None) -> Hashes:
    """Returns the views of objects with each of several values; none without such values."""
    return {} if with_value is None else with_value.hashes


def _comparison(with_value: by_value.Compared | None) -> ByValue | None:
    """Returns how objects were compared by the chosen values; None without such a value."""
    return None if with_value is None else with_value.comparison


def _points_of_value(
    scope: Scope, objects: Objects, *, bounds: Bounds, with_value: by_value.Compared | None
) -> Sequence[int] | None:
    """Returns the views with the chosen value by point; None without such a value."""
    if with_value is None:
        return None
    if scope.is_listed:
        return by_value.points_of_objects(with_value, length=len(bounds.first_hours))
    return by_value.points_of_models(
        scope, objects, first_hours=bounds.first_hours, until=bounds.until
    )


def _with_first_day(scope: Scope, objects: Objects) -> Scope:
    """Returns the scope; if it is of all time, it begins on the first day of history.

    That is the history of the scope's models, or of its one object.
    """
    if not scope.is_all_time:
        return scope
    first_hour = _first_hour(scope, objects)
    if not first_hour:
        return scope
    day = local_time.day_of(buckets.hour_start(first_hour))
    since = min(local_time.day_start(day), scope.span.since)
    return replace(scope, span=scope.span._replace(since=since))


def _first_hour(scope: Scope, objects: Objects) -> int | None:
    """Returns the first hour (since 1970) of the scope's history; None without history."""
    if not scope.is_listed and objects.ranking:
        return objects.ranking[0].first_hour
    columns = objects.model_columns
    # Of a category's or an author's objects it is that of their models, because they are too many.
    if "object" in scope.chosen:
        columns = _columns(objects)
    return history.first_hour(columns).first()


def _columns_of_scope(scope: Scope, objects: Objects) -> list[str]:
    """Returns the names under which history has the views of the whole scope.

    They are those of models, or of the objects that filters name.
    """
    if scope.is_listed:
        return _columns(objects, has_reads=False)
    return objects.model_columns


def _columns(objects: Objects, *, has_reads: bool = True) -> list[str]:
    """Returns the names under which history has the objects, and the reads of the objects."""
    columns = []
    for subject in objects.stored:
        columns.append(subject_column(subject))
        if has_reads:
            columns.append(subject_column(history.of_reads(subject)))
    return columns


def _model_sums(needs: Needs, *, columns: ModelColumns, bounds: Bounds) -> dict[str, history.Sums]:
    """Returns the sums of whole models in SQL's history, by name.

    They are those at the bounds of the points, and those of each of the last hours, to which
    Redis's counters are added hour by hour.
    """
    has_models = bool(columns.reads)
    if not needs.has_model_points or not has_models:
        return {}
    first_hour = history.BASELINE + 1
    bound_hours = [max(first_hour, hour) for hour in (*bounds.first_hours, bounds.until)]
    first_live_hour = buckets.hour_index(buckets.now()) + 1 - hours_of_models.MODEL_HOURS
    live_hours = range(max(bound_hours[0], first_live_hour), bound_hours[-1])
    return history.sums_between(
        [*columns.views, *columns.reads, *columns.seen],
        sorted({*bound_hours, *live_hours}),
    )


def _first_answers(needs: Needs, objects: Objects) -> FirstAnswers:
    """Returns Redis's answers about skips, trending objects, people now and hours of models."""
    scope = needs.scope
    at = buckets.now()
    skip_calls = [replace(skips.by_hour(SKIP_HOURS, at=at), absent=None)]
    trending_calls = trending.lists(_trending_limit(scope))
    recent_calls: list[scripts.Call[Any]] = []
    if scope.is_listed:
        recent_calls += recent_minutes.views([*objects.stored], RECENT_MINUTES, at=at)
    else:
        recent_calls += recent_minutes.visitors(objects.labels, RECENT_MINUTES, at=at)
    hour_calls: list[scripts.Call[Any]] = []
    if needs.has_model_points:
        end = buckets.hour_index(at) + 1
        hours = range(end - hours_of_models.MODEL_HOURS, end)
        hour_calls += hours_of_models.calls(objects.labels, hours)
    begun_calls: list[scripts.Call[bool]] = []
    if subjects.read_state_models():
        begun_calls += read_state.have_begun(keys.tags())
    calls: list[scripts.Call[Any]] = [*skip_calls, *trending_calls, *recent_calls, *hour_calls]
    has_answered = bool(fail_open(scripts.run_all, [], *calls, *begun_calls))
    if not has_answered:
        return FirstAnswers([], [], [], [], [])
    return FirstAnswers(
        skips=[call.result for call in skip_calls],
        trending_heads=[call.result for call in trending_calls],
        recent=[call.result for call in recent_calls],
        model_hours=[call.result for call in hour_calls],
        have_begun=[call.result for call in begun_calls],
    )


def _trending_limit(scope: Scope) -> int:
    """Returns the number of trending subjects to read: filters leave out most of them."""
    if scope.is_listed or "model" in scope.chosen:
        return scripts.SLICE
    return CANDIDATES


def _trending(needs: Needs, objects: Objects, *, answers: FirstAnswers) -> list[tuple[str, int]]:
    """Returns the trending subjects of the scope's models, and their views of the last hour.

    Some of them may be deleted.
    """
    if not (needs.is_chosen_by_trend or "trending" in needs.tables):
        return []
    limit = _trending_limit(needs.scope)
    best = trending.best(answers.trending_heads, limit)
    if None in answers.trending_heads:  # nobody has computed the list yet
        best = fail_open(trending.top_subjects, [], limit, at=buckets.now())
    return [
        (subject, views) for subject, views in best if subject.partition(":")[0] in objects.labels
    ]


def _steps(
    needs: Needs, objects: Objects, *, bounds: Bounds, asked_hours: AskedHours
) -> tuple[Mapping[str, period_steps.Steps], FirstHours | None]:
    """Returns the views of each point, by name in history, and the first hours.

    The names are those of objects, of their reads and of models, as far as they are needed. Without
    any there is no query, and the first hours are None.
    """
    columns: list[str] = []
    if needs.has_entries:
        # The table of what grew most shows no reads.
        columns += _columns(objects, has_reads=needs.order != "growth")
    if "object" in needs.scope.chosen:
        # Of a category's or an author's objects they would make the query longer.
        stages = product((SEEN, ENGAGED), objects.stored)
        names = [history.of_stage(stage, subject) for stage, subject in stages]
        columns += map(subject_column, names)
    if needs.has_views_of_site:
        columns += _columns_of_site()
    if needs.has_views_outside:
        columns += _columns_of_scope(needs.scope, objects)
    if not columns:
        return {}, None
    indexes = None
    if needs.order == "reads" and not needs.has_chart:
        # These tables show no points, so the numbers of a whole period may be at its last point.
        indexes = bounds.closing_indexes
    return period_steps.steps_and_first_hours(
        columns,
        bounds.first_hours,
        until=bounds.until,
        only_periods=indexes,
        asked_hours=asked_hours,
    )


def _columns_of_site() -> list[str]:
    """Returns the names under which history has the views of all counted models."""
    labels = [*map(label_of, subjects.counted_models())]
    return [f"{label}{tag}" for label, tag in product(labels, keys.past_tags())]


def _site_views(
    needs: Needs, *, bounds: Bounds, steps: Mapping[str, period_steps.Steps]
) -> list[int]:
    """Returns the views of the whole site in each point, as stored; none where they are not
    needed.
    """
    if not needs.has_views_of_site:
        return []
    of_site = [steps.get(column, {}) for column in _columns_of_site()]
    views = _added_up(of_site, length=len(bounds.first_hours))
    return [point.views for point in bounds.of_starts([Counts(count) for count in views])]


def _engaged(
    needs: Needs, *, bounds: Bounds, steps: Mapping[str, period_steps.Steps]
) -> int | None:
    """Returns the views of the period whose reader was active, of the only object of the scope;
    None on another page, and with a value of a dimension.
    """
    subject = needs.scope.chosen.get("object", "")
    column = subject_column(history.of_stage(ENGAGED, subject))
    return _sum_at(bounds.indexes, steps[column]) if column in steps else None


def _union_calls(scope: Scope, answers: FirstAnswers) -> list[scripts.Call[uniques.Union]]:
    """Returns the call that counts the visitors of several partitions together, by their sketches.

    It goes along in the second round trip. The list is empty if no union is needed.
    """
    if scope.is_listed or not keys.is_divided():
        return []
    # Without Redis there are no answers.
    sketch_of_tag = zip(keys.tags(), answers.recent, strict=False)
    sketches = {tag: sketch for tag, sketch in sketch_of_tag if sketch is not None}
    if not sketches:
        return []
    tag_that_answers = next(iter(sketches))
    call = uniques.union([*sketches.values()], tag=tag_that_answers)
    return [replace(call, absent=None)]


def _live_counts(
    needs: Needs, objects: Objects, *, other_calls: Sequence[scripts.Call[Any]]
) -> LiveCounts | None:
    """Returns the counts of all time of each object, from one round trip with the other calls.

    It is None if no table needs the counts; then only the other calls run.
    """
    if not needs.has_live_counts:
        fail_open(scripts.run_all, [], *other_calls)
        return None
    hash_kinds = needs.object_kinds
    not_loaded = [subject for subject, views in objects.stored.items() if views is None]
    rows = row_counts.by_subject(not_loaded)
    stored = {}
    for subject, views in objects.stored.items():
        stored[subject] = views or 0
        if subject in rows:
            stored[subject] = rows[subject].views
    hash_calls = live_counters.hashes(objects.first, hash_kinds) if hash_kinds else []
    question = PageQuestion(counts=stored)
    question.ask(*hash_calls, *other_calls)
    # Without Redis there are no results.
    hash_results = [call.result for call in hash_calls if call.has_result]
    return LiveCounts(stored, question.state().views, _hashes_with_counts(hash_results))


def _hashes_with_counts(
    results: Iterable[Mapping[counters.Name, live_counters.Hash]],
) -> dict[counters.Name, live_counters.Hash]:
    """Returns the hashes that Redis has; of a missing one the result is empty."""
    hashes: dict[counters.Name, live_counters.Hash] = {}
    for result in results:
        hashes.update({name: counted for name, counted in result.items() if counted.counts})
    return hashes


def _recent(
    answers: FirstAnswers, union_calls: Sequence[scripts.Call[uniques.Union]]
) -> int | None:
    """Returns the number of different visitors of the last minutes; None if it is not known.

    If filters name the objects, it is the number of views.
    """
    numbers = answers.recent
    if union_calls:
        # The numbers of partitions are sketches here, of which the call makes one number.
        unions = [call.result for call in union_calls if call.has_result]
        numbers = [union.visitors for union in unions if union is not None]
    known_numbers = [number for number in numbers if number is not None]
    return sum(known_numbers) if known_numbers else None


def _counted_since(first_hours: FirstHours) -> datetime | None:
    """Returns the start of the first hour of history of the scope's models; None without
    history.
    """
    if first_hours.of_views is None:
        return None
    return buckets.hour_start(first_hours.of_views)


def _viewed_now(
    needs: Needs, objects: Objects, *, trending_now: Sequence[tuple[str, int]]
) -> list[str]:
    """Returns the stories whose last minutes are compared: the only object, or those of the scope
    that trend most.
    """
    if not (needs.has_usual and needs.scope.is_present and needs.has_chart):
        return []
    if "object" in needs.scope.chosen:
        return [*objects.stored]
    if "trending" not in needs.tables:
        return []
    subjects_now = [subject for subject, _ in trending_now if subject in objects.stored]
    return subjects_now[:RISING]


def _minutes_now(
    minute_calls: Sequence[scripts.Call[dict[str, list[int]]]],
) -> Mapping[str, Sequence[int]]:
    """Returns the views of the stories that are viewed now in each of the last MINUTES; nothing if
    Redis does not answer, and without those of a silent server.
    """
    if not all(call.has_result for call in minute_calls):
        return {}
    minutes: dict[str, Sequence[int]] = {}
    for call in minute_calls:
        minutes.update(call.result)
    return minutes


def _trending_until_now(
    trending_now: Sequence[tuple[str, int]], minutes: Mapping[str, Sequence[int]]
) -> list[tuple[str, int]]:
    """Returns the trending subjects with their views of the last hour up to now, where these are
    known.

    The list is older, so that it may have fewer views of the hour than are told of five minutes.
    """
    until_now = [
        (subject, sum(minutes[subject]) if subject in minutes else views)
        for subject, views in trending_now
    ]
    viewed = [(subject, views) for subject, views in until_now if views]
    return sorted(viewed, key=itemgetter(1), reverse=True)


def _stories_now(
    usual_question: UsualQuestion,
    saved: FlushNotesDays,
    minutes: Mapping[str, Sequence[int]],
    *,
    counts: LiveCounts | None,
) -> Mapping[str, Story]:
    """Returns the last minutes of the stories that are viewed now, with what is usual for them.

    There are none while less than LEAST_TIME was counted.
    """
    counted_since = _counted_since(saved.first_hours)
    if counts is None or counted_since is None or not minutes:
        return {}
    if usual_question.at - counted_since < LEAST_TIME:
        return {}
    return usual_question.stories_now(
        minutes, saved.usual, counts.views, counted_since=counted_since
    )


def _hashes(needs: Needs, objects: Objects, *, counts: LiveCounts | None) -> Hashes:
    """Returns breakdowns, funnels and reading of all time by kind and subject."""
    if not needs.object_kinds or counts is None:
        return {}
    return merged_hashes(objects.first, needs.object_kinds, counts.hashes)


def _gains(needs: Needs, objects: Objects, *, hashes: Hashes) -> PeriodHashes:
    """Returns the breakdowns and funnels of the two periods, or what they have of a chosen value.

    If no gains are stored, they are the hashes of all time.
    """
    if not needs.has_gains:
        return PeriodHashes(hashes, hashes, None)
    if not needs.gained_kinds:
        return PeriodHashes({}, {}, None)
    gains = _gains_of_periods(needs.scope, objects, kinds=needs.gained_kinds)
    if needs.scope.values:
        gains = [by_value.only_chosen(needs.scope, hashes) for hashes in gains]
    now, *compared_and_before = gains
    if not compared_and_before:
        return PeriodHashes(now, now, None)
    return PeriodHashes(now, *compared_and_before)


def _gains_of_periods(scope: Scope, objects: Objects, *, kinds: Sequence[str]) -> Sequence[Hashes]:
    """Returns the breakdowns and funnels of the period; if it is compared, also those of the part
    that is, and of the period before.
    """
    if scope.is_listed:
        return by_value.gains_of_objects(objects, kinds, by_value.compared_periods_of(scope))
    if scope.is_all_time:
        return breakdown_history.gains(objects.labels, kinds, [range(scope.span.hours.stop)])
    periods = [scope.span.hours]
    if scope.is_compared and scope.compared is not None and scope.before is not None:
        periods += [scope.compared.hours, scope.before.hours]
    return breakdown_history.gains(objects.labels, kinds, periods)


def _stages(
    needs: Needs,
    objects: Objects,
    *,
    bounds: Bounds,
    gains: PeriodHashes,
    steps: Mapping[str, period_steps.Steps],
    counts: LiveCounts | None,
) -> PeriodStages:
    """Returns the stages of all funnels together.

    For models whose views do not enter the funnel, their views are the first stage.
    """
    if "funnel" not in needs.tables:
        return PeriodStages([], [], None)
    labels_outside = [label_of(model) for model in needs.scope.models if not enters_funnel(model)]
    if needs.scope.values:
        views_outside = PeriodViews({}, {}, {})
    elif needs.has_gains:
        columns = _columns_outside(needs.scope, objects, labels=labels_outside)
        views_outside = _views_in_periods(columns, bounds=bounds, steps=steps)
    else:
        live_views = counts.views if counts else {}
        views_of_objects: dict[str, int] = {}
        for subject in objects.first:
            label, _, _ = subject.partition(":")
            if label in labels_outside:
                views_of_objects[subject] = live_views[subject]
        views_outside = PeriodViews(views_of_objects, {}, {})
    stages = funnels.stages(_funnels(gains.now), views_outside.now)
    if gains.before is None:
        return PeriodStages(stages, stages, None)
    compared = funnels.stages(_funnels(gains.compared), views_outside.compared)
    stages_before = funnels.stages(_funnels(gains.before), views_outside.before)
    return PeriodStages(stages, compared, stages_before)


def _funnels(hashes: Hashes) -> dict[tuple[str, str], Counter[str]]:
    """Returns those of the hashes that are funnels."""
    return {
        (hash_kind, subject): counts
        for (hash_kind, subject), counts in hashes.items()
        if hash_kind == "funnel"
    }


def _columns_outside(scope: Scope, objects: Objects, *, labels: Sequence[str]) -> dict[str, str]:
    """Returns the labels by the names under which history has the views of these models.

    If filters name the objects, the names are those of the objects.
    """
    if scope.is_listed:
        subjects_by_label = [(subject.partition(":")[0], subject) for subject in objects.first]
        return {
            subject_column(subject): label
            for label, subject in subjects_by_label
            if label in labels
        }
    return {f"{label}{tag}": label for label, tag in product(labels, keys.past_tags())}


def _views_in_periods(
    label_by_column: Mapping[str, str],
    *,
    bounds: Bounds,
    steps: Mapping[str, period_steps.Steps],
) -> PeriodViews:
    """Returns the views of models by label.

    `label_by_column` are the names in history whose views are added up.
    """
    now = Counter[str]()
    compared = Counter[str]()
    before = Counter[str]()
    for column, label in label_by_column.items():
        now[label] += _sum_at(bounds.indexes, steps[column])
        compared[label] += _sum_at(bounds.compared_indexes, steps[column])
        before[label] += _sum_at(bounds.indexes_before, steps[column])
    return PeriodViews(now, before, compared)


def _entries(
    needs: Needs,
    objects: Objects,
    *,
    bounds: Bounds,
    steps: Mapping[str, period_steps.Steps],
    counts: LiveCounts | None,
) -> list[Entry]:
    """Returns the objects of the scope with their numbers, the best first in the needed order."""
    if not needs.has_entries:
        return []
    entries = [
        _entry(subject, needs.scope, bounds=bounds, steps=steps, counts=counts)
        for subject in objects.stored
    ]

    def rank(entry: Entry) -> tuple[int, Any]:
        number = entry.growth if needs.order == "growth" else getattr(entry.now, needs.order)
        return number, place_among_equals(entry.subject)

    return sorted(entries, key=rank, reverse=True)


def _entry(
    subject: str,
    scope: Scope,
    *,
    bounds: Bounds,
    steps: Mapping[str, period_steps.Steps],
    counts: LiveCounts | None,
) -> Entry:
    """Returns the numbers of an object in the period and in the one before."""
    views = steps[subject_column(subject)]
    reads = steps.get(subject_column(history.of_reads(subject)), {})
    if counts and scope.is_present:
        # Views that no flush has written yet belong to the last point.
        unflushed = counts.views.get(subject, 0) - counts.stored.get(subject, 0)
        if unflushed:
            last = bounds.last_index
            views = {**views, last: views.get(last, 0) + unflushed}
    seen = steps.get(subject_column(history.of_stage("seen", subject)), {})
    gained = GainedByPoint(views=views, reads=reads, seen=seen)
    now = _counts_at(bounds.indexes, gained)
    compared = _counts_at(bounds.compared_indexes, gained)
    before = _counts_at(bounds.indexes_before, gained)
    if counts and scope.is_all_time:
        # All time includes views from before history began, which are in no point.
        now = now._replace(views=max(now.views, counts.views.get(subject, 0)))
    return Entry(
        subject=subject,
        now=now,
        compared=compared,
        before=before,
        growth=compared.views - before.views,
        gained=gained,
    )


def _counts_at(indexes: range, gained: GainedByPoint) -> Counts:
    """Returns what was gained in the points with these indexes."""
    return Counts(
        views=_sum_at(indexes, gained.views),
        reads=_sum_at(indexes, gained.reads),
        seen=_sum_at(indexes, gained.seen),
    )


def _sum_at(indexes: range, numbers: Mapping[int, int]) -> int:
    return sum(number for index, number in numbers.items() if index in indexes)


def _saved(
    scope: Scope,
    question: PeopleQuestion,
    usual_question: UsualQuestion,
    *,
    asked_hours: AskedHours,
    found_hours: FirstHours | None,
    is_needed: bool,
) -> FlushNotesDays:
    """Returns the last flush, the notes of the period, the days of visitors, what is usual, and the
    first hours of history, unless they are found.

    Nothing is read unless that `is_needed` or a question asks for something.
    """
    if found_hours is not None:
        asked_hours = NO_HOURS_ASKED
    is_asked = usual_question.rated or any(asked_hours) or not question.is_empty
    if not (is_needed or is_asked):
        return NOTHING_SAVED._replace(first_hours=found_hours or FirstHours())
    first_day, last_day = days_of(scope.span)
    saved = flush_notes_days(
        first_day,
        last_day,
        days=question.asked,
        asked_usual=usual_question.asked,
        asked_hours=asked_hours,
    )
    return saved if found_hours is None else saved._replace(first_hours=found_hours)


def _best_as_saved(
    needs: Needs,
    objects: Objects,
    *,
    bounds: Bounds,
    steps: Mapping[str, period_steps.Steps],
    row_limit: int,
) -> list[str]:
    """Returns the subjects that a table of the page shows; in an export, which has no limit, all.

    They are the best ones as of the last flush. Views since then may change the order, so they are
    CANDIDATES, more than the table has rows.
    """
    entries = _entries(needs, objects, bounds=bounds, steps=steps, counts=None)
    limit = needs.candidates if row_limit else None
    return [entry.subject for entry in entries[:limit]]


def _shown_with_visitors(needs: Needs, best: Sequence[str], *, row_limit: int) -> Sequence[str]:
    """Returns the subjects whose visitors a table of the page shows. An export reads them later."""
    if "most-viewed" not in needs.tables or not row_limit or needs.scope.values:
        return []
    return best[: min(row_limit, CANDIDATES) + MORE_ROWS]


def _shown_with_usual(needs: Needs, best: Sequence[str]) -> Sequence[str]:
    """Returns the subjects that are compared with what is usual."""
    return best if needs.has_usual else []


def _people(
    calls: PeopleCalls, needs: Needs, entries: Sequence[Entry], *, row_limit: int
) -> People:
    """Returns the different visitors; in an export also those of all its objects."""
    people = calls.people
    if "most-viewed" not in needs.tables or row_limit or needs.scope.values:
        return people
    viewed = [entry.subject for entry in entries if entry.now.views]
    counted = [subject for subject in viewed if counts_days(label_in(subject))]
    return people._replace(by_subject=visitors_in(counted, days_of(needs.scope.span)))


def _chart(
    numbers: ScopeNumbers,
    saved: FlushNotesDays,
    usual: Sequence[Band | None],
    *,
    usual_days: Mapping[date, Band],
    has_notes: bool,
) -> ChartData:
    """Returns the numbers by point, what is usual there, their totals, and the notes and the last
    flush.
    """
    all_points = _points(numbers)
    bounds = numbers.bounds
    points = bounds.of_starts(all_points)
    points_before: list[Counts | None] = []
    total_before = None
    if numbers.asked.is_compared:
        for indexes in bounds.indexes_beside:
            parts = [all_points[index] for index in indexes]
            points_before.append(_total(parts) if parts else None)
        total_before = _total([all_points[index] for index in bounds.indexes_before])
    compared = _total([all_points[index] for index in bounds.compared_indexes])
    total = _total(points)
    if numbers.asked.is_all_time and numbers.points_of_value is None:
        total = _with_views_before_history(total, numbers)
    return ChartData(
        points_before=points_before,
        points=points,
        total_before=total_before,
        is_before_whole=_is_before_whole(numbers, total_before),
        total=total,
        compared=compared,
        is_summed=_is_summed(total, numbers, saved),
        known_until=_known_until(is_live=numbers.answers.is_live),
        notes=_notes_by_day(saved.notes if has_notes else [], numbers.scope),
        last_flush=saved.run,
        summed_until=saved.full_until,
        usual=usual,
        usual_days=usual_days,
    )


def _is_before_whole(numbers: ScopeNumbers, total_before: Counts | None) -> bool:
    """Returns False if nothing was counted until the period before had begun.

    Then history lacks the first days of the period before, most likely, so that a change would
    compare a period with a part of one. That of objects that filters name goes by the history of
    their models, because the objects may be new.

    A period that lies further back needs views of its own, because counts that a site has imported
    are older than its history.
    """
    if total_before and not (total_before.views or numbers.asked.is_compared_nearby):
        return False
    return numbers.is_begun_before


def _is_begun_before(needs: Needs, bounds: Bounds, first_hours: FirstHours) -> bool:
    """Returns True if the models of the scope were counted before the first of the points, and by
    the chosen value of a dimension if there is one.
    """
    first_hour = first_hours.of_views
    if first_hour is None or first_hour >= bounds.first_hours[0]:
        return False
    return not (needs.scope.values and _late_kinds(needs.scope, bounds, first_hours))


def _first_gains(first_hours: FirstHours) -> dict[str, datetime]:
    """Returns when the first gain was of each kind of hash."""
    return {kind: buckets.hour_start(hour) for kind, hour in first_hours.by_kind.items()}


def _late_kinds(scope: Scope, bounds: Bounds, first_hours: FirstHours) -> set[str]:
    """Returns the kinds of hashes that were turned on after the first of the points.

    Of others the first gain does not tell that: a first campaign may come after years without any.
    """
    return {
        kind
        for kind, hour in first_hours.by_kind.items()
        if hour >= bounds.first_hours[0] and _is_gained_by_all_views(scope, kind)
    }


def _is_gained_by_all_views(scope: Scope, kind: str) -> bool:
    """Returns True if nearly every view of a model of the scope adds to the hashes of this kind."""
    if kind == "funnel":
        return any(enters_funnel(model) for model in scope.models)
    return dimensions.is_of_all_views(kind.removeprefix("views:"))


def _is_before_known(
    needs: Needs,
    *,
    is_begun_before: bool,
    late_kinds: Collection[str],
    entries: Sequence[Entry],
    gains: PeriodHashes,
    group_rows: groups.Rows,
    chart: ChartData | None,
) -> bool:
    """Returns False if history does not go back to the period before.

    The chart knows that best. Without one, a period nearby is known if history begins before it,
    and an earlier one if the table has a number of that period.
    """
    has_late_value = bool(needs.scope.values and late_kinds)
    if has_late_value or (chart is not None and not chart.is_before_whole):
        return False
    if needs.scope.is_compared_nearby or not needs.scope.is_compared:
        return is_begun_before or chart is not None or not needs.has_changes
    return _has_numbers_before(entries, gains, group_rows)


def _has_numbers_before(
    entries: Sequence[Entry], gains: PeriodHashes, group_rows: groups.Rows
) -> bool:
    """Returns True if an object, a value or a group has a number of the period before."""
    rows = chain.from_iterable(group_rows.values())
    of_rows = (row.before for row in rows)
    of_entries = (entry.before for entry in entries)
    if any(count.views for count in chain(of_entries, of_rows)):
        return True
    gains_before = gains.before or {}
    return any(counter.total() for counter in gains_before.values())


def _points(numbers: ScopeNumbers) -> list[Counts]:
    """Returns the numbers of the whole scope by index of the point, those of the gap included."""
    if numbers.points_of_value is not None:
        return [Counts(views) for views in numbers.points_of_value]
    if numbers.asked.is_listed:
        return _points_of_entries(numbers)
    columns = numbers.columns
    views = _sums_by_point(columns.views, numbers, live=numbers.answers.model_hours)
    # Redis has no hours of reads and of seen views.
    reads = _sums_by_point(columns.reads, numbers, live=[])
    seen = _sums_by_point(columns.seen, numbers, live=[])
    return [Counts(*counts) for counts in zip(views, reads, seen, strict=True)]


def _sums_by_point(
    columns: Sequence[str], numbers: ScopeNumbers, *, live: Sequence[Any]
) -> list[int]:
    """Returns the sums of one number of whole models, such as views, by index of the point.

    `columns` are the names of the number in history, `live` are Redis's counters of the last hours.
    """
    bounds = numbers.bounds
    stored = {column: numbers.sums[column] for column in columns}
    sums = [0] * len(bounds.first_hours)
    for hour, count in merged(stored, live).items():
        if bounds.first_hours[0] <= hour < bounds.until:
            index = bisect_right(bounds.first_hours, hour) - 1
            sums[index] += count
    return sums


def _points_of_entries(numbers: ScopeNumbers) -> list[Counts]:
    """Returns the numbers of all objects together by index of the point."""
    length = len(numbers.bounds.first_hours)
    gained = [entry.gained for entry in numbers.entries]
    views = _added_up((by_point.views for by_point in gained), length=length)
    reads = _added_up((by_point.reads for by_point in gained), length=length)
    seen = _added_up((by_point.seen for by_point in gained), length=length)
    return [Counts(*counts) for counts in zip(views, reads, seen, strict=True)]


def _added_up(numbers_by_index: Iterable[Mapping[int, int]], *, length: int) -> list[int]:
    """Returns the sums of the numbers at each index below `length`."""
    sums = [0] * length
    for numbers in numbers_by_index:
        for index, number in numbers.items():
            sums[index] += number
    return sums


def _total(points: Sequence[Counts]) -> Counts:
    return Counts(
        views=sum(point.views for point in points),
        reads=sum(point.reads for point in points),
        seen=sum(point.seen for point in points),
    )


def _with_views_before_history(total: Counts, numbers: ScopeNumbers) -> Counts:
    """Returns the total of all time with what came before history, which is in no point."""
    if numbers.asked.is_listed:
        views = sum(entry.now.views for entry in numbers.entries)
        return total._replace(views=max(total.views, views))
    columns = numbers.columns
    return Counts(
        views=total.views + _sum_before_history(columns.views, numbers),
        reads=total.reads + _sum_before_history(columns.reads, numbers),
        seen=total.seen + _sum_before_history(columns.seen, numbers),
    )


def _sum_before_history(columns: Sequence[str], numbers: ScopeNumbers) -> int:
    return sum(numbers.sums[column].before for column in columns)


def _is_summed(total: Counts, numbers: ScopeNumbers, saved: FlushNotesDays) -> bool:
    """Returns False until a full flush has added up the reads of what was viewed.

    It is False, too, if a value of a dimension is chosen, because reads have none.
    """
    if numbers.points_of_value is not None:
        return False
    if numbers.asked.is_listed or not total.views or saved.full_until:
        return True
    sums = [numbers.sums[column] for column in numbers.columns.reads if column in numbers.sums]
    return any(sum_of_reads.rows or sum_of_reads.before for sum_of_reads in sums)


def _known_until(*, is_live: bool) -> datetime:
    """Returns the time until which views are known: without Redis that of the last good flush."""
    if is_live:
        return buckets.now()
    last_good = runs.last_good()
    if last_good is None:
        return buckets.hour_start(0)
    return last_good.began


def _notes_by_day(notes: Sequence[tuple[date, str]], scope: Scope) -> dict[date, Sequence[DayNote]]:
    """Returns the notes of each day that has notes or publications, in the order of the days."""
    notes_by_day: dict[date, list[DayNote]] = {}
    for day, text in notes:
        notes_by_day.setdefault(day, []).append(DayNote(text))
    for day, publications_of_day in publications.notes_of(scope).items():
        notes_by_day.setdefault(day, []).extend(publications_of_day)
    return {day: notes_by_day[day] for day in sorted(notes_by_day)}


def _sections(needs: Needs, *, is_whole: bool) -> list[SectionReaders]:
    """Returns the categories with their readers, the fewest first; none if no table needs them."""
    if "sections" not in needs.tables:
        return []
    categories: dict[str, Any] = {}
    for rows in _section_rows(needs.scope):
        categories.update((subjects.subject_of(row), row) for row in rows[:MOST])
    if not categories:
        return []
    readers: Mapping[str, int] = {}
    # A form of read state whose readers have to be counted waits long for a server that is silent.
    if is_whole:
        readers = fail_open(read_state.count_readers, {}, [*categories])
    if not readers:
        stored = history.newest_readers([subject_column(subject) for subject in categories])
        readers = {subject: stored.get(subject_column(subject), 0) for subject in categories}
    sections = [
        SectionReaders(subject, row, readers.get(subject, 0)) for subject, row in categories.items()
    ]
    return sorted(sections, key=lambda section: section.readers)


def _section_rows(scope: Scope) -> list["QuerySet[Any]"]:
    """Returns the rows of each model with read state; with a chosen category that one only."""
    models = _section_models(scope)
    if "category" not in scope.chosen:
        return [model._default_manager.order_by("pk") for model in models]
    chosen = subjects.parse_subject(scope.chosen["category"])
    if chosen is None or subjects.owner(chosen[0]) not in models:
        return []
    model, pk = chosen
    return [subjects.owner(model)._default_manager.filter(pk=pk)]


def _section_models(scope: Scope) -> list[type[Model]]:
    """Returns the models with read state; with a chosen model those that its objects link to.

    Models whose readers nobody can count are left out.
    """
    models = [
        model
        for model in subjects.read_state_models()
        if read_state.form_of(subjects.label_of(model)).knows_readers
    ]
    if "model" not in scope.chosen:
        return models
    links = [link for model in scope.models for link in subjects.news_links(model)]
    linked_models = {subjects.owner(link.related_model) for link in links}
    return [model for model in models if model in linked_models]


def _accounts_beside(sections: Sequence[SectionReaders]) -> int:
    """Returns the number of active accounts; 0 without categories that it is shown beside."""
    if not sections:
        return 0
    # The number is cached: the second argument changes every ACCOUNTS_AGE seconds.
    return _accounts(keys.prefix(), monotonic() // ACCOUNTS_AGE)


@lru_cache(maxsize=100)  # because to count millions takes long
def _accounts(tenant: str, five_minutes: float) -> int:
    """Returns the number of active accounts.

    The parameters only tell cached numbers apart: each tenant has its own, for five minutes.
    """
    return get_user_model()._default_manager.filter(is_active=True).count()
