"""The totals of a period: what is beside the chart, and what programs get."""

from typing import NamedTuple

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from readtrack import buckets
from readtrack.numbers import local_time
from readtrack.numbers.chance import are_too_few
from readtrack.numbers.data import ChartData, ScopeData

#: The numbers that the chart can show, by their names in the address. They are fields of Counts,
#: columns of the table "over-time" and keys of COLUMNS.
SERIES = ("views", "visitors", "seen", "reads")
NO_READS = gettext_lazy(
    "No text was read. Templates mark a text by the tag readtrack_text, beside readtrack_script."
)


class Total(NamedTuple):
    """A total of the period, and that of the period before; None if it is not known."""

    name: str
    now: int | None
    compared: int | None  # what `before` is compared with, which may be a part of `now`
    before: int | None
    as_of: str = ""
    remark: str = ""


def totals(data: ScopeData, chart: ChartData) -> list[Total]:
    """Returns the total of each of SERIES."""
    return [_if_read(_total(data, chart, name), data, chart) for name in SERIES]


def _if_read(total: Total, data: ScopeData, chart: ChartData) -> Total:
    """Returns the total; without any read, one of reads that is not known.

    Most likely no template marks its texts, and then 0 would be wrong. A few views may well have no
    read, and those since the last full flush have none yet.
    """
    if total.name != "reads" or total.now is None or total.now or total.before:
        return total
    if are_too_few(chart.total.views, 0) or _is_before_sums(data, chart):
        return total
    return Total(total.name, None, None, None, total.as_of, remark=str(NO_READS))


def _is_before_sums(data: ScopeData, chart: ChartData) -> bool:
    """Returns True if the period began after the last full flush, which adds up reads."""
    if data.scope.is_listed or not chart.summed_until:
        return False
    return buckets.time_of(chart.summed_until) <= data.scope.span.since


def _total(data: ScopeData, chart: ChartData, name: str) -> Total:
    """Returns the total of one of SERIES."""
    if name == "visitors":
        return _visitors_total(data)
    before = getattr(chart.total_before, name) if chart.total_before else None
    if name == "views":
        return Total(name, chart.total.views, chart.compared.views, before)
    if not chart.is_summed or (name == "seen" and not chart.total.seen):
        return Total(name, None, None, None)
    as_of = ""
    # Reads and seen views of whole models are added up by full flushes only.
    if data.scope.is_present and not data.scope.is_listed:
        as_of = _time_or_day(chart.summed_until)
        if data.scope.is_of_a_day:
            # In a period of a day, the time since the last flush is too much to be missing from a
            # comparison.
            before = None
    now = getattr(chart.total, name)
    return Total(name, now, getattr(chart.compared, name), before, as_of)


def _visitors_total(data: ScopeData) -> Total:
    """Returns the visitors of the period."""
    people = data.people
    remark = ""
    if people.is_cut:
        remark = _("too many stories to add up")
    elif data.is_compared and people.total is not None and not data.scope.compares_days:
        remark = _("compared once the day is over")
    return Total("visitors", people.total, people.compared, people.before, remark=remark)


def _time_or_day(until: int) -> str:
    """Returns a time of Redis's clock (µs) as text, with its day unless that is today; "" for 0."""
    if not until:
        return ""
    at = buckets.time_of(until)
    is_today = local_time.day_of(at) == local_time.day_of(buckets.now())
    return date_format(timezone.localtime(at), "TIME_FORMAT" if is_today else "DATETIME_FORMAT")
