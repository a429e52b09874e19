"""The app's configuration: the dashboard in the admin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from readtrack.parts import FormLink, PartConfig

if TYPE_CHECKING:
    from django.db.models import Model


class DashboardConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.numbers", "readtrack.dashboard"]`"""

    name = "readtrack.dashboard"
    label = "readtrack_dashboard"
    verbose_name = _("Dashboard")
    needs = ("readtrack.numbers",)
    shows_numbers = True

    def form_links(self, obj: "Model", user: Any, *, site: str) -> Sequence[FormLink]:
        from readtrack.access import may_view_numbers, numbers_url
        from readtrack.subjects import is_counted

        if not (is_counted(obj.__class__) and may_view_numbers(user, obj)):
            return ()
        return (FormLink(gettext("Numbers"), numbers_url(obj, site=site)),)
