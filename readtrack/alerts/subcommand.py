"""`manage.py readtrack alerts`."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import translation
from django.utils.timezone import localtime

from readtrack import buckets
from readtrack.alerts.models import Alert
from readtrack.alerts.run import preview, send_alerts
from readtrack.alerts.watching import stories_from
from readtrack.alerts.wording import subject_of
from readtrack.conf import conf
from readtrack.management.subcommands.base import Subcommand
from readtrack.store import connection

NOT_SET = (
    "READTRACK['ALERTS'] is empty, so nobody is told anything."
    " It needs at least {'site': 'https://www.example.com'}."
)


class Alerts(Subcommand):
    """Looks for what is unusual, and tells each alert once."""

    name = "alerts"
    help = """\
Looks for what is unusual, and tells it as ALERTS says. For cron, each minute; Celery's beat and the schedule do it.

  manage.py readtrack alerts --dry-run  # prints what it would tell now, and tells and stores nothing

It also tries again what could not be sent. Several may run at a time; each alert is told once.
"""
    needs_redis = False  # that Redis is gone is one of the alerts

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="print what would be told, and tell nothing"
        )

    def handle(self, *, dry_run: bool, **options: Any) -> str:
        if not conf.of_part("ALERTS"):
            raise CommandError(NOT_SET)
        alerts = _as_alerts() if dry_run else send_alerts()
        with translation.override(None):
            lines = [_line(alert) for alert in alerts]
        if not lines:
            lines.append("Nothing new.")
        if dry_run:
            lines += _remarks()
        return "\n".join(lines)


def _as_alerts() -> Sequence[Alert]:
    return [Alert(**sighting._asdict()) for sighting in preview()]


def _remarks() -> list[str]:
    """Returns why stories are not told yet, as a sentence; nothing if they are."""
    with suppress(connection.RedisError, OSError):  # which is told itself
        begin = stories_from(at=buckets.now())
        if begin is not None:
            clock = localtime(begin).strftime("%H:%M")
            return [f"Stories are told from {clock} on, when Redis has been watched for an hour."]
    return []


def _line(alert: Alert) -> str:
    """Returns the alert and the page to look at, in one line."""
    parts = [subject_of(alert), alert.details, alert.url]
    return ". ".join(part.removesuffix(".") for part in parts if part)
