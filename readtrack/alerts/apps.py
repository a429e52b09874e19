"""The app's configuration: what alerts add to readtrack."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db import DatabaseError, transaction
from django.utils.functional import lazy
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from readtrack.numerals import exact
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
        # Lazy, because it costs a query, and not everybody sees the link.
        label = lazy(_label_of_link, str)()
        url_name = "readtrack_alerts_alert_changelist"
        return (AdminLink(label, url_name, is_of_site=True, is_state=True),)


def _label_of_link() -> str:
    """Returns how many alerts are open; if there is none, whether anybody would be told."""
    from readtrack.alerts import records
    from readtrack.alerts.models import Alert
    from readtrack.conf import conf
    from readtrack.sql import databases, vendors

    if not conf.of_part("ALERTS"):
        return gettext("Alerts: off")
    try:
        with transaction.atomic(using=databases.of(Alert).alias):
            count = len(records.open_alerts())
    except DatabaseError as error:
        if not vendors.is_missing_table(error):
            raise
        return gettext("Alerts")  # a page does not fail for want of a migration
    if not count:
        return gettext("Alerts: on")
    text = ngettext("%(count)s open alert", "%(count)s open alerts", count)
    return text % {"count": exact(count)}


def send_alerts() -> None:
    """Looks for what is unusual, and tells each alert once. Repeats what could not be sent."""
    from readtrack.alerts import run

    run.send_alerts()
