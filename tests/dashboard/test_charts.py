"""Charts fit a strict content security policy, and have words for screen readers."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from unicodedata import east_asian_width
from xml.etree import ElementTree

import pytest
from django.utils.formats import date_format
from django.utils.translation import override
from pygal.etree import etree

from readtrack.dashboard import charts
from readtrack.dashboard.context import RANGES

HOUR = timedelta(hours=1)
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
    ("count", "step", "shown"),
    [(24, 6, ["05:00", "11:00", "17:00", "23:00"]), (3, 1, ["00:00", "01:00", "02:00"]), (3, 2, ["00:00", "02:00"])],
)
def test_the_last_label_is_written_out_and_some_before_it(count: int, step: int, shown: list[str]) -> None:
    labels = [f"{number:02}:00" for number in range(count)]
    assert (
        written(ElementTree.fromstring(charts.bars("Views", labels, [1] * count, description="", step=step))) == shown
    )


@pytest.mark.parametrize("language", ["en", "de", "fr", "pt-br", "es", "ja", "ar"])
@pytest.mark.parametrize("name", RANGES)
def test_labels_have_room_in_every_language(name: str, language: str) -> None:
    """A letter is 0.62 font sizes wide, one of East Asia a whole one; the axis leaves 85 % of the width."""
    shown, end = RANGES[name], datetime(2026, 9, 30, 23)
    bars = int(shown.back / {"hour": HOUR, "day": 24 * HOUR, "week": 168 * HOUR}[shown.by]) + 1
    with override(language):
        labels = [date_format(end - shown.back * place / bars, shown.format) for place in range(bars)]
    widest = max(sum(1.0 if east_asian_width(letter) in "WF" else 0.62 for letter in label) for label in labels)
    for shape, step in zip((charts.WIDE, charts.NARROW), shown.steps, strict=True):
        assert widest <= step * 0.85 * shape.width / bars / shape.font_size


def test_text_cannot_break_out_of_the_drawing() -> None:
    root = draw([1], title="</svg><script>alert(1)</script>", labels=["<b>"])
    assert root[0].text == "</svg><script>alert(1)</script>"
    assert not [element for element in root.iter() if element.tag.endswith("script")]


def test_an_empty_chart_is_a_chart() -> None:
    assert draw([0] * 24).get("class") == "readtrack-chart readtrack-wide"
    assert draw([], labels=[]).get("class") == "readtrack-chart readtrack-wide"


def test_the_same_numbers_give_the_same_drawing() -> None:
    assert charts.bars("Views", ["a"], [1], description="") == charts.bars("Views", ["a"], [1], description="")
