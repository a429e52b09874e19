"""Windows of age: what stories gain in each is stored, for the band behind the chart of a story.

A window is counted in hours from the start of the hour of publication. What stories gain in it has
quartiles of its own: those of a difference are not the differences of those of two totals.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from readtrack.numbers.sql.usual import AGES, NOTHING, Band, Bands, name_of
from readtrack.subjects import subject_column

DAY = 24  # hours
FARTHEST = 12.5  # hours by which a day may begin or end outside its window


class Window(NamedTuple):
    """The hours of age from `since` until `until`, which is exclusive."""

    since: int
    until: int

    @property
    def length(self) -> int:
        """The number of its hours."""
        return self.until - self.since

    @property
    def is_known_by_day(self) -> bool:
        """Whether one total a day is enough to say what is gained in it."""
        return self.length >= DAY and (self.since == 0 or self.since >= DAY)


#: Where windows begin and end: by the hour on the first day, coarser later on.
BOUNDS = (
    *range(DAY),
    *range(DAY, 3 * DAY, 3),
    *range(3 * DAY, 7 * DAY, 12),
    *range(7 * DAY, 16 * DAY, DAY),
    *(age for age in AGES if age > 16 * DAY),
)


def _windows() -> list[Window]:
    """Returns the windows between bounds, those from the publication on, and those of a day."""
    found = [Window(since, until) for since, until in pairwise(BOUNDS)]
    found += [Window(0, until) for until in BOUNDS if 1 < until <= DAY]
    found += [Window(since, since + DAY) for since in BOUNDS[1:] if since + DAY in BOUNDS]
    return [*dict.fromkeys(found)]


#: What is gained in a window is stored under its number here, in `Bands`.
WINDOWS: Sequence[Window] = _windows()
#: The numbers of the windows that end at each of AGES, or after the age before it.
NUMBERS_OF_AGE: Mapping[int, Sequence[int]] = {
    age: [number for number, window in enumerate(WINDOWS) if earlier < window.until <= age]
    for earlier, age in pairwise((0, *AGES))
}
#: The bounds of these windows.
BOUNDS_OF_AGE: Mapping[int, Sequence[int]] = {
    age: sorted({bound for number in numbers for bound in WINDOWS[number]})
    for age, numbers in NUMBERS_OF_AGE.items()
}


def name_of_gains(label: str, section: str = "") -> str:
    """Returns the name of what the objects of a model, or of its section, gain in the windows."""
    return subject_column(f"gained:{name_of(label, section)}")


def gained(gains: Bands, since: float, until: float) -> Band | None:
    """Returns what is usually gained between two ages: hours from the start of the hour of
    publication.

    It is that of the shortest window that has both ages in it, or of the nearest one of a day or
    more, divided evenly. None if there is no such window, or if too few objects are known in it.
    """
    since = max(0, since)
    if until <= since:
        return NOTHING
    number = _number_of(since, until)
    if number is None or number not in gains:
        return None
    share = (until - since) / WINDOWS[number].length
    return Band(*(share * views for views in gains[number]))


@lru_cache(maxsize=8192)  # of the charts of many stories: ages are whole hours, save the present
def _number_of(since: float, until: float) -> int | None:
    """Returns the number of the window for what is gained between two ages; None without one."""
    around = []
    near = []
    for number, window in enumerate(WINDOWS):
        outside = max(window.since - since, until - window.until)  # hours
        # A day has an hour more where clocks go back.
        is_long_enough = DAY <= window.length >= until - since - 1
        if outside <= 0:
            around.append((window.length, number))
        elif is_long_enough and outside <= FARTHEST:
            near.append((outside, number))
    return min(around or near, default=(0, None))[1]
