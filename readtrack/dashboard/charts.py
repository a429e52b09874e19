"""Line charts as inline SVG, drawn by pygal.

The page's style sheet colours them, so dark mode works.
"""

import re
import sys
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, NamedTuple
from unicodedata import east_asian_width

from django.utils.safestring import SafeString

from readtrack.lines import plain
from readtrack.numerals import exact


def load_pygal() -> Any:
    """Returns the module pygal. It is imported when the first chart is drawn.

    Importing it leaves a finder for its maps on `sys.meta_path`, which lacks `find_spec`. Other
    importers fail at that finder, such as pytest's `--import-mode=importlib`, so it is removed.
    """
    before = [*sys.meta_path]
    import pygal

    for finder in [*sys.meta_path]:
        if finder not in before and not hasattr(finder, "find_spec"):
            sys.meta_path.remove(finder)
    return pygal


class Shape(NamedTuple):
    """The size of a chart in units of the SVG. The page scales the chart, its text included."""

    name: str
    width: int
    height: int
    font_size: int


WIDE = Shape("wide", 900, 260, 13)
NARROW = Shape("narrow", 420, 300, 14)  # for a phone
POINTS_SHARE = 0.85  # share of the width that the points take; the axis takes the remainder
LOW, HIGH = 4, 5  # the numbers of the series of the band
POINT = re.compile(r"(-?[\d.]+) (-?[\d.]+)")  # in the path of a line
LEAST_MAXIMUM = 4  # least value at the top of the axis
#: Widths of letters in font sizes: of a letter of Chinese, Japanese or Korean, and of another.
WIDE_LETTER = 1.0
NARROW_LETTER = 0.62


def line(
    title: str,
    labels: Sequence[str],
    values: Sequence[int | None],
    *,
    description: str,
    before: Sequence[int | None] = (),
    notes: Sequence[str] = (),
    usual: Sequence[tuple[float, float] | None] = (),
    is_unfinished: bool = False,
    is_narrow: bool = False,
) -> SafeString:
    """Returns a line chart as an `<svg>` element.

    `labels`, `values` and `notes` have an entry for each point, `before` has the values of the
    period before. Where a value is None the line has no point. The area below the line is filled.
    `usual` has the low and the high end of a band behind the line, None where there is no band.
    If the last point is not over yet (`is_unfinished`), the line to it is one of its own, which the
    style sheet dashes. A point with a note has a vertical line. The last label is written out, and
    as many labels before it as there is room for. Screen readers read `title` and `description`. A
    narrow chart is for a phone.

    The element has neither script nor style, for a strict content security policy.
    """
    shape = NARROW if is_narrow else WIDE
    before = [*before, *[None] * len(values)][: len(values)]
    lows, highs = _ends_of(usual)
    if len(labels) == 1:  # a line needs two points
        labels = [*labels, ""]
        values = [*values, *values]
        before = [*before, *before]
        lows = [*lows, *lows]
        highs = [*highs, *highs]
    finished, unfinished = _divided(values, is_unfinished=is_unfinished)
    pygal = load_pygal()
    chart = _new_chart(pygal, shape, highest=_highest([*values, *before, *highs]))
    step = _label_step(labels, shape)
    chart.x_labels = [*labels]
    from_last = labels[::-1]
    chart.x_labels_major = [*from_last[::step]]  # pygal writes out those with these texts
    # The style sheet knows the series by this order, as .serie-0 to .serie-3.
    chart.add("before", before)
    chart.add("area", values, fill=True)
    chart.add("line", finished)
    chart.add("unfinished", unfinished)
    if any(usual):
        chart.add("low", lows)
        chart.add("high", highs)
    if any(notes):
        # A series of dots on the axis, which tells where the points are; see _draw_notes.
        chart.add("notes", [0] * len(labels), show_dots=True)
    root = chart.render_tree()
    etree = pygal.etree.etree  # lxml's where lxml is installed, because pygal then uses it
    groups = _series_groups(root)  # before the groups of dots are removed as decoration
    _remove_decoration(root)
    if any(usual):
        _draw_band(root, groups)
    if any(notes):
        _draw_notes(groups, notes, new_element=etree.SubElement)
    root.set("role", "img")
    for tag, text in (("desc", description), ("title", title)):
        element = etree.Element(tag)
        element.text = plain(text)  # because XML cannot hold control characters
        root.insert(0, element)
    return SafeString(etree.tostring(root, encoding="unicode"))  # the XML writer escapes texts


