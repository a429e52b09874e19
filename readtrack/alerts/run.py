"""One run of the alerts: look, store what is new, and tell what is due."""

from datetime import datetime

from django.core.exceptions import ImproperlyConfigured

from readtrack import buckets
from readtrack.alert_settings import problems
from readtrack.alerts import records
from readtrack.alerts.channels import channels, tell
from readtrack.alerts.records import Sighting
from readtrack.alerts.watching import look
from readtrack.conf import conf, logger
from readtrack.models import Alert


def send_alerts(*, at: datetime | None = None) -> list[Alert]:
    """Looks for what is unusual, and tells each alert once. Returns the alerts that are new.

    A try that fails is repeated by later runs. Does nothing without ALERTS. Raises
    ImproperlyConfigured for a setting that cannot be used.
    """
    if not conf.ALERTS:
        return []
    check()
    now = buckets.now(at)
    seen = look(at=now)
    records.end(seen.over, at=now)
    begun = []
    for sighting in records.new_among(seen.sightings, at=now):
        alert = records.begin(sighting, channels=channels(), at=now)
        if alert is not None:
            begun.append(alert)
    tell_due(at=now)
    return begun


def tell_due(*, at: datetime) -> None:
    """Tells what is due, in each channel by itself."""
    for delivery in records.claimed(at=at):
        error = tell(delivery.alert, delivery.channel)
        if not error:
            records.note_sent(delivery, at=at)
            continue
        words = "was given up" if records.note_failure(delivery, error) else "is tried again"
        logger.warning(
            "The %s of alert %d %s: %s", delivery.channel, delivery.alert_id, words, error
        )


def preview(*, at: datetime | None = None) -> list[Sighting]:
    """Returns what `send_alerts` would tell. Stores and sends nothing."""
    check()
    now = buckets.now(at)
    return records.new_among(look(at=now).sightings, at=now)


def check() -> None:
    """Raises ImproperlyConfigured for a setting that cannot be used."""
    if problems():
        raise ImproperlyConfigured(f"READTRACK['ALERTS'] cannot be used: {'; '.join(problems())}.")
