"""What Wagtail calls: when it serves a page, and when it makes its admin and its user bar."""

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import Permission
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from wagtail import hooks
from wagtail.admin.menu import MenuItem

from readtrack.contrib.wagtail.access import may_view_numbers
from readtrack.contrib.wagtail.counting import announce
from readtrack.contrib.wagtail.report import PageViewsView
from readtrack.contrib.wagtail.userbar import ViewsItem
from readtrack.subjects import is_counted

Serve = Callable[..., HttpResponseBase]


# Within Wagtail's own hook, which answers with a form in place of a private page.
@hooks.register("on_serve_page", order=1000)
def count_served_page(serve_page: Serve) -> Serve:
    """Counts a view of the page that is served."""

    def serve(page: Any, request: HttpRequest, args: Any, kwargs: Any) -> HttpResponseBase:
        response = serve_page(page, request, args, kwargs)
        announce(page, request, response)
        return response

    return serve


@hooks.register("register_admin_urls")
def urls_of_report() -> list[URLPattern]:
    """Returns the URLs of the report."""
    return [
        path("reports/page-views/", PageViewsView.as_view(), name="readtrack_page_views"),
        path(
            "reports/page-views/results/",
            PageViewsView.as_view(results_only=True),
            name="readtrack_page_views_results",
        ),
    ]


class ReportMenuItem(MenuItem):  # type: ignore[misc]  # Wagtail has no types
    """The entry of the report, for those who may see numbers."""

    def is_shown(self, request: HttpRequest) -> bool:
        return may_view_numbers(request.user)


@hooks.register("register_reports_menu_item")
def menu_item_of_report() -> ReportMenuItem:
    """Returns the entry of the menu "Reports"."""
    url = reverse("readtrack_page_views")
    return ReportMenuItem(_("Page views"), url, name="page-views", icon_name="view", order=100)


@hooks.register("register_permissions")
def permission_to_view_numbers() -> "QuerySet[Permission]":
    """Returns the permission that a group may be given in Wagtail's settings."""
    return Permission.objects.filter(content_type__app_label="readtrack", codename="view_numbers")


@hooks.register("construct_wagtail_userbar")
def add_views_to_userbar(request: HttpRequest, items: list[Any], page: Any) -> None:
    """Adds the views of the page to the user bar, for those who may see its numbers."""
    if page is None or page.pk is None or not is_counted(type(page)):
        return
    if may_view_numbers(request.user, page):
        items.append(ViewsItem(page))
