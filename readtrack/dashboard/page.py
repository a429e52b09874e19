"""The dashboard's page: the tables of each tab, and what the template shows."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from django.contrib.humanize.templatetags.humanize import naturaltime
from django.utils import timezone
from django.utils.formats import date_format, get_format
from django.utils.functional import lazy
from django.utils.translation import gettext as _
from django.utils.translation import (
    gettext_lazy,
    ngettext,
    npgettext,
    pgettext,
    pgettext_lazy,
)

from readtrack import buckets
from readtrack.access import numbers_url
from readtrack.conf import conf
from readtrack.dashboard import charts
from readtrack.hits.addresses import NOTICES
from readtrack.numbers import tables
from readtrack.numbers.data import ChartData, ScopeData
from readtrack.numbers.details import details_of
from readtrack.numbers.filters import Chosen, chosen_in
from readtrack.numbers.loading import SKIP_HOURS, load
from readtrack.numbers.offered import tables_by_tab
from readtrack.numbers.options import enters_funnel, numbers_options
from readtrack.numbers.scope import (
    COMPARISONS,
    DEFAULT_COMPARISON,
    DEFAULT_PERIOD,
    INTERVALS,
    PERIODS,
    Scope,
    Span,
    dimension_names,
)
from readtrack.numbers.totals import SERIES, Total, totals
from readtrack.numerals import exact, multiple
from readtrack.published import published_at
from readtrack.sql import runs
from readtrack.texts import address_of

FILES = ("csv", "json")  # formats of exports
NOTICED_HOURS = 24
HOURS_IN_WORDS = 48  # of an age; a longer one is given in days
SHORT = 8  # characters of a total that is written large


class Choice(NamedTuple):
    """A link of the navigation to another period, comparison, interval or tab."""

    label: Any
    address: str
    is_chosen: bool


class File(NamedTuple):
    """An entry of the menu of exports: a table of the page, and the addresses of its files."""

    title: str
    addresses: Mapping[str, str]  # by format


class Chip(NamedTuple):
    """A filter in force, and the address of the page without it."""

    label: Any
    value: str
    address_without: str
    name: str  # of the filter


class PageNote(NamedTuple):
    """A note below the chart, and the numbers of the object that it is about; "" for none."""

    text: str
    link: str


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
    "groups": gettext_lazy("Categories and authors"),
    "age": gettext_lazy("Age"),
    "sections": pgettext_lazy("what readers have not read", "Unread"),
    "refused": gettext_lazy("Not counted"),
}
TODAY_AND_A_WEEK_EARLIER = gettext_lazy("Today and a week earlier")
ALL_KEPT_HOURS = gettext_lazy("The last 48 hours")
SEEN = gettext_lazy("Seen")
#: What the numbers of the page mean, by their names.
DEFINITIONS: Sequence[tuple[Any, Any]] = (
    (
        gettext_lazy("Views"),
        gettext_lazy(
            "How often an object was viewed. Robots do not count, and neither do reloads within a "
            "short time."
        ),
    ),
    (
        gettext_lazy("Visitors"),
        gettext_lazy(
            "The different people in the period: somebody who views six objects on three days is "
            "one visitor. Whole days are counted, and periods are compared without today, because "
            "it is not over. The number is right within about one per cent."
        ),
    ),
    (
        SEEN,
        gettext_lazy(
            "Views whose page came to life in a browser, as its script reports. What is not seen "
            "are robots that pass for people, and readers without JavaScript."
        ),
    ),
    (
        gettext_lazy("Reads"),
        gettext_lazy("Views whose text was really read, by the time and by how far the page got."),
    ),
    (
        gettext_lazy("Views by category and by author"),
        gettext_lazy(
            "A view counts for the category and the author that the object had when it was viewed, "
            "whatever has become of it since. Full flushes add these numbers up, mostly once an "
            "hour."
        ),
    ),
    (
        pgettext_lazy("heading of a column with multiples", "× usual"),
        gettext_lazy(
            "How many times the usual views an object has since its publication. Usual is what the "
            "last 100 objects of its section had at the same age; of the whole model, if the "
            "section has fewer than 10. The quarter with the most views and the quarter with the "
            "fewest are left out, and the mean of the others is taken. Behind the chart is what "
            "the middle half had: of the site in the same hour, or on the same day, of the last "
            "eight weeks."
        ),
    ),
    (gettext_lazy("People now"), gettext_lazy("The different visitors of the last five minutes.")),
)
#: What the site's settings make of the first two, by the names of the numbers.
EXCLUDES_NOBODY = gettext_lazy(
    "The site's own people count like everybody else, because the setting EXCLUDE names none."
)
EXCLUDES = gettext_lazy("Whom the setting EXCLUDE names does not count: %(rules)s.")
KNOWN_FOR_A_DAY = gettext_lazy(
    "To protect their privacy, people without a cookie are known for one day only, so they count "
    "once a day."
)
NO_COOKIES = gettext_lazy(
    "This site sets no cookie: people who are not signed in are known for one day only, so they "
    "count once a day."
)
SIGNED_IN_ONLY = gettext_lazy("This site counts people who are signed in, and nobody else.")
OF_ANONYMOUS = {"cookie": KNOWN_FOR_A_DAY, "hash": NO_COOKIES, "none": SIGNED_IN_ONLY}
NO_READS = gettext_lazy(
    "No text was read. Templates mark a text by the tag readtrack_text, beside readtrack_script."
)
MORE_DIMENSIONS = gettext_lazy("More can be told: %(names)s. In the settings, write %(line)s.")


def page_context(
    scope: Scope,
    tab: str = "numbers",
    *,
    series: str = "views",
    site: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Returns the template's context for a tab of the scope. `options` are those of `load`.

    `series` is the number that the chart shows, one of SERIES. `site` is the name of the admin site
    that the links lead to. Without Redis, live numbers are marked as not known.
    """
    by_tab = tables_by_tab(scope)
    if tab not in by_tab:
        tab = "numbers"
    data = load(scope, by_tab[tab], row_limit=tables.ROWS_ON_PAGE, **options)
    if data.chart:
        scope = data.scope
    tables_by_name = _tables_by_name(by_tab[tab], data.asked, data)
    files = _files(tables_by_name.values(), data.asked)
    # These two are shown in ways of their own.
    over_time = None
    if data.chart:  # otherwise it says that it is not known
        over_time = tables_by_name.pop("over-time", None)
    now = tables_by_name.pop("now", None)
    series = _valid_series(data, series)
    here = _parameters(tab, series=series)
    filters = chosen_in(data)
    chips = _chips(filters, scope, here)
    chart_context = _unknown_context(data, now)
    if data.chart and over_time and now:
        chart_context = _chart_context(
            data,
            data.chart,
            series=series,
            over_time=over_time,
            now=now,
            filters=_filters_in_words(chips),
            site=site,
        )
    return {
        "scope": scope,
        "data": data,
        "files": files,
        "chips": chips,
        **_navigation(data, scope, here=here, tabs=list(by_tab)),
        **chart_context,
        "tables": [_table_context(table, scope, site=site) for table in tables_by_name.values()],
        "definitions": _definitions(data),
        "usual": _usual_card(data),
        "has_period": tab != "sections",  # readers are those of now
        "notices": _notices(data),
        "more_dimensions": _more_dimensions() if tab == "sources" and not scope.fixed else "",
    }


