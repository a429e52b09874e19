"""How a story does, as values: what the sentence above the numbers of an object says.

`readtrack.numbers.words_of_story` has the words.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from readtrack import buckets
from readtrack.hits.stages import ENGAGED, READS, SEEN
from readtrack.numbers import local_time
from readtrack.numbers.causes import Cause, cause_of_story
from readtrack.numbers.chance import are_too_few, may_be_chance
from readtrack.numbers.data import ChartData, ScopeData
from readtrack.numbers.details import details_of
from readtrack.numbers.filters import Chosen
from readtrack.numbers.options import numbers_options
from readtrack.numbers.order import most_first
from readtrack.numbers.people import days_of
from readtrack.numbers.reached import Reached
from readtrack.numbers.reports.reads import median
from readtrack.numbers.rising import Rising, rising_stories
from readtrack.numbers.scope import PUBLISHED, Scope, dimension_names
from readtrack.numbers.sql import day_breakdowns
from readtrack.numbers.sql.breakdown_history import OTHER
from readtrack.numbers.tables import change
from readtrack.numbers.usual import WEEKLY, Word, word_of
from readtrack.subjects import subject_column

MOST_SOURCES = 4  # that the strip below a chart tells apart
MOST_DAYS = 62  # of a strip; its columns would be too narrow
# Per cent by which the views of a day differ from those of the day before, more than the rest of
# the site does: on a Saturday all stories of many sites have fewer.
LEAST_TREND = 20
# Views of the rest of the site on the day before. With fewer, its change may be chance.
LEAST_OTHERS = 100


class UsualOfStory(NamedTuple):
    """The views of a story since its publication, and what is usual for its kind at its age."""

    views: int
    usual: int
    times: float
    age: float  # hours
    kind: str  # the plural name of its model
    section: str  # in which its peers are; "" for peers of the whole model


class Trend(NamedTuple):
    """The views of the last day that is over and of the day before, and those of the rest of the
    site.
    """

    views: int
    before: int
    others: int
    others_before: int

    @property
    def per_cent(self) -> int:
        """The change from the one day to the other."""
        return change(self.views, self.before) or 0

    @property
    def per_cent_of_others(self) -> int:
        """The same change of the rest of the site."""
        return change(self.others, self.others_before) or 0

    @property
    def is_clear(self) -> bool:
        """True if the story gained or lost clearly, and clearly more than the rest of the site did.

        On a day on which the others had three quarters of their views, a story is taken to have
        three quarters of its own; it is compared with these.
        """
        if abs(self.per_cent) < LEAST_TREND or self.others_before < LEAST_OTHERS:
            return False
        as_others = round(self.before * self.others / self.others_before)
        if may_be_chance(self.views, self.before) or may_be_chance(self.views, as_others):
            return False
        beside = change(self.views * self.others_before, self.before * self.others)
        if beside is None or abs(beside) < LEAST_TREND:
            return False
        return (beside > 0) == (self.per_cent > 0)


@dataclass(frozen=True, slots=True)
class StoryVerdict:
    """How a story does. What is not known, or not worth telling, is None."""

    is_known: bool  # False while Redis does not answer
    views: int = 0  # of the period
    is_since_publication: bool = False  # or of all time; False for another period
    usual: UsualOfStory | None = None
    reads: int | None = None  # per cent of the views of the period
    trend: Trend | None = None
    rising: Rising | None = None
    cause: Cause | None = None  # why its views rose or fell
    filters: Sequence[Chosen] = ()

    @property
    def word(self) -> Word | None:
        """Where its views lie; None if it is not known what is usual, and if they are too few to
        say.
        """
        if self.usual is None or are_too_few(self.usual.views, self.usual.usual):
            return None
        return word_of(self.usual.times)


def story_verdict_of(data: ScopeData, filters: Sequence[Chosen] = ()) -> StoryVerdict:
    """Returns how the only object of the scope does. `filters` are those in force.

    Needs the table "over-time", and those of the dimensions to say why. Makes no query.
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
        rising=next(iter(rising_stories(data)), None) if data.scope.is_present else None,
        cause=cause_of_story(data),
        filters=filters,
    )


class StagesOfStory(NamedTuple):
    """How far the views of a story got, and whether they are those of all time."""

    reached: Reached
    is_of_all_time: bool


def stages_of_story(data: ScopeData) -> StagesOfStory | None:
    """Returns how far the views of the only object of the scope got: those of the period, or those
    of all time if none of the period was seen in a browser.

    None if no stage is known, as on a site without the page's script. Needs the tables "over-time"
    and "really-read".
    """
    of_all_time = _reached_of_all_time(data)
    if of_all_time is None or not of_all_time.seen:
        return None
    of_period = _reached_of_period(data)
    if of_period is None or not of_period.seen:
        return StagesOfStory(of_all_time, is_of_all_time=True)
    return StagesOfStory(of_period, is_of_all_time=False)


def _reached_of_all_time(data: ScopeData) -> Reached | None:
    """Returns how far the live views of all time got; None if no stage of them is known."""
    subject = data.asked.chosen.get("object", "")
    counts = data.hashes.get(("reading", subject))
    views = data.live_views.get(subject, 0)
    return Reached.of(views, counts) if counts and views else None


def _reached_of_period(data: ScopeData) -> Reached | None:
    """Returns how far the views of the period got, as of the last full flush; None for all time,
    and if a stage is not known.
    """
    chart = data.chart
    if chart is None or data.engaged is None or data.asked.period in (PUBLISHED, "all"):
        return None
    total = chart.total
    counts = {SEEN: total.seen, ENGAGED: data.engaged, READS: total.reads}
    return Reached.of(total.views, counts)


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
    values = [value for value, _ in most_first(together)[:MOST_SOURCES]]
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
    """Returns which share of the views became reads; None without a read, as without marked texts,
    and if the views are too few to say.
    """
    if not (chart.is_summed and chart.total.reads) or are_too_few(chart.total.views, 0):
        return None
    return min(100, round(100 * chart.total.reads / chart.total.views))


def _trend(scope: Scope, data: ScopeData, chart: ChartData) -> Trend | None:
    """Returns the views of the last two whole days since the publication, if they differ clearly.

    None where points are longer than a day, and for a period that ended earlier.
    """
    if scope.by not in WEEKLY or not scope.is_present or not data.site_views:
        return None
    views: Counter[date] = Counter()
    of_site: Counter[date] = Counter()
    for start, point, site in zip(data.starts, chart.points, data.site_views, strict=False):
        views[local_time.day_of(start)] += point.views
        of_site[local_time.day_of(start)] += site
    yesterday = scope.span.last_day - buckets.DAY
    before = yesterday - buckets.DAY
    first_whole_day = scope.span.first_day
    if scope.published is not None and scope.published >= scope.span.since:
        first_whole_day = local_time.day_of(scope.published) + buckets.DAY
    if before < first_whole_day or not views[before]:
        return None
    trend = Trend(
        views=views[yesterday],
        before=views[before],
        others=of_site[yesterday] - views[yesterday],
        others_before=of_site[before] - views[before],
    )
    return trend if trend.is_clear else None
