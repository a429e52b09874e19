"""What a story usually has in the last minutes, for alerts and for what rises on a page.

The usual of a story is what its kind gains at the same age, or what it had itself, if that is more.
The first of these lets a new story rise that does far better than its kind from the start; the
second keeps old pages quiet that people read year after year. What it had itself is the lower one
of two numbers, each of which is too high for some stories: that of the hour before (too high after
a rise over hours), and twice that of the day before, for this hour of the week (too high for a
story that people lose interest in). In the longer time it is at least 0.6 of that of the day
before, because the half hour before may have had few views by chance.

The average since the publication would not do: it has the peak of the first day in it for weeks,
and the nights. An editor expects what the story has on such a day at this hour.

Nothing here asks a server.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import floor, sqrt
from statistics import fmean
from typing import NamedTuple

from readtrack import buckets
from readtrack.numbers.reports.usual_views import Rated
from readtrack.numbers.sql.gained import gained, name_of_gains
from readtrack.numbers.sql.usual import HOURS_OF_WEEK, Bands, at_age
from readtrack.numbers.sql.usual_week import slot_of

MINUTES = 60  # that are known of a story
LONG_TIME = 30  # minutes in which stories with few views are compared
HOURS = 23  # whole hours before the present one, which are the day before
FIRST_HOUR = 1  # the age (hours) up to which a story is compared with its kind's whole first hour
LEAST_TIME = timedelta(hours=1)  # of counting, before which nothing is usual
HALF_HOUR = 0.5  # hours
FALL = 30  # minutes of an hour in which the level of the site falls to that of the hour
LEAST_OF_DAY = 0.6  # of the day before is usual in the longer time; more would miss what fades
DAY_MAY_BE = 2  # times the day before that a story has by right: that may have been a holiday
MOST_FADING = 0.5  # the lowest share, because what is usual at an age is known roughly
LOWEST_LEVEL = 0.05  # of the site in an hour, because its nights may have no views at all


class Kind(NamedTuple):
    """What is usual for stories of a kind: their views until each age, and what they gain at it."""

    by_age: Bands = {}
    gains: Bands = {}


class DayBefore(NamedTuple):
    """The views of a story in the whole hours before the present one that are known."""

    views: int
    hours: Collection[int]  # since 1970, HOURS at most


@dataclass(frozen=True, slots=True)
class Story:
    """The numbers of a story."""

    minutes: Sequence[int]  # views of each of the last MINUTES, the running minute last
    running: float  # the share of the running minute that is over
    levels: Sequence[float] = (1.0,) * MINUTES  # of the site in these minutes, as usual
    kind: float = 0.0  # usual views in a minute of its kind at its age; 0 if not known
    # Views that its kind usually has at its age, as a share of those half an hour before.
    fading: float = 1.0
    # Its own views in a minute in the day before, divided by the level of the site; None if they
    # are not known.
    day: float | None = None
    # Usual views of its kind in its first hour, if it is younger than that.
    first_hour: float | None = None


class Excess(NamedTuple):
    """The views of a story in the last minutes, and its usual views in such a time."""

    views: int
    usual: float
    minutes: int


def story_of(
    views: Sequence[int],
    kind: Kind,
    *,
    levels: Mapping[int, float],
    day_before: DayBefore,
    published: datetime | None,
    at: datetime,
) -> Story:
    """Returns the numbers of a story.

    `views` has its views in the last minutes, `levels` those of `levels_of`. `published` is None if
    it is not known.
    """
    minute_start = at.replace(second=0, microsecond=0)
    hour = buckets.hour_index(at)
    level = levels.get(slot_of(hour), 1.0)
    level_before = levels.get(slot_of(hour - 1), 1.0)
    usual_of_kind = 0.0
    fading = 1.0
    first_hour = None
    if published is not None and kind.by_age:
        # What is usual at an age is the mean of all hours, and the night has less. The day has
        # more, but stories are often published by day, so that this is in the usual already.
        first = buckets.hour_start(buckets.hour_index(published))
        age_of_hours = (at - first) / buckets.HOUR
        usual_of_kind = usual_in_minute(kind.gains, age_of_hours)
        earlier = usual_in_minute(kind.gains, age_of_hours - HALF_HOUR)
        fading = max(MOST_FADING, min(1.0, usual_of_kind / earlier)) if earlier else 1.0
        usual_of_kind *= min(1.0, level)
        if (at - published) / buckets.HOUR < FIRST_HOUR:
            band = at_age(kind.by_age, FIRST_HOUR)
            # Here chance is small, and the hour of the day is not.
            first_hour = band.usual * max(1.0, level) if band else None
    return Story(
        minutes=views,
        running=(at - minute_start) / buckets.MINUTE,
        levels=_levels_of_minutes(level, before=level_before, minute=minute_start.minute),
        kind=usual_of_kind,
        fading=fading,
        day=_of_day(day_before, levels=levels),
        first_hour=first_hour,
    )


def _levels_of_minutes(level: float, *, before: float, minute: int) -> list[float]:
    """Returns the level of the site in each of the last MINUTES, up to that minute of an hour.

    `level` is that of the hour, `before` that of the hour before. People do not leave at the full
    hour, so a level falls within FALL minutes. It rises at once.
    """
    falling = [
        max(level, before + (level - before) * (0.5 + 0.5 * passed / FALL))
        for passed in range(min(minute + 1, FALL))
    ]
    settled = [level] * (minute + 1 - len(falling))
    return [before] * (MINUTES - minute - 1) + falling + settled


def compared_in(story: Story, length: int) -> Excess:
    """Returns the views of the story in so many of the last minutes, beside its usual in them."""
    minutes = length - 1 + story.running
    usual = max(story.kind, _own(story, length)) * minutes
    return Excess(sum(story.minutes[-length:]), usual, length)


def _own(story: Story, length: int) -> float:
    """Returns what the story usually has in a minute of the last minutes, by what it had itself."""
    before = story.minutes[:-length]
    level_before = fmean(story.levels[:-length])
    level = fmean(story.levels[-length:])
    views_before = sum(before)
    # A little more than it had, because that may have been few by chance.
    own = (views_before + sqrt(views_before) / 2 + 1) / len(before)
    own *= level / level_before * story.fading
    if story.day is None:
        return own
    day = story.day * level
    if length == LONG_TIME:  # half an hour before it may have had few views by chance
        own = max(own, LEAST_OF_DAY * day)
    return min(own, DAY_MAY_BE * day)


def kind_of(one: Rated, stored: Mapping[str, Bands], *, at: datetime) -> Kind:
    """Returns what is usual for the kind of a story: that of its section, or else of its model.

    `stored` has bands by their names, those of `names_of_kind` among them.
    """
    age = max(FIRST_HOUR, (at - one.published) / buckets.HOUR)
    for section, name in one.names.items():
        by_age = stored.get(name, {})
        if at_age(by_age, age) is not None:
            return Kind(by_age, stored.get(name_of_gains(one.label, section), {}))
    return Kind()


def names_of_kind(one: Rated) -> list[str]:
    """Returns the names of the bands that `kind_of` looks at."""
    return [*one.names.values(), *(name_of_gains(one.label, section) for section in one.names)]


def usual_in_minute(gains: Bands, age: float) -> float:
    """Returns the views that stories usually gain in a minute at that age; 0 if not known.

    The age is in hours since the start of the hour of publication. Hours have a number each, and
    between the middles of two of them there is a line.
    """
    hour = floor(max(0.0, age - HALF_HOUR))
    share = max(0.0, age - HALF_HOUR - hour)
    band = gained(gains, hour, hour + 1)
    later_band = gained(gains, hour + 1, hour + 2)
    if band is None:
        return 0.0
    views = band.usual
    if later_band is not None:
        views += share * (later_band.usual - band.usual)
    return views / 60


def levels_of(week: Bands) -> dict[int, float]:
    """Returns the usual views in each hour of the week (its slot), as a share of those of a usual
    hour; nothing if they are not known.
    """
    usual_views = {slot: band.usual for slot, band in week.items() if slot < HOURS_OF_WEEK}
    usual_hour = fmean(usual_views.values()) if usual_views else 0.0
    if not usual_hour:
        return {}
    return {slot: max(LOWEST_LEVEL, views / usual_hour) for slot, views in usual_views.items()}


def _of_day(day_before: DayBefore, *, levels: Mapping[int, float]) -> float | None:
    """Returns a story's views in a minute of the day before, divided by the level of the site; None
    if no hour of it is known.
    """
    if not day_before.hours:
        return None
    level = fmean(levels.get(slot_of(hour), 1.0) for hour in day_before.hours)
    return day_before.views / len(day_before.hours) / 60 / level