def _valid_series(data: ScopeData, series: str) -> str:
    """Returns the number that the chart shows, of which the address asks for `series`."""
    shown = SERIES if data.chart is None else _shown_series(data, data.chart)
    return series if series in shown else "views"


def _tables_by_name(names: Iterable[str], scope: Scope, data: ScopeData) -> dict[str, tables.Table]:
    """Returns the tables with these names. The funnel is left out if the site does not use it."""
    tables_by_name = {name: tables.table_named(name, data) for name in names}
    data.objects.load(_linked_objects(tables_by_name.values()))
    if "funnel" in tables_by_name and not _is_funnel_in_use(scope, tables_by_name["funnel"]):
        del tables_by_name["funnel"]
    return tables_by_name


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


def _files(shown_tables: Iterable[tables.Table], scope: Scope) -> list[File]:
    """Returns the entries of the menu of exports, without tables that have no rows."""
    files = []
    for table in shown_tables:
        if table.rows:
            addresses = {
                file_format: scope.address(table=table.name, format=file_format)
                for file_format in FILES
            }
            files.append(File(table.title, addresses))
    return files


def _parameters(tab: str, *, series: str) -> dict[str, str]:
    """Returns the parameters of an address for a tab and a series; those by default are left out."""
    parameters = {}
    if tab != "numbers":
        parameters["tab"] = tab
    if series != "views":
        parameters["series"] = series
    return parameters


