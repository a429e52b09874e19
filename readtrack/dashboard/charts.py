"""Line charts as inline SVG, drawn by pygal.

The page's style sheet colours them, so dark mode works.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
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


class Shape(NamedTuple):
    """The size of a chart, in units of its own: the page scales it, and its text with it."""

    name: str
    width: int
    height: int
    font_size: int


WIDE = Shape("wide", 900, 260, 13)
NARROW = Shape("narrow", 420, 300, 14)  # for a phone
POINTS_SHARE = 0.85  # of the width; the axis takes the remainder
LEAST_MAXIMUM = 4  # of the axis


def lines(
    title: str,
    labels: Sequence[str],
    series: Mapping[str, Sequence[int | None]],
    *,
    description: str,
    notes: Sequence[str] = (),
    is_narrow: bool = False,
) -> SafeString:
    """Returns a line chart as an `<svg>` element.

    It has neither script nor style, for a strict content security policy. Screen readers read
    `title` and `description`. None is no point; a point with a note has a line down. The last label
    is written out, and before it as many as there is room for. A narrow chart is for a phone.
    """
    shape = NARROW if is_narrow else WIDE
    if len(labels) == 1:  # no line has a single point
        labels = [*labels, ""]
        series = {name: [*values, *values] for name, values in series.items()}
    pygal = load_pygal()
    chart = _new_chart(pygal, shape, highest=_highest(series))
    step = _label_step(labels, shape)
    chart.x_labels = [*labels]
    chart.x_labels_major = [*labels[::-1][::step]]  # pygal knows them by their text
    for name, values in series.items():
        chart.add(name, [*values])
    if any(notes):
        chart.add("notes", [0] * len(labels), show_dots=True)
    root = chart.render_tree()
    etree = pygal.etree.etree  # of lxml where that is installed, as all of pygal's
    groups = _series_groups(root)  # with the dots, which are removed as decoration
    _remove_decoration(root)
    if any(notes):
        _draw_notes(groups, notes, new_element=etree.SubElement)
    root.set("role", "img")
    for tag, text in (("desc", description), ("title", title)):
        element = etree.Element(tag)
        element.text = plain(text)  # XML holds no control characters
        root.insert(0, element)
    return SafeString(etree.tostring(root, encoding="unicode"))  # an XML writer has escaped it


def _highest(series: Mapping[str, Sequence[int | None]]) -> int:
    """Returns the highest value of the axis."""
    highest = LEAST_MAXIMUM
    for values in series.values():
        for value in values:
            highest = max(highest, value or 0)
    return highest


def _new_chart(pygal: Any, shape: Shape, *, highest: int) -> Any:
    return pygal.Line(
        width=shape.width,
        height=shape.height,
        margin=8,
        margin_right=3 * shape.font_size,  # half of the last label
        show_legend=False,
        js=[],
        no_prefix=True,
        classes=["readtrack-chart", f"readtrack-{shape.name}"],
        range=(0, highest),
        truncate_label=-1,
        show_minor_x_labels=False,
        max_scale=7,
        show_dots=False,
        style=pygal.style.Style(
            label_font_size=shape.font_size, major_label_font_size=shape.font_size
        ),
        value_formatter=lambda value: exact(int(value)),
    )


def _label_step(labels: Sequence[str], shape: Shape) -> int:
    """Returns the number of points from one written label to the next."""
    room = POINTS_SHARE * shape.width / max(1, len(labels))  # of a point
    widest = max((_text_width(label) for label in labels), default=0)
    return int((widest + 1) * shape.font_size // room) + 1


def _text_width(label: str) -> float:
    """Returns the width of a text in font sizes."""
    return sum(1.0 if east_asian_width(letter) in "WF" else 0.62 for letter in label)


def _remove_decoration(root: Any) -> None:
    """Removes style and script ("defs"), comments, pygal's own title and the empty id."""
    root.attrib.pop("id")
    for parent in [*root.iter()]:
        parent.attrib.pop("style", None)
        for child in [*parent]:
            if _is_decoration(child):
                parent.remove(child)


def _is_decoration(element: Any) -> bool:
    is_comment = not isinstance(element.tag, str)
    if is_comment or element.tag in ("defs", "title"):
        return True
    return str(element.get("class", "")).endswith("overlay")


def _series_groups(root: Any) -> list[Any]:
    """Returns the groups of the series' lines, and behind them those of their dots."""
    return [group for group in root.iter() if str(group.get("class")).startswith("series ")]


def _draw_notes(
    groups: Sequence[Any], notes: Sequence[str], *, new_element: Callable[..., Any]
) -> None:
    """Draws a line down at each point with a note.

    The last series is there for the notes alone. Its own line is removed, and its dots tell where
    the points are.
    """
    last_class = groups[-1].get("class")
    of_last_series = [group for group in groups if group.get("class") == last_class]
    line, dots = of_last_series[:2]
    line.set("class", "readtrack-marks")
    line[:] = []
    circles = [element for element in dots.iter() if element.get("cx")]
    # A chart of a single point has a second dot, which has no note.
    for note, dot in zip(notes, circles, strict=False):
        if note:
            mark = new_element(line, "path", {"d": f"M{dot.get('cx')} 0V{dot.get('cy')}"})
            new_element(mark, "title").text = plain(note)
