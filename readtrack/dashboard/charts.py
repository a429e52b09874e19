"""Bar charts as inline SVG, drawn by pygal. The page's style sheet colours them, so dark mode works."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pygal
from django.utils.safestring import SafeString
from pygal.etree import etree
from pygal.style import Style

from readtrack.numerals import exact

REMOVED = {"defs", "title"}  # the first holds style and script


class Shape(NamedTuple):
    """Size of a chart in its own units. The page scales the chart, and its text with it."""

    name: str
    width: int
    height: int
    font_size: int


WIDE = Shape("wide", width=900, height=260, font_size=13)
NARROW = Shape("narrow", width=420, height=300, font_size=14)  # for a phone


def bars(
    title: str,
    labels: Sequence[str],
    values: Sequence[int | None],
    *,
    description: str,
    step: int = 1,
    shape: Shape = WIDE,
) -> SafeString:
    """Returns a bar chart as an `<svg>` element without script and style, for a strict content security policy.

    Screen readers read `title` and `description`. Pointing at a bar shows its label and value; None is no bar. The
    last label is written out, and from there back one in every `step`.
    """
    chart = pygal.Bar(
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
        show_minor_x_labels=False,
        max_scale=7,
        style=Style(label_font_size=shape.font_size, major_label_font_size=shape.font_size),
        value_formatter=lambda value: exact(int(value)),
    )
    chart.x_labels, chart.x_labels_major = list(labels), list(labels[::-1][::step])  # pygal knows them by their text
    chart.add(title, list(values))
    chart.add_xml_filter(lambda root: _plain(root, title=title, description=description, shape=shape))
    return SafeString(chart.render(is_unicode=True))  # an XML writer has escaped it


def _plain(root: Any, *, title: str, description: str, shape: Shape) -> Any:
    """Removes style, script, comments, pygal's own title and the empty id; adds words for screen readers."""
    for parent in list(root.iter()):
        parent.attrib.pop("style", None)
        for child in list(parent):
            if not isinstance(child.tag, str) or child.tag in REMOVED or child.get("class", "").endswith("overlay"):
                parent.remove(child)
        if parent.get("class") == "bar":
            _name_bar(parent)
    root.attrib.pop("id")
    root.set("class", f"readtrack-chart readtrack-{shape.name}")
    root.set("role", "img")
    _prepend(root, "desc", description)
    _prepend(root, "title", title)
    return root


def _name_bar(bar: Any) -> None:
    """Turns the texts for the tooltips of pygal's script into a tooltip of the browser."""
    words = {desc.get("class"): desc.text for desc in bar.findall("desc")}
    for desc in bar.findall("desc"):
        bar.remove(desc)
    _prepend(bar, "title", f"{words.get('x_label', '')}: {words['value']}")


def _prepend(parent: Any, tag: str, text: str) -> None:
    element = etree.Element(tag)  # of lxml where that is installed, as all of pygal's
    element.text = text
    parent.insert(0, element)
