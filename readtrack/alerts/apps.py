"""The app's configuration: what alerts add to readtrack."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from readtrack.parts import AdminLink, Check, Job, PartConfig

if TYPE_CHECKING:
    from readtrack.management.subcommands.base import Subcommand
    from readtrack.store.keys import Key

INTERVAL = 60.0  # seconds between two looks for what is unusual


class AlertsConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.alerts"]`"""

    name = "readtrack.alerts"
    label = "readtrack_alerts"
    verbose_name = _("Alerts")
    needs = ("readtrack.numbers",)
    setting = "ALERTS"
    setting_about = (
        'who is told what is unusual: {"site": "https://example.com" (or path of a function, as in'
        ' DIGEST), "mail": [addresses] (by default MANAGERS), "webhook": {"url": …, "secret": …},'
        ' "story": 5, "least": 30, "site_fall": 3}, or some of these with "site"; {}: nobody'
    )

    def checks(self) -> Sequence[Check]:
        from readtrack.alerts import checks

        return (checks.check_setting,)

    def keys(self) -> "Sequence[Key]":
        from readtrack.alerts import keys

        return (keys.since,)

    def subcommands(self) -> "Sequence[Subcommand]":
        from readtrack.alerts.subcommand import Alerts

        return (Alerts(),)

    def jobs(self) -> Sequence[Job]:
        from readtrack.conf import conf

        # It comes each minute, so a site that tells nobody is spared the tasks.
        if not conf.of_part("ALERTS"):
            return ()
        return (Job("send-alerts", INTERVAL, send_alerts),)

    def admin_links(self) -> Sequence[AdminLink]:
        from readtrack.conf import conf

        label = _("Alerts: on") if conf.of_part("ALERTS") else _("Alerts: off")
        return (AdminLink(label, "readtrack_alerts_alert_changelist", is_of_site=True),)


def send_alerts() -> None:
    """Looks for what is unusual, and tells each alert once. Repeats what could not be sent."""
    from readtrack.alerts import run

    run.send_alerts()
