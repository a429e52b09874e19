"""Loads the numbers of the dashboard: SQL's, and Redis's where it answers, in two round trips."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache
from itertools import chain, islice, product
from time import monotonic
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Model
from django.utils import timezone

from readtrack import buckets, subjects
from readtrack.conf import conf
from readtrack.dashboard.data import (
    ChartData,
    Counts,
    DashboardData,
    Entry,
    Hashes,
    SectionReaders,
)
from readtrack.dashboard.objects import CANDIDATES, MOST, Objects, Order
from readtrack.dashboard.scope import MOMENT, Scope
from readtrack.reports import funnels
from readtrack.reports.funnels import Stage
from readtrack.reports.hashes import hashes as merged_hashes
from readtrack.reports.page_state import page_state
from readtrack.reports.time_series import merged
from readtrack.sql import breakdown_history, history, period_steps, row_counts, runs
from readtrack.store import counters, keys, read_state, scripts, skips, trending, uniques
from readtrack.store.circuit import fail_open
from readtrack.subjects import enters_funnel, label_of, subject_column

SKIP_HOURS = 48  # for which Redis keeps skips
RECENT_MINUTES = 5
#: Tables of objects in another order than by views; the first table of a tab decides.
ORDERS: Mapping[str, Order] = {"grew-most": "growth", "really-read": "reads", "funnel": "reads"}
OF_OBJECTS = {"most-viewed", "grew-most", "really-read"}


@dataclass(frozen=True, slots=True)
class Needs:
    """What some tables need of a scope."""

    scope: Scope
    tables: Sequence[str]

    @property
    def order(self) -> Order:
        """The order of the objects."""
        return ORDERS.get(self.tables[0], "views")

    @property
    def has_chart(self) -> bool:
        """True if numbers are shown by point."""
        return "over-time" in self.tables

    @property
    def has_model_points(self) -> bool:
        """True if the chart's points are of whole models."""
        return self.has_chart and not self.scope.is_listed

    @property
    def has_entries(self) -> bool:
        """True if single objects are compared, or the chart's points are those of its objects."""
        of_objects = not OF_OBJECTS.isdisjoint(self.tables)
        return of_objects or (self.has_chart and self.scope.is_listed)

    @property
    def has_gains(self) -> bool:
        """True if breakdowns are what whole models gained, which is stored by the hour.

        Of each object only the count of all time is stored.
        """
        return bool(conf.HISTORY) and not self.scope.is_listed

    @property
    def model_kinds(self) -> list[str]:
        """Kinds of hashes whose gains are read of whole models."""
        return _breakdown_kinds(self.tables) if self.has_gains else []

    @property
    def object_kinds(self) -> list[str]:
        """Kinds of hashes that are read of each object."""
        kinds = [f"views:{name}" for name in self.scope.values]
        if "really-read" in self.tables:
            kinds.append("reading")
        if not self.has_gains:
            kinds += _breakdown_kinds(self.tables)
        return kinds

    @property
    def is_chosen_by_trend(self) -> bool:
        """True if objects of whole models are needed: some are chosen as they are trending."""
        if self.scope.is_listed:
            return False
        return self.has_entries or "trending" in self.tables or bool(self.object_kinds)

    @property
    def has_views_outside(self) -> bool:
        """True if gains of a funnel begin with the views of a model that does not enter it."""
        if not (self.has_gains and "funnel" in self.tables):
            return False
        return not all(enters_funnel(model) for model in self.scope.models)

    @property
    def has_points(self) -> bool:
        """True if numbers are divided among points of time."""
        return self.has_chart or self.has_entries or self.has_views_outside

    @property
    def has_live_counts(self) -> bool:
        """True if the counts of all time of single objects are needed."""
        is_until_now = self.scope.is_present or self.scope.before is None
        return bool(self.object_kinds) or (self.has_entries and is_until_now)


def _breakdown_kinds(tables: Sequence[str]) -> list[str]:
    """Returns the kinds of hashes that tables of dimensions and of the funnel add up."""
    kinds = []
    for name in tables:
        if name == "funnel":
            kinds.append("funnel")
        elif name.startswith("by-"):
            kinds.append("views:" + name.removeprefix("by-"))
    return kinds


