"""The dashboard's page: the tables of each tab, and what the template shows."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from django.contrib.auth import get_user_model
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.db.models import Model
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

FILES = ("csv", "json")  # formats of exports
NOTICED_HOURS = 24


class Choice(NamedTuple):
    """A link of the navigation to another period or tab."""

    label: Any
    address: str
    is_chosen: bool


class Chip(NamedTuple):
    """A filter in force, and the address of the page without it."""

    label: Any
    value: str
    address_without: str


class PageRow(NamedTuple):
    """A row of a table for the template."""

    head: dict[str, Any]  # the first cell: its column and text, perhaps a file and its title
    cells: list[dict[str, Any]]  # the other cells: column and text
    link: str  # to the object's numbers, or to the dashboard with one more filter; "" for none
    url: str  # of the object's page on the site; "" for none


def _day_format() -> str:
    """Returns the format of a day without its year.

    In some languages, as in American English, the month is first.
    """
    if get_format("MONTH_DAY_FORMAT").startswith("F"):
        return "N j"
    return pgettext("format of a day", "j N")


_DAY = lazy(_day_format, str)()
_MONTH = pgettext_lazy("format of a month", "N Y")
#: The formats of the chart's axis by the length of a point: in the letters of Django's template
#: filter `date`, or the name of a setting of Django's.
FORMATS: Mapping[str, Any] = {"hour": "TIME_FORMAT", "day": _DAY, "week": _DAY, "month": _MONTH}
#: The formats in the table of the chart's values.
FORMATS_WITH_YEAR: Mapping[str, Any] = {**FORMATS, "day": "DATE_FORMAT", "week": "DATE_FORMAT"}

TABS: Mapping[str, Any] = {
    "numbers": gettext_lazy("Numbers"),
    "growth": gettext_lazy("Grew most"),
    "sources": gettext_lazy("Where from"),
    "reading": gettext_lazy("Reading"),
    "sections": gettext_lazy("Categories"),
    "refused": gettext_lazy("Not counted"),
}


#: What the numbers of the page mean, by their names.
DEFINITIONS: Sequence[tuple[Any, Any]] = (
    (
        gettext_lazy("Views"),
        gettext_lazy(
            "How often an object was viewed. Reloads within a short time, robots and the site's own "
            "people do not count."
        ),
    ),
    (
        gettext_lazy("Visitors"),
        gettext_lazy(
            "The different people in the period: somebody who views six objects on three days is "
            "one visitor. Whole days are counted, and the number is right within about one per "
            "cent. To protect their privacy, people without a cookie are known for one day only, "
            "so they count once a day."
        ),
    ),
    (
        gettext_lazy("Reads"),
        gettext_lazy("Views whose text was really read, by the time and by how far the page got."),
    ),
    (gettext_lazy("People now"), gettext_lazy("The different visitors of the last five minutes.")),
)


def tables_by_tab(scope: Scope) -> dict[str, Sequence[str]]:
    """Returns the names of the tables by tab, without tabs that would have no table.

    The page of one object has a single tab.
    """
    dimensions = [f"by-{name}" for name in dimension_names()]
    reading = ["really-read", "funnel"] if conf.FUNNEL else ["really-read"]
    if "object" in scope.chosen:
        return {"numbers": ["over-time", *dimensions, *reading, "now"]}
    if scope.values:  # no other table can be filtered by a value of a dimension
        return {"numbers": ["most-viewed"]}
    by_tab: dict[str, Sequence[str]] = {
        "numbers": ["over-time", "most-viewed", "trending", "now"],
        "growth": ["grew-most"] if scope.before else [],
        "sources": dimensions,
        "reading": reading,
    }
    if not scope.fixed:  # a page with fixed filters may be for users who may not see the whole site
        by_tab["sections"] = ["sections"] if read_state_models() else []
        by_tab["refused"] = ["not-counted", "robots"]
    return {tab: names for tab, names in by_tab.items() if names}


def page_context(
    scope: Scope, tab: str = "numbers", *, site: str | None = None, **options: Any
) -> dict[str, Any]:
    """Returns the template's context for a tab of the scope. `options` are those of `load`.

    `site` is the name of the admin site that the links lead to. Without Redis, live numbers are
    marked as not known.
    """
    by_tab = tables_by_tab(scope)
    if tab not in by_tab:
        tab = "numbers"
    data = load(scope, by_tab[tab], row_limit=tables.ROWS_ON_PAGE, **options)
    tables_by_name = {name: tables.table_named(name, data) for name in by_tab[tab]}
    data.objects.load(_linked_objects(tables_by_name.values()))
    if "funnel" in tables_by_name and not _is_funnel_in_use(scope, tables_by_name["funnel"]):
        del tables_by_name["funnel"]
    # These two are shown in ways of their own.
    over_time = tables_by_name.pop("over-time", None)
    now = tables_by_name.pop("now", None)
    chart_context = {}
    if data.chart and over_time and now:
        scope = data.scope
        chart_context = _chart_context(data, data.chart, over_time=over_time, now=now)
    return {
        "scope": scope,
        "data": data,
        "files": FILES,
        **_navigation(data, scope, tab=tab, tabs=list(by_tab)),
        **chart_context,
        "tables": [_table_context(table, scope, site=site) for table in tables_by_name.values()],
        "definitions": DEFINITIONS,
        "has_period": tab != "sections",  # readers are those of now
        "notices": _notices(data),
    }


def _linked_objects(shown_tables: Iterable[tables.Table]) -> Iterable[str]:
    """Yields the subjects of the objects that the page shows."""
    for table in shown_tables:
        for row in table.rows[: table.row_limit]:
            if "object" in row.filters:
                yield row.filters["object"]


def _is_funnel_in_use(scope: Scope, table: tables.Table) -> bool:
    """Returns True if a stage behind the first was reached, or views enter the funnel."""
    has_steps = any(table.values("count")[1:])
    return has_steps or any(enters_funnel(model) for model in scope.models)


def _navigation(
    data: DashboardData, scope: Scope, *, tab: str, tabs: Sequence[str]
) -> dict[str, Any]:
    """Returns the links to other periods and tabs and to the page without each filter.

    `tab` is the name of the page's own tab, `tabs` are the names of all tabs.
    """
    here = {} if tab == "numbers" else {"tab": tab}  # the parameter of the page's own tab
    period_choices = []
    for period, label in PERIODS.items():
        address = scope.address(period=period, **here)
        period_choices.append(Choice(label, address, is_chosen=period == scope.period))
    tab_choices = []
    for name in tabs:
        address = scope.address(tab="" if name == "numbers" else name)
        tab_choices.append(Choice(TABS[name], address, is_chosen=name == tab))
    address_without_period = scope.address(period="", **here)
    return {
        "periods": period_choices,
        "tabs": tab_choices,
        "last_day": scope.span.until - MOMENT,
        "kept": parse_qsl(address_without_period.removeprefix("?")),  # for the form of two days
        "chips": _chips(data, scope, here),
    }


def _notices(data: DashboardData) -> list[str]:
    """Returns what web processes noticed about visitors' addresses in the last hours, as texts."""
    recent = data.skips[:NOTICED_HOURS]
    notices = []
    for notice, message in NOTICES.items():
        if any(skips[notice] for skips in recent):
            notices.append(_(message))
    return notices


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
    before = chart.total_before
    figures = [_figure(_("Views"), chart.total.views, before.views if before else None)]
    if data.people.total is not None:
        figures.append(_figure(_("Visitors"), data.people.total, data.people.before))
    if not chart.is_summed:
        return figures
    reads_before = before.reads if before else None
    as_of = ""
    # Reads of whole models are added up by full flushes only.
    if data.scope.is_present and not data.scope.is_listed:
        as_of = _time_or_day(chart.summed_until)
        if data.scope.by == "hour":
            # In a period of a day, the time since the last flush is too much to be missing from a
            # comparison.
            reads_before = None
    return [*figures, _figure(_("Reads"), chart.total.reads, reads_before, as_of=as_of)]


