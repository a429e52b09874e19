"""Charts fit a strict content security policy, and have words for screen readers."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from unicodedata import east_asian_width
from xml.etree import ElementTree

import pytest
from django.utils.formats import date_format
from django.utils.translation import override

from readtrack.dashboard import charts
from readtrack.dashboard.page import FORMATS
from tests.support.depth import some
from tests.support.rows import each_row

HOUR = timedelta(hours=1)
etree = charts.load_pygal().etree.etree
NAMESPACE = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True, params=["xml.etree", "lxml"])
def implementation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs each test with both libraries that pygal draws with. By default it is lxml, if that is
    installed.
    """
    was_lxml = etree.lxml
    if request.param == "lxml":
        pytest.importorskip("lxml")
        etree.to_lxml()
    else:
        etree.to_etree()
    yield
    (etree.to_lxml if was_lxml else etree.to_etree)()


def draw(
    values: list[int], *, title: str = "Views", labels: list[str] | None = None
) -> ElementTree.Element:
    labels = labels or [f"{hour} h" for hour in range(len(values))]
    return ElementTree.fromstring(
        charts.line(title, labels, values, description=f"{sum(values)} in all")
    )


def test_a_chart_has_neither_script_nor_style_nor_anything_from_elsewhere() -> None:
    svg = str(charts.line("Views", ["a", "b"], [1, 2], description="three"))
    for forbidden in (
        "<script",
        "<style",
        "style=",
        "href",
        "<!--",
        "onload",
        "javascript",
        "<?xml",
    ):
        assert forbidden not in svg


def test_a_chart_says_what_it_shows() -> None:
    root = draw([1, 2, 3])
    assert root.get("role") == "img"
    assert root[0].tag.endswith("title")
    assert root[0].text == "Views"
    assert root[1].tag.endswith("desc")
    assert root[1].text == "6 in all"
    assert len(root.findall(f"{NAMESPACE}title")) == 1


def test_a_single_point_can_be_seen() -> None:
    assert [
        element for element in draw([5]).iter() if element.get("class") == "line reactive nofill"
    ]


def test_a_point_with_a_note_has_a_line_that_says_it() -> None:
    values, notes = [1, 2, 3], ["", "<Newsletter> sent", ""]
    svg = charts.line("Views", ["a", "b", "c"], values, before=values, description="", notes=notes)
    root = ElementTree.fromstring(svg)
    [marks] = [one for one in root.iter(f"{NAMESPACE}g") if one.get("class") == "readtrack-marks"]
    assert [mark[0].text for mark in marks] == ["<Newsletter> sent"]
    assert (
        len([one for one in root.iter() if one.get("class") == "line reactive nofill"]) == 2
    )  # and no third one
    over, down = (
        float(part.split(" ")[0]) for part in str(marks[0].get("d")).removeprefix("M").split("V")
    )
    [label] = [one for one in root.iter(f"{NAMESPACE}text") if one.text == "b"]
    assert over == pytest.approx(float(str(label.get("x"))), abs=0.1)
    assert 0 < down < 260


def points(svg: str) -> dict[str, int]:
    """Returns the number of points of each line by its series; that of the area is left out."""
    root = ElementTree.fromstring(svg)
    points = {}
    for group in root.iter(f"{NAMESPACE}g"):
        for path in group.findall(f"{NAMESPACE}path"):
            if path.get("class") == "line reactive nofill":
                series = str(group.get("class")).split()[1]
                points[series] = len(str(path.get("d")).split()) // 2
    return points


@each_row(
    ("values", "is_unfinished", "expected"),
    [
        ([1, 2, 3, 4], False, {"serie-2": 4}),
        ([1, 2, 3, 4], True, {"serie-2": 3, "serie-3": 2}),
        ([1, 2], True, {"serie-3": 2}),
        ([1], True, {"serie-3": 2}),
        ([1, 2, 3, None], True, {"serie-2": 3}),  # nobody knows how far the last one is
        ([], True, {}),
    ],
)
def test_the_last_point_has_a_line_of_its_own_while_it_is_not_over(
    values: list[int | None], is_unfinished: bool, expected: dict[str, int]
) -> None:
    labels = [str(number) for number in range(len(values))]
    svg = charts.line("Views", labels, values, description="", is_unfinished=is_unfinished)
    assert points(svg) == expected


