"""The words for a period, and for what the numbers of a page are compared with."""

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from readtrack.numbers.data import ChartData, ScopeData
from readtrack.numbers.scope import Span
from readtrack.numerals import exact


def span_text(span: Span) -> str:
    """Returns the first and the last day of a period."""
    first = date_format(span.first_day, "DATE_FORMAT")
    last = date_format(span.last_day, "DATE_FORMAT")
    if first == last:
        return first
    return pgettext("period", "%(first)s to %(last)s") % {"first": first, "last": last}


def part_compared(data: ScopeData) -> str:
    """Returns of which part of the period a change says something, in a few words; "" if it says
    something of the whole period, or if nothing is compared.
    """
    compared = data.scope.compared
    if compared is None or not data.is_compared or compared == data.scope.span:
        return ""
    if data.scope.compares_days:
        days = compared.days.length.days
        text = ngettext(
            "in the %(count)s day that is over", "in the %(count)s days that are over", days
        )
        return text % {"count": exact(days)}
    return _up_to(compared)


def end_compared(data: ScopeData) -> str:
    """Returns until when a change beside a total goes, in two or three words; "" if it goes as far
    as the total, or if nothing is compared.
    """
    compared = data.scope.compared
    if compared is None or not data.is_compared or compared == data.scope.span:
        return ""
    if data.scope.compares_days:
        return pgettext("a change that leaves out today", "until yesterday")
    return _up_to(compared)


def _up_to(compared: Span) -> str:
    time = date_format(timezone.localtime(compared.until), "TIME_FORMAT")
    return pgettext("a part of today", "up to %(time)s") % {"time": time}


def rule_of_comparison(data: ScopeData, chart: ChartData | None) -> str:
    """Returns the sentence on what all changes of a page compare; "" if nothing is compared.

    `chart` is None on a page without one.
    """
    before = data.scope.before
    compared = data.scope.compared
    if before is None or compared is None:
        return ""
    if not data.is_compared:
        if data.asked.has_days_only:
            return _("Whole days are compared, so not before today is over.")
        return _("It is compared from the first whole hour on.")
    span = {"span": span_text(before)}
    is_before_known = data.is_before_known if chart is None else chart.is_before_whole
    if not is_before_known:
        return _("It is not compared with %(span)s: the history does not go back that far.") % span
    if compared == data.scope.span:
        return _("Compared with %(span)s.") % span
    if data.scope.compares_days:
        days = compared.days.length.days
        text = ngettext(
            "Changes compare the %(count)s day that is over with %(span)s.",
            "Changes compare the %(count)s days that are over with %(span)s.",
            days,
        )
        return text % {**span, "count": exact(days)}
    time = date_format(timezone.localtime(compared.until), "TIME_FORMAT")
    text = _("Compared with %(span)s, both up to %(time)s.") % {**span, "time": time}
    return text.replace("..", ".")  # the time may be "9 a.m."


def numbers_compared(chart: ChartData, *, series: str, label: str) -> str:
    """Returns the two numbers of which the page shows the change, as a sentence.

    It is "" for a series that is not added up by point, and if nothing is compared.
    """
    before = chart.total_before
    if before is None or not chart.is_before_whole or series not in before._fields:
        return ""
    text = pgettext("two numbers that are compared", "%(label)s: %(now)s, before: %(before)s.")
    numbers = {"now": getattr(chart.compared, series), "before": getattr(before, series)}
    return text % {"label": label, **{name: exact(count) for name, count in numbers.items()}}
