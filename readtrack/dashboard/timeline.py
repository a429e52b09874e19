"""The numbers of a scope over time: the totals, and the chart that shows one of them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.contrib.humanize.templatetags.humanize import naturaltime
from django.utils import timezone
from django.utils.formats import date_format, get_format
from django.utils.functional import lazy
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext, pgettext_lazy

from readtrack import buckets
from readtrack.access import numbers_url
from readtrack.dashboard import charts
from readtrack.dashboard.navigation import TODAY, Choice
from readtrack.numbers import local_time, tables
from readtrack.numbers.comparison import (
    end_compared,
    numbers_compared,
    rule_of_comparison,
    span_text,
)
from readtrack.numbers.data import ChartData, DayNote, ScopeData
from readtrack.numbers.published import published_at
from readtrack.numbers.scope import COMPARISONS, INTERVALS, PERIODS, Scope
from readtrack.numbers.sql.usual import Ends
from readtrack.numbers.totals import SERIES, totals
from readtrack.numerals import exact
from readtrack.sql import runs
from readtrack.texts import title_of

MOST_PIPS = 5  # circles below a day, for its publications
MOST_TITLES = 5  # publications that a mark names; a page of many objects says how many more


def _day_format() -> str:
    """Returns the format of a day without its year.

    In some languages, as in American English, the month is first.
    """
    if get_format("MONTH_DAY_FORMAT").startswith("F"):
        return "N j"
    return pgettext("format of a day", "j N")


_DAY = lazy(_day_format, str)()
_MONTH = pgettext_lazy("format of a month", "N Y")
_WEEKDAY = pgettext_lazy("format of a day of a week", "D j")
#: The formats of the chart's axis by the length of a point: in the letters of Django's template
#: filter `date`, or the name of a setting of Django's.
FORMATS: Mapping[str, Any] = {"hour": "TIME_FORMAT", "day": _DAY, "week": _DAY, "month": _MONTH}
#: The formats in the table of the chart's values.
FORMATS_WITH_YEAR: Mapping[str, Any] = {**FORMATS, "day": "DATE_FORMAT", "week": "DATE_FORMAT"}
DAYS_OF_A_WEEK = 7
HOURS_OF_A_DAY = 24
LEAST_SHARE = 0.11  # of the chart that a part of a day has whose mark is its own: 24 pixels of 220


class PageNote(NamedTuple):
    """A note below the chart, and the numbers of the object that it is about; "" for none."""

    text: str
    link: str


class Label(NamedTuple):
    """A word below the chart, and the width of its place in the mark, as of a `charts.Group`."""

    text: str
    twelfths: int


class Mark(NamedTuple):
    """A mark below the chart. It stands for a point or for several, and opens their numbers."""

    labels: Sequence[Label]  # two if a short part of a day belongs to the day beside it
    begins: bool  # True if the label is that of the first of several points
    title: str
    twelfths: int  # its width, see `charts.Group`
    facts: Sequence[tuple[str, str]]  # the names of numbers, or of points, and what they have
    notes: Sequence[PageNote]  # by editors
    published: Sequence[PageNote]
    publications: int  # of which `published` names some, or none

    @property
    def pips(self) -> range:
        """Returns a range as long as the row of circles for the publications."""
        return range(min(self.publications, MOST_PIPS))


class Drawn(NamedTuple):
    """What the chart draws at each point."""

    values: Sequence[int | None]
    before: Sequence[int | None]  # empty if there is nothing to compare with
    usual: Sequence[Ends | None]  # empty if nothing is usual


class ChartView(NamedTuple):
    """The chart of the page, with its legend and the table of its values."""

    title: str
    summary: str  # the totals and the period as a sentence
    compared: str  # what is compared, as a sentence
    series: str  # one of SERIES
    label: str  # of the series
    label_before: str
    shapes: charts.Shapes | None  # None for a number that has no value for each point
    marks: Sequence[Mark]
    drawn: Drawn
    by_day: Choice | None  # a link to a chart of days, where this one has no points
    intervals: Sequence[Choice]
    is_unfinished: bool
    table: tables.Table  # of the values, those of the whole chart
    columns: Sequence[tables.Column]  # of the values that the page writes
    rows: Sequence[tuple[str, Sequence[str]]]

    @property
    def has_notes(self) -> bool:
        """Returns True if there is a note by an editor."""
        return any(mark.notes for mark in self.marks)

    @property
    def has_published(self) -> bool:
        """Returns True if something was published."""
        return any(mark.publications for mark in self.marks)


class Figure(NamedTuple):
    """A total of the period, with that of the period before and the change, as texts."""

    name: str  # in SERIES
    label: str
    address: str  # of the page whose chart shows this number
    is_chosen: bool  # True if the chart of this page shows it
    value: str
    before: str | None
    change: str
    trend: str  # up, down or "", for the colour
    as_of: str
    until: str = ""  # up to when the change goes, if the total goes on
    remark: str = ""  # how visitors are compared, or why a number is not known


def shown_series(data: ScopeData, chart: ChartData) -> list[str]:
    """Returns those of SERIES that the chart can show, or say why it cannot.

    Visitors have no number for a point that is an hour.
    """
    names = ["views"]
    if data.people.total is not None:
        names.append("visitors")
    if chart.is_summed and chart.total.seen:
        names.append("seen")
    if chart.is_summed:
        names.append("reads")
    return names


def figures_of(data: ScopeData, chart: ChartData, *, series: str) -> list[Figure]:
    """Returns the totals of the period. The chart shows the `series`."""
    figures = []
    for total in totals(data, chart):
        if total.now is None and data.asked.values:
            if total.name != "seen":  # which many sites do not count
                figures.append(_unknown_figure(total.name))
            continue
        if total.now is None and not total.remark:
            continue
        address = ""
        if total.name in shown_series(data, chart):
            address = data.asked.address(series="" if total.name == "views" else total.name)
        change = change_of(total.compared, total.before, is_whole=chart.is_before_whole)
        figure = Figure(
            name=total.name,
            label=str(tables.COLUMNS[total.name].heading),
            address=address,
            is_chosen=total.name == series,
            value=tables.text(total.now, "number"),
            as_of=total.as_of,
            until=end_compared(data) if change["change"] else "",
            remark=total.remark,
            **change,
        )
        figures.append(figure)
    return figures


def unknown_context(data: ScopeData, now: tables.Table | None) -> dict[str, Any]:
    """Returns the context for the figures of a scope with several values, of which none is known.

    It is empty for any other scope.
    """
    if not data.asked.is_joint or now is None:
        return {}
    figures = [_unknown_figure(name) for name in SERIES if name != "seen"]
    return {"figures": figures, "now": now, "recent": tables.NOT_KNOWN}


def _unknown_figure(name: str) -> Figure:
    """Returns one of SERIES that is not known with the chosen values of dimensions."""
    return Figure(
        name=name,
        label=str(tables.COLUMNS[name].heading),
        address="",
        is_chosen=False,
        value=tables.NOT_KNOWN,
        before=None,
        change="",
        trend="",
        as_of="",
        remark=_("Not known for this filter."),
    )


def change_of(total: int | None, before: int | None, *, is_whole: bool) -> dict[str, Any]:
    """Returns how a total has changed, as the fields of a Figure.

    `before` is that of the period before. One of the two is None if they are not compared. It is
    shown as not known if history does not cover the whole period before.
    """
    if before is None or total is None:
        return {"before": None, "change": "", "trend": ""}
    if not is_whole:
        return {"before": tables.NOT_KNOWN, "change": "", "trend": ""}
    per_cent = tables.change(total, before) or 0
    trend = ""
    # By the rounded change, so that no arrow stands before "0%".
    if per_cent:
        trend = "up" if per_cent > 0 else "down"
    change = tables.change_text(total, before) if total or before else ""
    return {"before": exact(before), "change": change, "trend": trend}


def _summary(data: ScopeData, chart: ChartData) -> str:
    """Returns the totals and the period as a sentence.

    With a chosen value of a dimension it has the views only, because nothing else is known of it.
    """
    span = span_text(data.scope.span)
    total = chart.total
    views = ngettext("%(count)s view", "%(count)s views", total.views) % {
        "count": exact(total.views)
    }
    if data.asked.values:
        return pgettext("summary of a chart", "%(views)s; %(span)s.") % {
            "views": views,
            "span": span,
        }
    people = data.people.total
    visitors = ngettext("%(count)s visitor", "%(count)s visitors", people or 0) % {
        "count": tables.text(people, "number")
    }
    reads = ngettext("%(count)s read", "%(count)s reads", total.reads) % {
        "count": exact(total.reads)
    }
    sentence = pgettext("summary of a chart", "%(views)s, %(visitors)s and %(reads)s; %(span)s.")
    return sentence % {"views": views, "visitors": visitors, "reads": reads, "span": span}


def seen_between(data: ScopeData, values: Sequence[int | None]) -> str:
    """Returns a sentence on the first and the last day of the period with views of a filter's
    value, such as a campaign.

    It is "" without such a filter, without views, for a single day, and where the points of the
    chart, which have these `values`, are longer than a day.
    """
    if not data.asked.values or data.scope.by not in ("hour", "day"):
        return ""
    if data.scope.span.days.is_single:
        return ""
    starts = [start for start, value in zip(data.starts, values, strict=True) if value]
    if not starts:
        return ""
    first = date_format(timezone.localtime(starts[0]), "DATE_FORMAT")
    last = date_format(timezone.localtime(starts[-1]), "DATE_FORMAT")
    if first == last:
        return _("In this period, it was viewed on %(day)s only.") % {"day": first}
    text = _("In this period, its first view was on %(first)s, and its last one on %(last)s.")
    return text % {"first": first, "last": last}


def _ends_of_bands(chart: ChartData, *, series: str) -> list[Ends | None]:
    """Returns the low and the high end of what is usual at each point, None where nothing is.

    It is empty for another series than views, of which nothing is known.
    """
    if series != "views" or not chart.usual:
        return []
    return [None if band is None else band.ends for band in chart.usual]


def _has_points(data: ScopeData, series: str) -> bool:
    """Returns True if the number has a value for each point: visitors have none for an hour."""
    return series != "visitors" or bool(data.people.by_point)


def _chart_by_day(data: ScopeData, *, series: str) -> Choice | None:
    """Returns a link to a chart whose points are days, of the period or of the last seven days.

    It is None if the number has points already.
    """
    if _has_points(data, series):
        return None
    scope = data.asked
    if "day" in scope.intervals:
        address = scope.address(by="day", series=series)
        return Choice(INTERVALS["day"], address, is_chosen=False)
    return Choice(PERIODS["7"], scope.address(period="7", by="", series=series), is_chosen=False)


def last_flush_context(chart: ChartData) -> dict[str, Any]:
    """Returns the last flush, its age as text, and True if no flush has run for too long."""
    run = chart.last_flush
    if run is None:
        return {"last_flush": None, "last_flush_when": "", "is_late": None}
    # It is late if Celery's beat or worker is down, or cron.
    is_late = buckets.now() - buckets.now(run.ended) > runs.late_after()
    when = naturaltime(run.ended) if run.ended else ""
    return {"last_flush": run, "last_flush_when": when, "is_late": is_late}


def _starts(data: ScopeData, formats: Mapping[str, Any]) -> list[str]:
    """Returns the start of each point as text."""
    starts = [timezone.localtime(start) for start in data.starts]
    texts = [date_format(start, str(formats[data.scope.by])) for start in starts]
    if data.scope.by != "hour" or data.scope.is_of_a_day:
        return texts
    days = [date_format(start, str(formats["day"])) for start in starts]
    return [f"{day} {text}" for day, text in zip(days, texts, strict=True)]


def _values_table(
    data: ScopeData, chart: ChartData, over_time: tables.Table
) -> tuple[list[tables.Column], list[tuple[str, Sequence[str]]]]:
    """Returns the columns and the rows of the chart's values.

    A row is the start of its point and the texts of the other columns. Without a period before, the
    column of its views is left out, and before all history, where there would be zeros alone.
    """
    is_known = chart.is_before_whole or any(over_time.values("before"))
    indexes = []
    for index, column in enumerate(over_time.columns):
        if column.name != "before" or (data.is_compared and is_known):
            indexes.append(index)
    columns = [over_time.columns[index] for index in indexes]
    rows: list[tuple[str, Sequence[str]]] = []
    for start, row in zip(_starts(data, FORMATS_WITH_YEAR), over_time.rows, strict=True):
        texts = [
            tables.text(row.values[index], over_time.columns[index].value_kind)
            for index in indexes[1:]
        ]
        rows.append((start, texts))
    return columns, rows


def chart_view(
    data: ScopeData,
    chart: ChartData,
    over_time: tables.Table,
    *,
    series: str,
    intervals: Sequence[Choice],
    filters: str,
    is_told: bool,
    site: str | None,
) -> ChartView:
    """Returns the chart of one of SERIES, with its legend and its values.

    `over_time` is the table of the values, `filters` a sentence about the filters in force.
    `is_told` is True if the page says elsewhere which two numbers are compared.
    `site` is the admin site that the links lead to.
    """
    label = str(tables.COLUMNS[series].heading)
    drawn = _drawn(data, chart, over_time, series=series)
    shapes = None
    if _has_points(data, series):
        shapes = charts.shapes(
            drawn.values,
            before=drawn.before,
            usual=drawn.usual,
            is_unfinished=data.scope.is_present,
        )
    columns, rows = _values_table(data, chart, over_time)
    compared = [
        rule_of_comparison(data, chart),
        "" if is_told else numbers_compared(chart, series=series, label=label),
    ]
    sentences = [_summary(data, chart), filters]
    if drawn.usual:
        sentences.append(_("The pale band behind the line is what is usual."))
    return ChartView(
        title=over_time.title if series == "views" else label,
        summary=" ".join(filter(None, sentences)),
        compared=" ".join(filter(None, compared)),
        series=series,
        label=label,
        label_before=str(COMPARISONS[data.scope.comparison]),
        shapes=shapes,
        marks=_marks(data, chart, drawn, label=label, site=site) if shapes else [],
        drawn=drawn,
        by_day=_chart_by_day(data, series=series),
        intervals=intervals,
        is_unfinished=data.scope.is_present,
        table=over_time,
        columns=columns,
        rows=rows,
    )


def _drawn(data: ScopeData, chart: ChartData, over_time: tables.Table, *, series: str) -> Drawn:
    """Returns what the chart of this number draws."""
    before: list[int | None] = []
    if series != "visitors":  # those of the period before are not known by day
        before = tables.numbers_beside(chart, series)
    if not (chart.is_before_whole and any(before)):
        before = []
    usual = _ends_of_bands(chart, series=series)
    return Drawn(over_time.values(series), before, usual)


def _marks(
    data: ScopeData, chart: ChartData, drawn: Drawn, *, label: str, site: str | None
) -> list[Mark]:
    """Returns the marks below the chart. `label` is the name of the number that it shows."""
    notes = tables.notes_by_point(data, chart)
    titles = _starts(data, FORMATS_WITH_YEAR)
    marks = []
    for group in _groups(data):
        points = range(group.first, group.stop)
        notes_of_group = [note for index in points for note in notes[index]]
        published = [note for note in notes_of_group if note.published]
        mark = Mark(
            labels=_labels_of_mark(data, group),
            begins=len(points) > 1 and not _has_marks_of_days(data),
            title=_title_of_mark(data, titles, group),
            twelfths=group.twelfths,
            facts=_facts(data, drawn, points, label=label),
            notes=[PageNote(note.text, "") for note in notes_of_group if not note.published],
            published=_named(published, data.asked, site=site),
            publications=sum(note.published for note in published),
        )
        marks.append(mark)
    return marks


def _has_marks_of_days(data: ScopeData) -> bool:
    """Returns True if the hours of the chart are so many that each mark stands for a day."""
    hours = len(data.starts)
    return data.scope.by == "hour" and 2 * HOURS_OF_A_DAY < hours <= 7 * HOURS_OF_A_DAY + 1


def _groups(data: ScopeData) -> list[charts.Group]:
    """Returns the points that share a mark: those of a day, or as many as there is room for.

    A first or last part of a day that is too short for a finger belongs to the day beside it.
    """
    count = len(data.starts)
    if not _has_marks_of_days(data):
        return charts.groups(count, data.scope.by)
    least = LEAST_SHARE * count
    bounds = _bounds_of_days(data, range(count))
    inner = [bound for bound in bounds[1:-1] if least <= bound <= count - least]
    return charts.groups_between([0, *inner, count])


def _bounds_of_days(data: ScopeData, points: range) -> list[int]:
    """Returns where each day of these points begins, and where the last one ends."""
    days = {index: local_time.day_of(data.starts[index]) for index in points}
    inner = [index for index in points[1:] if days[index] != days[index - 1]]
    return [points.start, *inner, points.stop]


def _named(published: Sequence[DayNote], scope: Scope, *, site: str | None) -> list[PageNote]:
    """Returns the titles of publications, with links to their numbers."""
    objects = [note.obj for note in published if note.obj is not None]
    return [
        PageNote(title_of(obj), link_to_object(obj, scope, site=site))
        for obj in objects[:MOST_TITLES]
    ]


def _labels_of_mark(data: ScopeData, group: charts.Group) -> list[Label]:
    """Returns the labels of a group of points: of each of its days, or of its first point."""
    if not _has_marks_of_days(data):
        return [Label(_label_of_point(data, group.first), charts.TWELFTHS)]
    bounds = _bounds_of_days(data, range(group.first, group.stop))
    return [
        Label(_label_of_day(data, day.first), day.twelfths) for day in charts.groups_between(bounds)
    ]


def _label_of_point(data: ScopeData, index: int) -> str:
    """Returns the label below the chart of a point."""
    start = timezone.localtime(data.starts[index])
    by = data.scope.by
    if by == "day" and len(data.starts) <= DAYS_OF_A_WEEK:
        return _label_of_day(data, index)
    is_midnight = start == timezone.localtime(local_time.day_start(local_time.day_of(start)))
    if by == "hour" and is_midnight and not data.scope.is_of_a_day:
        by = "day"
    return date_format(start, str(FORMATS[by]))


def _label_of_day(data: ScopeData, index: int) -> str:
    """Returns the label of the day of a point, in a chart of few days."""
    day = local_time.day_of(data.starts[index])
    if data.scope.is_present and day == local_time.day_of(data.starts[-1]):
        return str(TODAY)
    return date_format(timezone.localtime(data.starts[index]), str(_WEEKDAY))


def _title_of_mark(data: ScopeData, titles: Sequence[str], group: charts.Group) -> str:
    """Returns what the points of a group are: the first one, and the last one of several."""
    first = titles[group.first]
    last = titles[group.stop - 1]
    if group.stop - group.first > 1:
        return pgettext("period", "%(first)s to %(last)s") % {"first": first, "last": last}
    if data.scope.is_present and group.stop == len(titles):
        until = date_format(timezone.localtime(data.scope.span.until), "TIME_FORMAT")
        return _("%(day)s, until %(time)s") % {"day": first, "time": until}
    return first


def _facts(data: ScopeData, drawn: Drawn, points: range, *, label: str) -> list[tuple[str, str]]:
    """Returns what a mark tells: the numbers of its only point, or the number of each point.

    `label` is the name of the number that the chart shows.
    """
    if len(points) > 1:
        starts = _starts(data, FORMATS)
        return [(starts[index], tables.text(drawn.values[index], "number")) for index in points]
    [index] = points
    facts = [(label, tables.text(drawn.values[index], "number"))]
    if drawn.before:
        before = tables.text(drawn.before[index], "number")
        facts.append((str(COMPARISONS[data.scope.comparison]), before))
    band = drawn.usual[index] if drawn.usual else None
    if band:
        ends = {"low": exact(band.low), "high": exact(band.high)}
        facts.append((pgettext("views", "usual"), _("%(low)s to %(high)s") % ends))
    return facts


def link_to_object(obj: Any, scope: Scope, *, site: str | None, **changes: str) -> str:
    """Returns the address of the object's numbers, in the period and with the filter of the
    scope.
    """
    return numbers_url(obj, site=site) + scope.address_of_object(published_at(obj), **changes)
