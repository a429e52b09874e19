"""The dashboard's page: the tables of each tab, and what the template shows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from readtrack.dashboard.definitions import definitions, more_dimensions
from readtrack.dashboard.navigation import (
    ALL_KEPT_HOURS,
    TABS,
    Chip,
    begins_before_skips,
    chart_intervals,
    chips,
    filters_in_words,
    navigation,
    parameters,
)
from readtrack.dashboard.overview import overview
from readtrack.dashboard.panels import files_of, linked_objects, table_context
from readtrack.dashboard.stories import Asked, first_stories, stories_of
from readtrack.dashboard.story import story_context
from readtrack.dashboard.timeline import (
    chart_view,
    figures_of,
    last_flush_context,
    link_to_object,
    seen_between,
    shown_series,
    unknown_context,
)
from readtrack.hits.addresses import NOTICES
from readtrack.numbers import tables
from readtrack.numbers.changes import multiple
from readtrack.numbers.comparison import rule_of_comparison, span_text
from readtrack.numbers.data import ScopeData
from readtrack.numbers.filters import Chosen, chosen_in
from readtrack.numbers.loading import load
from readtrack.numbers.next_steps import next_steps
from readtrack.numbers.objects import CANDIDATES, MOST
from readtrack.numbers.offered import tables_by_tab
from readtrack.numbers.options import enters_funnel
from readtrack.numbers.scope import Scope
from readtrack.numbers.story import usual_of_story
from readtrack.numbers.totals import SERIES
from readtrack.numbers.verdict import Verdict, verdict_of
from readtrack.numbers.words import Sentence, lead
from readtrack.numbers.words_of_story import age_text, kind_text
from readtrack.numerals import exact

NOTICED_HOURS = 24
STORIES = "stories"
LONG = {"growth", "below", "hardly", "sources", "reading"}  # with as many rows as are known
NOT_IN_OVERVIEW = {"really-read", "robots"}  # tables of long forms only


def page_context(
    scope: Scope,
    tab: str = "numbers",
    *,
    series: str = "views",
    given: Mapping[str, Any] = {},
    site: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Returns the template's context for the overview of the scope, or for the long form of one of
    its panels, the `tab`. `options` are those of `load`.

    `series` is the number that the chart shows, one of SERIES. `given` are the parameters of the
    address, for lists. `site` is the name of the admin site that the links lead to. Without Redis,
    live numbers are marked as not known.
    """
    by_tab = _tables_by_page(scope)
    if tab not in by_tab:
        tab = "numbers"
    is_overview = tab == "numbers" and "object" not in scope.chosen
    asked = Asked.parse(given)
    data = load(scope, by_tab[tab], **_limits(tab), **options)
    if data.chart:
        scope = data.scope
    tables_by_name = _tables_by_name(by_tab[tab], data.asked, data, least_rows=_least_rows(tab))
    files = files_of(tables_by_name.values(), data.asked)
    # These two are shown in ways of their own.
    now = tables_by_name.pop("now", None)
    over_time = None
    if data.chart:  # otherwise it says that it is not known
        over_time = tables_by_name.pop("over-time", None)
    series = _valid_series(data, series)
    here = parameters(tab, series=series)
    chosen = chosen_in(data)
    filters = chips(chosen, scope, here)
    verdict = _verdict(data, chosen, is_overview=is_overview)
    context = {
        "scope": scope,
        "data": data,
        "tab": tab,
        "is_overview": is_overview,
        "tab_title": TABS[tab],
        "period_in_title": _period_in_title(scope, tab),
        "files": files,
        "chips": filters,
        **navigation(data, scope, here=here, tabs=list(by_tab)),
        **_chart_context(
            data,
            over_time,
            now,
            series=series,
            here=here,
            filters=filters,
            is_told=_is_told(verdict, series),
            site=site,
        ),
        # The overview shows a few rows of each, in panels of its own.
        "tables": SimpleLazyObject(
            lambda: [table_context(table, scope, site=site) for table in tables_by_name.values()]
        ),
        "definitions": definitions(data),
        "usual": _usual_card(data),
        "rule": _rule(data, tables_by_name.values()),
        "has_period": tab != "sections",  # readers are those of now
        **story_context(data, chosen),
        "notices": _notices(data),
        "more_dimensions": more_dimensions() if tab == "sources" and not scope.fixed else "",
    }
    if verdict is not None:
        context["is_new"] = verdict.state == "nothing"
        context["lead"] = _lead(verdict, data, site=site)
        context["next_steps"] = _next_steps(data, site=site)
        context.update(overview(tables_by_name, data, group=asked.group, site=site))
        context["list"] = first_stories(tables_by_name["most-viewed"], data, site=site)
    if tab == STORIES:
        context["list"] = stories_of(data, asked, site=site)
    return context


def _rule(data: ScopeData, shown: Iterable[tables.Table]) -> str:
    """Returns what the changes of a list compare; "" for a page whose chart says it, and for a list
    without changes.
    """
    if data.chart is not None:
        return ""
    names = {column.name for table in shown for column in table.columns if table.rows}
    return rule_of_comparison(data, None) if "change" in names else ""


def _is_told(verdict: Verdict | None, series: str) -> bool:
    """Returns True if the first sentences have the number of the series that the chart compares:
    the views of today.
    """
    return verdict is not None and verdict.so_far is not None and series == "views"


