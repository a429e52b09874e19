"""The admin: a dashboard, the records of flushes, and a mixin for the site's own `PostAdmin`."""

from datetime import timedelta
from typing import Any

import django
from django.contrib import admin
from django.contrib.admin.utils import flatten, flatten_fieldsets
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.formats import date_format
from django.utils.timezone import template_localtime  # type: ignore[attr-defined]  # missing in the stubs
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from readtrack.dashboard.context import dashboard_context
from readtrack.models import Dashboard, FlushRun, Tracked
from readtrack.numerals import exact
from readtrack.reports.access import may_view_numbers


class TrackedAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Base or mixin for a site's own admin, as in `class PostAdmin(TrackedAdmin)`: adds a sortable column of views.

    Counts that `fields` or `fieldsets` name are shown, and cannot be edited.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        named = flatten_fieldsets(self.fieldsets) if self.fieldsets else flatten(self.fields or ())
        counts = {"view_count", "visitor_count"}.intersection(named).difference(self.readonly_fields)
        self.readonly_fields = [*self.readonly_fields, *counts]  # type: ignore[misc]  # a ClassVar in the stubs

    @admin.display(description=_("views"), ordering="view_count")
    def stored_views(self, obj: Tracked) -> str:
        return exact(obj.view_count)

    def get_list_display(self, request: HttpRequest) -> Any:
        return [*super().get_list_display(request), "stored_views"]


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """An admin of rows that only the app writes."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_delete_permission = has_change_permission


@admin.register(FlushRun)
class FlushRunAdmin(ReadOnlyAdmin):
    """The records of flushes, newest first."""

    list_display = ("began", "kind", "time_taken", "read", "written", "settled", "lifted", "orphans", "locked", "error")

    @admin.display(description=_("started"), ordering="started")
    def began(self, run: FlushRun) -> str:
        """Returns the start with seconds, because flushes of one minute differ by them only."""
        started = template_localtime(run.started)
        return f"{date_format(started, 'SHORT_DATE_FORMAT')} {date_format(started, 'H:i:s')}"

    @admin.display(description=_("took"))
    def time_taken(self, run: FlushRun) -> timedelta | None:
        return run.took


@admin.register(Dashboard)
class DashboardAdmin(ReadOnlyAdmin):
    """The dashboard, in place of a list of rows."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_view_numbers(request.user)

    has_module_permission = has_view_permission

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Dashboard"),
            "opts": self.opts,
            "has_breadcrumb_list": django.VERSION >= (6, 1),
            **dashboard_context(request.GET.get("range", "")),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/readtrack/dashboard.html", context)