def _navigation(
    data: ScopeData, scope: Scope, *, here: Mapping[str, str], tabs: Sequence[str]
) -> dict[str, Any]:
    """Returns the links to other periods, comparisons, intervals and tabs.

    `here` are the parameters of the page's own tab and series, `tabs` are the names of all tabs.
    """
    own_tab = here.get("tab", "numbers")
    address_without_period = scope.address(period="", **here)
    tab_choices = []
    for name in tabs:
        address = scope.address(tab="" if name == "numbers" else name)
        tab_choices.append(Choice(TABS[name], address, is_chosen=name == own_tab))
    context = {
        "periods": _period_choices(scope, here),
        "period": scope.periods.get(scope.period, ""),
        "span": _span_text(scope.span),
        "has_dates": True,
        "comparisons": _comparison_choices(scope, here),
        "comparison": COMPARISONS[scope.comparison],
        "span_before": _span_text(data.asked.before)
        if data.asked.before and data.is_compared
        else "",
        "intervals": _interval_choices(scope, here),
        "interval": INTERVALS[scope.interval],
        "is_future": scope.is_future,
        "tabs": tab_choices,
        "first_day": scope.span.first_day,
        "last_day": scope.span.last_day,
        "kept": parse_qsl(address_without_period.removeprefix("?")),  # for the form of two days
    }
    if own_tab == "refused":
        context.update(_navigation_of_refused(scope, here))
    return context


def _comparison_choices(scope: Scope, here: Mapping[str, str]) -> list[Choice]:
    """Returns what the period can be compared with."""
    choices = []
    for name in scope.comparisons:
        address = scope.address(compare="" if name == DEFAULT_COMPARISON else name, **here)
        choices.append(Choice(COMPARISONS[name], address, is_chosen=name == scope.comparison))
    return choices


def _interval_choices(scope: Scope, here: Mapping[str, str]) -> list[Choice]:
    """Returns the lengths of a point that the chart can have."""
    choices = []
    for name in ("", *scope.intervals):
        address = scope.address(by=name, **here)
        choices.append(Choice(INTERVALS[name], address, is_chosen=name == scope.interval))
    return choices


def _period_choices(scope: Scope, here: Mapping[str, str]) -> list[Choice]:
    """Returns the periods that can be chosen. `here` are the parameters of the page's own tab.

    One of them comes with its comparison, which would take a second menu otherwise.
    """
    choices = []
    for period, label in scope.periods.items():
        address = scope.address(period=period, **here)
        choices.append(Choice(label, address, is_chosen=period == scope.period))
        if period == "today" and scope.compare != "week":
            address = scope.address(period=period, compare="week", **here)
            choices.append(Choice(TODAY_AND_A_WEEK_EARLIER, address, is_chosen=False))
    return choices


