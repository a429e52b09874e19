"""Why the views of a story rose or fell: which of its sources, or which kind of readers, brought
the difference.

Each rule is below, with its conditions, and none is a guess: it goes by views that were counted,
and says nothing of a difference that may be chance. `readtrack.numbers.words_of_causes` has the
words.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from typing import Any, Literal, NamedTuple

from readtrack.numbers import local_time
from readtrack.numbers.by_value import compared_periods_of
from readtrack.numbers.chance import may_be_chance
from readtrack.numbers.data import ChartData, Hashes, ScopeData
from readtrack.numbers.options import numbers_options
from readtrack.numbers.scope import PUBLISHED, dimension_names
from readtrack.numbers.sql import day_breakdowns
from readtrack.numbers.sql.breakdown_history import OTHER
from readtrack.numbers.tables import DIMENSIONS, grown
from readtrack.numbers.usual import WEEKLY
from readtrack.subjects import subject_column

#: Dimensions of where views came from, the closest to a cause first.
SOURCES = ("campaign", "referrer", "channel")
LEAST_PART = 50  # per cent of the difference, which one value brought, or two together
# Per cent of the difference, with which a source is the cause even if all sources changed alike.
NEARLY_ALL = 90
# Per cent by which the difference of a value is larger or smaller than if it had changed as all
# views did. As long as all change alike, the value with half of the views brings half of the
# difference.
LEAST_BESIDE = 25
LEAST_KNOWN = 80  # per cent of the views that have a value, so that the values tell of all of them
COMPARED_PERIODS = 3  # all days of the period, those that are compared, and those before
MOST_DAYS = 200  # of these periods together, of which the values of several objects are read

#: "new": one source brought most of the difference, and had brought nothing before. "gone": the
#: same of a fall. "one": one value brought most of it. "beyond": one source brought more than all
#: of it. "two": two sources together brought most of it. "alike": all sources rose or fell as all
#: views did. "many": none of these, so that several sources brought it.
Kind = Literal["new", "gone", "one", "beyond", "two", "alike", "many"]


class Part(NamedTuple):
    """The views with one value of a dimension, in the period and in the one before."""

    dimension: str
    value: str
    now: int
    before: int

    @property
    def change(self) -> int:
        """How many views more it has than before; below 0 for fewer."""
        return self.now - self.before


class NotedDay(NamedTuple):
    """The day with by far the most views, and the note that an editor wrote on it."""

    day: date
    views: int
    text: str


@dataclass(frozen=True, slots=True)
class Cause:
    """Where the difference of a story's views came from."""

    kind: Kind
    now: int  # views of the part of the period that is compared
    before: int  # views in the period before
    parts: Sequence[Part]  # the values that it names, the largest difference first
    is_since_publication: bool = False  # nothing is compared, and the difference is all views
    noted: NotedDay | None = None

    @property
    def change(self) -> int:
        """How many views more the story has than before; below 0 for fewer."""
        return self.now - self.before


class Grown(NamedTuple):
    """An object that has more views than before, how many more, and why; None if that is not
    known.
    """

    obj: Any
    growth: int
    cause: Cause | None


@dataclass(frozen=True, slots=True)
class Difference:
    """The views of a story in a period and in the one before, and the same by value of a
    dimension.
    """

    now: int
    before: int
    values_now: Mapping[str, Counter[str]]  # by dimension
    values_before: Mapping[str, Counter[str]]

    @property
    def sign(self) -> int:
        """1 for a rise, -1 for a fall."""
        return 1 if self.now > self.before else -1

    @property
    def size(self) -> int:
        """How many views more or fewer there are."""
        return abs(self.now - self.before)

    @property
    def sources(self) -> list[str]:
        """The dimensions of sources that tell of all views, the closest to a cause first."""
        return [name for name in SOURCES if name != "campaign" and self.is_known(name)]

    @property
    def others(self) -> list[str]:
        """All other dimensions that tell of all views."""
        counted = {*self.values_now, *self.values_before} - {*SOURCES}
        in_order = [*DIMENSIONS, *sorted(counted - DIMENSIONS.keys())]
        return [name for name in in_order if name in counted and self.is_known(name)]

    def is_known(self, dimension: str) -> bool:
        """Returns True if nearly all views of both periods have a value of the dimension."""
        known_now = self.values_now.get(dimension, Counter[str]()).total()
        known_before = self.values_before.get(dimension, Counter[str]()).total()
        if not known_now + known_before:
            return False
        return 100 * known_now >= LEAST_KNOWN * self.now and (
            100 * known_before >= LEAST_KNOWN * self.before
        )

    def parts(self, dimension: str) -> list[Part]:
        """Returns the values of a dimension, without all others together: the one that brought most
        of the difference first.
        """
        now = self.values_now.get(dimension, Counter[str]())
        before = self.values_before.get(dimension, Counter[str]())
        values = [value for value in now | before if value != OTHER]
        parts = [Part(dimension, value, now[value], before[value]) for value in values]
        return sorted(parts, key=lambda part: (-self.brought(part), part.value))

    def brought(self, *parts: Part) -> int:
        """Returns how many views of the difference these parts brought; below 0 for the
        opposite.
        """
        return self.sign * sum(part.change for part in parts)

    def is_most(self, *parts: Part) -> bool:
        """Returns True if these parts brought most of the difference, each of them more than chance
        may bring.
        """
        if any(may_be_chance(part.now, part.before) for part in parts):
            return False
        return 100 * self.brought(*parts) >= LEAST_PART * self.size

    def stands_out(self, part: Part) -> bool:
        """Returns True if a part, or all others together, did not change as all views did."""
        rest = part._replace(now=self.now - part.now, before=self.before - part.before)
        return self._differs(part) or self._differs(rest)

    def _differs(self, part: Part) -> bool:
        """Returns True if a part has clearly more or clearly fewer views than if it had changed as
        all views did.
        """
        if not self.before:
            return True
        as_all = round(part.before * self.now / self.before)
        beside = abs(part.now - as_all)
        is_clear = 100 * beside >= LEAST_BESIDE * abs(as_all - part.before)
        return is_clear and not may_be_chance(part.now, as_all)

    def others_brought(self, dimension: str) -> int:
        """Returns how many views of the difference the values that were added up brought."""
        now = self.values_now.get(dimension, Counter[str]())
        before = self.values_before.get(dimension, Counter[str]())
        return self.brought(Part(dimension, OTHER, now[OTHER], before[OTHER]))

    def has_others(self, dimension: str) -> bool:
        """Returns True if values of the dimension were added up, so that none is known to be
        new.
        """
        return bool(
            self.values_now.get(dimension, Counter[str]())[OTHER]
            or self.values_before.get(dimension, Counter[str]())[OTHER]
        )


