"""The dashboard's page: which tables a tab has, and what the template needs of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from django.contrib.auth import get_user_model
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.utils import timezone
from django.utils.formats import date_format, get_format
from django.utils.functional import lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from readtrack import buckets
from readtrack.conf import conf
from readtrack.dashboard import charts, tables
from readtrack.dashboard.data import ChartData, DashboardData
from readtrack.dashboard.loading import load
from readtrack.dashboard.scope import MOMENT, PERIODS, Scope, dimension_names
from readtrack.hits.addresses import NOTICES
from readtrack.numerals import exact
from readtrack.reports.access import numbers_url
from readtrack.sql import runs
from readtrack.subjects import (
    counted_models,
    enters_funnel,
    label_of,
    parse_subject,
    read_state_models,
)
from readtrack.texts import address_of, name_of

FILES = ("csv", "json")
NOTICED_HOURS = 24


def _day_format() -> str:
    """Returns the format of a day without its year.

    In some languages, as in American English, the month is first.
    """
    if get_format("MONTH_DAY_FORMAT").startswith("F"):
        return "N j"
    return pgettext("format of a day", "j N")


_DAY = lazy(_day_format, str)()
_MONTH = pgettext_lazy("format of a month", "N Y")
#: Of the chart's axis, in the letters of Django's template filter `date` or by the name of a
#: setting.
FORMATS: Mapping[str, Any] = {"hour": "TIME_FORMAT", "day": _DAY, "week": _DAY, "month": _MONTH}
#: Of the chart's values as a table.
WITH_YEAR: Mapping[str, Any] = {**FORMATS, "day": "DATE_FORMAT", "week": "DATE_FORMAT"}

TABS: Mapping[str, Any] = {
    "numbers": gettext_lazy("Numbers"),
    "growth": gettext_lazy("Grew most"),
    "sources": gettext_lazy("Where from"),
    "reading": gettext_lazy("Reading"),
    "sections": gettext_lazy("Categories"),
    "refused": gettext_lazy("Not counted"),
}


def tables_by_tab(scope: Scope) -> dict[str, Sequence[str]]:
    """Returns the names of the tables by tab, without tabs that would be empty.

    The page of one object has a single tab.
    """
    dimensions = [f"by-{name}" for name in dimension_names()]
    reading = ["really-read", "funnel"] if conf.FUNNEL else ["really-read"]
    if "object" in scope.chosen:
        return {"numbers": ["over-time", *dimensions, *reading, "now"]}
    if scope.values:  # which nothing else can be filtered by
        return {"numbers": ["most-viewed"]}
    by_tab: dict[str, Sequence[str]] = {
        "numbers": ["over-time", "most-viewed", "trending", "now"],
        "growth": ["grew-most"] if scope.before else [],
        "sources": dimensions,
        "reading": reading,
    }
    if not scope.fixed:  # else the reader may not see what is of the whole site
        by_tab["sections"] = ["sections"] if read_state_models() else []
        by_tab["refused"] = ["not-counted", "robots"]
    return {tab: names for tab, names in by_tab.items() if names}


def page_context(
    scope: Scope, tab: str = "numbers", *, site: str | None = None, **options: Any
) -> dict[str, Any]:
    """Returns what the template needs of the scope. `options` are those of `load`.

    Without Redis its live numbers are marked as not known.
    """
    by_tab = tables_by_tab(scope)
    if tab not in by_tab:
        tab = "numbers"
    data = load(scope, by_tab[tab], shown=tables.SHOWN, **options)
    shown = {name: tables.table_named(name, data) for name in by_tab[tab]}
    data.objects.load(_linked_objects(shown.values()))
    if "funnel" in shown and not _is_funnel_in_use(scope, shown["funnel"]):
        del shown["funnel"]
    chart = shown.pop("over-time", None)
    now = shown.pop("now", None)
    chart_context = {}
    if data.chart and chart and now:
        scope = data.scope
        chart_context = _chart(data, data.chart, chart, now)
    return {
        "scope": scope,
        "data": data,
        "files": FILES,
        **_navigation(data, scope, tab, by_tab),
        **chart_context,
        "tables": [_shown(table, scope, site) for table in shown.values()],
        "has_period": tab != "sections",  # which is of now
        "notices": _notices(data),
    }


def _linked_objects(shown: Iterable[tables.Table]) -> Iterable[str]:
    """Yields the subjects of the rows that the page shows."""
    for table in shown:
        for row in table.rows[: table.shown]:
            if "object" in row.filters:
                yield row.filters["object"]


def _is_funnel_in_use(scope: Scope, table: tables.Table) -> bool:
    """Returns True if a stage behind the first was reached, or views enter the funnel."""
    has_steps = any(table.values("count")[1:])
    return has_steps or any(enters_funnel(model) for model in scope.models)


def _navigation(
    data: DashboardData, scope: Scope, tab: str, by_tab: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the links to other periods, tabs and filters."""
    here = {} if tab == "numbers" else {"tab": tab}
    periods = [
        (label, scope.address(period=period, **here), period == scope.period)
        for period, label in PERIODS.items()
    ]
    tabs = []
    for name in by_tab:
        address = scope.address(tab="" if name == "numbers" else name)
        tabs.append((TABS[name], address, name == tab))
    return {
        "periods": periods,
        "tabs": tabs,
        "last_day": scope.span.until - MOMENT,
        "kept": parse_qsl(scope.address(period="", **here).removeprefix("?")),
        "chips": _chips(data, scope, here),
    }


