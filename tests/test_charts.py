"""Charts are drawings fit for a strict content security policy, with words for who cannot see them."""

from xml.etree import ElementTree

from readtrack import charts

NAMESPACE = "{http://www.w3.org/2000/svg}"


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


def test_text_cannot_break_out_of_the_drawing() -> None:
    root = draw([1], title="</svg><script>alert(1)</script>", labels=["<b>"])
    assert root[0].text == "</svg><script>alert(1)</script>"
    assert not [element for element in root.iter() if element.tag.endswith("script")]


def test_an_empty_chart_is_a_chart() -> None:
    assert draw([0] * 24).get("class") == "readtrack-chart"
    assert draw([], labels=[]).get("class") == "readtrack-chart"


def test_the_same_numbers_give_the_same_drawing() -> None:
    assert charts.bars("Views", ["a"], [1], description="") == charts.bars("Views", ["a"], [1], description="")
