"""What is usual in a scope: what SQL is asked, and the bands of the chart's points."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import Literal

from readtrack import buckets, local_time
from readtrack.numbers.objects import Objects
from readtrack.numbers.options import numbers_options
from readtrack.numbers.reports.usual_views import Rated, Usual, question, rated
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql.usual import (
    AGES,
    NOTHING,
    AskedUsual,
    Band,
    Bands,
    StoredUsual,
    at_age,
    name_of,
    name_of_week,
)
from readtrack.numbers.sql.usual_week import WEEKS, slot_of, slot_of_day
from readtrack.subjects import label_in, label_of, model_with_label, published_field

WEEKLY: Sequence[local_time.Period] = ("hour", "day")  # intervals with bands of the whole site

#: Where a multiple of the usual lies, and from which multiple on. The last one is for all below.
Word = Literal["far above", "above", "usual", "below", "far below"]
FAR_ABOVE = 3.0
ABOVE = 1.5
BELOW = 0.67
FAR_BELOW = 0.33
#: Those of a story that is told to be below usual.
LOW: Sequence[Word] = ("below", "far below")


def word_of(times: float) -> Word:
    """Returns where so many times the usual views lie."""
    if times >= FAR_ABOVE:
        return "far above"
    if times >= ABOVE:
        return "above"
    if times > BELOW:
        return "usual"
    return "below" if times > FAR_BELOW else "far below"


@dataclass(frozen=True, slots=True)
class UsualQuestion:
    """The objects that are compared, and the name of the week that the chart is compared with."""

    rated: Mapping[str, Rated]  # by subject
    week: str  # "" if the chart has no week

    @classmethod
    def of(
        cls, scope: Scope, objects: Objects, *, shown: Iterable[str], has_model_points: bool
    ) -> "UsualQuestion":
        """Returns the question for these subjects of a table. It loads the rows that it needs."""
        comparable = [subject for subject in shown if _has_publication(subject)]
        candidates = rated(objects.loaded(comparable))
        week = ""
        if has_model_points and numbers_options().history and scope.by in WEEKLY:
            is_of_model = "model" in scope.chosen
            week = name_of_week(label_of(scope.models[0]) if is_of_model else "")
        return cls(candidates, week)

    @property
    def asked(self) -> AskedUsual:
        """Returns what SQL is asked for."""
        asked = question(self.rated.values())
        if self.week:
            asked = asked._replace(names=[*asked.names, self.week])
        return asked

    def compared(self, stored: StoredUsual, totals: Mapping[str, int]) -> dict[str, Usual]:
        """Returns the comparisons by subject. `totals` are the views of all time."""
        at = buckets.now()
        comparisons = {}
        for subject, one in self.rated.items():
            comparison = None
            if subject in totals:
                comparison = one.compared(totals[subject], stored, at=at)
            if comparison is not None:
                comparisons[subject] = comparison
        return comparisons

    def points(
        self, scope: Scope, stored: StoredUsual, *, comparisons: Mapping[str, Usual]
    ) -> list[Band | None]:
        """Returns the band of each point of the chart; none if nothing is usual at any point."""
        bounds = [*scope.span.starts(scope.by), scope.span.until]
        points: list[Band | None] = []
        if self.week and scope.by in WEEKLY:  # all time begins with a day that is looked up later
            week = stored.bands.get(self.week, {})
            now = buckets.now()
            points = [_of_week(week, start, by=scope.by, now=now) for start in bounds[:-1]]
        elif "object" in scope.chosen:
            for subject, comparison in comparisons.items():
                one = self.rated[subject]
                of_model = stored.bands.get(name_of(one.label), {})
                bands = _with_first_ages(one.bands_of(comparison, stored), of_model)
                points = [_gained(bands, one, start, end) for start, end in pairwise(bounds)]
        return points if any(points) else []

    def days(self, scope: Scope, stored: StoredUsual) -> dict[date, Band]:
        """Returns the band of each day of the period that has one: of the site, or of a model."""
        week = stored.bands.get(self.week, {})
        if not week:
            return {}
        now = buckets.now()
        bands = {}
        length = scope.span.last_day - scope.span.first_day
        for number in range(length.days + 1):
            day = scope.span.first_day + number * buckets.DAY
            band = _of_week(week, local_time.day_start(day), by="day", now=now)
            if band is not None:
                bands[day] = band
        return bands


def _has_publication(subject: str) -> bool:
    """Returns True if the model of the subject says when its objects were published."""
    model = model_with_label(label_in(subject))
    return model is not None and published_field(model) is not None


def _with_first_ages(bands: Bands, of_model: Bands) -> Bands:
    """Returns the bands of a section with those of the ages before its first known one.

    A section with few objects of late is known by the day only, because the hours of old objects
    are thinned. Its first hours are those of its model, in proportion; where these are not known
    either, as many views are taken to come in each hour.
    """
    first_age = min(bands, default=0)
    with_first = dict(bands)
    for age in AGES:
        if age >= first_age:
            break
        share = age / first_age
        model_then, model_first = of_model.get(age), of_model.get(first_age)
        if model_then and model_first and model_first.usual:
            share = min(1.0, model_then.usual / model_first.usual)
        with_first[age] = Band(*(share * number for number in bands[first_age]))
    return with_first


def _gained(bands: Bands, one: Rated, start: datetime, end: datetime) -> Band | None:
    """Returns what an object usually gains between two times; None if too few are known so old."""
    at_start = at_age(bands, (start - one.published) / buckets.HOUR)
    at_end = at_age(bands, (end - one.published) / buckets.HOUR)
    if at_start is None or at_end is None:
        return None
    # Peers of two ages may be others, so that there may be fewer views later on.
    gained = [max(0.0, late - early) for early, late in zip(at_start, at_end, strict=True)]
    return Band(min(gained), gained[1], max(gained))


def _of_week(week: Bands, start: datetime, *, by: local_time.Period, now: datetime) -> Band | None:
    """Returns what is usual in an hour or on a day, as far as it is over; None if not known.

    What is usual is that of the last weeks, so it says nothing of an earlier time.
    """
    if start < now - WEEKS * buckets.WEEK:
        return None
    if by == "hour":
        hour = buckets.hour_index(start)
        return _part(week.get(slot_of(hour)), _share_of_hour(hour, now))
    day = local_time.day_of(start)
    return _part(week.get(slot_of_day(day)), _share_of_day(week, day, now))


def _part(band: Band | None, share: float) -> Band | None:
    if band is None:
        return None
    return Band(*(share * number for number in band))


def _share_of_hour(hour: int, now: datetime) -> float:
    """Returns the share of the hour (since 1970) that is over."""
    passed = (now - buckets.hour_start(hour)) / buckets.HOUR
    return min(1.0, max(0.0, passed))


def _share_of_day(week: Bands, day: date, now: datetime) -> float:
    """Returns the usual share of a day's views that have come by now."""
    views_of_day = 0.0
    views_until_now = 0.0
    for hour in range(local_time.first_hour_of(day), local_time.first_hour_of(day + buckets.DAY)):
        views = week.get(slot_of(hour), NOTHING).usual
        views_of_day += views
        views_until_now += views * _share_of_hour(hour, now)
    return views_until_now / views_of_day if views_of_day else 1.0