def _notices(data: DashboardData) -> list[str]:
    """Returns what web processes noticed about addresses in the last hours."""
    recent = data.skips[:NOTICED_HOURS]
    return [_(words) for notice, words in NOTICES.items() if sum(hour[notice] for hour in recent)]


class Figure(NamedTuple):
    """A total of the period, with that of the period before and the change, as texts."""

    label: str
    value: str
    before: str | None
    change: str
    trend: str  # up, down or "", for the colour
    as_of: str


def _figures(data: DashboardData, chart: ChartData) -> list[Figure]:
    """Returns the totals of the period."""
    before: list[int | None] = [None, None, None]
    if chart.total_before:
        before = [*chart.total_before]
    as_of = ""
    # All but the views are added up by full flushes.
    if chart.is_summed and data.scope.is_present and not data.scope.is_listed:
        as_of = _time_or_day(chart.summed_until)
        if data.scope.by == "hour":
            before = [before[0], None, None]
    views = _figure(_("Views"), chart.total.views, before[0])
    if not chart.is_summed:
        return [views]
    return [
        views,
        _figure(_("New visitors"), chart.total.visitors, before[1], as_of=as_of),
        _figure(_("Reads"), chart.total.reads, before[2], as_of=as_of),
    ]


def _figure(label: str, total: int, before: int | None, *, as_of: str = "") -> Figure:
    change = ""
    trend = ""
    if before:
        change = tables.text(tables.change(total, before), "change")
        if total > before:
            trend = "up"
        elif total < before:
            trend = "down"
    return Figure(
        label=label,
        value=exact(total),
        before=None if before is None else exact(before),
        change=change,
        trend=trend,
        as_of=as_of,
    )


def _time_or_day(until: int) -> str:
    """Returns the time of Redis's clock (µs), with its day unless that is today; "" for 0."""
    if not until:
        return ""
    local = timezone.localtime(buckets.time_of(until))
    is_today = local.date() == timezone.localtime(buckets.now()).date()
    return date_format(local, "TIME_FORMAT" if is_today else "DATETIME_FORMAT")


def _day(moment: datetime) -> str:
    return date_format(timezone.localtime(moment), "DATE_FORMAT")


def _span_text(scope: Scope) -> str:
    """Returns the first and the last day of the period."""
    first = _day(scope.span.since)
    last = _day(scope.span.until - MOMENT)
    if first == last:
        return first
    return pgettext("period", "%(first)s to %(last)s") % {"first": first, "last": last}


def _chart(
    data: DashboardData, chart: ChartData, table: tables.Table, now: tables.Table
) -> dict[str, Any]:
    """Returns the figures, and the chart for wide and for narrow screens.

    The numbers of the chart are also in a table and in a text.
    """
    span = _span_text(data.scope)
    summary = _("%(views)s views, %(visitors)s new visitors and %(reads)s reads; %(span)s.") % {
        "views": exact(chart.total.views),
        "visitors": exact(chart.total.visitors),
        "reads": exact(chart.total.reads),
        "span": span,
    }
    views_before = chart.total_before.views if chart.total_before else None
    headings = [str(column.heading) for column in table.columns[1:]]
    values = {
        "labels": [_("Period"), *headings],
        "totals": [span, views_before, *chart.total],
        "columns": [column.name for column in table.columns],
        "rows": [row.values for row in table.rows],
    }
    return {
        "figures": _figures(data, chart),
        "now": now,
        "recent": tables.text(data.recent, "number"),
        **_last_flush(chart),
        "charts": _drawings(data, table, summary),
        "summary": summary,
        "chart": table,
        **_chart_table(data, table),
        "chart_values": json.dumps(values),
        "notes": [(date_format(day, "DATE_FORMAT"), note) for day, note in chart.notes.items()],
    }


