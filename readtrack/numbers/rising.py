"""Which stories rise now: those whose last minutes are far above what is usual for them."""

from typing import NamedTuple

from readtrack.numbers.chance import LEAST_VIEWS
from readtrack.numbers.data import ScopeData
from readtrack.numbers.usual_now import compared_in

RECENT_MINUTES = 5
LEAST_TIMES = 5  # times the usual, from which on a story rises


class Rising(NamedTuple):
    """A story that rises now."""

    subject: str
    views: int  # of the last RECENT_MINUTES
    usual: float  # views in as many minutes


def is_rise(views: float, usual: float, *, times: float, least: float) -> bool:
    """Returns True if so many views of a time are those of a rise: `least` or more, and so many
    times the usual ones of such a time.

    A rise that was told in an alert goes on while half of both is true, so that chance does not
    end it.
    """
    return views >= least and views >= times * usual


def rising_stories(data: ScopeData) -> list[Rising]:
    """Returns the stories of the last minutes that rise now, most views first. Makes no query.

    They have LEAST_VIEWS views or more in the last RECENT_MINUTES, and LEAST_TIMES the usual ones
    of such a time, by the rule of alerts. A story whose publication is not known, or that has been
    there for less than LEAST_TIME, is none of them.
    """
    found = []
    for subject, story in data.stories_now.items():
        recent = compared_in(story, RECENT_MINUTES)
        if is_rise(recent.views, recent.usual, times=LEAST_TIMES, least=LEAST_VIEWS):
            found.append(Rising(subject, recent.views, recent.usual))
    return sorted(found, key=lambda rising: -rising.views)