def test_the_period_before_may_have_more_points_or_fewer() -> None:
    for before, expected in (([5], {}), ([5, 6], {"serie-0": 2}), ([5] * 9, {"serie-0": 3})):
        svg = charts.line("Views", ["a", "b", "c"], [1, 2, 3], before=before, description="")
        assert points(svg) == {**expected, "serie-2": 3}


def written(root: ElementTree.Element) -> list[str]:
    """Returns the labels of the horizontal axis that are written out."""
    [axis] = [
        one for one in root.iter(f"{NAMESPACE}g") if str(one.get("class")).startswith("axis x")
    ]
    return [str(text.text) for text in axis.iter(f"{NAMESPACE}text")]


@each_row("language", some(["de", "ja"], deep=["en", "ar"]))  # of long words, and of wide letters
@each_row(("is_narrow", "width", "font_size"), [(False, 900, 13), (True, 420, 14)])
@each_row(("by", "count"), [("hour", 24), ("day", 99), ("week", 107), ("month", 100)])
def test_labels_have_room_in_every_language(
    by: str, language: str, is_narrow: bool, width: int, font_size: int, count: int
) -> None:
    """A letter is 0.62 font sizes wide, one of East Asia a whole one; the axis leaves 85 % of the
    width.
    """
    end, hours = datetime(2026, 9, 30, 23), {"hour": 1, "day": 24, "week": 168, "month": 744}[by]
    with override(language):
        labels = [date_format(end - place * hours * HOUR, FORMATS[by]) for place in range(count)][
            ::-1
        ]
    shown = written(
        ElementTree.fromstring(
            charts.line("Views", labels, [1] * count, description="", is_narrow=is_narrow)
        )
    )
    assert shown[-1] == labels[-1]
    widest = max(
        sum(1.0 if east_asian_width(letter) in "WF" else 0.62 for letter in label)
        for label in labels
    )
    assert widest * len(shown) <= 0.85 * width / font_size + widest


def test_text_cannot_break_out_of_the_drawing() -> None:
    root = draw([1], title="</svg><script>alert(1)</script>", labels=["<b>"])
    assert root[0].text == "</svg><script>alert(1)</script>"
    assert not [element for element in root.iter() if element.tag.endswith("script")]


def test_an_empty_chart_is_a_chart() -> None:
    assert draw([0] * 24).get("class") == "readtrack-chart readtrack-wide"
    assert draw([], labels=[]).get("class") == "readtrack-chart readtrack-wide"


def test_the_same_numbers_give_the_same_drawing() -> None:
    one, two = (charts.line("Views", ["a"], [1], description="") for _ in range(2))
    assert one == two


def test_a_band_is_an_area_behind_all_lines() -> None:
    drawing = charts.line(
        "Views", ["1", "2", "3"], [1, 2, 3], description="", usual=[(1, 3), None, (2, 9)]
    )
    assert drawing.count('class="readtrack-band"') == 1
    assert drawing.index("readtrack-band") < drawing.index("serie-0")
    [path] = re.findall(r'<path d="([^"]+)" class="readtrack-band"', drawing)
    points = re.findall(r"[\d.]+ [\d.]+", path)
    assert len(points) == 4  # two ends at each of two points
    assert path.endswith("Z")
    # The highest end is at the top of the axis.
    assert min(float(point.split()[1]) for point in points) < 10
    assert "readtrack-band" not in charts.line("Views", ["1"], [1], description="", usual=[None])
    single = charts.line("Views", ["1"], [1], description="", usual=[(1, 3)])
    assert single.count('class="readtrack-band"') == 1
    at_the_end = charts.line("Views", ["1", "2"], [1, 2], description="", usual=[None, (1, 3)])
    assert "readtrack-band" not in at_the_end
