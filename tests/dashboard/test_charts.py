"""Charts fit a strict content security policy, and have words for screen readers."""

from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from pygal.etree import etree

from readtrack.dashboard import charts

NAMESPACE = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True, params=["xml.etree", "lxml"])
def implementation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs each test with both libraries that pygal draws with. By default it is lxml, if that is installed."""
    was_lxml = etree.lxml
    if request.param == "lxml":
        pytest.importorskip("lxml")
        etree.to_lxml()
    else:
        etree.to_etree()
    yield
    (etree.to_lxml if was_lxml else etree.to_etree)()


def draw(values: list[int], *, title: str = "Views", labels: list[str] | None = None) -> ElementTree.Element:
    labels = labels or [f"{hour} h" for hour in range(len(values))]
    return ElementTree.fromstring(charts.bars(title, labels, values, description=f"{sum(values)} in all"))


def test_a_chart_has_neither_script_nor_style_nor_anything_from_elsewhere() -> None:
    svg = str(charts.bars("Views", ["a", "b"], [1, 2], description="three"))
    for forbidden in ("<script", "<style", "style=", "href", "<!--", "onload", "javascript", "<?xml"):
        assert forbidden not in svg


def test_a_chart_says_what_it_shows() -> None:
    root = draw([1, 2, 3])
    assert root.get("role") == "img"
    assert root[0].tag.endswith("title")
    assert root[0].text == "Views"
    assert root[1].tag.endswith("desc")
    assert root[1].text == "6 in all"
    assert len(root.findall(f"{NAMESPACE}title")) == 1


def test_each_bar_names_its_label_and_value() -> None:
    bars = [element for element in draw([5, 1234], labels=["09:00", "10:00"]).iter() if element.get("class") == "bar"]
    assert [bar[0].text for bar in bars] == ["09:00: 5", "10:00: 1,234"]


def written(root: ElementTree.Element) -> list[str]:
    """Returns the labels of the horizontal axis that are written out."""
    [axis] = [one for one in root.iter(f"{NAMESPACE}g") if str(one.get("class")).startswith("axis x")]
    return [str(text.text) for text in axis.iter(f"{NAMESPACE}text")]


@pytest.mark.parametrize(
    ("count", "label", "steps", "shape", "shown"),
    [
        (24, "{:02}:00", (3, 6), charts.WIDE, ["02:00", "05:00", "08:00", "11:00", "14:00", "17:00", "20:00", "23:00"]),
        (24, "{:02}:00", (3, 6), charts.NARROW, ["05:00", "11:00", "17:00", "23:00"]),
        (3, "day {}", (1,), charts.NARROW, ["day 0", "day 1", "day 2"]),
        (30, "{} Nov.", (5, 10), charts.WIDE, ["4 Nov.", "9 Nov.", "14 Nov.", "19 Nov.", "24 Nov.", "29 Nov."]),
        (30, "11月{}日", (2, 5, 15), charts.NARROW, ["11月14日", "11月29日"]),
        (
            30,
            "a long name of the day {}",
            (1, 2),
            charts.NARROW,
            [f"a long name of the day {n}" for n in range(1, 30, 2)],
        ),
    ],
)
def test_labels_are_written_out_where_there_is_room(
    count: int, label: str, steps: tuple[int, ...], shape: charts.Shape, shown: list[str]
) -> None:
    labels = [label.format(number) for number in range(count)]
    drawing = charts.bars("Views", labels, [1] * count, description="", steps=steps, shape=shape)
    assert written(ElementTree.fromstring(drawing)) == shown


def test_text_cannot_break_out_of_the_drawing() -> None:
    root = draw([1], title="</svg><script>alert(1)</script>", labels=["<b>"])
    assert root[0].text == "</svg><script>alert(1)</script>"
    assert not [element for element in root.iter() if element.tag.endswith("script")]


def test_an_empty_chart_is_a_chart() -> None:
    assert draw([0] * 24).get("class") == "readtrack-chart readtrack-wide"
    assert draw([], labels=[]).get("class") == "readtrack-chart readtrack-wide"


def test_the_same_numbers_give_the_same_drawing() -> None:
    assert charts.bars("Views", ["a"], [1], description="") == charts.bars("Views", ["a"], [1], description="")
