"""The item of Wagtail's user bar."""

from typing import Any

from django.db.models import Model
from django.template.loader import render_to_string
from django.urls import reverse
from wagtail import VERSION

from readtrack.contrib.wagtail.access import may_view_numbers, numbers_url


class _Item:
    """What the views of a page are in the user bar."""

    def __init__(self, page: Model) -> None:
        self.page = page

    def render_html(self, parent_context: Any) -> str:
        """Returns the item as HTML, as Wagtail asks for it since 7.3."""
        return self._html(parent_context.get("request"))

    def _html(self, request: Any) -> str:
        """Returns the item: the page's views, and a link to where the user sees more."""
        url = numbers_url(request.user, self.page) or self._wagtail_url(request.user)
        context = {"page": self.page, "url": request.build_absolute_uri(url)}
        return render_to_string("readtrack/wagtail/userbar_item.html", context, request=request)

    def _wagtail_url(self, user: Any) -> str:
        """Returns the URL of the report, or of the page's form for those who may not see the
        report.
        """
        if may_view_numbers(user):
            return reverse("readtrack_page_views")
        return reverse("wagtailadmin_pages:edit", args=[self.page.pk])


class _OldItem(_Item):
    """The same for Wagtail 7.0 to 7.2. A later one warns of an item with the method `render`."""

    def render(self, request: Any) -> str:
        """Returns the item as HTML."""
        return self._html(request)


ViewsItem = _OldItem if VERSION < (7, 3) else _Item
