"""The page of the admin that says who has read an object."""

from typing import Any

import django
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.translation import gettext

from readtrack.admin import AdminEntry, ReadOnlyAdmin, form_url
from readtrack.audience.access import may_view_readers
from readtrack.texts import title_of


class Readers(AdminEntry):
    """The entry of the readers of an object, in no list of apps, because it is of one object."""

    class Meta(AdminEntry.Meta):
        verbose_name = verbose_name_plural = "readers"


@admin.register(Readers)
class ReadersAdmin(ReadOnlyAdmin):
    """The page of each object, to which its form leads."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return False

    def get_urls(self) -> list[Any]:
        readers_view = self.admin_site.admin_view(self.readers_view)
        return [path("<str:subject>/", readers_view, name="readtrack_readers")]

    def readers_view(self, request: HttpRequest, subject: str) -> HttpResponseBase:
        """Returns the page that says which users have read an object.

        `subject` comes from the address, so it may be invalid. Raises Http404 then, and for an
        object without read state; PermissionDenied for a user without the permission.
        """
        from readtrack.audience import page

        if not may_view_readers(request.user):
            raise PermissionDenied  # not Http404, which would tell whether the object exists
        category = page.category_with(subject)
        if category is None:
            raise Http404
        request.current_app = self.admin_site.name  # for the template's addresses, too
        context = {
            **self.admin_site.each_context(request),
            "has_breadcrumb_list": django.VERSION >= (6, 1),
            "title": gettext("Who has read it"),
            "subtitle": title_of(category),
            "form_url": form_url(category, admin_site=self.admin_site, request=request),
            **page.page_context(category, request.GET),
        }
        return TemplateResponse(request, "admin/readtrack/readers.html", context)
