"""The app's configuration: the dashboard in the admin."""

from collections.abc import Sequence

from django.utils.translation import gettext_lazy as _

from readtrack.parts import Check, PartConfig


class DashboardConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.numbers", "readtrack.dashboard"]`"""

    name = "readtrack.dashboard"
    label = "readtrack_dashboard"
    verbose_name = _("Dashboard")
    needs = ("readtrack.numbers",)
    shows_numbers = True

    def checks(self) -> Sequence[Check]:
        from readtrack.dashboard import checks

        return (checks.check_package,)