def _figure(label: str, total: int, before: int | None, *, as_of: str = "") -> Figure:
    """Returns a total as texts. `before` is that of the period before, None if not compared."""
    change = ""
    trend = ""
    per_cent = tables.change(total, before or 0)
    if per_cent is not None:
        change = tables.text(per_cent, "change")
        # By the rounded change, so that no arrow stands before "0 %".
        if per_cent > 0:
            trend = "up"
        elif per_cent < 0:
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
    """Returns a time of Redis's clock (µs) as text, with its day unless that is today; "" for 0."""
    if not until:
        return ""
    local = timezone.localtime(buckets.time_of(until))
    is_today = local.date() == timezone.localtime(buckets.now()).date()
    return date_format(local, "TIME_FORMAT" if is_today else "DATETIME_FORMAT")


def _day(moment: datetime) -> str:
    return date_format(timezone.localtime(moment), "DATE_FORMAT")


def _span_text(scope: Scope) -> str:
    """Returns the first and the last day of the period as text."""
    first = _day(scope.span.since)
    last = _day(scope.span.until - MOMENT)
    if first == last:
        return first
    return pgettext("period", "%(first)s to %(last)s") % {"first": first, "last": last}


def _chart_context(
    data: DashboardData, chart: ChartData, *, over_time: tables.Table, now: tables.Table
) -> dict[str, Any]:
    """Returns the context for the figures, the last flush and the chart with its values.

    `over_time` is the table of the chart's values.
    """
    span = _span_text(data.scope)
    summary = _("%(views)s views, %(visitors)s visitors and %(reads)s reads; %(span)s.") % {
        "views": exact(chart.total.views),
        "visitors": tables.text(data.people.total, "number"),
        "reads": exact(chart.total.reads),
        "span": span,
    }
    views_before = chart.total_before.views if chart.total_before else None
    headings = [str(column.heading) for column in over_time.columns[1:]]
    values_for_script = {
        "labels": [_("Period"), *headings],
        "totals": [
            span,
            views_before,
            chart.total.views,
            data.people.total,
            chart.total.reads,
        ],
        "columns": [column.name for column in over_time.columns],
        "rows": [row.values for row in over_time.rows],
    }
    return {
        "figures": _figures(data, chart),
        "now": now,
        "recent": tables.text(data.recent, "number"),
        **_last_flush(chart),
        "charts": _drawings(data, over_time, summary=summary),
        "summary": summary,
        "chart": over_time,
        **_values_table(data, over_time),
        "chart_values": json.dumps(values_for_script),
        "notes": [(date_format(day, "DATE_FORMAT"), note) for day, note in chart.notes.items()],
    }


