"""The links of the page to itself: to other periods, comparisons, intervals, filters and lists."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from readtrack import buckets
from readtrack.numbers import local_time
from readtrack.numbers.comparison import span_text
from readtrack.numbers.data import ScopeData
from readtrack.numbers.filters import Chosen
from readtrack.numbers.loading import SKIP_HOURS
from readtrack.numbers.scope import (
    COMPARISONS,
    DEFAULT_PERIOD,
    INTERVALS,
    PERIODS,
    PUBLISHED,
    Days,
    Scope,
)

TABS: Mapping[str, Any] = {
    "numbers": gettext_lazy("Numbers"),
    "stories": gettext_lazy("Top stories"),
    "growth": gettext_lazy("Grew most"),
    "below": gettext_lazy("Below usual"),
    "hardly": gettext_lazy("Opened, hardly read"),
    "sources": gettext_lazy("Where from"),
    "reading": gettext_lazy("Reading"),
    "groups": gettext_lazy("Categories and authors"),
    "age": gettext_lazy("Age"),
    "sections": pgettext_lazy("what readers have not read", "Unread"),
    "refused": gettext_lazy("Not counted"),
}
#: Today in a word or two, because there is little room for it.
TODAY = pgettext_lazy("short", "Today")
ALL_KEPT_HOURS = gettext_lazy("The last 48 hours")


class Choice(NamedTuple):
    """A link of the navigation to another period, comparison, interval or tab."""

    label: Any
    address: str
    is_chosen: bool


class Chip(NamedTuple):
    """A filter in force, and the address of the page without it."""

    label: Any
    value: str
    address_without: str
    name: str  # of the filter


def parameters(tab: str, *, series: str) -> dict[str, str]:
    """Returns the parameters of an address for a tab and a series; those by default are left
    out.
    """
    parameters = {}
    if tab != "numbers":
        parameters["tab"] = tab
    if series != "views":
        parameters["series"] = series
    return parameters


def navigation(
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
        "quick": quick_choices(scope, here),
        "period": scope.periods.get(scope.period, ""),
        "span": _span(data, scope),
        "earlier": scope.address_beside(-1, **here),
        "later": scope.address_beside(1, **here),
        "has_dates": True,
        "comparisons": _comparison_choices(scope, here),
        "comparison": COMPARISONS[scope.comparison],
        "span_before": span_text(data.asked.before)
        if data.asked.before and data.is_compared
        else "",
        "intervals": interval_choices(scope, here),
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


def _span(data: ScopeData, scope: Scope) -> str:
    """Returns the first and the last day of the period; "" on a page of all time without a chart,
    which does not know the first one.
    """
    if scope.is_all_time and data.chart is None:
        return ""
    return span_text(scope.span)


def _comparison_choices(scope: Scope, here: Mapping[str, str]) -> list[Choice]:
    """Returns what the period can be compared with."""
    choices = []
    for name in scope.comparisons:
        address = scope.address(compare="" if name == scope.default_comparison else name, **here)
        choices.append(Choice(COMPARISONS[name], address, is_chosen=name == scope.comparison))
    return choices


def interval_choices(scope: Scope, here: Mapping[str, str]) -> list[Choice]:
    """Returns the lengths of a point that the chart can have."""
    choices = []
    for name in ("", *scope.intervals):
        address = scope.address(by=name, **here)
        choices.append(Choice(INTERVALS[name], address, is_chosen=name == scope.interval))
    return choices


#: The lengths of a point beside the chart.
BY: Mapping[str, Any] = {
    "hour": pgettext_lazy("interval", "By hour"),
    "day": pgettext_lazy("interval", "By day"),
    "week": pgettext_lazy("interval", "By week"),
    "month": pgettext_lazy("interval", "By month"),
}


def chart_intervals(scope: Scope, here: Mapping[str, str]) -> list[Choice]:
    """Returns the lengths of a point beside the chart, of which the present one is chosen."""
    return [
        Choice(BY[name], scope.address(by=name, **here), is_chosen=name == scope.by)
        for name in scope.intervals
    ]


def _period_choices(scope: Scope, here: Mapping[str, str]) -> list[Choice]:
    """Returns the periods that can be chosen. `here` are the parameters of the page's own tab."""
    choices = []
    for period, label in scope.periods.items():
        address = scope.address(period=period, **here)
        choices.append(Choice(label, address, is_chosen=period == scope.period))
    return choices


def quick_choices(scope: Scope, here: Mapping[str, str]) -> list[Choice]:
    """Returns the periods that are a click away: today, and two that are over; of a story those of
    its life.

    `here` are the parameters of the page's own series.
    """
    if scope.published is None:
        return _choices(("today", "yesterday", "last-week"), scope, here)
    names = ("today", "week", PUBLISHED)
    if buckets.now() - scope.published <= buckets.WEEK:
        return _choices(names, scope, here)
    first_week = _first_week(scope, scope.published, here)
    if first_week.is_chosen:  # the others are not by the hour, and compared
        here = {**here, "by": "", "compare": ""}
    return [*_choices(names, scope, here), first_week]


def _choices(periods: Sequence[str], scope: Scope, here: Mapping[str, str]) -> list[Choice]:
    """Returns the choices of these periods, keys of the scope's."""
    labels = {**scope.periods, "today": TODAY}
    choices = []
    for period in periods:
        address = scope.address(period=period, **here)
        choices.append(Choice(labels[period], address, is_chosen=period == scope.period))
    return choices


def _first_week(scope: Scope, published: datetime, here: Mapping[str, str]) -> Choice:
    """Returns the first seven days of a story by the hour, for which a longer chart has no room.

    They are compared with nothing, as nothing was before.
    """
    first = local_time.day_of(published)
    days = Days(first, first + buckets.WEEK - buckets.DAY)
    span = {"from": days.first.isoformat(), "to": days.last.isoformat()}
    address = scope.address(period="", by="hour", compare="none", **span, **here)
    return Choice(_("First 7 days"), address, is_chosen=scope.span.days == days)


def begins_before_skips(scope: Scope) -> bool:
    """Returns True for a period up to now of which Redis does not keep the first refused hits."""
    first_kept_hour = buckets.hour_index(buckets.now()) + 1 - SKIP_HOURS
    begins_earlier = scope.is_all_time or scope.span.hours.start <= first_kept_hour
    return begins_earlier and scope.is_present


def _navigation_of_refused(scope: Scope, here: Mapping[str, str]) -> dict[str, Any]:
    """Returns what is other in the navigation of refused hits, of which Redis keeps SKIP_HOURS.

    They are compared with nothing. A longer period up to now is that of all hours that are kept.
    """
    choices = []
    for period in ("today", "yesterday"):
        address = scope.address(period=period, **here)
        choices.append(Choice(PERIODS[period], address, is_chosen=period == scope.period))
    has_all = begins_before_skips(scope)
    address = scope.address(**here) if has_all else scope.address(period=DEFAULT_PERIOD, **here)
    choices.append(Choice(ALL_KEPT_HOURS, address, is_chosen=has_all))
    navigation = {"periods": choices, "has_dates": False, "comparisons": []}
    if has_all:
        navigation.update(period=ALL_KEPT_HOURS, span="")
    return navigation


def chips(filters: Sequence[Chosen], scope: Scope, here: Mapping[str, str]) -> list[Chip]:
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


def filters_in_words(filters: Sequence[Chip]) -> str:
    """Returns a sentence about the filters in force; "" without a filter."""
    if not filters:
        return ""
    texts = "; ".join(f"{chip.label}: {chip.value}" for chip in filters)
    return _("Filtered by %(filters)s.") % {"filters": texts}
