"""When something is unusual. Nothing here asks a server: numbers come in, judgements go out.

**A story** is compared with what `readtrack.numbers.usual_now` says is usual for it.

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

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

from readtrack.numbers.rising import RECENT_MINUTES, is_rise
from readtrack.numbers.usual_now import LONG_TIME, MINUTES, Excess, Story, compared_in

# Minutes in which the views of a story are compared, the running one included. The short time is
# for a quick answer, the longer one for stories with few views.
SHORT = 3
LENGTHS = (SHORT, LONG_TIME)
DEVIATIONS = 3  # below a multiple of the usual that are chance, in the short time
CLEAR = 8  # deviations above the usual that are none
# A story is over once it has less than this share of what made it an alert.
OVER = 0.5

LEAST_OF_SITE = 100  # usual views so far in an hour below which the site is not judged
LEAST_OF_HOUR = 1 / 3  # share of the hour before which the site is not judged
SITE_DEVIATIONS = 2  # above the views of the site that are chance, where a fall is looked for
SUDDEN = 2  # times that the site had before as it has now
BACK = 1.5  # times the views of an alert at which it is over


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


def is_story_over(story: Story, *, minutes: int, times: float, least: int) -> bool:
    """Returns True if an alert about the story is over, whose views were those of so many minutes.

    It is over once the story has less than half of what it takes, in the last RECENT_MINUTES, in
    which the dashboard looks for rises; an alert about a longer time in the longer one of LENGTHS.
    The short time alone would end an alert by chance; half an hour would keep one open that has
    been over for long.
    """
    times *= OVER
    least = round(least * OVER)
    if story.first_hour is not None:
        return not is_rise(sum(story.minutes), story.first_hour, times=times, least=least)
    length = RECENT_MINUTES if minutes == SHORT else LENGTHS[-1]
    found = compared_in(story, length)
    return not is_rise(found.views, found.usual, times=times, least=least)


def _compared(story: Story) -> list[Excess]:
    """Returns the views of the story beside its usual, in each of the times."""
    return [compared_in(story, length) for length in LENGTHS]


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
