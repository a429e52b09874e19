"""Line charts as inline SVG, drawn by pygal. The page's style sheet colours them, so dark mode
works.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unicodedata import east_asian_width

from django.utils.safestring import SafeString

from readtrack.numerals import exact
from readtrack.texts import plain


def load_pygal() -> Any:
    """Returns pygal, which is imported once a chart is drawn.

    Its import leaves a finder of modules on `sys.meta_path` that lacks `find_spec`. Other importers
    fail at it, such as pytest's `--import-mode=importlib`, and we need none of its maps.
    """
    before = [*sys.meta_path]
    import pygal

    for finder in [*sys.meta_path]:
        if finder not in before and not hasattr(finder, "find_spec"):
            sys.meta_path.remove(finder)
    return pygal


def lines(
    title: str,
    labels: Sequence[str],
    series: Mapping[str, Sequence[int | None]],
    *,
    description: str,
    notes: Sequence[str] = (),
    is_narrow: bool = False,
) -> SafeString:
    """Returns a line chart as an `<svg>` element without script and style, for a strict content
    security policy.

    Screen readers read `title` and `description`. None is no point; a point with a note has a line
    down. The last label is written out, and before it as many as there is room for. A narrow chart
    is for a phone.
    """
    # Sizes are in the chart's own units: the page scales it, and its text with it.
    shape, width, height, font_size = (
        ("narrow", 420, 300, 14) if is_narrow else ("wide", 900, 260, 13)
    )
    if len(labels) == 1:  # no line has a single point
        labels, series = (
            [*labels, ""],
            {name: [*values, *values] for name, values in series.items()},
        )
    pygal = load_pygal()
    most = max([4, *(value or 0 for values in series.values() for value in values)])
    chart = pygal.Line(
        width=width,
        height=height,
        margin=8,
        margin_right=3 * font_size,  # half of the last label
        show_legend=False,
        js=[],
        no_prefix=True,
        classes=["readtrack-chart", f"readtrack-{shape}"],
        range=(0, most),
        truncate_label=-1,
        show_minor_x_labels=False,
        max_scale=7,
        show_dots=False,
        style=pygal.style.Style(label_font_size=font_size, major_label_font_size=font_size),
        value_formatter=lambda value: exact(int(value)),
    )
    room = 0.85 * width / max(1, len(labels))  # of a point; the axis leaves that much
    widths = [
        sum(1.0 if east_asian_width(letter) in "WF" else 0.62 for letter in label)
        for label in labels
    ]
    step = int((max(widths, default=0) + 1) * font_size // room) + 1  # widths are in font sizes
    chart.x_labels, chart.x_labels_major = (
        list(labels),
        list(labels[::-1][::step]),
    )  # pygal knows them by their text
    for name, values in series.items():
        chart.add(name, list(values))
    if any(notes):
        chart.add("notes", [0] * len(labels), show_dots=True)
    root = chart.render_tree()
    etree = pygal.etree.etree  # of lxml where that is installed, as all of pygal's
    _make_plain(root, notes, new_element=etree.SubElement)
    root.set("role", "img")
    for tag, text in (("desc", description), ("title", title)):
        element = etree.Element(tag)
        element.text = plain(text)  # XML holds no control characters
        root.insert(0, element)
    return SafeString(etree.tostring(root, encoding="unicode"))  # an XML writer has escaped it


def _make_plain(root: Any, notes: Sequence[str], *, new_element: Callable[..., Any]) -> None:
    """Removes style and script ("defs"), comments, pygal's own title and the empty id; draws a line
    at each note.
    """
    series = [group for group in root.iter() if str(group.get("class")).startswith("series ")]
    of_last = [group for group in series if group.get("class") == series[-1].get("class")]
    root.attrib.pop("id")
    for parent in list(root.iter()):
        parent.attrib.pop("style", None)
        for child in list(parent):
            is_comment = not isinstance(child.tag, str)
            if (
                is_comment
                or child.tag in ("defs", "title")
                or child.get("class", "").endswith("overlay")
            ):
                parent.remove(child)
    if any(notes):  # whose series is the last one, with dots that tell where the points are
        line, dots = of_last[:2]
        line.set("class", "readtrack-marks")
        line[:] = []
        for note, dot in zip(notes, (one for one in dots.iter() if one.get("cx")), strict=False):
            if note:
                mark = new_element(line, "path", {"d": f"M{dot.get('cx')} 0V{dot.get('cy')}"})
                new_element(mark, "title").text = plain(note)
