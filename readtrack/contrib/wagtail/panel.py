"""The panel in the form of a page: its views, visitors and reads."""

from typing import Any

from django.db.models import Model
from django.utils.translation import gettext_lazy as _
from wagtail.admin.panels import Panel

from readtrack import numerals
from readtrack.contrib.wagtail.access import may_view_numbers, numbers_url
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.panel import numbers
from readtrack.subjects import is_counted, subject_of

DAYS = 30  # of the line
WIDTH = 300  # of the line, in pixels
HEIGHT = 40


class ReadTrackPanel(Panel):  # type: ignore[misc]  # Wagtail has no types
    """Shows the numbers of the page to those who may see them.

    The app adds it to the tab "Promote". A model with an `edit_handler` of its own names it where
    it wants it.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"heading": _("Page views"), "icon": "view", **options})

    class BoundPanel(Panel.BoundPanel):  # type: ignore[misc]
        """The panel of one page and one request."""

        template_name = "readtrack/wagtail/panel.html"

        def is_shown(self) -> bool:
            page = self.instance
            if page.pk is None or not is_counted(type(page)):
                return False
            return may_view_numbers(self.request.user, page)

        def get_context_data(self, parent_context: Any = None) -> Any:
            context = super().get_context_data(parent_context)
            page = self.instance
            views = views_by_day(page)
            return {
                **context,
                **numbers(subject_of(page), page),
                "line": line(views),
                "days": DAYS,
                "days_views": numerals.exact(sum(views)),
                "width": WIDTH,
                "height": HEIGHT,
                "url": numbers_url(self.request.user, page),
            }


def views_by_day(page: Model) -> list[int]:
    """Returns the views of the page on each of the last days, today last."""
    points = numbers_reports.series(page, by="day", hours=24 * DAYS)
    return [point.views for point in points[-DAYS:]]


def line(numbers_of_days: list[int]) -> str:
    """Returns the points of the line as SVG has them. The highest number reaches the upper edge."""
    highest = max(numbers_of_days, default=0) or 1
    step = WIDTH / max(1, len(numbers_of_days) - 1)
    points = []
    for index, number in enumerate(numbers_of_days):
        height = HEIGHT - number / highest * (HEIGHT - 2) - 1
        points.append(f"{index * step:.1f},{height:.1f}")
    return " ".join(points)
