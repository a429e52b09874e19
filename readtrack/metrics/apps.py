"""The app's configuration: what metrics add to readtrack."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.urls import path
from django.utils.translation import gettext_lazy as _

from readtrack.parts import Check, PartConfig

if TYPE_CHECKING:
    from django.urls import URLPattern

    from readtrack.management.subcommands.base import Subcommand
    from readtrack.store.keys import Key


class MetricsConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.metrics"]`"""

    name = "readtrack.metrics"
    label = "readtrack_metrics"
    verbose_name = _("Metrics")
    needs = ("readtrack.numbers",)
    setting = "METRICS"
    setting_about = (
        'who may read `metrics` below `readtrack.urls`: "token", "networks", or both, which then'
        " both have to fit; {}: nobody"
    )

    def checks(self) -> Sequence[Check]:
        from readtrack.metrics import checks

        return (checks.check_setting, checks.check_private_networks, checks.check_package)

    def keys(self) -> "Sequence[Key]":
        from readtrack.metrics import keys

        return (keys.weighed,)

    def subcommands(self) -> "Sequence[Subcommand]":
        from readtrack.metrics.subcommand import Budget

        return (Budget(),)

    def urls(self) -> "Sequence[URLPattern]":
        from readtrack.metrics import views

        return (path("metrics", views.metrics, name="metrics"),)
