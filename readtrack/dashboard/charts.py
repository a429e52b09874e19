"""Line charts as inline SVG. The page's style sheet colours them, so dark mode works."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple
from unicodedata import east_asian_width

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from readtrack.numerals import exact


class Shape(NamedTuple):
    """Size of a chart in its own units. The page scales the chart, and its text with it."""

    name: str
    width: int
    height: int
    font_size: int


WIDE = Shape("wide", width=900, height=260, font_size=13)
NARROW = Shape("narrow", width=420, height=300, font_size=14)  # for a phone


def lines(
    title: str,
    labels: Sequence[str],
    series: Mapping[str, Sequence[int | None]],
    *,
    description: str,
    notes: Sequence[str] = (),
    shape: Shape = WIDE,
) -> SafeString:
    """Returns a line chart as an `<svg>` element without script and style, for a strict content security policy.

    Screen readers read `title` and `description`. None is no point; a point with a note has a line down. The last
    label is written out, and before it as many as there is room for.
    """
    if len(labels) == 1:  # no line has a single point
        labels, series = [*labels, ""], {name: [*values, *values] for name, values in series.items()}
    most = max([4, *(value or 0 for values in series.values() for value in values)])
    tick = next(one for power in count() for one in (10**power, 2 * 10**power, 5 * 10**power) if 6 * one >= most)
    em = shape.font_size
    left, top = em * max(3.0, _width(exact(most)) + 1), 8  # room for half a label of the first point
    width, height = shape.width - left - 3 * em, shape.height - top - 2.5 * em
    xs = [f"{width * place / max(1, len(labels) - 1):.1f}" for place in range(len(labels))]
    step = int((max(map(_width, labels), default=0) + 1) * em // (0.85 * shape.width / max(1, len(labels)))) + 1

    def y(value: int) -> str:
        return f"{height * (1 - value / most):.1f}"

    drawing = {
        "title": title,
        "description": description,
        "shape": shape,
        "left": f"{left:.1f}",
        "top": top,
        "right": f"{width:.1f}",
        "bottom": f"{height:.1f}",
        "ticks": [(y(value), exact(value)) for value in range(0, most + 1, tick)],
        "labels": [*zip(xs, labels, strict=True)][::-1][::step][::-1],
        "lines": [
            "L".join(f"{x} {y(value)}" for x, value in zip(xs, values, strict=True) if value is not None)
            for values in series.values()
        ],
        "marks": [(x, note) for x, note in zip(xs, notes, strict=False) if note],
    }
    return render_to_string("admin/readtrack/chart.html", {"drawing": drawing})


def _width(label: str) -> float:
    """Returns the width of a label in font sizes: of a letter of East Asia it is one."""
    return sum(1.0 if east_asian_width(letter) in "WF" else 0.62 for letter in label)
