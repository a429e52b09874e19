"""Charts have the shapes of their numbers, and marks that a finger can hit."""

import re

from readtrack.dashboard import charts
from readtrack.dashboard.charts import HEIGHT, WIDTH
from readtrack.numbers.local_time import Period
from readtrack.numbers.sql.usual import Ends
from tests.support.rows import each_row

POINT = re.compile(r"(-?[\d.]+) (-?[\d.]+)")


def points(path: str) -> list[tuple[float, float]]:
    """Returns the points of a path, as distances from the left and from the top."""
    return [(float(over), float(down)) for over, down in POINT.findall(path)]


def test_a_value_is_as_high_as_its_share_of_the_axis() -> None:
    shapes = charts.shapes([0, 20, 40, 30])
    assert shapes.values_of_axis == ["40", "30", "20", "10", "0"]
    assert points(shapes.line) == [(125, 250), (375, 125), (625, 0), (875, 62.5)]
    assert len(points(shapes.dots)) == 4
    assert (shapes.before, shapes.band, shapes.unfinished) == ("", "", "")


@each_row(
    ("highest", "values"),
    [
        (0, ["4", "3", "2", "1", "0"]),
        (4, ["4", "3", "2", "1", "0"]),
        (5, ["6", "4", "2", "0"]),
        (45, ["50", "25", "0"]),
        (1000, ["1,000", "750", "500", "250", "0"]),
        (50_210, ["60,000", "40,000", "20,000", "0"]),
        (99_999, ["100,000", "75,000", "50,000", "25,000", "0"]),
    ],
)
def test_the_axis_has_few_round_numbers_and_ends_close_above_the_highest(
    highest: int, values: list[str]
) -> None:
    shapes = charts.shapes([highest, 1])
    assert shapes.values_of_axis == values
    assert len(shapes.lines_of_axis) == len(values)
    assert (shapes.lines_of_axis[0], shapes.lines_of_axis[-1]) == (f"{HEIGHT:.1f}", "0.0")


@each_row(
    ("values", "is_unfinished", "finished", "unfinished"),
    [
        ([1, 2, 3, 4], False, 4, 0),
        ([1, 2, 3, 4], True, 3, 2),
        ([1, 2], True, 1, 2),
        ([1], True, 0, 1),
        ([1, 2, 3, None], True, 3, 0),  # nobody knows how far the last one is
        ([], True, 0, 0),
    ],
)
def test_the_last_point_has_a_line_of_its_own_while_it_is_not_over(
    values: list[int | None], is_unfinished: bool, finished: int, unfinished: int
) -> None:
    shapes = charts.shapes(values, is_unfinished=is_unfinished)
    assert (len(points(shapes.line)), len(points(shapes.unfinished))) == (finished, unfinished)


def test_a_line_has_a_gap_where_nothing_is_known_and_a_dot_where_a_point_is_alone() -> None:
    shapes = charts.shapes([1, None, 2, 3], before=[4])
    assert shapes.line.count("M") == 2
    assert shapes.line.count("h.01") == 1
    assert points(shapes.before) == [(125, 0)]


def test_the_period_before_ends_with_the_chart() -> None:
    shapes = charts.shapes([1, 2], before=[1, 2, 3, 4])
    assert len(points(shapes.before)) == 2


def test_a_band_is_the_area_between_its_ends() -> None:
    shapes = charts.shapes([1, 2, 3], usual=[Ends(1, 3), None, Ends(2, 10)])
    assert shapes.band.count("M") == shapes.band.count("Z") == 2
    assert len(points(shapes.band)) == 4  # two ends at each of two points
    assert min(down for _, down in points(shapes.band)) >= 0  # the axis reaches its highest end
    assert charts.shapes([1], usual=[None]).band == ""


def test_many_points_have_no_dots() -> None:
    assert charts.shapes([1] * 32).dots == ""


@each_row("by", ["hour", "day", "week", "month"])
def test_a_chart_has_few_marks_however_many_points_it_has(by: Period) -> None:
    for count in range(401):
        groups = charts.groups(count, by)
        assert len(groups) <= charts.MOST_MARKS
        assert [index for group in groups for index in range(group.first, group.stop)] == [
            *range(count)
        ]
        assert all(1 <= group.twelfths <= 12 for group in groups)
    assert [group.twelfths for group in charts.groups(8, by)] == [12] * 8


def test_hours_days_and_years_are_divided_by_round_numbers() -> None:
    assert [len(charts.groups(24, "hour")), charts.groups(24, "hour")[0].stop] == [8, 3]
    assert charts.groups(28, "day")[-1] == charts.Group(24, 28, 12)
    # The last 6 days would be too narrow for a finger.
    assert charts.groups(90, "day")[-1] == charts.Group(70, 90, 12)
    assert charts.groups(300, "hour")[1].first == 48


def test_the_shapes_stay_within_the_drawing() -> None:
    shapes = charts.shapes([5, 3, 8], before=[9, 1, 2], usual=[Ends(1, 9), Ends(2, 12), Ends(0, 1)])
    for path in (shapes.line, shapes.before, shapes.band, shapes.dots):
        for over, down in points(path):
            assert 0 <= over <= WIDTH
            assert 0 <= down <= HEIGHT