def _navigation_of_refused(scope: Scope, here: Mapping[str, str]) -> dict[str, Any]:
    """Returns what is other in the navigation of refused hits, of which Redis keeps SKIP_HOURS.

    They are compared with nothing. A longer period up to now is that of all hours that are kept.
    """
    choices = []
    for period in ("today", "yesterday"):
        address = scope.address(period=period, **here)
        choices.append(Choice(PERIODS[period], address, is_chosen=period == scope.period))
    first_kept_hour = buckets.hour_index(buckets.now()) + 1 - SKIP_HOURS
    begins_earlier = scope.is_all_time or scope.span.hours.start <= first_kept_hour
    has_all = begins_earlier and scope.is_present
    address = scope.address(**here) if has_all else scope.address(period=DEFAULT_PERIOD, **here)
    choices.append(Choice(ALL_KEPT_HOURS, address, is_chosen=has_all))
    navigation = {"periods": choices, "has_dates": False, "comparisons": []}
    if has_all:
        navigation.update(period=ALL_KEPT_HOURS, span="")
    return navigation


def _definitions(data: ScopeData) -> list[tuple[Any, Any]]:
    """Returns those of DEFINITIONS whose numbers the page may show."""
    has_seen = data.chart is not None and bool(data.chart.total.seen)
    definitions = [one for one in DEFINITIONS if has_seen or one[0] != SEEN]
    (views, of_views), (visitors, of_visitors), *others = definitions
    excluded = ", ".join(sorted(key for key, value in conf.EXCLUDE.items() if value))
    own_people = EXCLUDES % {"rules": excluded} if excluded else EXCLUDES_NOBODY
    anonymous = OF_ANONYMOUS.get(conf.ANONYMOUS, "")  # a check names an unknown value
    return [
        (views, f"{of_views} {own_people}"),
        (visitors, f"{of_visitors} {anonymous}".rstrip()),
        *others,
    ]


def _more_dimensions() -> str:
    """Returns which dimensions the site could have, too, and the line to write; "" for none."""
    names = [str(path) for path in numbers_options().dimensions]
    missing = [name for name in tables.DIMENSIONS if name not in names]
    if not missing:
        return ""
    listed = ", ".join(str(tables.labels_of(name).title) for name in missing)
    quoted = ", ".join(f'"{name}"' for name in [*names, *missing])
    return MORE_DIMENSIONS % {"names": listed, "line": f'"NUMBERS": {{"dimensions": [{quoted}]}}'}


def _notices(data: ScopeData) -> list[str]:
    """Returns what web processes noticed about visitors' addresses in the last hours, as texts."""
    recent = data.skips[:NOTICED_HOURS]
    notices = []
    for notice, message in NOTICES.items():
        if any(skips[notice] for skips in recent):
            notices.append(_(message))
    return notices


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
    remark: str = ""  # how visitors are compared, or why a number is not known


def _shown_series(data: ScopeData, chart: ChartData) -> list[str]:
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


def _figures(data: ScopeData, chart: ChartData, *, series: str) -> list[Figure]:
    """Returns the totals of the period. The chart shows the `series`."""
    figures = []
    for total in totals(data, chart):
        if total.now is None and data.asked.values:
            if total.name != "seen":  # which many sites do not count
                figures.append(_unknown_figure(total.name))
            continue
        if total.now is None and not total.remark:
            continue
        value, remark = _value_and_remark(total)
        address = ""
        if total.name in _shown_series(data, chart):
            address = data.asked.address(series="" if total.name == "views" else total.name)
        figure = Figure(
            name=total.name,
            label=str(tables.COLUMNS[total.name].heading),
            address=address,
            is_chosen=total.name == series,
            value=value,
            as_of=total.as_of,
            remark=remark,
            **_comparison(total.compared, total.before, is_whole=chart.is_before_whole),
        )
        figures.append(figure)
    return figures


def _unknown_context(data: ScopeData, now: tables.Table | None) -> dict[str, Any]:
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


def _value_and_remark(total: Total) -> tuple[str, str]:
    """Returns how a total is shown, and the sentence below it.

    Without any read most likely no template marks its texts, and then 0 would be wrong.
    """
    if total.name == "reads" and not total.now and not total.before:
        return tables.NOT_KNOWN, str(NO_READS)
    return tables.text(total.now, "number"), total.remark


