"""The admin: a dashboard, the record of flushes, and a mixin for the site's own `PostAdmin`."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import django
from django.contrib import admin
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from readtrack import charts, numerals, reports
from readtrack.hits import Reason
from readtrack.models import Dashboard, FlushRun, Tracked
from readtrack.periods import Period

REASONS: dict[Reason, Any] = {
    "bot": _("robot, by its user agent"),
    "honeypot": _("robot, by the honeypot"),
    "repeat": _("seen by the same visitor already"),
    "rate": _("too many in a short time"),
    "prefetch": _("fetched ahead by a browser"),
    "method": _("not a GET"),
    "status": _("not a successful page"),
    "optout": _("anonymous visitors are not counted"),
    "error": _("Redis failed"),
}

# The type stubs make it generic, Django does not.
if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class Range(NamedTuple):
    """A choice of how much of the past the chart shows."""

    label: Any
    back: timedelta
    by: Period
    format: str


RANGES = {
    "day": Range(_("24 hours"), timedelta(hours=23), "hour", "H:i"),
    "week": Range(_("7 days"), timedelta(days=6), "day", "D j"),
    "month": Range(_("30 days"), timedelta(days=29), "day", "j N"),
    "year": Range(_("a year"), timedelta(days=364), "week", "j N"),
}


class TrackedAdmin(ModelAdmin):
    """`class PostAdmin(TrackedAdmin)` or, beside other bases, a mixin: adds the sortable count column."""

    @admin.display(description=_("views"), ordering="view_count")
    def stored_views(self, obj: Tracked) -> str:
        return numerals.exact(obj.view_count)

    def get_list_display(self, request: HttpRequest) -> Any:
        return [*super().get_list_display(request), "stored_views"]


class ReadOnlyAdmin(ModelAdmin):
    """For rows that only the app writes."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(FlushRun)
class FlushRunAdmin(ReadOnlyAdmin):
    """The record of flushes, newest first."""

    list_display = ("started", "kind", "time_taken", "read", "written", "settled", "lifted", "orphans", "error")

    @admin.display(description=_("took"))
    def time_taken(self, run: FlushRun) -> timedelta | None:
        return run.took


@admin.register(Dashboard)
class DashboardAdmin(ReadOnlyAdmin):
    """The dashboard, where a list of rows would be."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        shown = RANGES.get(request.GET.get("range", ""), RANGES["day"])
        overview = reports.overview(back=shown.back, by=shown.by)
        last_flush = reports.last_flush()
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Dashboard"),
            "opts": self.opts,
            "has_breadcrumb_list": django.VERSION >= (6, 1),
            "stored_views": numerals.exact(reports.stored_views()),
            "day_views": numerals.exact(overview.day),
            "chart": _chart(overview.points, shown),
            "ranges": [(name, choice.label, choice is shown) for name, choice in RANGES.items()],
            "top": [(row, numerals.exact(row.view_count)) for row in reports.top(10)],
            "trending": [(trend.obj, numerals.exact(trend.views)) for trend in reports.trending(10)],
            "skips": _skips(),
            "last_flush": last_flush,
            "is_late": last_flush is not None and reports.is_late(last_flush),
            "flush_read": numerals.exact(last_flush.read) if last_flush else "",
            "flush_written": numerals.exact(last_flush.written) if last_flush else "",
            "last_flush_when": naturaltime(last_flush.ended) if last_flush and last_flush.ended else "",
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/readtrack/dashboard.html", context)


def _skips() -> list[tuple[Any, str, int]]:
    """Reason, count and share (%) of the hits that did not count, most first."""
    skips = {reason: count for reason, count in reports.skips(24).items() if count}
    most_first = sorted(skips.items(), key=lambda skip: -skip[1])
    return [
        (REASONS[reason], numerals.exact(count), 100 * count // sum(skips.values())) for reason, count in most_first
    ]


def _chart(points: Sequence[reports.Point], shown: Range) -> str:
    labels = [date_format(timezone.localtime(point.start), shown.format) for point in points]
    views = [point.views for point in points]
    total = sum(views)
    summary = ngettext(
        "Views of the whole site, %(range)s; %(views)s in all.",
        "Views of the whole site, %(range)s; %(views)s in all.",
        total,
    )
    return charts.bars(
        gettext("Views over time"),
        labels,
        views,
        description=summary % {"range": shown.label, "views": numerals.exact(total)},
    )
