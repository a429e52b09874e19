"""How a period went, as values: what the sentence above the numbers of a site says.

`readtrack.numbers.words` has the words, so that pages, mails and programs say the same.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, NamedTuple

from django.db.models import Max

from readtrack import buckets
from readtrack.numbers import local_time
from readtrack.numbers.chance import are_too_few, may_be_chance
from readtrack.numbers.data import ChartData, Entry, ScopeData
from readtrack.numbers.filters import Chosen
from readtrack.numbers.models import History
from readtrack.numbers.options import numbers_options
from readtrack.numbers.scope import Days, Scope
from readtrack.numbers.sql.history import BASELINE
from readtrack.numbers.sql.thinning import whole_days
from readtrack.numbers.sql.usual_week import FEWEST, WEEKS_JUDGED
from readtrack.numbers.tables import change
from readtrack.numbers.totals import totals
from readtrack.numbers.usual import WEEKLY
from readtrack.sql import databases
from readtrack.subjects import subject_column

LEAST_CHANGE = 5  # per cent; a smaller change of a number is not told
LEAST_OF_VERDICT = 10  # per cent by which views change in good times where no band is known
LEAST_SHARE = 10  # per cent of all views, with which a single story is told

#: What a period is called. "today" is a day that is not over, "period" any other number of days.
Kind = Literal["today", "day", "week", "month", "year", "period"]
Word = Literal["good", "usual", "quiet"]
#: "known": there are views. "empty": none in the period. "nothing": none at all yet. "storyless":
#: the author has no story. "silent": a server of Redis does not answer, so that the numbers of now
#: are not known.
State = Literal["known", "empty", "nothing", "storyless", "silent"]
#: Why the chart has no band: counting began less than FEWEST weeks before the period, or the hours
#: of these weeks are not kept, because the `days` of NUMBERS are few.
NoBand = Literal["young", "deleted"]


class UsualDays(NamedTuple):
    """How many of the days that are over had more views than usual, as many, and fewer."""

    above: int
    within: int
    below: int

    @property
    def days(self) -> int:
        """The number of days that are over."""
        return sum(self)


class UsualDay(NamedTuple):
    """The views of a single day, and the ends of what is usual on it; of today until now."""

    views: int
    low: int
    high: int


class SoFar(NamedTuple):
    """The views of today up to a whole hour, and those of an earlier day up to the same time."""

    views: int
    before: int
    until: datetime
    day_before: date


class Change(NamedTuple):
    """A number that changed, one of `totals.SERIES`, and its change in per cent."""

    name: str
    per_cent: int


class TopStory(NamedTuple):
    """The object with the most views, and its share of them in per cent."""

    subject: str
    obj: Any
    views: int
    share: int
    times: float | None  # how many times its usual views it has by now; None if that is not known
    is_of_part: bool = False  # whether the share is that of the views with the filters


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a period went. What is not known, or not worth telling, is None."""

    state: State
    kind: Kind
    views: int = 0
    word: Word | None = None
    days: UsualDays | None = None
    day: UsualDay | None = None
    so_far: SoFar | None = None  # of today alone; None if it is not compared
    views_change: int | None = None  # per cent; None if views are not compared
    change: Change | None = None  # of the number that changed most
    story: TopStory | None = None
    filters: Sequence[Chosen] = ()
    last_day: date | None = None  # of the last view before an empty period
    is_older_than_history: bool = (
        False  # what it is compared with began before anything was counted
    )
    began: date | None = None  # when counting began, if it is older than history and that is known
    no_band: NoBand | None = None  # why the chart lacks the band that it would have
    days_kept: int = 0  # of which history has the hours


def verdict_of(data: ScopeData, filters: Sequence[Chosen] = ()) -> Verdict:
    """Returns how the period of the scope went. `filters` are those in force, by their names.

    Needs the tables "over-time" and "most-viewed". Makes no query, but for one if there is no view
    in the period, to find the last one before it.
    """
    chart = data.chart
    kind = kind_of(data.scope)
    if chart is None or data.is_silent:
        return Verdict("silent", kind, filters=filters)
    if not chart.total.views:
        return _empty(data, chart, kind=kind, filters=filters)
    days = None
    day = None
    so_far = None
    if kind in ("today", "day"):
        day = _usual_day(data, chart)
    else:
        days = _usual_days(data, chart)
    if kind == "today":
        so_far = _so_far(data, chart)
    views_change = _views_change(chart)
    word = _word(days, day, views_change)
    return Verdict(
        state="known",
        kind=kind,
        views=chart.total.views,
        word=_unless_by_chance(word, data, chart, days=days, day=day),
        days=days,
        day=day,
        so_far=so_far,
        views_change=views_change,
        change=_strongest_change(data, chart, has_views=bool((days or day) and not so_far)),
        story=_top_story(data, chart),
        filters=filters,
        is_older_than_history=data.is_compared and not chart.is_before_whole,
        began=_began(data, chart),
        no_band=_no_band(data, chart),
        days_kept=whole_days(),
    )