def _last_flush(chart: ChartData) -> dict[str, Any]:
    """Returns the last flush, its age as text, and True if no flush has run for too long."""
    run = chart.last_flush
    if run is None:
        return {"last_flush": None, "last_flush_when": "", "is_late": None}
    # It is late if Celery's beat or worker is down, or cron.
    is_late = buckets.now() - buckets.now(run.ended) > runs.late_after()
    when = naturaltime(run.ended) if run.ended else ""
    return {"last_flush": run, "last_flush_when": when, "is_late": is_late}


def _starts(data: DashboardData, formats: Mapping[str, Any]) -> list[str]:
    """Returns the start of each point as text."""
    point_format = str(formats[data.scope.by])
    return [date_format(timezone.localtime(start), point_format) for start in data.starts]


def _drawings(data: DashboardData, over_time: tables.Table, *, summary: str) -> list[str]:
    """Returns two drawings of the chart (SVG): for wide screens and for narrow ones."""
    series = {name: over_time.values(name) for name in ("before", "views", "visitors", "reads")}
    starts = _starts(data, FORMATS)
    drawings: list[str] = []
    for is_narrow in (False, True):
        drawing = charts.lines(
            over_time.title,
            starts,
            series,
            description=summary,
            notes=over_time.values("notes"),
            is_narrow=is_narrow,
        )
        drawings.append(drawing)
    return drawings


