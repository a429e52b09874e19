"""When something is unusual. Nothing here asks a server: numbers come in, judgements go out.

**A story** is compared with its usual: what its kind has at the same age, or what it had itself, if
that is more. The first of these lets a new story be told that does far better than its kind from
the start; the second keeps old pages quiet that people read year after year. What it had itself is
the lower one of two numbers, each of which is too high for some stories: that of the hour before
(too high after a rise over hours), and twice that of the day before, for this hour of the week (too
high for a story that people lose interest in). In the longer time it is at least 0.6 of that of
the day before, because the half hour before may have had few views by chance.

Views come by chance, so their numbers are taken as those of a Poisson distribution, whose standard
deviation is the square root of its mean. In three minutes a story counts as one of "5 times" unless
it has fewer views than such a story has in all but one of 700 cases (3 deviations): otherwise half
of the stories at exactly 5 times would be missed. So one at 4 times is told as well if its views
are few.
To be told, a story also needs 8 deviations more than its usual, and a number of views: 31 where 8
are usual come by chance once in a billion times.

**The site** is compared with its usual in this hour of the week, and with itself: its views have to
be few, and to have fallen by half within two hours, more than in each night and not by chance (2
deviations). A holiday has few views, but comes gradually.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import sqrt
from statistics import fmean
from typing import NamedTuple

from readtrack import buckets
from readtrack.numbers.sql.usual import HOURS_OF_WEEK, Bands, at_age
from readtrack.numbers.sql.usual_week import slot_of

# Minutes in which the views of a story are compared, the running one included. The short time is
# for a quick answer, the longer one for stories with few views.
SHORT = 3
LENGTHS = (SHORT, 30)
MINUTES = 60  # that are known of a story
FIRST_HOUR = 1  # the age (hours) up to which a story is compared with its kind's whole first hour
HALF_HOUR = 0.5  # hours
FALL = 30  # minutes of an hour in which the level of the site falls to that of the hour
DEVIATIONS = 3  # below a multiple of the usual that are chance, in the short time
CLEAR = 8  # deviations above the usual that are none
# A story is over once it has less than this share of what made it an alert.
OVER = 0.5

LEAST_OF_DAY = 0.6  # of the day before is usual in the longer time; more would miss what fades
DAY_MAY_BE = 2  # times the day before that a story has by right: that may have been a holiday
MOST_FADING = 0.5  # the lowest share, because what is usual at an age is known roughly
LOWEST_LEVEL = 0.05  # of the site in an hour, because its nights may have no views at all

LEAST_OF_SITE = 100  # usual views so far in an hour below which the site is not judged
LEAST_OF_HOUR = 1 / 3  # share of the hour before which the site is not judged
SITE_DEVIATIONS = 2  # above the views of the site that are chance, where a fall is looked for
SUDDEN = 2  # times that the site had before as it has now
BACK = 1.5  # times the views of an alert at which it is over


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


@dataclass(frozen=True, slots=True)
class Site:
    """The views of the whole site in this hour and in the two hours before, oldest first."""

    views: Sequence[int]
    usual: Sequence[float]  # views in the whole of these hours of the week; 0 if not known
    running: float  # the share of this hour that is over


class Shortfall(NamedTuple):
    """The views of the site in this hour, and its usual views up to now."""

    views: int
    usual: float
    minutes: int


def excess_of(story: Story, *, times: float, least: int) -> Excess | None:
    """Returns by which numbers the story has so many times its usual; None if it has not."""
    if story.first_hour is not None:
        # The views of its first minutes may be anything, so all of them are taken together.
        all_views = Excess(sum(story.minutes), story.first_hour, MINUTES)
        is_excess = all_views.views >= max(least, times * all_views.usual)
        return all_views if is_excess else None
    for found in _compared(story):
        if found.views >= max(least, _fewest_views(found, times=times)):
            return found
    return None


def is_story_over(story: Story, *, times: float, least: int) -> bool:
    """Returns True if an alert about the story is over: in no time it has half of what it takes."""
    return excess_of(story, times=times * OVER, least=round(least * OVER)) is None


def _compared(story: Story) -> list[Excess]:
    """Returns the views of the story beside its usual, in each of the times."""
    compared = []
    for length in LENGTHS:
        minutes = length - 1 + story.running
        usual = max(story.kind, _own(story, length)) * minutes
        compared.append(Excess(sum(story.minutes[-length:]), usual, length))
    return compared


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
    if length != SHORT:  # half an hour before it may have had few views by chance
        own = max(own, LEAST_OF_DAY * day)
    return min(own, DAY_MAY_BE * day)


def _fewest_views(found: Excess, *, times: float) -> float:
    """Returns the fewest views by which a story may have so many times its usual, and not by chance
    alone.
    """
    multiple = times * found.usual
    if found.minutes == SHORT:
        multiple -= DEVIATIONS * sqrt(multiple)
    return max(multiple, found.usual + CLEAR * sqrt(found.usual))


def shortfall_of(site: Site, *, divisor: float) -> Shortfall | None:
    """Returns by which numbers the site has its usual views divided by `divisor`, or fewer; None if
    it has not, or if that came gradually.
    """
    now = _so_far(site)
    if now is None or now.views > now.usual / divisor:
        return None
    most_before = max(_as_now(site, before) for before in range(len(site.views) - 1))
    most_by_chance = now.views + SITE_DEVIATIONS * sqrt(now.views)
    if most_by_chance * SUDDEN > most_before * site.running:
        return None
    return now


def _as_now(site: Site, before: int) -> float:
    """Returns the views of an earlier hour, less what an hour like this one has less as usual."""
    if not site.usual[before]:
        return 0.0
    return site.views[before] * min(1.0, site.usual[-1] / site.usual[before])


def is_site_back(site: Site, *, divisor: float) -> bool:
    """Returns True if an alert about the site is over."""
    now = _so_far(site)
    return now is not None and now.views >= BACK * now.usual / divisor


def _so_far(site: Site) -> Shortfall | None:
    """Returns the views of this hour beside the usual ones; None if that says nothing yet."""
    usual = site.usual[-1] * site.running
    if usual < LEAST_OF_SITE or site.running < LEAST_OF_HOUR:
        return None
    return Shortfall(site.views[-1], usual, round(60 * site.running))


def usual_in_minute(bands: Bands, age: float) -> float:
    """Returns the usual views in a minute of objects at that age (hours); 0 if not known.

    `bands` are the usual views of their kind by age.
    """
    earlier = at_age(bands, age - HALF_HOUR)
    later = at_age(bands, age + HALF_HOUR)
    if earlier is None or later is None:
        return 0.0
    # Peers of two ages may be others, so that there may be fewer views later on.
    return max(0.0, later.usual - earlier.usual) / 60


def levels_of(week: Bands) -> dict[int, float]:
    """Returns the usual views in each hour of the week (its slot), as a share of those of a usual hour;
    nothing if they are not known.
    """
    usual_views = {slot: band.usual for slot, band in week.items() if slot < HOURS_OF_WEEK}
    usual_hour = fmean(usual_views.values()) if usual_views else 0.0
    if not usual_hour:
        return {}
    return {slot: max(LOWEST_LEVEL, views / usual_hour) for slot, views in usual_views.items()}


def story_of(
    views: Sequence[int],
    bands: Bands,
    *,
    levels: Mapping[int, float],
    hours: Mapping[int, int],
    age: float | None,
    at: datetime,
) -> Story:
    """Returns the numbers of a story.

    `views` has its views in the last minutes, `hours` those in whole hours before the present one
    (since 1970), `bands` what is usual for its kind by age, `levels` those of `levels_of`. `age` is in
    hours; None if it is not known.
    """
    minute_start = at.replace(second=0, microsecond=0)
    hour = buckets.hour_index(at)
    level = levels.get(slot_of(hour), 1.0)
    level_before = levels.get(slot_of(hour - 1), 1.0)
    kind = 0.0
    fading = 1.0
    first_hour = None
    if age is not None and bands:
        # What is usual at an age is the mean of all hours, and the night has less. The day has
        # more, but stories are often published by day, so that this is in the usual already.
        kind = usual_in_minute(bands, age)
        earlier = usual_in_minute(bands, age - HALF_HOUR)
        fading = max(MOST_FADING, min(1.0, kind / earlier)) if earlier else 1.0
        kind *= min(1.0, level)
        if age < FIRST_HOUR:
            band = at_age(bands, FIRST_HOUR)
            # Here chance is small, and the hour of the day is not.
            first_hour = band.usual * max(1.0, level) if band else None
    return Story(
        minutes=views,
        running=(at - minute_start) / buckets.MINUTE,
        levels=_levels_of_minutes(level, before=level_before, minute=minute_start.minute),
        kind=kind,
        fading=fading,
        day=_of_day(hours, levels=levels),
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


def _of_day(hours: Mapping[int, int], *, levels: Mapping[int, float]) -> float | None:
    """Returns a story's views in a minute of these whole hours, divided by the level of the site."""
    if not hours:
        return None
    level = fmean(levels.get(slot_of(hour), 1.0) for hour in hours)
    return fmean(hours.values()) / 60 / level