def cause_of(difference: Difference, *, is_since_publication: bool = False) -> Cause | None:
    """Returns where the difference came from; None if it may be chance, and if nobody knows.

    The first rule that holds is told: one campaign, source or channel brought most of it; one
    country, device or other value did; two sources did; all sources changed alike; several sources
    brought it.
    """
    if may_be_chance(difference.now, difference.before):
        return None
    sources = difference.sources
    found = _one_source(difference, ["campaign", *sources])
    # Most readers of many sites are always of one kind, so it is told only beside a time before.
    if found is None and difference.before:
        found = _one_kind_of_readers(difference)
    if found is None and sources:
        found = (
            _two_sources(difference, sources)
            or _all_alike(difference, sources)
            or _many_sources(difference, sources)
        )
    if found is None:
        return None
    kind, parts = found
    return Cause(
        kind,
        difference.now,
        difference.before,
        parts,
        is_since_publication=is_since_publication,
    )


Found = tuple[Kind, Sequence[Part]] | None


def _one_source(difference: Difference, dimensions: Iterable[str]) -> Found:
    """Returns the source that brought most of the difference, unless it changed as all views did
    and others brought more than a little.
    """
    for dimension in dimensions:
        parts = difference.parts(dimension)
        for part in parts[:1]:
            is_nearly_all = 100 * difference.brought(part) >= NEARLY_ALL * difference.size
            if difference.is_most(part) and (is_nearly_all or difference.stands_out(part)):
                if not difference.before and part.now > difference.now:
                    continue  # views were reset since they were counted by value
                return _kind_of_one(difference, part), [part]
    return None


def _kind_of_one(difference: Difference, part: Part) -> Kind:
    if not difference.before:
        return "one"
    if difference.brought(part) > difference.size:
        return "beyond"
    if not difference.has_others(part.dimension):
        if not part.before:
            return "new"
        if not part.now:
            return "gone"
    return "one"


def _one_kind_of_readers(difference: Difference) -> Found:
    """Returns the country, the device or another value that brought most of the difference."""
    for dimension in difference.others:
        for part in difference.parts(dimension)[:1]:
            is_within = difference.brought(part) <= difference.size
            if is_within and difference.is_most(part) and difference.stands_out(part):
                return "one", [part]
    return None


def _two_sources(difference: Difference, dimensions: Iterable[str]) -> Found:
    """Returns the two sources that together brought most of the difference, and not more than
    all.
    """
    for dimension in dimensions:
        parts = difference.parts(dimension)[:2]
        if len(parts) < 2 or not all(map(difference.stands_out, parts)):
            continue
        if difference.is_most(*parts) and difference.brought(*parts) <= difference.size:
            return "two", parts
    return None


def _all_alike(difference: Difference, dimensions: Iterable[str]) -> Found:
    """Returns that no source stands out, with the one that brought most. Two sources at least
    changed more than chance may bring.
    """
    for dimension in dimensions:
        parts = difference.parts(dimension)
        changed = [part for part in parts if not may_be_chance(part.now, part.before)]
        if difference.before and len(changed) > 1 and not any(map(difference.stands_out, parts)):
            return "alike", parts[:1]
    return None