@dataclass(frozen=True, slots=True)
class Bounds:
    """The points of time among which numbers are divided."""

    # The first hours of the points of the period before, of what is between the two, and of the
    # chart's points.
    hours: list[int]
    until: int  # the hour in which the period ends, exclusive
    starts: list[datetime]  # of the chart's points

    @classmethod
    def of(cls, scope: Scope) -> "Bounds":
        """Returns the bounds of the two periods of a scope."""
        before = scope.before
        end = before.hours.stop if before else 0
        hours = [*before.first_hours(scope.by), end] if before else []
        hours += [max(end, hour) for hour in scope.span.first_hours(scope.by)]
        return cls(hours, scope.span.hours.stop, scope.span.starts(scope.by))

    @property
    def gap(self) -> int:
        """Returns the number of the points of the period before; -1 if there is none."""
        return len(self.hours) - len(self.starts) - 1

    @property
    def last(self) -> int:
        """Returns the index of the last point."""
        return len(self.hours) - 1

    @property
    def ends(self) -> list[int]:
        """Returns the last places of the period before, of the gap and of the period."""
        return [index for index in (self.gap - 1, self.gap, self.last) if index >= 0]


@dataclass(frozen=True, slots=True)
class FirstAnswers:
    """Redis's answers of the first round trip; empty without Redis."""

    skips: list[Any]  # None if the server does not answer, as below
    trending_heads: list[Any]
    recent: list[Any]
    model_hours: list[Any]

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
    """The counts of all time of the scope's objects."""

    stored: Mapping[str, int]  # SQL's views
    views: Mapping[str, int]  # Redis's views
    hashes: Mapping[counters.Name, counters.Hash]
    answers: list[Any]  # to the other calls of the round trip


@dataclass(frozen=True, slots=True)
class ModelNames:
    """The names that history has of whole models."""

    views: list[str]  # one for each partition
    visitors: list[str]
    reads: list[str]

    @classmethod
    def of(cls, objects: Objects) -> "ModelNames":
        """Returns the names of the models of the objects."""
        visitors = [history.of_visitors(label) for label in objects.labels]
        reads = [history.of_reads(label) for label in objects.labels]
        return cls(objects.names, visitors, reads)

    @property
    def all(self) -> list[list[str]]:
        """Returns the names in the order of Counts."""
        return [self.views, self.visitors, self.reads]


