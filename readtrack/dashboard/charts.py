"""Charts as inline SVG, drawn by pygal. Colours come from the page's style sheet, so dark mode follows."""

from collections.abc import Sequence
from typing import NamedTuple
from unicodedata import east_asian_width
from xml.etree.ElementTree import Element

import pygal
from django.utils.safestring import SafeString
from pygal.config import Config
from pygal.style import Style

from readtrack.numerals import exact

LETTER = 0.62  # width of a letter, in font sizes; those of East Asia are as wide as high
PLOT = 0.85  # share of the width that is left for bars
GAP = 1.0  # least room between two labels, in font sizes


class Shape(NamedTuple):
    """How large a chart is drawn, in its own units: the page scales it, and its text with it."""

    name: str
    width: int
    height: int
    font_size: int


WIDE = Shape("wide", width=900, height=260, font_size=13)
NARROW = Shape("narrow", width=420, height=300, font_size=14)  # for a telephone


def bars(
    title: str,
    labels: Sequence[str],
    values: Sequence[int | None],
    *,
    description: str,
    steps: Sequence[int] = (1,),
    shape: Shape = WIDE,
) -> SafeString:
    """A bar chart as an `<svg>` element without script and style, fit for a strict content security policy.

    `title` and `description` are read aloud; pointing at a bar shows its label and value. None is no bar. Of the
    labels the last is written out, and from there every n-th: n is the first of `steps` that leaves them room.
    """
    config = Config(
        width=shape.width,
        height=shape.height,
        margin=8,
        margin_right=2 * shape.font_size,  # half of the last label
        spacing=6,
        rounded_bars=2,
        show_legend=False,
        js=[],
        no_prefix=True,
        disable_xml_declaration=True,
        range=(0, max([4, *(value or 0 for value in values)])),
        truncate_label=-1,
        max_scale=7,
        style=Style(label_font_size=shape.font_size, major_label_font_size=shape.font_size),
        value_formatter=lambda value: exact(int(value)),
    )
    chart = pygal.Bar(config)
    chart.x_labels = list(labels)
    chart.add(title, list(values))
    shown = _shown(labels, steps=steps, shape=shape)
    chart.add_xml_filter(lambda root: _thin_out(root, shown=shown))
    chart.add_xml_filter(lambda root: _plain(root, title=title, description=description, shape=shape))
    return SafeString(chart.render(is_unicode=True))  # an XML writer has escaped it


def _shown(labels: Sequence[str], *, steps: Sequence[int], shape: Shape) -> set[int]:
    """The places of the labels that are written out."""
    widest = max((_width(label) for label in labels), default=0.0)
    room = PLOT * shape.width / max(1, len(labels)) / shape.font_size
    step = next((step for step in steps if step * room >= widest + GAP), steps[-1])
    return set(range(len(labels) - 1, -1, -step))


def _width(label: str) -> float:
    """How wide it is about, in font sizes."""
    return sum(1.0 if east_asian_width(letter) in "WF" else LETTER for letter in label)


def _thin_out(root: Element, *, shown: set[int]) -> Element:
    """Leaves those labels of the horizontal axis only. pygal tells them by their text, which two may share."""
    for axis in root.iter("g"):
        if str(axis.get("class")).split()[:2] == ["axis", "x"]:
            for place, guide in enumerate(axis.findall("g")):
                if place not in shown:
                    axis.remove(guide)
    return root


def _plain(root: Element, *, title: str, description: str, shape: Shape) -> Element:
    """The drawing alone: no style, no script, no comment, and words for who cannot see it."""
    for parent in list(root.iter()):
        parent.attrib.pop("style", None)
        if parent.get("class") == "bar":
            _name_bar(parent)
        for child in list(parent):
            if not isinstance(child.tag, str) or child.tag in {"style", "script", "defs"} or _is_overlay(child):
                parent.remove(child)
    for name in root.findall("title"):  # "Pygal", for what has no title of its own
        root.remove(name)
    root.set("class", f"readtrack-chart readtrack-{shape.name}")
    root.attrib.pop("id", None)  # empty, and there may be several
    root.set("role", "img")
    for tag, text in (("desc", description), ("title", title)):
        root.insert(0, _element(tag, text))
    return root


def _is_overlay(element: Element) -> bool:
    """Whether pygal's script would show its tooltips there."""
    return str(element.get("class", "")).endswith("overlay")


def _name_bar(bar: Element) -> None:
    """Turns what pygal's script would show into the browser's own tooltip."""
    words = {str(desc.get("class")): desc.text for desc in bar.findall("desc")}
    for desc in bar.findall("desc"):
        bar.remove(desc)
    bar.insert(0, _element("title", f"{words.get('x_label', '')}: {words.get('value', '')}"))


def _element(tag: str, text: str) -> Element:
    element = Element(tag)
    element.text = text
    return element