def kind_of(scope: Scope) -> Kind:
    """Returns what the period of a scope is called."""
    if scope.is_all_time:
        return "period"
    days = scope.span.days
    if days.is_single:
        return "today" if scope.is_present else "day"
    named: Mapping[str, Kind] = {"week": "week", "month": "month", "year": "year"}
    return named.get(scope.period) or _kind_of_days(days)


def _kind_of_days(days: Days) -> Kind:
    """Returns what some days are called: a week, or a whole month or year of the calendar."""
    if days.length == buckets.WEEK:
        return "week"
    if days.is_month:
        return "month"
    if days.is_year:
        return "year"
    return "period"


def _empty(data: ScopeData, chart: ChartData, *, kind: Kind, filters: Sequence[Chosen]) -> Verdict:
    """Returns the verdict on a period without a view."""
    if {*data.asked.chosen} == {"author"} and not data.objects.stored:
        return Verdict("storyless", kind, filters=filters)
    last_day = _last_day_before(data)
    # Of a day long ago it is not known whether later ones have views.
    may_be_first = data.scope.is_present and not data.asked.is_part
    is_first = may_be_first and last_day is None and not chart.is_before_whole
    return Verdict(
        state="nothing" if is_first else "empty", kind=kind, filters=filters, last_day=last_day
    )


def _last_day_before(data: ScopeData) -> date | None:
    """Returns the day of the last view before the period; None if it is not known. Makes a
    query.
    """
    if data.asked.values or not numbers_options().history:
        return None
    columns = data.objects.model_columns
    if data.asked.is_listed:
        columns = [subject_column(subject) for subject in data.objects.stored]
    before = databases.rows(History).filter(
        subject__in=columns, hour__gt=BASELINE, hour__lt=data.scope.span.hours.start
    )
    last_hour = before.aggregate(last=Max("hour"))["last"]
    return None if last_hour is None else local_time.day_of(buckets.hour_start(last_hour))


def _views_by_day(data: ScopeData, chart: ChartData) -> Mapping[date, int]:
    """Returns the views of each day that is over; none where points are longer than a day."""
    if data.scope.by not in WEEKLY:
        return {}
    views: Counter[date] = Counter()
    for start, point in zip(data.starts, chart.points, strict=False):
        views[local_time.day_of(start)] += point.views
    if data.scope.is_present:
        views.pop(data.scope.span.last_day, None)
    return views


def _usual_days(data: ScopeData, chart: ChartData) -> UsualDays | None:
    """Returns how the days that are over were; None unless it is known what is usual on each, and
    if all of their views are too few to say.
    """
    views_by_day = _views_by_day(data, chart)
    bands = chart.usual_days
    if not views_by_day or any(day not in bands for day in views_by_day):
        return None
    if are_too_few(sum(views_by_day.values()), _usual_views(chart, views_by_day)):
        return None
    above = 0
    below = 0
    for day, views in views_by_day.items():
        usual = bands[day].ends
        above += views > usual.high
        below += views < usual.low
    return UsualDays(above, len(views_by_day) - above - below, below)


def _usual_views(chart: ChartData, days: Iterable[date]) -> float:
    """Returns the views that are usual on these days."""
    return sum(chart.usual_days[day].usual for day in days)


def _usual_day(data: ScopeData, chart: ChartData) -> UsualDay | None:
    """Returns how the only day of the period is; None if it is not known what is usual, and if its
    views are too few to say.
    """
    band = chart.usual_days.get(data.scope.span.first_day)
    if band is None or are_too_few(chart.total.views, band.usual):
        return None
    return UsualDay(chart.total.views, *band.ends)


def _so_far(data: ScopeData, chart: ChartData) -> SoFar | None:
    """Returns the views of today up to the running hour, and what they are compared with; None if
    they are not compared.
    """
    compared = data.scope.compared
    before = data.scope.before
    if compared is None or before is None or not data.is_compared or not chart.is_before_whole:
        return None
    if chart.total_before is None:
        return None
    return SoFar(chart.compared.views, chart.total_before.views, compared.until, before.first_day)


def _views_change(chart: ChartData) -> int | None:
    """Returns the change of the views in per cent; None if they are not compared, or too few."""
    if chart.total_before is None or not chart.is_before_whole:
        return None
    if are_too_few(chart.compared.views, chart.total_before.views):
        return None
    return change(chart.compared.views, chart.total_before.views)


def _word(days: UsualDays | None, day: UsualDay | None, views_change: int | None) -> Word | None:
    """Returns the verdict: by the days, by the day, or by the change of views without a band."""
    if days is not None:
        return _word_between(2 * days.above > days.days, 2 * days.below > days.days)
    if day is not None:
        return _word_between(day.views > day.high, day.views < day.low)
    if views_change is not None:
        return _word_between(views_change >= LEAST_OF_VERDICT, views_change <= -LEAST_OF_VERDICT)
    return None


