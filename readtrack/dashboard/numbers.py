"""The numbers of a scope. Each is computed when a table or a chart asks for it, so an export costs
only its own.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import cached_property
from itertools import chain, islice, product
from operator import add
from typing import Any, NamedTuple

from django.db.models import Model
from django.utils import timezone

from readtrack import buckets
from readtrack.conf import conf
from readtrack.dashboard.objects import CANDIDATES, By, Objects
from readtrack.dashboard.scope import MOMENT, Scope
from readtrack.models import FlushRun
from readtrack.reports.funnels import Stage, stages
from readtrack.reports.hashes import hashes
from readtrack.reports.page_state import page_state
from readtrack.reports.time_series import merged
from readtrack.sql import breakdown_history, history, period_steps, row_counts, runs
from readtrack.store import counters, keys, scripts, skips, trending, uniques
from readtrack.store.circuit import fail_open
from readtrack.subjects import enters_funnel, label_of, subject_column


class Counts(NamedTuple):
    """Views, new visitors and reads."""

    views: int = 0
    visitors: int = 0
    reads: int = 0


class Entry(NamedTuple):
    """The numbers of one object in the period and in the one before."""

    subject: str
    now: Counts
    before: Counts
    growth: int  # how many views more there were than in the period before
    gained: Sequence[
        Mapping[int, int]
    ]  # views, new visitors and reads by place among the bounds of the chart


class Numbers:
    """The numbers of a scope for some tables: SQL's, and Redis's where it answers, in at most two
    round trips.

    `shown` is the number of rows that a table needs of many, 0 for all; `obj` the only object,
    where it is known. Notes on the chart are of the whole site.
    """

    def __init__(
        self,
        scope: Scope,
        tables: Sequence[str],
        *,
        has_notes: bool = True,
        shown: int = 0,
        obj: Model | None = None,
    ) -> None:
        self.asked, self.has_notes, self.shown = scope, has_notes, shown or None
        orders: Mapping[str, By] = {
            "grew-most": "growth",
            "really-read": "reads",
            "funnel": "reads",
        }
        self.has_chart, self.by = "over-time" in tables, orders.get(tables[0], "views")
        self.objects = Objects(scope, self.by, lambda: (name for name, _ in self.trending), obj)
        of_objects = [
            *(f"views:{name}" for name in scope.values),
            *(["reading"] if "really-read" in tables else []),
        ]
        summed = [
            name.replace("by-", "views:", 1)
            for name in tables
            if name == "funnel" or name.startswith("by-")
        ]
        # What whole models gain is stored by the hour, of each object only its count of all time.
        self.has_gains = bool(conf.HISTORY) and not scope.is_listed
        self._summed = summed if self.has_gains else []
        self.kinds = of_objects if self.has_gains else [*of_objects, *summed]
        # That history has of the views of whole models, of their new visitors and of their reads.
        visitors, reads = (
            [*map(of, self.objects.labels)] for of in (history.of_visitors, history.of_reads)
        )
        self._names = {"views": self.objects.names, "visitors": visitors, "reads": reads}
        # Trending subjects to read: with filters most of them are left out.
        self._limit = scripts.SLICE if scope.is_listed or "model" in scope.chosen else CANDIDATES
        #: True if there is a period before.
        self.is_compared = scope.before is not None and len(scope.before.hours) > 0

    @cached_property
    def scope(self) -> Scope:
        """The scope; that of all time begins with the first hour of history of its models, or of
        its one object.
        """
        if self.asked.before is not None:
            return self.asked
        # That of a category is its models', because its objects have too many rows.
        names = self._columns if "object" in self.asked.chosen else self.objects.names
        ranking = () if self.asked.is_listed else self.objects.ranking
        first = ranking[0][-1] if ranking else history.first_hour(names).first()
        if not first:
            return self.asked
        day = timezone.localtime(buckets.hour_start(first)).date()
        span = self.asked.span
        return replace(
            self.asked, span=span._replace(since=min(buckets.day_start(day), span.since))
        )

    @cached_property
    def starts(self) -> list[datetime]:
        """The local starts of the chart's points."""
        return self.scope.span.starts(self.scope.by)

    @cached_property
    def _bounds(self) -> list[int]:
        """The first hours of the points of the period before, of what is between the two, and of
        the chart's points.
        """
        before, now, by = self.scope.before, self.scope.span, self.scope.by
        end = before.hours.stop if before else 0
        earlier = [*before.first_hours(by), end] if before else []
        return [*earlier, *(max(end, hour) for hour in now.first_hours(by))]

    @property
    def gap(self) -> int:
        """The number of the points of the period before; -1 if there is none."""
        return len(self._bounds) - len(self.starts) - 1

    @cached_property
    def _stored(self) -> dict[str, history.Sums]:
        """The sums of whole models in SQL's history."""
        if self.asked.is_listed or not self.objects.labels:
            return {}
        bounds = [
            max(history.BASELINE + 1, hour) for hour in (*self._bounds, self.scope.span.hours.stop)
        ]
        recent = range(
            max(bounds[0], buckets.hour_index(buckets.now()) + 1 - counters.MODEL_HOURS), bounds[-1]
        )
        return history.sums_between([*chain(*self._names.values())], sorted({*bounds, *recent}))

    @cached_property
    def _answers(self) -> dict[str, list[Any]]:
        """Redis's answers, in one round trip: skips, heads of the trending lists, what is now,
        hours of models.

        There are none without Redis. Skips, and what is now in a partition, are None if their
        server does not answer.
        """
        at = buckets.now()
        refused = replace(skips.by_hour(48, at=at), absent=None)  # hours that Redis keeps
        calls: dict[str, list[Any]] = {"skips": [refused], "heads": trending.lists(self._limit)}
        if self.asked.is_listed:
            calls["now"] = trending.recent([*self.objects.stored], 5, at=at)
        else:
            calls["now"] = uniques.of_minutes(self.objects.labels, 5, at=at)
        if self.has_chart and not self.asked.is_listed:
            _ = (
                self._stored
            )  # SQL first, because a count that is settled and written in between would count twice
            end = buckets.hour_index(at) + 1
            calls["hours"] = counters.model_hours(
                self.objects.labels, range(end - counters.MODEL_HOURS, end)
            )
        answers = iter(fail_open(scripts.run_all, [], *chain(*calls.values())))
        return {name: [*islice(answers, len(some))] for name, some in calls.items()}

    @cached_property
    def trending(self) -> list[tuple[str, int]]:
        """Subjects of the scope's models that are trending (some may be deleted), and their views
        of the last hour.
        """
        found = trending.best(self._answers["heads"], self._limit)
        if None in self._answers["heads"]:  # nobody has computed the list yet
            found = fail_open(trending.top_subjects, [], self._limit, at=buckets.now())
        return [
            (name, views) for name, views in found if name.partition(":")[0] in self.objects.labels
        ]

    @cached_property
    def skips(self) -> list[Counter[Any]]:
        """The hits of the last hours that did not count, by reason, the latest hour first."""
        return next(filter(None, self._answers["skips"]), [])

    @cached_property
    def _columns(self) -> list[str]:
        """The names that history has of the objects, and of their reads."""
        return [
            subject_column(name)
            for one in self.objects.stored
            for name in (one, history.of_reads(one))
        ]

    @cached_property
    def _steps(self) -> dict[str, period_steps.Steps]:
        """The views and visitors by name in history and place among the bounds, of models too for
        their funnels.

        "Reading" shows no points, so those of a period are in one place. What grew most has points,
        but no reads.
        """
        columns = self._columns[::2] if self.by == "growth" else self._columns
        names = [*columns, *(self.objects.names if "funnel" in self._summed else ())]
        ends = [place for place in (self.gap - 1, self.gap, len(self._bounds) - 1) if place >= 0]
        places = ends if self.by == "reads" and not self.has_chart else None
        return (
            period_steps.steps(names, self._bounds, until=self.scope.span.hours.stop, places=places)
            if names
            else {}
        )

    @cached_property
    def entries(self) -> list[Entry]:
        """The objects of the scope with their numbers, those with the most views (or visitors, or
        reads) first.
        """
        steps, found = self._steps, list[Entry]()
        stored, now_live, _ = self._live if self.asked.is_present else ({}, {}, {})
        gap, last, none = self.gap, len(self._bounds) - 1, period_steps.Steps({}, {})
        for subject, column, of_reads in zip(
            self.objects.stored, self._columns[::2], self._columns[1::2], strict=True
        ):
            views: Mapping[int, int] = steps[column].views
            if new := now_live.get(subject, 0) - stored.get(subject, 0):  # that no flush has stored
                views = {**views, last: views.get(last, 0) + new}
            gained = (views, steps[column].visitors, steps.get(of_reads, none).views)
            now = [sum(count for place, count in one.items() if place > gap) for one in gained]
            before = [sum(count for place, count in one.items() if place < gap) for one in gained]
            if self.asked.before is None:  # with what came before history, which is in no point
                now[0] = max(now[0], self._live[1].get(subject, 0))
            found.append(Entry(subject, Counts(*now), Counts(*before), now[0] - before[0], gained))
        return sorted(
            found,
            key=lambda one: getattr(one if self.by == "growth" else one.now, self.by),
            reverse=True,
        )

    @cached_property
    def _live(self) -> tuple[dict[str, int], dict[str, int], dict[counters.Name, counters.Hash]]:
        """The views of each object of all time: SQL's, and Redis's; and Redis's hashes, in the same
        round trip.
        """
        stored = self.objects.stored
        others = row_counts.by_subject(
            [subject for subject, count in stored.items() if count is None]
        )
        counts = {
            name: others[name].views if name in others else count or 0
            for name, count in stored.items()
        }
        reads = counters.hashes(self.objects.first, self.kinds) if self.kinds else []
        union = self._union
        state = page_state(counts=counts, others=[*reads, *union])
        if union and state.others:
            self.recent = state.others.pop()
        found = {name: one for some in state.others for name, one in some.items() if one.counts}
        return counts, state.views, found

    @cached_property
    def hashes(self) -> dict[counters.Name, Counter[str]]:
        """The counts of all time of each object by kind and subject: breakdowns, funnel and
        reading.
        """
        return hashes(self.objects.first, self.kinds, self._live[2]) if self.kinds else {}

    @cached_property
    def summands(self) -> Sequence[Mapping[counters.Name, Counter[str]]]:
        """The gains of whole models in the period and, if the two are compared, in the one before;
        else `hashes`.
        """
        if not self.has_gains:
            return [self.hashes]
        now, before = self.asked.span.hours, self.asked.before
        spans = [
            now if before else range(now.stop),
            *([before.hours] if before and self.is_compared else []),
        ]
        return breakdown_history.gains(self.objects.labels, self._summed, spans)

    @property
    def funnel(self) -> list[list[Stage]]:
        """The stages of the objects' funnels together, in the period and, if known, in the one
        before.
        """
        labels = [label_of(model) for model in self.asked.models if not enters_funnel(model)]
        if not self.has_gains:
            others = [name for name in self.objects.first if name.partition(":")[0] in labels]
            viewed = [Counter({name: self._live[1][name] for name in others})]
        else:
            viewed = [Counter[str](), Counter[str]()]
            for label, tag in product(labels, keys.past_tags()):
                for place, views in self._steps[f"{label}{tag}"].views.items():
                    viewed[place < self.gap][label] += views if place != self.gap else 0
        funnels = [
            {name: one for name, one in some.items() if name[0] == "funnel"}
            for some in self.summands
        ]
        return [*map(stages, funnels, viewed)]  # there may be no period before

    @cached_property
    def points(self) -> tuple[list[Counts], list[Counts]]:
        """The numbers of the whole scope by point: of the period before, if the two are compared,
        and of the period.
        """
        places = [[0, 0, 0] for _ in self._bounds]
        for one in self.entries if self.asked.is_listed else ():
            for number, gained in enumerate(one.gained):
                for place, count in gained.items():
                    places[place][number] += count
        for number, names in enumerate(() if self.asked.is_listed else self._names.values()):
            recent = [] if number else self._answers.get("hours", [])  # Redis has the views only
            hours = merged({name: self._stored[name] for name in names}, recent)
            for hour, count in hours.items():
                if self._bounds[0] <= hour < self.scope.span.hours.stop:
                    places[bisect_right(self._bounds, hour) - 1][number] += count
        found = [Counts(*place) for place in places]
        return found[: max(0, self.gap)] if self.is_compared else [], found[self.gap + 1 :]

    @cached_property
    def totals(self) -> tuple[Counts | None, Counts]:
        """The numbers of the period before, if the two are compared, and those of the period."""
        before, now = (Counts(*map(sum, zip(*points, strict=True))) for points in self.points)
        if self.asked.before is None and self.asked.is_listed:
            now = now._replace(views=max(now.views, sum(one.now.views for one in self.entries)))
        elif self.asked.before is None:  # with what came before history, which is in no point
            earlier = (
                sum(self._stored[name].before for name in names) for names in self._names.values()
            )
            now = Counts(*map(add, now, earlier))
        return before if self.is_compared else None, now

    @property
    def is_summed(self) -> bool:
        """Returns False until a full flush has added up visitors and reads of what was viewed."""
        sums = [self._stored[name] for name in self._names["visitors"]] if self._stored else []
        return (
            self.asked.is_listed
            or any(one.rows or one.before for one in sums)
            or not self.totals[1].views
        )

    @property
    def _union(self) -> list[scripts.Call[int]]:
        """The call that counts the people of several partitions, for the second round trip, where
        one has answered.
        """
        answers = zip(
            keys.tags(), self._answers["now"], strict=False
        )  # no answer: nothing was asked
        sketches = {tag: answer for tag, answer in answers if answer is not None}
        if self.asked.is_listed or conf.PARTITIONS == 1 or not sketches:
            return []
        name = keys.minute_visitors(next(iter(sketches)), "", "")
        return [replace(uniques.count_together(name, [*sketches.values()]), absent=None)]

    @cached_property
    def recent(self) -> int | None:
        """The different visitors of the last minutes; of objects that filters name, the views. None
        if not known.
        """
        union = self._union
        found = fail_open(scripts.run_all, [], *union) if union else self._answers["now"]
        counts = [count for count in found if count is not None]
        return sum(counts) if counts else None

    @property
    def is_live(self) -> bool:
        """Returns False if Redis does not answer."""
        return any(one is not None for one in (*self._answers["skips"], *self._answers["now"]))

    @property
    def is_whole(self) -> bool:
        """Returns False if Redis, or a server of a cluster, does not answer."""
        return self.is_live and None not in (*self._answers["skips"], *self._answers["now"])

    @cached_property
    def flush_and_notes(self) -> tuple[FlushRun | None, dict[date, str], int]:
        """The last flush, editors' notes in the period by day, first day first, and the last full
        flush's time (µs).
        """
        ends = (self.scope.span.since, self.scope.span.until - MOMENT)
        run, notes, until = runs.flush_and_notes(*(timezone.localtime(end).date() for end in ends))
        found: dict[date, list[str]] = {}
        for day, text in notes if self.has_notes else ():
            found.setdefault(day, []).append(text)
        return run, {day: "; ".join(texts) for day, texts in found.items()}, until
