"""One run of the alerts: look, store what is new, and tell what is due."""

from datetime import datetime

from django.core.exceptions import ImproperlyConfigured

from readtrack import buckets
from readtrack.alerts import records
from readtrack.alerts.channels import channels, tell
from readtrack.alerts.models import Alert
from readtrack.alerts.options import problems
from readtrack.alerts.records import Sighting
from readtrack.alerts.watching import look
from readtrack.conf import conf, logger


def send_alerts(*, at: datetime | None = None) -> list[Alert]:
    """Looks for what is unusual, and tells each alert once. Returns the alerts that are new.

    A try that fails is repeated by later runs. Does nothing without ALERTS. Raises
    ImproperlyConfigured for a setting that cannot be used.
    """
    if not conf.of_part("ALERTS"):
        return []
    check()
    now = buckets.now(at)
    try:
        return _begin_new(at=now)
    finally:
        # A look may have taken long, and the pauses of a delivery begin when it is tried.
        tell_due(at=buckets.now(at))


def _begin_new(*, at: datetime) -> list[Alert]:
    """Stores the alerts that are new, and that others are over. Returns those that are new."""
    seen = look(at=at)
    records.end(seen.over, at=at)
    begun = []
    for sighting in records.new_among(seen.sightings, at=at):
        alert = records.begin(sighting, channels=channels(), at=at)
        if alert is not None:
            begun.append(alert)
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