def _many_sources(difference: Difference, dimensions: Iterable[str]) -> Found:
    """Returns that several sources brought the difference, with the one that brought most."""
    for dimension in dimensions:
        parts = difference.parts(dimension)
        bringing = [part for part in parts if difference.brought(part) > 0]
        has_several = len(bringing) > 1 or difference.others_brought(dimension) > 0
        if has_several and 0 < difference.brought(*parts[:1]) <= difference.size:
            return "many", parts[:1]
    return None


def cause_of_story(data: ScopeData) -> Cause | None:
    """Returns why the views of the only object of the scope rose or fell; None if that is not
    known.

    Since its publication it is where all its views came from. Needs the table "over-time" and those
    of the dimensions. Makes no query.
    """
    chart = data.chart
    if chart is None or data.asked.values or not data.has_gains or not data.is_whole:
        return None
    difference = _difference(data, chart)
    if difference is None:
        return None
    found = cause_of(difference, is_since_publication=data.asked.period == PUBLISHED)
    if found is None or difference.sign < 0:
        return found
    return replace(found, noted=_noted_day(data, chart))


def _difference(data: ScopeData, chart: ChartData) -> Difference | None:
    """Returns the views of both periods, or all since the publication; None if nothing is
    compared, and for a story that was published after the period before began.
    """
    if data.asked.period == PUBLISHED:
        return Difference(chart.total.views, 0, _by_dimension(data, data.gains.now), {})
    if not data.asked.had_time_before(data.asked.published):
        return None
    if data.gains.before is None or chart.total_before is None or not chart.is_before_whole:
        return None
    return Difference(
        now=chart.compared.views,
        before=chart.total_before.views,
        values_now=_by_dimension(data, data.gains.compared),
        values_before=_by_dimension(data, data.gains.before),
    )


def causes_of(data: ScopeData, subjects: Sequence[str]) -> dict[str, Cause]:
    """Returns why the views of a few objects rose or fell, by subject; without those of which that
    is not known.

    Needs a table that compares the objects. Makes one query, and none for a period of so many days
    that it would read too much.
    """
    if not (subjects and _are_values_compared(data)):
        return {}
    kinds = {f"views:{name}" for name in dimension_names()}.difference(data.late_kinds)
    columns = {subject: subject_column(subject) for subject in subjects}
    periods = compared_periods_of(data.scope)
    _all_days, now, before = day_breakdowns.gains_of_each(columns.values(), kinds, periods)
    causes = {}
    for entry in data.entries:
        if entry.subject not in columns:
            continue
        difference = Difference(
            now=entry.compared.views,
            before=entry.before.views,
            values_now=_of_column(now, columns[entry.subject]),
            values_before=_of_column(before, columns[entry.subject]),
        )
        cause = cause_of(difference)
        if cause is not None:
            causes[entry.subject] = cause
    return causes


def grown_and_why(data: ScopeData, *, most: int) -> list[Grown]:
    """Returns the `most` objects that grew most, and why.

    Needs the table "grew-most". Makes one query beside those for the rows of the objects.
    """
    if not data.is_before_known:
        return []  # all views of the period would be growth
    entries = [*islice(grown(data), most)]
    data.objects.load(entry.subject for entry in entries)
    causes = causes_of(data, [entry.subject for entry in entries])
    return [
        Grown(data.objects[entry.subject], entry.growth, causes.get(entry.subject))
        for entry in entries
    ]


def _are_values_compared(data: ScopeData) -> bool:
    """Returns True if values of single objects are known in both periods, which have few enough
    days.
    """
    if not (data.is_compared and data.is_before_known and numbers_options().history):
        return False
    periods = compared_periods_of(data.scope)
    days = sum(period.number for period in periods)
    return not data.asked.values and len(periods) == COMPARED_PERIODS and days <= MOST_DAYS


def _of_column(gains: Hashes, column: str) -> dict[str, Counter[str]]:
    """Returns the views of an object by dimension and value."""
    return {
        hash_kind.partition(":")[2]: counts
        for (hash_kind, subject), counts in gains.items()
        if subject == column
    }


def _by_dimension(data: ScopeData, hashes: Hashes) -> dict[str, Counter[str]]:
    """Returns the views by dimension and value, without dimensions that were turned on lately."""
    views: dict[str, Counter[str]] = {}
    for (hash_kind, _label), counts in hashes.items():
        kind, _, dimension = hash_kind.partition(":")
        if kind == "views" and hash_kind not in data.late_kinds:
            views.setdefault(dimension, Counter()).update(counts)
    return views


def _noted_day(data: ScopeData, chart: ChartData) -> NotedDay | None:
    """Returns the day with the most views, if a note is on it and it has clearly more than
    others.
    """
    if data.scope.by not in WEEKLY:
        return None
    views: Counter[date] = Counter()
    for start, point in zip(data.starts, chart.points, strict=False):
        views[local_time.day_of(start)] += point.views
    for day, most in views.most_common(1):
        average = round((views.total() - most) / max(1, len(views) - 1))
        notes = [note.text for note in chart.notes.get(day, ()) if not note.published]
        if notes and most > average and not may_be_chance(most, average):
            return NotedDay(day, most, notes[0])
    return None