def _comparison(total: int | None, before: int | None, *, is_whole: bool) -> dict[str, Any]:
    """Returns how a total has changed, as the fields of a Figure.

    `before` is that of the period before. One of the two is None if they are not compared. It is shown as not
    known if history does not cover the whole period before.
    """
    if before is None or total is None:
        return {"before": None, "change": "", "trend": ""}
    if not is_whole:
        return {"before": tables.NOT_KNOWN, "change": "", "trend": ""}
    change = ""
    trend = ""
    per_cent = tables.change(total, before)
    if per_cent is not None:
        change = tables.text(per_cent, "change")
        # By the rounded change, so that no arrow stands before "0 %".
        if per_cent > 0:
            trend = "up"
        elif per_cent < 0:
            trend = "down"
    return {"before": exact(before), "change": change, "trend": trend}


class UsualCard(NamedTuple):
    """How an object does beside others of its kind, as texts."""

    times: str
    sentence: str


def _usual_card(data: ScopeData) -> UsualCard | None:
    """Returns how the object of the page does; None on another page, or if nothing is usual."""
    subject = data.asked.chosen.get("object", "")
    comparison = data.usual.get(subject)
    if comparison is None:
        return None
    obj = data.objects[subject]
    kind = str(obj._meta.verbose_name_plural)
    section = details_of(obj).category if comparison.section else ""
    if section:
        kind = _("%(objects)s in %(section)s") % {"objects": kind, "section": section}
    sentence = ngettext(
        "Usual for %(kind)s after %(age)s: about %(count)s view",
        "Usual for %(kind)s after %(age)s: about %(count)s views",
        round(comparison.usual),
    ) % {"kind": kind, "age": _age_text(comparison.age), "count": exact(round(comparison.usual))}
    return UsualCard(multiple(comparison.times), sentence)


def _age_text(hours: float) -> str:
    """Returns an age as text, as it stands behind "after": in hours, and from two days on in days."""
    if hours < HOURS_IN_WORDS:
        count = round(hours)
        text = npgettext("after so long", "%(count)s hour", "%(count)s hours", count)
    else:
        count = round(hours / 24)
        text = npgettext("after so long", "%(count)s day", "%(count)s days", count)
    return text % {"count": exact(count)}


def _span_text(span: Span) -> str:
    """Returns the first and the last day of the period as text."""
    first = date_format(span.first_day, "DATE_FORMAT")
    last = date_format(span.last_day, "DATE_FORMAT")
    if first == last:
        return first
    return pgettext("period", "%(first)s to %(last)s") % {"first": first, "last": last}


def _compared_text(data: ScopeData, chart: ChartData) -> str:
    """Returns a sentence about what the period is compared with; "" if it is not compared."""
    before = data.scope.before
    compared = data.scope.compared
    if before is None or compared is None:
        return ""
    if not data.is_compared:
        if data.asked.has_days_only:
            return _("Whole days are compared, so not before today is over.")
        return _("It is compared from the first whole hour on.")
    span = {"span": _span_text(before)}
    if not chart.is_before_whole:
        return _("It is not compared with %(span)s: the history does not go back that far.") % span
    if compared == data.scope.span:
        return _("Compared with %(span)s.") % span
    if data.scope.compares_days:
        return _("Compared with %(span)s, without today.") % span
    time = date_format(timezone.localtime(compared.until), "TIME_FORMAT")
    return _("Compared with %(span)s, both up to %(time)s.") % {**span, "time": time}


def _summary(data: ScopeData, chart: ChartData) -> str:
    """Returns the totals and the period as a sentence.

    With a chosen value of a dimension it has the views only, because nothing else is known of it.
    """
    span = _span_text(data.scope.span)
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


def _filters_in_words(chips: Sequence[Chip]) -> str:
    """Returns a sentence about the filters in force; "" without a filter."""
    if not chips:
        return ""
    filters = "; ".join(f"{chip.label}: {chip.value}" for chip in chips)
    return _("Filtered by %(filters)s.") % {"filters": filters}