class _Divided(NamedTuple):
    """The values of two lines that meet: of what is over, and from there to the last point."""

    finished: list[int | None]
    unfinished: list[int | None]


def _divided(values: Sequence[int | None], *, is_unfinished: bool) -> _Divided:
    """Divides the values before the last point; they are all finished if that is not known."""
    is_known = bool(values) and values[-1] is not None
    if not (is_unfinished and is_known):
        return _Divided([*values], [None] * len(values))
    nothing_before: list[int | None] = [None] * (len(values) - 2)
    return _Divided([*values[:-1], None], [*nothing_before, *values[-2:]])


def _ends_of(
    usual: Sequence[tuple[float, float] | None],
) -> tuple[list[float | None], list[float | None]]:
    """Returns the low ends and the high ends of what is usual, None where nothing is."""
    lows = [band[0] if band else None for band in usual]
    highs = [band[1] if band else None for band in usual]
    return lows, highs


def _highest(values: Sequence[float | None]) -> int:
    """Returns the value at the top of the axis."""
    return ceil(max([LEAST_MAXIMUM, *(value or 0 for value in values)]))


def _new_chart(pygal: Any, shape: Shape, *, highest: int) -> Any:
    """Returns pygal's line chart without any data, with an axis from 0 to `highest`."""
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
        value_formatter=_axis_label,
    )


def _axis_label(value: float) -> str:
    return exact(int(value))


def _label_step(labels: Sequence[str], shape: Shape) -> int:
    """Returns the number of points from one written label to the next."""
    width_of_point = POINTS_SHARE * shape.width / max(1, len(labels))
    widest = max((_text_width(label) for label in labels), default=0)
    width_of_label = (widest + 1) * shape.font_size  # with space beside it
    return int(width_of_label // width_of_point) + 1


def _text_width(label: str) -> float:
    """Returns the width of a text in font sizes."""
    width = 0.0
    for letter in label:
        is_wide = east_asian_width(letter) in "WF"
        width += WIDE_LETTER if is_wide else NARROW_LETTER
    return width


def _remove_decoration(root: Any) -> None:
    """Removes style and script ("defs"), comments, overlays, pygal's own title and the empty id."""
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
    """Returns the groups of the lines of all series, and behind them the groups of their dots."""
    return [group for group in root.iter() if str(group.get("class")).startswith("series ")]


def _draw_band(root: Any, groups: Sequence[Any]) -> None:
    """Turns the lines of the two ends of what is usual into the area between them, behind all lines.

    `groups` are those of all series.
    """
    low_path = _taken_out(groups, LOW)
    high_path = _taken_out(groups, HIGH)
    if low_path is None or high_path is None:
        return
    back = [f"{x} {y}" for x, y in reversed(POINT.findall(low_path.get("d")))]
    high_path.set("d", f"{high_path.get('d')} L{' L'.join(back)} Z")
    high_path.set("class", "readtrack-band")
    [plot] = root.findall(".//*[@class='plot']")
    plot.insert(1, high_path)  # upon the background


def _taken_out(groups: Sequence[Any], number: int) -> Any:
    """Takes the line of the series with that number out of its group, and returns it.

    Returns None for a series of a single point, which has no line.
    """
    # pygal's other groups of a series are for dots and texts, and come later.
    lines = [group for group in groups if f"serie-{number} " in group.get("class")]
    for path in lines[0]:
        lines[0].remove(path)
        return path
    return None


def _draw_notes(
    groups: Sequence[Any], notes: Sequence[str], *, new_element: Callable[..., Any]
) -> None:
    """Draws a vertical line at each point with a note.

    The last series is there for the notes alone. Its own line is removed, and its dots tell where
    the points are. `groups` are those of all series, as `_series_groups` returns them.
    `new_element` makes an element within another one.
    """
    class_of_notes = groups[-1].get("class")
    groups_of_notes = [group for group in groups if group.get("class") == class_of_notes]
    # pygal's third group is for texts at the points, of which there are none.
    line_of_notes, dots_of_notes, _texts_of_notes = groups_of_notes
    for element in [*line_of_notes]:
        line_of_notes.remove(element)
    line_of_notes.set("class", "readtrack-marks")
    circles = [element for element in dots_of_notes.iter() if element.get("cx")]
    # A chart of a single point has a second dot, which has no note.
    for note, dot in zip(notes, circles, strict=False):
        if note:
            down_to_dot = f"M{dot.get('cx')} 0V{dot.get('cy')}"
            mark = new_element(line_of_notes, "path", {"d": down_to_dot})
            new_element(mark, "title").text = plain(note)
