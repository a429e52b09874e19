"""The app's configuration: the dashboard in the admin."""

from django.utils.translation import gettext_lazy as _

from readtrack.parts import PartConfig


class DashboardConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.numbers", "readtrack.dashboard"]`"""

    name = "readtrack.dashboard"
    label = "readtrack_dashboard"
    verbose_name = _("Dashboard")
    needs = ("readtrack.numbers",)
    shows_numbers = True
