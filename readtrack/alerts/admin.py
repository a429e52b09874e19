"""The alerts in the admin."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from readtrack.access import may_view_numbers
from readtrack.admin import ReadOnlyAdmin
from readtrack.alerts.models import Alert
from readtrack.texts import is_web


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    """The alerts, newest first."""

    fields = ("started", "ended", "kind", "page", "views", "usual_views", "minutes", "details")
    readonly_fields = ("page", "usual_views")
    list_display = fields
    list_filter = ("kind",)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Returns True also for those who see the numbers that the alerts are about."""
        return may_view_numbers(request.user) or super().has_view_permission(request, obj)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    @admin.display(description=_("usual"))
    def usual_views(self, alert: Alert) -> str | None:
        """Returns the usual views as a whole number; None for an alert that has none."""
        return alert.usual_text or None

    @admin.display(description=_("title"))
    def page(self, alert: Alert) -> str:
        """Returns the title, or the kind of an alert without one, with a link to the page to look
        at.
        """
        if not is_web(alert.url):
            return str(alert)
        return format_html('<a href="{}">{}</a>', alert.url, alert)