def _chart_context(
    data: ScopeData,
    chart: ChartData,
    *,
    series: str,
    over_time: tables.Table,
    now: tables.Table,
    filters: str,
    site: str | None,
) -> dict[str, Any]:
    """Returns the context for the figures, the last flush and the chart with its values.

    `series` is the number that the chart shows, `over_time` the table of the chart's values,
    `filters` a sentence about the filters in force. `site` is the admin site that the links lead to.
    """
    summary = _summary(data, chart)
    if filters:
        summary += f" {filters}"
    figures = _figures(data, chart, series=series)
    label = str(tables.COLUMNS[series].heading)
    before: list[int | None] = []
    if series != "visitors":  # those of the period before are not known by day
        before = tables.numbers_beside(chart, series)
    if not (chart.is_before_whole and any(before)):
        before = []  # there is nothing to compare with
    usual = _ends_of_bands(chart, over_time, series=series)
    is_unfinished = data.scope.is_present
    label_before = str(COMPARISONS[data.scope.comparison])
    values_for_script = {
        "labels": [label, label_before, pgettext("views", "usual")],
        "columns": [column.name for column in over_time.columns],
        "rows": [row.values for row in over_time.rows],
        "series": series,
        "before": before,
        "usual": usual,
        "is_unfinished": is_unfinished,
    }
    summary += _usual_in_words(usual)
    chart_title = over_time.title if series == "views" else label
    return {
        "figures": figures,
        "are_figures_long": any(len(figure.value) > SHORT for figure in figures),
        "now": now,
        "recent": tables.text(data.recent, "number"),
        **_last_flush(chart),
        "charts": _drawings(
            data,
            over_time,
            title=chart_title,
            summary=summary,
            series=series,
            before=before,
            usual=usual,
            is_unfinished=is_unfinished,
        ),
        "chart_by_day": _chart_by_day(data, series=series),
        "summary": summary,
        "compared": _compared_text(data, chart),
        "series": series,
        "series_label": label,
        "chart": over_time,
        "chart_title": chart_title,
        "is_unfinished": is_unfinished,
        "has_before": bool(before),
        "label_before": label_before,
        "has_usual": bool(usual),
        **_values_table(data, over_time),
        "chart_values": json.dumps(values_for_script),
        "notes": _page_notes(data, chart, site=site),
    }


def _page_notes(
    data: ScopeData, chart: ChartData, *, site: str | None
) -> list[tuple[str, list[PageNote]]]:
    """Returns the notes below the chart by day, which is a text."""
    notes_by_day = []
    for day, notes in chart.notes.items():
        page_notes = []
        for note in notes:
            link = ""
            if note.obj is not None:
                link = _link_to_object(note.obj, data.asked, site=site)
            page_notes.append(PageNote(note.text, link))
        notes_by_day.append((date_format(day, "DATE_FORMAT"), page_notes))
    return notes_by_day


def _usual_in_words(usual: Sequence[Any]) -> str:
    """Returns a sentence about the band of the chart, for the end of a text; "" without a band."""
    if not usual:
        return ""
    return " " + _("The pale band behind the line is what is usual.")


def _ends_of_bands(
    chart: ChartData, over_time: tables.Table, *, series: str
) -> list[tuple[int, int] | None]:
    """Returns the low and the high end of what is usual at each point, None where nothing is.

    It is empty for another series than views, of which nothing is known.
    """
    if series != "views" or not chart.usual:
        return []
    bands: list[tuple[int, int] | None] = []
    ends = [over_time.values(name) for name in tables.USUAL]
    for low, high in zip(*ends, strict=True):
        bands.append(None if low is None else (low, high))
    return bands


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


def _last_flush(chart: ChartData) -> dict[str, Any]:
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


