"""Line charts: the shapes as paths of SVG, and the marks below them that open the numbers.

The page stretches the shapes, while all words are HTML, so letters keep their size on a phone.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from readtrack.numbers import local_time
from readtrack.numbers.sql.usual import NOTHING, Ends
from readtrack.numerals import exact

WIDTH, HEIGHT = 1000, 250  # of the shapes, in units of the SVG
LEAST_MAXIMUM = 4  # least value at the top of the axis
MOST_PARTS = 4  # of the axis, between its lines
MOST_MARKS = 8  # a finger hits each of them on a phone
MOST_DOTS = 31  # points that have a dot; more of them would hide the line
TWELFTHS = 12
LEAST_PART = 0.6  # of a whole group that the last one has, on a phone some 24 pixels
#: The numbers of points that a mark may stand for, by the length of a point.
POINTS_OF_MARK: Mapping[local_time.Period, Sequence[int]] = {
    "hour": (1, 2, 3, 4, 6, 12, 24, 48),
    "day": (1, 2, 4, 7, 14, 28, 56),
    "week": (1, 2, 4, 8, 13, 26, 52),
    "month": (1, 2, 3, 6, 12, 24, 60),
}


class Shapes(NamedTuple):
    """The shapes of a chart: the `d` of each path, "" for a shape without points."""

    lines_of_axis: Sequence[str]  # the heights of the lines behind the chart, the lowest first
    values_of_axis: Sequence[str]  # the highest first
    band: str
    before: str
    line: str
    unfinished: str  # the part of the line that leads to a point that is not over yet
    dots: str


class Group(NamedTuple):
    """Points that share a mark below the chart."""

    first: int  # the index of the first point
    stop: int  # the index behind the last point
    twelfths: int  # its width, in twelfths of that of the longest group


def shapes(
    values: Sequence[int | None],
    *,
    before: Sequence[int | None] = (),
    usual: Sequence[Ends | None] = (),
    is_unfinished: bool = False,
) -> Shapes:
    """Returns the shapes of a line with a value for each point.

    Where a value is None the line has a gap. `before` has the values of the period before, `usual`
    the two ends of the band behind the line. If the last point is not over yet (`is_unfinished`),
    the line to it is a shape of its own.
    """
    highs = [band.high for band in usual if band]
    step, parts = _axis(_highest([*values, *before, *highs]))
    scale = _Scale(len(values), top=step * parts)
    finished = [*values]
    unfinished: list[int | None] = [None] * len(values)
    if is_unfinished and values and values[-1] is not None:
        finished[-1] = None
        unfinished[-2:] = values[-2:]
    return Shapes(
        lines_of_axis=[f"{HEIGHT - HEIGHT * part / parts:.1f}" for part in range(parts + 1)],
        values_of_axis=[exact(step * part) for part in range(parts, -1, -1)],
        band=_band(usual, scale),
        before=_line(before[: len(values)], scale),
        line=_line(finished, scale),
        unfinished=_line(unfinished, scale),
        dots=_dots(values, scale),
    )


def groups(count: int, by: local_time.Period) -> list[Group]:
    """Returns the groups of `count` points, each as long as `by`: MOST_MARKS groups at most."""
    sizes = POINTS_OF_MARK[by]
    fitting = [size for size in sizes if count <= MOST_MARKS * size]
    size = fitting[0] if fitting else ceil(count / MOST_MARKS)
    bounds = [*range(0, count, size), count]
    if len(bounds) > 2 and bounds[-1] - bounds[-2] < LEAST_PART * size:
        del bounds[-2]  # the rest is too short for a finger
    return groups_between(bounds)


def groups_between(bounds: Sequence[int]) -> list[Group]:
    """Returns the groups of points between these indexes."""
    parts = [*pairwise(bounds)]
    longest = max((stop - first for first, stop in parts), default=1)
    return [
        Group(first, stop, max(1, round(TWELFTHS * (stop - first) / longest)))
        for first, stop in parts
    ]


class _Scale(NamedTuple):
    """Where the points of a chart are: how many there are, and the value at the top of its axis."""

    points: int
    top: int

    def x(self, index: int) -> str:
        return f"{WIDTH * (index + 0.5) / self.points:.1f}"

    def y(self, value: float) -> str:
        return f"{HEIGHT - HEIGHT * value / self.top:.1f}"

    def point(self, index: int, value: float) -> str:
        return f"{self.x(index)} {self.y(value)}"


def _highest(values: Sequence[float | None]) -> int:
    """Returns the value that the axis has to reach."""
    return ceil(max([LEAST_MAXIMUM, *(value or 0 for value in values)]))


def _axis(highest: int) -> tuple[int, int]:
    """Returns the value between two lines of the axis, and the number of its parts.

    The axis ends as close above the highest value as whole, round numbers allow.
    """
    candidates = []
    for power in range(len(str(highest)) + 1):
        for digit in (1, 2, 2.5, 5):
            step = int(digit * 10**power)
            parts = ceil(highest / step)
            if 2 <= parts <= MOST_PARTS and step == digit * 10**power:
                candidates.append((step * parts, step, parts))
    _, step, parts = min(candidates)
    return step, parts


def _runs(values: Sequence[object]) -> Iterator[range]:
    """Yields the indexes of the values that follow upon one another without a gap (None)."""
    first = 0
    for index, value in enumerate([*values, None]):
        if value is None:
            if first < index:
                yield range(first, index)
            first = index + 1


def _line(values: Sequence[int | None], scale: _Scale) -> str:
    """Returns the path of a line. A point that stands alone is a dot."""
    paths = []
    for run in _runs(values):
        points = [scale.point(index, values[index] or 0) for index in run]
        end = "h.01" if len(points) == 1 else ""
        paths.append(f"M{' '.join(points)}{end}")
    return "".join(paths)


def _band(usual: Sequence[Ends | None], scale: _Scale) -> str:
    """Returns the path around the band: along its high ends, and back along the low ends."""
    paths = []
    for run in _runs(usual):
        bands = {index: usual[index] or NOTHING.ends for index in run}
        highs = [scale.point(index, ends.high) for index, ends in bands.items()]
        lows = [scale.point(index, bands[index].low) for index in reversed(bands)]
        paths.append(f"M{' '.join([*highs, *lows])}Z")
    return "".join(paths)


def _dots(values: Sequence[int | None], scale: _Scale) -> str:
    """Returns the path of the dots: of all points, of many points none."""
    if len(values) > MOST_DOTS:
        return ""
    known = [(index, value) for index, value in enumerate(values) if value is not None]
    return "".join(f"M{scale.point(index, value)}h.01" for index, value in known)
