"""The page of a story: what it has beside the totals, the chart and the tables of other pages."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from readtrack.hits.stages import STAGES
from readtrack.numbers import local_time, tables
from readtrack.numbers.data import ScopeData
from readtrack.numbers.details import details_of
from readtrack.numbers.filters import Chosen
from readtrack.numbers.reached import Reached
from readtrack.numbers.scope import PUBLISHED, SINCE_PUBLICATION
from readtrack.numbers.story import (
    SourcesByDay,
    StagesOfStory,
    StoryVerdict,
    median_of_story,
    sources_by_day,
    stages_of_story,
    story_verdict_of,
)
from readtrack.numbers.words_of_story import PLACES, TONES, lead_of_story
from readtrack.numerals import exact, share

WIDTH, HEIGHT = 1000, 70  # of the strip, in units of the SVG
FILLED = 0.84  # share of a day's width that its column has
SHOWN_OTHERWISE = {"really-read"}  # tables whose numbers are in the figure of the stages


class Stage(NamedTuple):
    """A stage of the views of a story, as texts, and the length of its bar in per cent."""

    label: str
    views: str
    of_all: str
    of_last: str
    length: float


class Piece(NamedTuple):
    """A rectangle of the strip."""

    number: int  # of the colour
    x: str
    y: str
    width: str
    height: str


class Source(NamedTuple):
    """A source of the strip: its name, its share of the views, and its link."""

    number: int
    label: str
    share: str
    address: str


class NoteOfDay(NamedTuple):
    """A note by an editor, and the day that it is about, as texts."""

    day: str
    text: str


class Strip(NamedTuple):
    """Where the views of each day came from: the columns, their key, and the same as a table."""

    title: str
    pieces: Sequence[Piece]
    sources: Sequence[Source]
    rows: Sequence[tuple[str, Sequence[str]]]


def story_context(data: ScopeData, filters: Sequence[Chosen]) -> dict[str, Any]:
    """Returns the context of the page of the only object of the scope. Makes one query.

    It is empty for another page.
    """
    if "object" not in data.asked.chosen:
        return {}
    verdict = story_verdict_of(data, filters)
    sources = sources_by_day(data)
    stages = stages_of_story(data)
    seconds = median_of_story(data)
    caption = ""
    if seconds:
        text = ngettext(
            "Median time of reading: %(count)s second, of all time.",
            "Median time of reading: %(count)s seconds, of all time.",
            seconds,
        )
        caption = text % {"count": exact(seconds)}
    return {
        "story": lead_of_story(verdict),
        "kicker": _kicker(data),
        "place": str(PLACES[verdict.word]) if verdict.word else "",
        "place_tone": TONES.get(verdict.word, ""),
        "place_since": "" if verdict.is_since_publication else str(SINCE_PUBLICATION[PUBLISHED]),
        "strip_by_day": None if sources is None else _strip(sources, data),
        "stages": [] if stages is None else _stages(stages.reached),
        "stages_title": _stages_title(verdict, stages),
        "stages_caption": caption,
        "shown_otherwise": SHOWN_OTHERWISE,
        "notes": _notes(data),
    }


def _notes(data: ScopeData) -> list[NoteOfDay]:
    """Returns the notes by editors on the days of the period, first day first."""
    if data.chart is None:
        return []
    return [
        NoteOfDay(date_format(day, "DATE_FORMAT"), note.text)
        for day, notes in data.chart.notes.items()
        for note in notes
        if not note.published
    ]


def _kicker(data: ScopeData) -> str:
    """Returns the section of the object and when it was published, as far as that is known."""
    obj = data.objects[data.asked.chosen["object"]]
    section = details_of(obj).category
    published = data.asked.published
    if published is None:
        return section
    when = date_format(timezone.localtime(published), "DATETIME_FORMAT")
    if section:
        return _("%(section)s, published %(when)s") % {"section": section, "when": when}
    return _("Published %(when)s") % {"when": when}


def _stages_title(verdict: StoryVerdict, stages: StagesOfStory | None) -> str:
    """Returns the heading of the stages, which says that they are of all time beside other
    numbers.
    """
    title = _("How far readers get")
    is_of_all_time = stages is not None and stages.is_of_all_time
    if is_of_all_time and not verdict.is_since_publication:
        return tables.of_all_time(title)
    return title


def _stages(reached: Reached) -> list[Stage]:
    """Returns the stages of some views."""
    counts = [(_("Viewed"), reached.views)]
    for name, stage in STAGES.items():
        counts.append((str(stage.label), getattr(reached, name)))
    rows: list[Stage] = []
    last = reached.views  # the first stage is all of itself, as in a funnel
    for label, count in counts:
        row = Stage(
            label=label,
            views=exact(count),
            of_all=share(100 * count / reached.views),
            of_last=share(100 * count / last) if last else tables.NOT_KNOWN,
            length=round(100 * count / reached.views, 1),
        )
        rows.append(row)
        last = count
    return rows


def _strip(sources: SourcesByDay, data: ScopeData) -> Strip:
    highest = max(1, *(sum(views) for _, views in sources.days))
    pieces = []
    for (left, width), (_day, views) in zip(_places(sources, data), sources.days, strict=True):
        bottom = float(HEIGHT)
        for number, count in enumerate(views, 1):
            height = HEIGHT * count / highest
            bottom -= height
            if count:
                piece = Piece(
                    number=number,
                    x=f"{left + width * (1 - FILLED) / 2:.1f}",
                    y=f"{bottom:.1f}",
                    width=f"{width * FILLED:.1f}",
                    height=f"{height:.1f}",
                )
                pieces.append(piece)
    rows = [
        (date_format(day, "DATE_FORMAT"), [exact(count) for count in views])
        for day, views in sources.days
    ]
    total = sum(sources.totals)
    keys = []
    for number, (value, count) in enumerate(zip(sources.values, sources.totals, strict=True), 1):
        source = Source(
            number=number,
            label=tables.name_of_value(sources.dimension, value),
            share=share(100 * count / total),
            address=data.asked.address(**{sources.dimension: value}),
        )
        keys.append(source)
    title = _("%(sources)s by day") % {"sources": tables.labels_of(sources.dimension).title}
    return Strip(title, pieces, keys, rows)


def _places(sources: SourcesByDay, data: ScopeData) -> list[tuple[float, float]]:
    """Returns where each day begins, and how wide it is: as its points in the chart above."""
    points = Counter(local_time.day_of(start) for start in data.starts)
    sizes = [points.get(day, 0) for day, _ in sources.days]
    if not all(sizes):  # points are longer than a day
        sizes = [1] * len(sources.days)
    step = WIDTH / sum(sizes)
    ends = [*accumulate(sizes, initial=0)]
    return [(step * end, step * size) for end, size in zip(ends, sizes, strict=False)]
