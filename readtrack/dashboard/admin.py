"""The dashboard in the admin."""

from typing import TYPE_CHECKING, Any

import django
from django.apps import apps
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from readtrack import parts
from readtrack.access import may_view_numbers
from readtrack.admin import AdminEntry, ReadOnlyAdmin
from readtrack.subjects import author_of
from readtrack.texts import address_of, name_of, title_of

if TYPE_CHECKING:
    from readtrack.numbers.scope import Scope


class Dashboard(AdminEntry):
    """The dashboard. It is listed with the core, and no table of a part."""

    class Meta(AdminEntry.Meta):
        verbose_name = _("dashboard")
        verbose_name_plural = _("dashboard")


@admin.register(Dashboard)
class DashboardAdmin(ReadOnlyAdmin):
    """The dashboard. It takes the place of the list of rows, because its model has no rows."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_view_numbers(request.user)

    has_module_permission = has_view_permission

    def get_urls(self) -> list[Any]:
        object_view = self.admin_site.admin_view(self.object_view)
        author_view = self.admin_site.admin_view(self.author_view)
        page = self.admin_site.admin_view(self.changelist_view)
        return [
            path("", page, name="readtrack_dashboard_changelist"),
            path("object/<str:subject>/", object_view, name="readtrack_object"),
            path("author/", author_view, name="readtrack_author"),
            *(
                pattern
                for part in parts.installed()
                for pattern in part.admin_urls(self.admin_site)
            ),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Returns the dashboard of the whole site, or redirects to the page of a chosen object."""
        from readtrack.numbers.scope import Scope

        if not self.has_view_permission(request):
            raise PermissionDenied  # before the links of parts, some of which cost a query
        subject = Scope.parse(request.GET).chosen.get("object", "")
        if subject:
            parameters = request.GET.copy()
            del parameters["object"]
            return redirect(f"{self._url('readtrack_object', subject)}?{parameters.urlencode()}")
        context = {
            "title": gettext("Dashboard"),
            **self._links_of_parts(sees_all=True),
            **(extra_context or {}),
        }
        return self._page(request, {}, may_see=False, **context)

    def object_view(self, request: HttpRequest, subject: str) -> Any:
        """Returns the dashboard of one object, with links to its page and to its author's report.

        `subject` comes from the address, so it may be invalid. Raises Http404 then, or
        PermissionDenied for a user who may not see all numbers.
        """
        from readtrack.numbers.objects import with_links
        from readtrack.numbers.published import published_at
        from readtrack.numbers.scope import Scope

        scope = Scope.parse({"object": subject})
        valid_subject = scope.chosen.get("object", "")
        obj = None
        if valid_subject:
            obj = with_links(scope.rows(scope.models[0])).first()
        may_see = obj is not None and may_view_numbers(request.user, obj)
        if not (may_see or self.has_view_permission(request)):
            raise PermissionDenied  # not Http404, which would tell whether the object exists
        if obj is None:
            raise Http404
        fixed = {"object": valid_subject}
        scope_of_page = Scope.parse(request.GET, fixed=fixed, published=published_at(obj))
        links = [
            (gettext("View on site"), address_of(obj)),
            (gettext("All by this author"), self._author_numbers_url(request, obj, scope_of_page)),
        ]
        return self._page(
            request,
            fixed,
            may_see=may_see,
            obj=obj,
            title=title_of(obj),
            links=[(label, url) for label, url in links if url],
        )

    def _author_numbers_url(self, request: HttpRequest, obj: models.Model, scope: "Scope") -> str:
        """Returns the address of the page with the numbers of all that the object's author wrote.

        Staff get the dashboard filtered by the author, in the period and with the filter of the
        scope. The author gets the page of their own numbers. For anybody else it is "".
        """
        from readtrack.numbers.access import may_view_report_of

        author = author_of(obj, of_counts=True)
        if author and self.has_view_permission(request):
            address = scope.address_of_many(author=author)
            return self._url("readtrack_dashboard_changelist") + address
        if may_view_report_of(request.user, author):
            return self._url("readtrack_author") + scope.address_of_many()
        return ""

    def _url(self, view_name: str, *args: str) -> str:
        return reverse(f"admin:{view_name}", args=args, current_app=self.admin_site.name)

    def author_view(self, request: HttpRequest) -> Any:
        """Returns the dashboard of what the user has written.

        Whether the user may see it is decided by `readtrack.access`.
        """
        from readtrack.numbers.access import may_view_report_of

        title = gettext("Numbers of %(author)s") % {"author": name_of(request.user)}
        author = str(request.user.pk)
        may_see = may_view_report_of(request.user, author)
        return self._page(
            request,
            {"author": author},
            may_see=may_see,
            title=title,
            **self._links_of_parts(sees_all=self.has_view_permission(request)),
        )

    def _links_of_parts(self, *, sees_all: bool) -> dict[str, Any]:
        """Returns the links that parts add, for users who may see all numbers or not: those that
        tell a state, and more.
        """
        links: list[tuple[str, str]] = []
        more_links: list[tuple[str, str]] = []
        for part in parts.installed():
            for link in part.admin_links():
                if sees_all or not link.is_of_site:
                    place = links if link.is_state else more_links
                    place.append((str(link.label), self._url(link.url_name)))
        return {"links": links, "more_links": more_links}

    def _page(
        self,
        request: HttpRequest,
        fixed: dict[str, str],
        *,
        may_see: bool,
        obj: models.Model | None = None,
        **context: Any,
    ) -> HttpResponseBase:
        """Returns the page of the scope in the address, or one of its tables as a file.

        `fixed` are the filters that the page sets by itself, such as `{"object": "blog.post:42"}`.
        With `may_see` the user may see the page. Otherwise it is for users who may see all numbers:
        raises PermissionDenied for other users.
        """
        from readtrack.dashboard.exports import export
        from readtrack.dashboard.page import page_context
        from readtrack.dashboard.panels import FILES
        from readtrack.numbers.published import published_at
        from readtrack.numbers.scope import Scope

        sees_all = self.has_view_permission(request)
        if not (sees_all or may_see):
            raise PermissionDenied
        published = published_at(obj) if obj else None
        scope = Scope.parse(request.GET, fixed=fixed, published=published)
        options = {"sees_all": sees_all, "obj": obj}
        file_format = request.GET.get("format")
        if file_format in FILES:
            return export(scope, request.GET.get("table", ""), file_format, **options)
        site = self.admin_site.name
        request.current_app = site  # for the template's addresses, too
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "app_name": apps.get_app_config(self.opts.app_label).verbose_name,
            "has_breadcrumb_list": django.VERSION >= (6, 1),
            "sees_all": sees_all,
            **context,
            **page_context(
                scope,
                request.GET.get("tab", ""),
                series=request.GET.get("series", ""),
                given=request.GET,
                site=site,
                **options,
            ),
        }
        if not context["is_overview"] and obj is None:
            context["title"] = context["tab_title"]
        template = "story.html" if "object" in fixed else "dashboard.html"
        return TemplateResponse(request, f"admin/readtrack/{template}", context)