def _values_table(data: DashboardData, over_time: tables.Table) -> dict[str, Any]:
    """Returns the columns and the rows of the chart's values.

    A row is the start of its point and the texts of the other columns. Without a period before, the
    column of its views is left out.
    """
    indexes = []
    for index, column in enumerate(over_time.columns):
        if column.name != "before" or data.is_compared:
            indexes.append(index)
    columns = [over_time.columns[index] for index in indexes]
    rows = []
    for start, row in zip(_starts(data, FORMATS_WITH_YEAR), over_time.rows, strict=True):
        texts = [
            tables.text(row.values[index], over_time.columns[index].value_kind)
            for index in indexes[1:]
        ]
        rows.append((start, texts))
    return {"chart_columns": columns, "chart_rows": rows}


def _table_context(table: tables.Table, scope: Scope, *, site: str | None) -> dict[str, Any]:
    """Returns a table for the template: its first rows as texts and with links."""
    rows = []
    for row in table.rows[: table.row_limit]:
        cells: list[dict[str, Any]] = []
        for column, value in zip(table.columns, row.values, strict=True):
            cells.append({"column": column, "text": tables.text_of_cell(value, column)})
        head, *other_cells = cells
        link = _link(row, scope, site=site)
        if link and table.name == "grew-most":  # in other tables it is two clicks away already
            head.update(_sources_file(link))
        rows.append(PageRow(head, other_cells, link, url=address_of(row.values[0])))
    return {"table": table, "rows": rows}


def _link(row: tables.Row, scope: Scope, *, site: str | None) -> str:
    """Returns the address of the object's numbers, or of the dashboard with one more filter.

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
    """Returns the address and title of a CSV file: where an object's views of all time came from.

    It is the table of the first dimension. `link` is the address of the object's numbers. Empty on
    a site without dimensions.
    """
    dimensions = dimension_names()
    if not dimensions:
        return {}
    parameters = urlencode({"table": f"by-{dimensions[0]}", "format": "csv"})
    title = tables.labels_of(dimensions[0]).title
    return {"file": f"{link}&{parameters}", "file_title": tables.of_all_time(title)}


def _chips(data: DashboardData, scope: Scope, here: Mapping[str, str]) -> list[Chip]:
    """Returns the filters in force. `here` is the parameter of the page's own tab."""
    labels = {"model": _("Model"), "category": _("Category"), "author": _("Author")}
    chips = []
    for filter_name, value in scope.chosen.items():
        if filter_name in scope.fixed:
            continue
        chip = Chip(
            label=labels.get(filter_name) or tables.labels_of(filter_name).heading,
            value=_value_text(data, filter_name, value),
            address_without=scope.address(**{filter_name: ""}, **here),
        )
        chips.append(chip)
    return chips


def _value_text(data: DashboardData, filter_name: str, value: str) -> str:
    """Returns the value of a filter as people know it."""
    if filter_name in ("category", "author"):
        return _name_of_chosen(data, filter_name, value)
    # The filter `model` has labels of models. The value of a dimension that equals a label is shown
    # as the model, too.
    for model in counted_models():
        if label_of(model) == value:
            return str(model._meta.verbose_name_plural)
    return tables.name_of_value(filter_name, value)


def _name_of_chosen(data: DashboardData, filter_name: str, value: str) -> str:
    """Returns the name of a category or an author; the value if there is no such row."""
    row = data.objects.chosen(filter_name)
    if row is None:
        row = _chosen_category(value) if filter_name == "category" else _chosen_author(value)
    return name_of(value if row is None else row)


def _chosen_category(subject: str) -> Model | None:
    """Returns the row of a category's subject, or None."""
    model_and_pk = parse_subject(subject)
    if model_and_pk is None:
        return None
    model, pk = model_and_pk
    return model._default_manager.filter(pk=pk).first()


def _chosen_author(pk: str) -> Model | None:
    """Returns the user with that primary key, or None."""
    return get_user_model()._default_manager.filter(pk=pk).first()