def load(
    scope: Scope,
    tables: Sequence[str],
    *,
    has_notes: bool = True,
    shown: int = 0,
    obj: Model | None = None,
) -> DashboardData:
    """Returns the numbers that the tables need, in at most two round trips to Redis.

    `shown` is the number of rows that a table needs of many, 0 for all; `obj` the only object,
    where it is known. With `has_notes` the chart has the notes of the whole site.

    SQL's counts are read before Redis's, because what is settled and written in between would
    count twice.
    """
    needs = Needs(scope, tables)
    objects = Objects(scope, needs.order, obj)
    if scope.is_listed:
        objects.choose()
    dated = _dated(scope, objects) if needs.has_points else scope
    bounds = Bounds.of(dated)
    names = ModelNames.of(objects)
    sums = _model_sums(needs, names=names, bounds=bounds)

    first = _first_answers(needs, objects)
    hot = _trending(needs, objects, first=first)
    if needs.is_chosen_by_trend:
        objects.choose(subject for subject, _ in hot)

    steps = _steps(needs, objects, bounds=bounds)
    union = _union(scope, first)
    counts = _live_counts(needs, objects, others=union)
    hashes = _hashes(needs, objects, counts=counts)
    gains = _gains(needs, objects, hashes=hashes)

    entries = _entries(needs, objects, bounds=bounds, steps=steps, counts=counts)
    chart = None
    if needs.has_chart:
        points = _points(scope, names, bounds=bounds, entries=entries, sums=sums, first=first)
        chart = _chart(
            scope,
            dated,
            names=names,
            bounds=bounds,
            points=points,
            entries=entries,
            sums=sums,
            is_live=first.is_live,
            has_notes=has_notes,
        )
    sections = _sections(scope, is_whole=first.is_whole) if "sections" in tables else []
    return DashboardData(
        asked=scope,
        scope=dated,
        objects=objects,
        shown=shown or None,
        is_compared=_is_compared(scope),
        has_gains=needs.has_gains,
        starts=bounds.starts,
        gap=bounds.gap,
        is_live=first.is_live,
        is_whole=first.is_whole,
        skips=next(filter(None, first.skips), []),
        trending=hot,
        entries=entries,
        hashes=hashes,
        gains=gains,
        stages=_stages(needs, objects, bounds=bounds, gains=gains, steps=steps, counts=counts),
        recent=_recent(first, union, counts=counts) if "now" in tables else None,
        chart=chart,
        sections=sections,
        accounts=_accounts(keys.prefix(), monotonic() // 300) if sections else 0,
    )


def _is_compared(scope: Scope) -> bool:
    return scope.before is not None and len(scope.before.hours) > 0


def _dated(scope: Scope, objects: Objects) -> Scope:
    """Returns the scope; that of all time begins with the first hour of history.

    It is the history of the scope's models, or of its one object.
    """
    if scope.before is not None:
        return scope
    # That of a category is its models', because its objects have too many rows.
    names = _columns(objects) if "object" in scope.chosen else objects.names
    ranking = () if scope.is_listed else objects.ranking
    first = ranking[0][-1] if ranking else history.first_hour(names).first()
    if not first:
        return scope
    day = timezone.localtime(buckets.hour_start(first)).date()
    since = min(buckets.day_start(day), scope.span.since)
    return replace(scope, span=scope.span._replace(since=since))


def _columns(objects: Objects) -> list[str]:
    """Returns the names that history has of the objects, each followed by that of its reads."""
    columns = []
    for subject in objects.stored:
        columns.append(subject_column(subject))
        columns.append(subject_column(history.of_reads(subject)))
    return columns


def _model_sums(needs: Needs, *, names: ModelNames, bounds: Bounds) -> dict[str, history.Sums]:
    """Returns the sums of whole models in SQL's history, by bounds and by the last hours."""
    if not needs.has_model_points or not names.visitors:  # which are none without models
        return {}
    ends = [max(history.BASELINE + 1, hour) for hour in (*bounds.hours, bounds.until)]
    oldest = buckets.hour_index(buckets.now()) + 1 - counters.MODEL_HOURS
    recent = range(max(ends[0], oldest), ends[-1])
    return history.sums_between([*chain(*names.all)], sorted({*ends, *recent}))


def _first_answers(needs: Needs, objects: Objects) -> FirstAnswers:
    """Returns skips, the heads of the trending lists, what is now, and the last hours of models."""
    scope = needs.scope
    at = buckets.now()
    groups: list[list[Any]] = [
        [replace(skips.by_hour(SKIP_HOURS, at=at), absent=None)],
        trending.lists(_trending_limit(scope)),
    ]
    if scope.is_listed:
        groups.append(trending.recent([*objects.stored], RECENT_MINUTES, at=at))
    else:
        groups.append(uniques.of_minutes(objects.labels, RECENT_MINUTES, at=at))
    if needs.has_model_points:
        end = buckets.hour_index(at) + 1
        hours = range(end - counters.MODEL_HOURS, end)
        groups.append(counters.model_hours(objects.labels, hours))
    else:
        groups.append([])
    answers = iter(fail_open(scripts.run_all, [], *chain(*groups)))
    refused, heads, recent, model_hours = ([*islice(answers, len(calls))] for calls in groups)
    return FirstAnswers(refused, heads, recent, model_hours)


def _trending_limit(scope: Scope) -> int:
    """Returns the number of trending subjects to read: filters leave out most of them."""
    return scripts.SLICE if scope.is_listed or "model" in scope.chosen else CANDIDATES


def _trending(needs: Needs, objects: Objects, *, first: FirstAnswers) -> list[tuple[str, int]]:
    """Returns trending subjects of the scope's models, and their views of the last hour.

    Some of them may be deleted.
    """
    if not (needs.is_chosen_by_trend or "trending" in needs.tables):
        return []
    limit = _trending_limit(needs.scope)
    best = trending.best(first.trending_heads, limit)
    if None in first.trending_heads:  # nobody has computed the list yet
        best = fail_open(trending.top_subjects, [], limit, at=buckets.now())
    return [
        (subject, views) for subject, views in best if subject.partition(":")[0] in objects.labels
    ]


def _steps(needs: Needs, objects: Objects, *, bounds: Bounds) -> Mapping[str, period_steps.Steps]:
    """Returns views and visitors by name in history and index among the bounds.

    "Reading" shows no points, so those of a period are at one index. What grew most has points,
    but no reads.
    """
    columns = _columns(objects) if needs.has_entries else []
    if needs.order == "growth":
        columns = columns[::2]
    names = [*columns, *objects.names] if needs.has_views_outside else columns
    if not names:
        return {}
    is_of_ends = needs.order == "reads" and not needs.has_chart
    indexes = bounds.ends if is_of_ends else None
    return period_steps.steps(names, bounds.hours, until=bounds.until, only_periods=indexes)


def _union(scope: Scope, first: FirstAnswers) -> list[scripts.Call[int]]:
    """Returns the call that counts the people of several partitions together.

    It is for the second round trip. There is none if one partition has all, or no server answers.
    """
    answers = zip(keys.tags(), first.recent, strict=False)  # no answer: nothing was asked
    sketches = {tag: answer for tag, answer in answers if answer is not None}
    if scope.is_listed or conf.PARTITIONS == 1 or not sketches:
        return []
    name = keys.minute_visitors(next(iter(sketches)), "", "")
    return [replace(uniques.count_together(name, [*sketches.values()]), absent=None)]


def _live_counts(
    needs: Needs, objects: Objects, *, others: Sequence[scripts.Call[Any]]
) -> LiveCounts | None:
    """Returns the counts of all time of each object, from one round trip.

    That has other calls, too. It is None if no table needs the counts.
    """
    if not needs.has_live_counts:
        return None
    kinds = needs.object_kinds
    unknown = [subject for subject, views in objects.stored.items() if views is None]
    rows = row_counts.by_subject(unknown)
    stored = {}
    for subject, views in objects.stored.items():
        stored[subject] = rows[subject].views if subject in rows else views or 0
    reads = counters.hashes(objects.first, kinds) if kinds else []
    state = page_state(counts=stored, extra_calls=[*reads, *others])
    hashes = _known_hashes(state.extra_results[: len(reads)])
    return LiveCounts(stored, state.views, hashes, state.extra_results[len(reads) :])


def _known_hashes(answers: Sequence[Any]) -> dict[counters.Name, counters.Hash]:
    """Returns the hashes that Redis has, out of its answers."""
    in_redis = {}
    for answer in answers:
        in_redis.update({name: answered for name, answered in answer.items() if answered.counts})
    return in_redis


def _recent(
    first: FirstAnswers, union: list[scripts.Call[int]], *, counts: LiveCounts | None
) -> int | None:
    """Returns the different visitors of the last minutes. None if not known.

    Of objects that filters name it is the number of views.
    """
    answers = first.recent
    if union:
        answers = counts.answers if counts else fail_open(scripts.run_all, [], *union)
    counted = [count for count in answers if count is not None]
    return sum(counted) if counted else None


def _hashes(needs: Needs, objects: Objects, *, counts: LiveCounts | None) -> Hashes:
    """Returns breakdowns, funnels and reading of all time by kind and subject."""
    if not needs.object_kinds or counts is None:
        return {}
    return merged_hashes(objects.first, needs.object_kinds, counts.hashes)


def _gains(needs: Needs, objects: Objects, *, hashes: Hashes) -> Sequence[Hashes]:
    """Returns the gains of whole models in the period and in the one before.

    The latter is left out if the two are not compared. Without gains it has the hashes of all time.
    """
    if not needs.has_gains:
        return [hashes]
    if not needs.model_kinds:
        return []
    scope = needs.scope
    hours = scope.span.hours
    spans = [hours if scope.before else range(hours.stop)]
    if scope.before and _is_compared(scope):
        spans.append(scope.before.hours)
    return breakdown_history.gains(objects.labels, needs.model_kinds, spans)


def _stages(
    needs: Needs,
    objects: Objects,
    *,
    bounds: Bounds,
    gains: Sequence[Hashes],
    steps: Mapping[str, period_steps.Steps],
    counts: LiveCounts | None,
) -> list[list[Stage]]:
    """Returns the stages of all funnels together, for each of the gains.

    Where views do not enter the funnel, the views themselves are its first stage.
    """
    if "funnel" not in needs.tables:
        return []
    labels = [label_of(model) for model in needs.scope.models if not enters_funnel(model)]
    if needs.has_gains:
        viewed = _viewed_in_periods(labels, bounds=bounds, steps=steps)
    else:
        views = counts.views if counts else {}
        outside = [subject for subject in objects.first if subject.partition(":")[0] in labels]
        viewed = [Counter({subject: views[subject] for subject in outside})]
    stages = []
    for hashes, views_outside in zip(gains, viewed, strict=False):  # there may be no period before
        stages.append(funnels.stages(_funnels(hashes), views_outside))
    return stages


def _funnels(hashes: Hashes) -> dict[tuple[str, str], Counter[str]]:
    return {name: counts for name, counts in hashes.items() if name[0] == "funnel"}


def _viewed_in_periods(
    labels: Sequence[str], *, bounds: Bounds, steps: Mapping[str, period_steps.Steps]
) -> list[Counter[str]]:
    """Returns the views of the models in the period and in the one before."""
    now = Counter[str]()
    before = Counter[str]()
    for label, tag in product(labels, keys.past_tags()):
        for index, views in steps[f"{label}{tag}"].views.items():
            period = before if index < bounds.gap else now
            period[label] += 0 if index == bounds.gap else views
    return [now, before]


def _entries(
    needs: Needs,
    objects: Objects,
    *,
    bounds: Bounds,
    steps: Mapping[str, period_steps.Steps],
    counts: LiveCounts | None,
) -> list[Entry]:
    """Returns the objects of the scope with their numbers, those with the highest first."""
    if not needs.has_entries:
        return []
    entries = [
        _entry(subject, needs.scope, bounds=bounds, steps=steps, counts=counts)
        for subject in objects.stored
    ]

    def rank(entry: Entry) -> int:
        return entry.growth if needs.order == "growth" else int(getattr(entry.now, needs.order))

    return sorted(entries, key=rank, reverse=True)


def _entry(
    subject: str,
    scope: Scope,
    *,
    bounds: Bounds,
    steps: Mapping[str, period_steps.Steps],
    counts: LiveCounts | None,
) -> Entry:
    viewed = steps[subject_column(subject)]
    of_reads = steps.get(subject_column(history.of_reads(subject)))
    views: Mapping[int, int] = viewed.views
    if counts and scope.is_present:
        unflushed = counts.views.get(subject, 0) - counts.stored.get(subject, 0)
        if unflushed:
            views = {**views, bounds.last: views.get(bounds.last, 0) + unflushed}
    gained = (views, viewed.visitors, of_reads.views if of_reads else {})
    now = Counts(*(_sum_after(bounds.gap, counted) for counted in gained))
    before = Counts(*(_sum_before(bounds.gap, counted) for counted in gained))
    if counts and scope.before is None:  # with what came before history, which is in no point
        now = now._replace(views=max(now.views, counts.views.get(subject, 0)))
    return Entry(subject, now, before, now.views - before.views, gained)


def _sum_after(gap: int, counted: Mapping[int, int]) -> int:
    return sum(count for index, count in counted.items() if index > gap)


def _sum_before(gap: int, counted: Mapping[int, int]) -> int:
    return sum(count for index, count in counted.items() if index < gap)


def _points(
    scope: Scope,
    names: ModelNames,
    *,
    bounds: Bounds,
    entries: Sequence[Entry],
    sums: Mapping[str, history.Sums],
    first: FirstAnswers,
) -> list[Counts]:
    """Returns the numbers of the whole scope by index among the bounds."""
    if scope.is_listed:
        return _points_of_entries(bounds, entries)
    sums_by_point = [[0, 0, 0] for _ in bounds.hours]
    for number, named in enumerate(names.all):
        recent = first.model_hours if number == 0 else []  # Redis has the views only
        hours = merged({name: sums[name] for name in named}, recent)
        for hour, count in hours.items():
            if bounds.hours[0] <= hour < bounds.until:
                sums_by_point[bisect_right(bounds.hours, hour) - 1][number] += count
    return [Counts(*point_sums) for point_sums in sums_by_point]


def _points_of_entries(bounds: Bounds, entries: Sequence[Entry]) -> list[Counts]:
    """Returns the numbers of the objects together by index among the bounds."""
    sums_by_point = [[0, 0, 0] for _ in bounds.hours]
    for entry in entries:
        for number, gained in enumerate(entry.gained):
            for index, count in gained.items():
                sums_by_point[index][number] += count
    return [Counts(*point_sums) for point_sums in sums_by_point]


def _chart(
    scope: Scope,
    dated: Scope,
    *,
    names: ModelNames,
    bounds: Bounds,
    points: Sequence[Counts],
    entries: Sequence[Entry],
    sums: Mapping[str, history.Sums],
    is_live: bool,
    has_notes: bool,
) -> ChartData:
    """Returns the numbers by point, their totals, and the notes and the last flush.

    `dated` is the same scope, but all time begins with the day of the first hour of history.
    """
    is_compared = _is_compared(scope)
    # The point at index `gap` is what lies between the two periods. Without a period before, the
    # index is -1.
    points_before = points[: max(0, bounds.gap)] if is_compared else []
    points_now = points[bounds.gap + 1 :]
    total = _total(points_now)
    if scope.before is None:
        total = _with_earlier(total, scope, names=names, entries=entries, sums=sums)
    known_until = buckets.now()
    if not is_live:
        good = runs.last_good()
        known_until = good.began if good else buckets.hour_start(0)
    span = dated.span
    first_day = timezone.localtime(span.since).date()
    last_day = timezone.localtime(span.until - MOMENT).date()
    last_flush, notes, summed_until = runs.flush_and_notes(first_day, last_day)
    return ChartData(
        points_before=points_before,
        points=points_now,
        total_before=_total(points_before) if is_compared else None,
        total=total,
        is_summed=_is_summed(scope, names, sums=sums, total=total),
        known_until=known_until,
        notes=_notes_by_day(notes) if has_notes else {},
        last_flush=last_flush,
        summed_until=summed_until,
    )


def _total(points: Sequence[Counts]) -> Counts:
    return Counts(
        views=sum(point.views for point in points),
        visitors=sum(point.visitors for point in points),
        reads=sum(point.reads for point in points),
    )


def _with_earlier(
    total: Counts,
    scope: Scope,
    *,
    names: ModelNames,
    entries: Sequence[Entry],
    sums: Mapping[str, history.Sums],
) -> Counts:
    """Returns the total with what came before history, which is in no point."""
    if scope.is_listed:
        return total._replace(views=max(total.views, sum(entry.now.views for entry in entries)))
    earlier = [sum(sums[name].before for name in named) for named in names.all]
    return Counts(
        views=total.views + earlier[0],
        visitors=total.visitors + earlier[1],
        reads=total.reads + earlier[2],
    )


def _is_summed(
    scope: Scope, names: ModelNames, *, sums: Mapping[str, history.Sums], total: Counts
) -> bool:
    """Returns False until a full flush has added up visitors and reads of what was viewed."""
    if scope.is_listed or not total.views:
        return True
    visitors = [sums[name] for name in names.visitors] if sums else []
    return any(sum_of_model.rows or sum_of_model.before for sum_of_model in visitors)


def _notes_by_day(notes: Sequence[tuple[date, str]]) -> dict[date, str]:
    texts: dict[date, list[str]] = {}
    for day, text in notes:
        texts.setdefault(day, []).append(text)
    return {day: "; ".join(texts[day]) for day in texts}


def _sections(scope: Scope, *, is_whole: bool) -> list[SectionReaders]:
    """Returns the categories with their readers, the fewest first."""
    categories = {}
    for model in _section_models(scope):
        for row in model._default_manager.order_by("pk")[:MOST]:
            categories[subjects.subject_of(row)] = row
    if not categories:
        return []
    # A form that counts waits long, for a server that does not answer, too.
    readers = fail_open(read_state.count_readers, {}, [*categories]) if is_whole else {}
    if not readers:
        stored = history.newest_readers([subject_column(subject) for subject in categories])
        readers = {subject: stored.get(subject_column(subject), 0) for subject in categories}
    sections = [
        SectionReaders(subject, row, readers.get(subject, 0)) for subject, row in categories.items()
    ]
    return sorted(sections, key=lambda section: section.readers)


def _section_models(scope: Scope) -> list[type[Model]]:
    """Returns the models with read state; with a chosen model those that its objects link to."""
    models = subjects.read_state_models()
    if "model" not in scope.chosen:
        return models
    links = [link for model in scope.models for link in subjects.news_links(model)]
    linked = {subjects.owner(link.related_model) for link in links}
    return [model for model in models if model in linked]


@lru_cache(maxsize=100)  # because to count millions takes long
def _accounts(tenant: str, five_minutes: float) -> int:
    """Returns the number of active accounts, of one tenant and of five minutes."""
    return get_user_model()._default_manager.filter(is_active=True).count()
