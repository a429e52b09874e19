"""The dashboard's page: the tables of each tab, and what the template shows."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext, npgettext

from readtrack.dashboard.definitions import definitions, more_dimensions
from readtrack.dashboard.navigation import (
    chips,
    filters_in_words,
    interval_choices,
    navigation,
    parameters,
)
from readtrack.dashboard.panels import files_of, linked_objects, table_context
from readtrack.dashboard.timeline import (
    chart_view,
    figures_of,
    last_flush_context,
    shown_series,
    unknown_context,
)
from readtrack.hits.addresses import NOTICES
from readtrack.numbers import tables
from readtrack.numbers.data import ScopeData
from readtrack.numbers.details import details_of
from readtrack.numbers.filters import chosen_in
from readtrack.numbers.loading import load
from readtrack.numbers.offered import tables_by_tab
from readtrack.numbers.options import enters_funnel
from readtrack.numbers.scope import Scope
from readtrack.numbers.totals import SERIES
from readtrack.numerals import exact, multiple

NOTICED_HOURS = 24
HOURS_IN_WORDS = 48  # of an age; a longer one is given in days


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
    files = files_of(tables_by_name.values(), data.asked)
    # These two are shown in ways of their own.
    over_time = None
    if data.chart:  # otherwise it says that it is not known
        over_time = tables_by_name.pop("over-time", None)
    now = tables_by_name.pop("now", None)
    series = _valid_series(data, series)
    here = parameters(tab, series=series)
    filters = chips(chosen_in(data), scope, here)
    chart_context = unknown_context(data, now)
    if data.chart and over_time and now:
        chart_context = {
            "figures": figures_of(data, data.chart, series=series),
            "now": now,
            "recent": tables.text(data.recent, "number"),
            **last_flush_context(data.chart),
            "chart": chart_view(
                data,
                data.chart,
                over_time,
                series=series,
                intervals=interval_choices(scope, here),
                filters=filters_in_words(filters),
                site=site,
            ),
        }
    return {
        "scope": scope,
        "data": data,
        "files": files,
        "chips": filters,
        **navigation(data, scope, here=here, tabs=list(by_tab)),
        **chart_context,
        "tables": [table_context(table, scope, site=site) for table in tables_by_name.values()],
        "definitions": definitions(data),
        "usual": _usual_card(data),
        "has_period": tab != "sections",  # readers are those of now
        "notices": _notices(data),
        "more_dimensions": more_dimensions() if tab == "sources" and not scope.fixed else "",
    }


def _valid_series(data: ScopeData, series: str) -> str:
    """Returns the number that the chart shows, of which the address asks for `series`."""
    shown = SERIES if data.chart is None else shown_series(data, data.chart)
    return series if series in shown else "views"


def _tables_by_name(names: Iterable[str], scope: Scope, data: ScopeData) -> dict[str, tables.Table]:
    """Returns the tables with these names. The funnel is left out if the site does not use it."""
    tables_by_name = {name: tables.table_named(name, data) for name in names}
    data.objects.load(linked_objects(tables_by_name.values()))
    if "funnel" in tables_by_name and not _is_funnel_in_use(scope, tables_by_name["funnel"]):
        del tables_by_name["funnel"]
    return tables_by_name


def _is_funnel_in_use(scope: Scope, table: tables.Table) -> bool:
    """Returns True if a stage behind the first was reached, or views enter the funnel."""
    has_steps = any(table.values("count")[1:])
    return has_steps or any(enters_funnel(model) for model in scope.models)


def _notices(data: ScopeData) -> list[str]:
    """Returns what web processes noticed about visitors' addresses in the last hours, as texts."""
    recent = data.skips[:NOTICED_HOURS]
    notices = []
    for notice, message in NOTICES.items():
        if any(skips[notice] for skips in recent):
            notices.append(_(message))
    return notices


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