def _drawings(
    data: ScopeData,
    over_time: tables.Table,
    *,
    title: str,
    summary: str,
    series: str,
    before: Sequence[int | None],
    usual: Sequence[tuple[int, int] | None],
    is_unfinished: bool,
) -> list[str]:
    """Returns two drawings of the chart (SVG): for wide screens and for narrow ones.

    There are none if the number has no points.
    """
    if not _has_points(data, series):
        return []
    starts = _starts(data, FORMATS)
    drawings: list[str] = []
    for is_narrow in (False, True):
        drawing = charts.line(
            title,
            starts,
            over_time.values(series),
            description=summary,
            before=before,
            notes=over_time.values("notes"),
            usual=usual,
            is_unfinished=is_unfinished,
            is_narrow=is_narrow,
        )
        drawings.append(drawing)
    return drawings


def _values_table(data: ScopeData, over_time: tables.Table) -> dict[str, Any]:
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
    shown_rows = table.rows[: table.row_limit]
    bars = _bars(table, shown_rows)
    for row, bar in zip(shown_rows, bars, strict=True):
        cells: list[dict[str, Any]] = []
        for column, value in zip(table.columns, row.values, strict=True):
            cells.append({"column": column, "text": tables.text_of_cell(value, column)})
        head, *other_cells = cells
        head["bar"] = bar
        if "object" in row.filters:
            head["details"] = _details_texts(row.values[0])
        link = _link(row, scope, site=site)
        if link and table.name == "grew-most":  # in other tables it is two clicks away already
            head.update(_sources_file(row.values[0], scope, site=site))
        rows.append(PageRow(head, other_cells, link, url=address_of(row.values[0])))
    # On an object's page the tables of dimensions are beside the chart.
    is_beside = "object" in scope.chosen and table.name.startswith("by-")
    return {"table": table, "rows": rows, "is_beside": is_beside}


def _bars(table: tables.Table, rows: Sequence[tables.Row]) -> list[int]:
    """Returns the length of each row's bar in per cent of the longest: of its first number."""
    kinds = [column.value_kind for column in table.columns]
    if "number" not in kinds:
        return [0] * len(rows)
    index = kinds.index("number")
    numbers = [row.values[index] or 0 for row in rows]
    longest = max([1, *numbers])
    return [round(100 * number / longest) for number in numbers]


def _details_texts(obj: Any) -> list[str]:
    """Returns when the object was published, its category and its author, as far as is known."""
    details = details_of(obj)
    published = date_format(details.published, "DATE_FORMAT") if details.published else ""
    return [text for text in (published, details.category, details.author) if text]


def _link(row: tables.Row, scope: Scope, *, site: str | None) -> str:
    """Returns the address of the object's numbers, or of this page with one more filter.

    It is "" for a row that leads nowhere.
    """
    is_chosen = row.filters.items() <= scope.chosen.items()
    if is_chosen:
        return ""
    if "object" in row.filters:
        return _link_to_object(row.values[0], scope, site=site)
    return scope.address(**row.filters)


def _link_to_object(obj: Any, scope: Scope, *, site: str | None, **changes: str) -> str:
    """Returns the address of the object's numbers, in the period and with the filter of the scope."""
    return numbers_url(obj, site=site) + scope.address_of_object(published_at(obj), **changes)


def _sources_file(obj: Any, scope: Scope, *, site: str | None) -> dict[str, str]:
    """Returns the address and title of a CSV file: where an object's views of the period came from.

    It is the table of the first dimension, whatever value is chosen. Empty on a site without
    dimensions.
    """
    dimensions = dimension_names()
    if not dimensions:
        return {}
    without_values = dict.fromkeys(scope.values, "")
    link = _link_to_object(obj, scope, site=site, **without_values)
    parameters = urlencode({"table": f"by-{dimensions[0]}", "format": "csv"})
    return {"file": f"{link}&{parameters}", "file_title": tables.labels_of(dimensions[0]).title}


def _chips(filters: Sequence[Chosen], scope: Scope, here: Mapping[str, str]) -> list[Chip]:
    """Returns the filters in force. `here` is the parameter of the page's own tab."""
    return [
        Chip(
            label=one.label,
            value=one.value,
            address_without=scope.address(**{one.name: ""}, **here),
            name=one.name,
        )
        for one in filters
    ]