def _last_flush(chart: ChartData) -> dict[str, Any]:
    run = chart.last_flush
    if run is None:
        return {"last_flush": None, "last_flush_when": "", "is_late": None}
    # Beat or its worker may be down.
    is_late = buckets.now() - buckets.now(run.ended) > runs.late_after()
    when = naturaltime(run.ended) if run.ended else ""
    return {"last_flush": run, "last_flush_when": when, "is_late": is_late}


def _starts(data: DashboardData, formats: Mapping[str, Any]) -> list[str]:
    """Returns the start of each point as text."""
    form = str(formats[data.scope.by])
    return [date_format(timezone.localtime(start), form) for start in data.starts]


def _drawings(data: DashboardData, table: tables.Table, summary: str) -> list[str]:
    """Returns the chart for wide and for narrow screens."""
    series = {name: table.values(name) for name in ("before", "views", "visitors", "reads")}
    starts = _starts(data, FORMATS)
    drawings: list[str] = []
    for is_narrow in (False, True):
        drawing = charts.lines(
            table.title,
            starts,
            series,
            description=summary,
            notes=table.values("notes"),
            is_narrow=is_narrow,
        )
        drawings.append(drawing)
    return drawings


def _chart_table(data: DashboardData, table: tables.Table) -> dict[str, Any]:
    """Returns the columns and rows of the chart's values."""
    indexes = []
    for index, column in enumerate(table.columns):
        if column.name != "before" or data.is_compared:
            indexes.append(index)
    rows = []
    for start, row in zip(_starts(data, WITH_YEAR), table.rows, strict=True):
        texts = [tables.text(row.values[index], table.columns[index].kind) for index in indexes[1:]]
        rows.append((start, texts))
    return {"chart_columns": [table.columns[index] for index in indexes], "chart_rows": rows}


def _shown(table: tables.Table, scope: Scope, site: str | None) -> dict[str, Any]:
    """Returns a table for the template: its first rows as texts and with links."""
    rows = []
    for row in table.rows[: table.shown]:
        cells: list[dict[str, Any]] = []
        for column, value in zip(table.columns, row.values, strict=True):
            cells.append({"column": column, "text": tables.text(value, column.kind)})
        link = _link(row, scope, site)
        if link and table.name == "grew-most":  # in other tables it is two clicks away already
            cells[0].update(_sources_file(link))
        rows.append((cells[0], cells[1:], link, address_of(row.values[0])))
    return {"table": table, "rows": rows}


def _link(row: tables.Row, scope: Scope, site: str | None) -> str:
    """Returns the address of the object's page, or of the dashboard with one more filter.

    It is "" for a row that leads nowhere.
    """
    is_chosen = row.filters.items() <= scope.chosen.items()
    if "object" in scope.chosen or is_chosen:
        return ""
    if "object" not in row.filters:
        return scope.address(**row.filters)
    without_filters = scope.address(**dict.fromkeys(scope.chosen, ""))
    return numbers_url(row.values[0], site=site) + without_filters


def _sources_file(link: str) -> dict[str, str]:
    """Returns the file of an object's first dimension, and the file's title.

    It is empty on a site without dimensions.
    """
    names = dimension_names()
    if not names:
        return {}
    file = urlencode({"table": f"by-{names[0]}", "format": "csv"})
    title, _heading = tables.words_of(names[0])
    return {"file": f"{link}&{file}", "file_title": tables.of_all_time(title)}


def _chips(
    data: DashboardData, scope: Scope, here: Mapping[str, str]
) -> list[tuple[str, str, str]]:
    """Returns the filters in force: name, value, and the address of the page without each."""
    labels = {"model": _("Model"), "category": _("Category"), "author": _("Author")}
    chips = []
    for name, value in scope.chosen.items():
        if name not in scope.fixed:
            label = labels.get(name) or tables.words_of(name)[1]
            chips.append(
                (label, _value_text(data, name, value), scope.address(**{name: ""}, **here))
            )
    return chips


def _value_text(data: DashboardData, name: str, value: str) -> str:
    """Returns the value of a filter as people know it."""
    if name in ("category", "author"):
        return _name_of_chosen(data, name, value)
    # A value of a dimension may be called like a model.
    for model in counted_models():
        if label_of(model) == value:
            return str(model._meta.verbose_name_plural)
    return value


def _name_of_chosen(data: DashboardData, name: str, value: str) -> str:
    """Returns the name of a category or an author; the value if there is no such row."""
    model: Any = get_user_model()
    pk: Any = value
    if name == "category":
        model, pk = parse_subject(value) or (model, pk)
    row = data.objects.chosen(name) or model._default_manager.filter(pk=pk).first()
    return name_of(row or value)