def _word_between(is_good: bool, is_quiet: bool) -> Word:  # noqa: FBT001 - two sides of one scale
    if is_good:
        return "good"
    return "quiet" if is_quiet else "usual"


def _unless_by_chance(
    word: Word | None,
    data: ScopeData,
    chart: ChartData,
    *,
    days: UsualDays | None,
    day: UsualDay | None,
) -> Word | None:
    """Returns the word; "usual" where the views may be others than usual by chance alone."""
    if word is not None and _may_be_chance(data, chart, days=days, day=day):
        return "usual"
    return word


def _may_be_chance(
    data: ScopeData, chart: ChartData, *, days: UsualDays | None, day: UsualDay | None
) -> bool:
    """Returns True if the views may differ by chance alone from what the verdict goes by."""
    if days is not None:
        views_by_day = _views_by_day(data, chart)
        return may_be_chance(sum(views_by_day.values()), _usual_views(chart, views_by_day))
    if day is not None:
        return may_be_chance(day.views, _usual_views(chart, [data.scope.span.first_day]))
    if chart.total_before is None:
        return True
    return may_be_chance(chart.compared.views, chart.total_before.views)


def _strongest_change(data: ScopeData, chart: ChartData, *, has_views: bool) -> Change | None:
    """Returns the number that changed most; None if none changed by LEAST_CHANGE, and not by
    chance.

    Views are among them only if the sentence does not have their change already (`has_views`).
    """
    if not chart.is_before_whole:
        return None
    changes = [one for one in _changes(data, chart) if one.name != "views" or has_views]
    strongest = max(changes, key=lambda one: abs(one.per_cent), default=None)
    if strongest is None or abs(strongest.per_cent) < LEAST_CHANGE:
        return None
    return strongest


def _changes(data: ScopeData, chart: ChartData) -> Iterator[Change]:
    """Yields the numbers that changed by more than chance."""
    for total in totals(data, chart):
        if total.compared is None or total.before is None:
            continue
        per_cent = change(total.compared, total.before)
        if per_cent is not None and not may_be_chance(total.compared, total.before):
            yield Change(total.name, per_cent)


def _top_story(data: ScopeData, chart: ChartData) -> TopStory | None:
    """Returns the object with the largest share of the views; None if it has less than a tenth, and
    if all views are too few to say.
    """
    if "object" in data.asked.chosen or data.asked.is_joint:
        return None
    if are_too_few(chart.total.views, 0):
        return None
    first: Entry | None = max(data.entries, key=lambda entry: entry.now.views, default=None)
    if first is None:
        return None
    share = round(100 * first.now.views / chart.total.views)
    if share < LEAST_SHARE:
        return None
    if share >= 100:  # only all views are all of them
        share = 100 if first.now.views >= chart.total.views else 99
    usual = data.usual.get(first.subject)
    times = None
    if usual is not None and not are_too_few(usual.views, usual.usual):
        times = usual.times
    return TopStory(
        subject=first.subject,
        obj=data.objects[first.subject],
        views=first.now.views,
        share=share,
        times=times,
        is_of_part=data.asked.is_part,
    )


def _began(data: ScopeData, chart: ChartData) -> date | None:
    """Returns the day on which counting began, if that is later than what would be compared.

    It is None if history covers that, and if counts are known from before history.
    """
    before = data.asked.before
    if before is None or not data.is_compared or chart.is_before_whole:
        return None
    if data.asked.values:  # whose first views may have come long after the counting began
        return _began_by_value(data)
    if data.counted_since is None:
        return None
    first_day = local_time.day_of(data.counted_since)
    return first_day if first_day >= before.first_day else None


def _began_by_value(data: ScopeData) -> date | None:
    """Returns the day on which the dimension of the chosen value was turned on, or, if that was
    early enough, on which views were first counted.
    """
    turned_on = [data.first_gains[kind] for kind in data.late_kinds]
    first = max(turned_on, default=data.counted_since)
    return None if first is None else local_time.day_of(first)


def _no_band(data: ScopeData, chart: ChartData) -> NoBand | None:
    """Returns why the chart lacks the band that it would have; None if it has one, or never has."""
    may_have_band = not data.asked.is_listed and not data.asked.values and data.scope.by in WEEKLY
    is_late = buckets.now() - data.scope.span.since < WEEKS_JUDGED * buckets.WEEK
    if not (numbers_options().history and may_have_band and is_late) or chart.usual_days:
        return None
    if data.counted_since is None:
        return "young"
    # The day on which counting began is none of those that others are judged by.
    first_day = local_time.day_of(data.counted_since) + buckets.DAY
    today = local_time.today()
    weeks_before = min(data.scope.span.last_day, today) - FEWEST * buckets.WEEK
    if weeks_before < first_day:
        return "young"
    return "deleted" if weeks_before < today - whole_days() * buckets.DAY else None
