"""How a story does, as values: what the sentence above the numbers of an object says.

`readtrack.numbers.words_of_story` has the words.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from readtrack import buckets, local_time
from readtrack.hits.stages import Stages
from readtrack.numbers.data import ChartData, ScopeData
from readtrack.numbers.details import details_of
from readtrack.numbers.filters import Chosen
from readtrack.numbers.options import numbers_options
from readtrack.numbers.people import days_of
from readtrack.numbers.reports.reads import median
from readtrack.numbers.scope import PUBLISHED, Scope, dimension_names
from readtrack.numbers.sql import day_breakdowns
from readtrack.numbers.sql.breakdown_history import OTHER
from readtrack.numbers.tables import change
from readtrack.numbers.usual import WEEKLY, Word, word_of
from readtrack.subjects import subject_column

MOST_SOURCES = 4  # that the strip below a chart tells apart
MOST_DAYS = 62  # of a strip; its columns would be too narrow
LEAST_TREND = 20  # per cent by which views of a day differ from those of the day before


class UsualOfStory(NamedTuple):
    """The views of a story since its publication, and what is usual for its kind at its age."""

    views: int
    usual: int
    times: float
    age: float  # hours
    kind: str  # the plural name of its model
    section: str  # in which its peers are; "" for peers of the whole model


class Trend(NamedTuple):
    """The views of the last day that is over, and of the day before."""

    views: int
    before: int

    @property
    def per_cent(self) -> int:
        """The change from the one day to the other."""
        return change(self.views, self.before) or 0


@dataclass(frozen=True, slots=True)
class StoryVerdict:
    """How a story does. What is not known, or not worth telling, is None."""

    is_known: bool  # False while Redis does not answer
    views: int = 0  # of the period
    is_since_publication: bool = False  # or of all time; False for another period
    usual: UsualOfStory | None = None
    reads: int | None = None  # per cent of the views of the period
    trend: Trend | None = None
    filters: Sequence[Chosen] = ()

    @property
    def word(self) -> Word | None:
        """Where its views lie; None if it is not known what is usual."""
        return None if self.usual is None else word_of(self.usual.times)


def story_verdict_of(data: ScopeData, filters: Sequence[Chosen] = ()) -> StoryVerdict:
    """Returns how the only object of the scope does. `filters` are those in force.

    Needs the table "over-time". Makes no query.
    """
    chart = data.chart
    if chart is None or not data.is_whole:
        return StoryVerdict(is_known=False, filters=filters)
    return StoryVerdict(
        is_known=True,
        views=chart.total.views,
        is_since_publication=data.asked.period in (PUBLISHED, "all"),
        usual=usual_of_story(data),
        reads=_share_of_reads(chart),
        trend=_trend(data.scope, data, chart),
        filters=filters,
    )


def stages_of_story(data: ScopeData) -> Stages | None:
    """Returns how far the views of all time got, of the only object of the scope.

    None if no stage is known, as on a site without the page's script. Needs the table
    "really-read".
    """
    subject = data.asked.chosen.get("object", "")
    counts = data.hashes.get(("reading", subject))
    views = data.live_views.get(subject, 0)
    if not counts or not views:
        return None
    stages = Stages.of(views, counts)
    return stages if stages.seen else None


def median_of_story(data: ScopeData) -> int:
    """Returns the median time of reading (seconds) of the only object; 0 if it is not known."""
    subject = data.asked.chosen.get("object", "")
    return median(Counter(data.hashes.get(("reading", subject), {})))


class SourcesByDay(NamedTuple):
    """The views of an object by channel, or another dimension, on each day of the period."""

    dimension: str
    values: Sequence[str]  # most views first; the last one may stand for all others
    days: Sequence[tuple[date, Sequence[int]]]  # the views with each of the values

    @property
    def totals(self) -> list[int]:
        """The views with each of the values on all days."""
        return [sum(column) for column in zip(*(views for _, views in self.days), strict=True)]


def sources_by_day(data: ScopeData) -> SourcesByDay | None:
    """Returns where the views of the only object came from on each day; None if that is not known.

    They are known by the day: by the hour they would cost every view something. Makes one query.
    """
    dimension = _dimension_of_sources(data)
    days = days_of(data.scope.span)
    if not dimension or days.last - days.first >= MOST_DAYS * buckets.DAY:
        return None
    subject = subject_column(data.asked.chosen.get("object", ""))
    gained = day_breakdowns.by_day(subject, f"views:{dimension}", day_breakdowns.Days(*days))
    together = sum(gained.values(), Counter[str]())
    values = [value for value, _ in together.most_common(MOST_SOURCES)]
    others = [OTHER] if len(together) > len(values) else []
    rows = []
    for number in range((days.last - days.first).days + 1):
        day = days.first + number * buckets.DAY
        counts = gained.get(day, Counter())
        views = [counts[value] for value in values]
        rows.append((day, [*views, *(counts.total() - sum(views) for _ in others)]))
    return SourcesByDay(dimension, [*values, *others], rows) if together else None


def _dimension_of_sources(data: ScopeData) -> str:
    """Returns the dimension of the sources of an object by day; "" if they are not known."""
    if not numbers_options().history or data.asked.values or data.asked.is_all_time:
        return ""
    return next((name for name in ("channel", "referrer") if name in dimension_names()), "")


def usual_of_story(data: ScopeData) -> UsualOfStory | None:
    """Returns what is usual for the only object of the scope; None if that is not known."""
    subject = data.asked.chosen.get("object", "")
    comparison = data.usual.get(subject)
    if comparison is None:
        return None
    obj: Any = data.objects[subject]
    return UsualOfStory(
        views=comparison.views,
        usual=round(comparison.usual),
        times=comparison.times,
        age=comparison.age,
        kind=str(obj._meta.verbose_name_plural),
        section=details_of(obj).category if comparison.section else "",
    )


def _share_of_reads(chart: ChartData) -> int | None:
    """Returns which share of the views became reads; None without a read, as without marked texts."""
    if not (chart.is_summed and chart.total.reads and chart.total.views):
        return None
    return min(100, round(100 * chart.total.reads / chart.total.views))


def _trend(scope: Scope, data: ScopeData, chart: ChartData) -> Trend | None:
    """Returns the views of the last two whole days since the publication, if they differ enough.

    None where points are longer than a day, and for a period that ended earlier.
    """
    if scope.by not in WEEKLY or not scope.is_present:
        return None
    views: Counter[date] = Counter()
    for start, point in zip(data.starts, chart.points, strict=False):
        views[local_time.day_of(start)] += point.views
    yesterday = scope.span.last_day - buckets.DAY
    before = yesterday - buckets.DAY
    first_whole_day = scope.span.first_day
    if scope.published is not None and scope.published >= scope.span.since:
        first_whole_day = local_time.day_of(scope.published) + buckets.DAY
    if before < first_whole_day or not views[before]:
        return None
    trend = Trend(views[yesterday], views[before])
    return trend if abs(trend.per_cent) >= LEAST_TREND else None
