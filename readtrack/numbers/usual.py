"""What is usual in a scope: what SQL is asked, and the bands of the chart's points."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import pairwise
from typing import Literal

from readtrack import buckets
from readtrack.numbers import local_time
from readtrack.numbers.objects import Objects
from readtrack.numbers.options import numbers_options
from readtrack.numbers.published import published_field
from readtrack.numbers.reports.usual_views import Rated, Usual, question, rated
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql.gained import gained, name_of_gains
from readtrack.numbers.sql.usual import (
    NOTHING,
    AskedUsual,
    Band,
    Bands,
    StoredUsual,
    name_of_past,
    name_of_week,
)
from readtrack.numbers.sql.usual_week import WEEKS_JUDGED, WeeksBefore, hours_of_day
from readtrack.numbers.usual_now import (
    HOURS,
    LEAST_TIME,
    DayBefore,
    Story,
    kind_of,
    levels_of,
    names_of_kind,
    story_of,
)
from readtrack.subjects import label_in, label_of, model_with_label

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
    """The objects that are compared, and the name of the past that the chart is compared with."""

    rated: Mapping[str, Rated]  # by subject
    past: str  # "" if the chart is not compared with earlier weeks
    has_object: bool = False  # whether the chart is that of one object
    now: Sequence[str] = ()  # the subjects whose last minutes are compared
    at: datetime = field(default_factory=buckets.now)  # with which the last minutes end

    @classmethod
    def of(
        cls,
        scope: Scope,
        objects: Objects,
        *,
        shown: Iterable[str],
        now: Iterable[str],
        has_model_points: bool,
    ) -> "UsualQuestion":
        """Returns the question for these subjects of a table, and for those that are viewed `now`.
        It loads the rows that it needs.
        """
        among = dict.fromkeys([*shown, *now])
        comparable = [subject for subject in among if _has_publication(subject)]
        candidates = rated(objects.loaded(comparable))
        past = ""
        if has_model_points and numbers_options().history and scope.by in WEEKLY:
            is_of_model = "model" in scope.chosen
            past = name_of_past(label_of(scope.models[0]) if is_of_model else "")
        subjects_now = [subject for subject in now if subject in candidates]
        return cls(candidates, past, "object" in scope.chosen, subjects_now)

    @property
    def asked(self) -> AskedUsual:
        """Returns what SQL is asked for."""
        asked = question(self.rated.values())
        names = [*asked.names]
        if self.past:
            names.append(self.past)
        if self.has_object:
            for one in self.rated.values():
                names += [name_of_gains(one.label, section) for section in one.names]
        hours_of_day = {}
        for subject in self.now:
            one = self.rated[subject]
            names += [name_of_week(), *names_of_kind(one)]
            hours_of_day[one.column] = self._first_hour_of_day(one)
        return asked._replace(names=[*dict.fromkeys(names)], hours_of_day=hours_of_day)

    def _first_hour_of_day(self, one: Rated) -> int:
        """Returns the first hour (since 1970) of the day before that lies behind its
        publication.
        """
        since = buckets.hour_index(one.published)
        if buckets.hour_start(since) < one.published:
            since += 1
        return max(since, buckets.hour_index(self.at) - HOURS)

    def stories_now(
        self,
        minutes: Mapping[str, Sequence[int]],
        stored: StoredUsual,
        totals: Mapping[str, int],
        *,
        counted_since: datetime,
    ) -> dict[str, Story]:
        """Returns the last minutes of the stories that are viewed now, with what is usual for them.

        `minutes` has their views in the last minutes, `totals` those of all time.
        """
        levels = levels_of(stored.bands.get(name_of_week(), {}))
        present = buckets.hour_index(self.at)
        stories = {}
        for subject in self.now:
            if subject not in totals or subject not in minutes:
                continue
            one = self.rated[subject]
            if self.at - one.published < LEAST_TIME:
                continue
            # History has the hours that are over, and the total has the running one as well.
            views = totals[subject] - stored.views_before_day.get(one.column, 0)
            views -= sum(minutes[subject][-1 - self.at.minute :])
            first_hour = max(self._first_hour_of_day(one), buckets.hour_index(counted_since))
            stories[subject] = story_of(
                minutes[subject],
                kind_of(one, stored.bands, at=self.at),
                levels=levels,
                day_before=DayBefore(max(0, views), range(first_hour, present)),
                published=one.published,
                at=self.at,
            )
        return stories

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
        starts = scope.span.starts(scope.by)
        now = buckets.now()
        points: list[Band | None] = []
        if self.past and scope.by in WEEKLY:  # all time begins with a day that is looked up later
            weeks = self._weeks(stored)
            if weeks is not None:
                points = [_of_weeks(weeks, start, by=scope.by, now=now) for start in starts]
        elif self.has_object and starts:
            hours = [*scope.span.first_hours(scope.by), scope.span.hours.stop]
            for subject in comparisons:
                points = _most_known(self.rated[subject], stored, hours, now=now)
        return points if any(points) else []

    def days(self, scope: Scope, stored: StoredUsual) -> dict[date, Band]:
        """Returns the band of each day of the period that has one: of the site, or of a model."""
        weeks = self._weeks(stored)
        if weeks is None:
            return {}
        now = buckets.now()
        bands = {}
        length = scope.span.last_day - scope.span.first_day
        for number in range(length.days + 1):
            day = scope.span.first_day + number * buckets.DAY
            band = _of_weeks(weeks, local_time.day_start(day), by="day", now=now)
            if band is not None:
                bands[day] = band
        return bands

    def _weeks(self, stored: StoredUsual) -> WeeksBefore | None:
        """Returns the weeks that the chart is compared with; None if they are not known."""
        past = stored.past.get(self.past)
        return None if past is None else WeeksBefore(past)


def _has_publication(subject: str) -> bool:
    """Returns True if the model of the subject says when its objects were published."""
    model = model_with_label(label_in(subject))
    return model is not None and published_field(model) is not None


def _most_known(
    one: Rated, stored: StoredUsual, hours: Sequence[int], *, now: datetime
) -> list[Band | None]:
    """Returns what an object usually gains between each two of these hours (since 1970).

    It is that of its section; that of its model if that is known at more points: of a section with
    few peers the single hours of the first days are not.
    """
    found: list[list[Band | None]] = []
    for section in one.names:
        gains = stored.bands.get(name_of_gains(one.label, section), {})
        bands = [
            _gained(gains, one, since=since, until=until, now=now)
            for since, until in pairwise(hours)
        ]
        found.append(bands)
    return max(found, key=lambda points: sum(band is not None for band in points))


def _gained(gains: Bands, one: Rated, *, since: int, until: int, now: datetime) -> Band | None:
    """Returns what an object usually gains from an hour until another, as far as that is over.

    The hours are since 1970. None if too few objects are known so old.
    """
    first_hour = buckets.hour_index(one.published)
    passed = (now - buckets.hour_start(since)) / buckets.HOUR
    is_running = 0 < passed < until - since
    length = passed if is_running else until - since
    return gained(gains, since - first_hour, since - first_hour + length)


def _of_weeks(
    weeks: WeeksBefore, start: datetime, *, by: local_time.Period, now: datetime
) -> Band | None:
    """Returns what is usual in an hour or on a day, as far as it is over; None if not known."""
    if start < now - WEEKS_JUDGED * buckets.WEEK:
        return None
    if by == "hour":
        hour = buckets.hour_index(start)
        return _part(weeks.of_hour(hour), _share_of_hour(hour, now))
    day = local_time.day_of(start)
    return _part(weeks.of_day(day), _share_of_day(weeks, day, now))


def _part(band: Band | None, share: float) -> Band | None:
    if band is None:
        return None
    return Band(*(share * number for number in band))


def _share_of_hour(hour: int, now: datetime) -> float:
    """Returns the share of the hour (since 1970) that is over."""
    passed = (now - buckets.hour_start(hour)) / buckets.HOUR
    return min(1.0, max(0.0, passed))


def _share_of_day(weeks: WeeksBefore, day: date, now: datetime) -> float:
    """Returns the usual share of a day's views that have come by now."""
    hours = hours_of_day(day)
    if buckets.hour_start(hours.stop) <= now:
        return 1.0
    views_of_day = 0.0
    views_until_now = 0.0
    for hour in hours:
        views = (weeks.of_hour(hour) or NOTHING).usual
        views_of_day += views
        views_until_now += views * _share_of_hour(hour, now)
    return views_until_now / views_of_day if views_of_day else 1.0
