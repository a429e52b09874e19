"""What a digest tells: the numbers of the dashboard for some days.

They are the same in every language and for every reader of them, so they are computed once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.timezone import get_default_timezone, override

from readtrack.digest.periods import DigestPeriod
from readtrack.hits.hit import Reason
from readtrack.numbers.causes import Cause, grown_and_why
from readtrack.numbers.data import ChartData, Entry, ScopeData
from readtrack.numbers.loading import load
from readtrack.numbers.objects import CANDIDATES
from readtrack.numbers.published import published_at
from readtrack.numbers.reports.usual_views import times_usual
from readtrack.numbers.scope import Scope
from readtrack.numbers.totals import Total, totals
from readtrack.numbers.verdict import Verdict, verdict_of
from readtrack.reports.skipped import skips
from readtrack.subjects import subject_of

STORIES = 5  # objects of a list
ROBOTS: Sequence[Reason] = ("bot", "agent", "honeypot")  # reasons of robots and assistants


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the period and of the one before. None stands for a number that is not known."""

    now: int | None
    before: int | None


@dataclass(frozen=True, slots=True)
class Story:
    """An object and one number of it."""

    obj: Any
    number: float
    cause: Cause | None = None  # why it grew; `readtrack.numbers.words_of_causes` says it


@dataclass(frozen=True, slots=True)
class Contents:
    """The numbers of a digest: those of the whole site, or of the objects of an author."""

    period: DigestPeriod
    author: str  # the author's primary key as text; "" for the whole site
    comparison: str  # what the period is compared with, a key of COMPARISONS
    views: Number
    visitors: Number
    reads: Number
    verdict: Verdict  # how the period went; `readtrack.numbers.words` says it
    usual_views: int | None  # what the site usually has on such days; None if that is not known
    most_viewed: Sequence[Story]  # with their views
    best: Sequence[Story]  # published in the period, with how many times the usual views they have
    grown: Sequence[Story]  # with how many views more they had than in the period before
    still_read: Sequence[Story]  # published long before the period, with their views
    robots: int | None  # hits of robots in the last 24 hours, of the whole site; None for authors

    @property
    def is_empty(self) -> bool:
        """Returns True if nothing was viewed in the period."""
        return not self.views.now


def contents_of(period: DigestPeriod, *, author: str = "") -> Contents:
    """Returns the numbers of the period, of the whole site or of the objects of an author.

    `author` is the author's primary key as text. The days are those of TIME_ZONE, and the numbers
    are those of the last flush. Makes the queries of three pages of the dashboard,
    and one for why stories grew.
    """
    fixed = {"author": author} if author else {}
    with override(get_default_timezone()):
        scope = Scope.parse(period.parameters, fixed=fixed)
        numbers = load(scope, ["over-time", "most-viewed"], sees_all=False, row_limit=STORIES)
        growth = load(scope, ["grew-most"], sees_all=False, row_limit=STORIES)
        old = load(scope, ["still-read"], sees_all=False, row_limit=STORIES)
    chart = numbers.chart
    assert chart is not None  # noqa: S101 - it is loaded for the table "over-time"
    number_by_name = {total.name: _number(total, chart) for total in totals(numbers, chart)}
    has_before = number_by_name["views"].before is not None
    return Contents(
        period=period,
        author=author,
        comparison=scope.comparison,
        views=number_by_name["views"],
        visitors=number_by_name["visitors"],
        reads=number_by_name["reads"],
        verdict=verdict_of(numbers),
        usual_views=_usual_views(chart),
        most_viewed=_with_views(numbers),
        best=_best(numbers, growth),
        grown=_grown(growth) if has_before else [],
        still_read=_with_views(old),
        robots=None if author else _robots(),
    )


def _number(total: Total, chart: ChartData) -> Number:
    """Returns the total. What history is too short for is not known of the period before.

    In the first minute of a day the one before may not be over yet: visitors are compared without
    it.
    """
    is_comparable = chart.is_before_whole and total.compared == total.now
    return Number(total.now, total.before if is_comparable else None)


def _usual_views(chart: ChartData) -> int | None:
    """Returns the sum of what is usual on the days; None if that is not known of each of them."""
    bands = [band for band in chart.usual if band is not None]
    if not bands or len(bands) < len(chart.points):
        return None
    return round(sum(band.usual for band in bands))


def _with_views(data: ScopeData) -> list[Story]:
    """Returns the objects with the most views of the period."""
    return _stories(data, [(entry, entry.now.views) for entry in data.entries if entry.now.views])


def _grown(data: ScopeData) -> list[Story]:
    """Returns the objects with the most views more than in the period before."""
    return [Story(one.obj, one.growth, one.cause) for one in grown_and_why(data, most=STORIES)]


def _stories(data: ScopeData, numbers: Sequence[tuple[Entry, float]]) -> list[Story]:
    """Returns the first of the objects with their numbers. Rows are loaded together."""
    first = numbers[:STORIES]
    data.objects.load(entry.subject for entry, _ in first)
    return [Story(data.objects[entry.subject], number) for entry, number in first]


def _best(*loaded: ScopeData) -> list[Story]:
    """Returns the objects published in the period that have the most times their usual views.

    They are among those with the most views, and among those that grew most.
    """
    candidates: dict[str, Any] = {}
    for data in loaded:
        viewed = [entry.subject for entry in data.entries if entry.now.views]
        span = data.scope.span
        for obj in data.objects.loaded(viewed[:CANDIDATES]):
            published = published_at(obj)
            if published is not None and span.since <= published < span.until:
                candidates[subject_of(obj)] = obj
    times = times_usual(candidates.values())
    above_usual = [Story(obj, number) for obj, number in times.items() if number > 1]
    return sorted(above_usual, key=lambda story: -story.number)[:STORIES]


def _robots() -> int | None:
    """Returns the hits of robots and assistants in the last 24 hours; None if there were none, or
    Redis does not answer.
    """
    hits = skips(24)
    return sum(hits[reason] for reason in ROBOTS) or None
