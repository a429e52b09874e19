"""Charts as inline SVG, drawn by pygal. Colours come from the page's style sheet, so dark mode follows."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

import pygal
from django.utils.safestring import SafeString
from pygal.config import Config

from readtrack.numerals import exact

LABELS = 8  # labels of the horizontal axis that are written out


def bars(title: str, labels: Sequence[str], values: Sequence[int], *, description: str) -> SafeString:
    """A bar chart as an `<svg>` element without script and style, fit for a strict content security policy.

    `title` and `description` are read aloud; pointing at a bar shows its label and value.
    """
    config = Config(
        width=900,
        height=260,
        margin=8,
        spacing=6,
        rounded_bars=2,
        show_legend=False,
        js=[],
        no_prefix=True,
        disable_xml_declaration=True,
        range=(0, max([4, *values])),
        x_labels_major_every=max(1, len(labels) // LABELS),
        show_minor_x_labels=False,
        value_formatter=lambda value: exact(int(value)),
    )
    chart = pygal.Bar(config)
    chart.x_labels = list(labels)
    chart.add(title, list(values))
    chart.add_xml_filter(lambda root: _plain(root, title=title, description=description))
    return SafeString(chart.render(is_unicode=True))  # an XML writer has escaped it


def _plain(root: Element, *, title: str, description: str) -> Element:
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
    root.set("class", "readtrack-chart")
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