def _verdict(data: ScopeData, filters: Sequence[Chosen], *, is_overview: bool) -> Verdict | None:
    """Returns how the period went; None for a page that does not say it."""
    return verdict_of(data, filters) if is_overview else None


def _chart_context(
    data: ScopeData,
    over_time: tables.Table | None,
    now: tables.Table | None,
    *,
    series: str,
    here: Mapping[str, str],
    filters: Sequence[Chip],
    is_told: bool,
    site: str | None,
) -> dict[str, Any]:
    """Returns the context for the totals and the chart; empty for a page without them.

    `is_told` is True if the page says elsewhere which two numbers are compared.
    """
    if data.chart is None or over_time is None or now is None:
        return unknown_context(data, now)
    chart = chart_view(
        data,
        data.chart,
        over_time,
        series=series,
        intervals=chart_intervals(data.scope, here),
        filters=filters_in_words(filters),
        is_told=is_told,
        site=site,
    )
    return {
        "figures": figures_of(data, data.chart, series=series),
        "now": now,
        "recent": tables.text(data.recent, "number"),
        **last_flush_context(data.chart),
        "chart": chart,
        "seen_between": seen_between(data, chart.drawn.values),
    }


def _tables_by_page(scope: Scope) -> dict[str, Sequence[str]]:
    """Returns the names of the tables of the overview, of the list of stories, and of each long
    form of other panels.
    """
    by_tab = tables_by_tab(scope)
    if "object" in scope.chosen:
        return by_tab
    first = by_tab.pop("numbers")
    more = [name for names in by_tab.values() for name in names if name not in NOT_IN_OVERVIEW]
    if scope.values:  # little is known then, and what grew most needs other objects
        more = [name for name in more if tables.is_known(name, scope) and name != "grew-most"]
    return {"numbers": [*first, *more], STORIES: ["most-viewed"], **by_tab}


def _period_in_title(scope: Scope, tab: str) -> str:
    """Returns the period of the page as its title names it; "" for a page that is of now."""
    if tab == "sections":
        return ""
    if tab == "refused" and begins_before_skips(scope):
        return str(ALL_KEPT_HOURS)
    return str(scope.periods.get(scope.period, "")) or span_text(scope.span)


def _limits(tab: str) -> dict[str, Any]:
    """Returns how many rows and objects a page needs, as options of `load`."""
    if tab == STORIES:
        return {"row_limit": MOST, "candidates": MOST}
    return {"row_limit": max(tables.ROWS_ON_PAGE, _least_rows(tab))}


def _least_rows(tab: str) -> int:
    """Returns how many rows of each table a page shows at least."""
    return CANDIDATES if tab in LONG else 0


class LeadView(NamedTuple):
    """The sentence before all numbers."""

    verdict: str
    tone: str
    sentences: Sequence[tuple[Sentence, str]]  # and the numbers of the object that it names
    remarks: Sequence[str]


def _lead(verdict: Verdict, data: ScopeData, *, site: str | None) -> LeadView:
    """Returns what is said of the period before all numbers."""
    said = lead(verdict)
    sentences = _with_links(said.sentences, data, site=site)
    if verdict.state == "empty" and data.asked.values and not data.asked.is_all_time:
        # Such as of an old campaign, which no list of the period has.
        sentences.append((Sentence("", _("All time")), data.asked.address(period="all")))
    return LeadView(said.verdict, said.tone, sentences, said.remarks)


def _next_steps(data: ScopeData, *, site: str | None) -> list[tuple[Sentence, str]]:
    """Returns what to do next, with links."""
    steps = next_steps(data)
    links = _with_links([step.sentence for step in steps], data, site=site)
    return [
        (sentence, data.asked.address(**step.filters) if step.filters else link)
        for step, (sentence, link) in zip(steps, links, strict=True)
    ]


def _with_links(
    sentences: Sequence[Sentence], data: ScopeData, *, site: str | None
) -> list[tuple[Sentence, str]]:
    """Returns the sentences, each with the numbers of the object that it names; "" without one."""
    return [
        (
            sentence,
            "" if sentence.obj is None else link_to_object(sentence.obj, data.asked, site=site),
        )
        for sentence in sentences
    ]


def _valid_series(data: ScopeData, series: str) -> str:
    """Returns the number that the chart shows, of which the address asks for `series`."""
    shown = SERIES if data.chart is None else shown_series(data, data.chart)
    return series if series in shown else "views"


def _tables_by_name(
    names: Iterable[str], scope: Scope, data: ScopeData, *, least_rows: int
) -> dict[str, tables.Table]:
    """Returns the tables with these names. The funnel is left out if the site does not use it."""
    tables_by_name = {}
    for name in names:
        table = tables.table_named(name, data)
        tables_by_name[name] = table._replace(row_limit=max(table.row_limit, least_rows))
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
    usual = usual_of_story(data)
    if usual is None:
        return None
    sentence = ngettext(
        "Usual for %(kind)s after %(age)s: about %(count)s view",
        "Usual for %(kind)s after %(age)s: about %(count)s views",
        usual.usual,
    )
    values = {"kind": kind_text(usual), "age": age_text(usual.age), "count": exact(usual.usual)}
    return UsualCard(multiple(usual.times), sentence % values)
