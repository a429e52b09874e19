"""The rows of alerts: each is begun once, whoever sees it, and each of its deliveries is tried by
one process at a time.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, NamedTuple

from django.db import IntegrityError
from django.db.models import F

from readtrack import buckets
from readtrack.alerts.models import Alert, AlertDelivery
from readtrack.numbers.published import value_of_time
from readtrack.sql import databases
from readtrack.subjects import subject_column

# The time from one alert to the next one about the same thing.
AGAIN = {
    Alert.Kind.STORY: timedelta(days=1),
    Alert.Kind.SITE: timedelta(hours=6),
    Alert.Kind.FLUSH: timedelta(hours=1),
    Alert.Kind.REDIS: timedelta(hours=1),
}
MOST_STORIES = 10  # in an hour, because robots may view thousands of stories at once
KEPT = timedelta(days=90)  # for which rows are kept after their alert is over
# Minutes from each try to the next one; after the last one it is given up.
PAUSES = (1, 5, 30, 120, 300, 600)


class Sighting(NamedTuple):
    """Something unusual that was seen."""

    kind: Alert.Kind
    subject: str = ""  # of a story
    title: str = ""
    views: int | None = None
    usual: float | None = None
    minutes: int | None = None
    details: str = ""
    url: str = ""

    @property
    def name(self) -> str:
        """The name of what it is about."""
        return name_of(self.kind, self.subject)


def name_of(kind: Alert.Kind, subject: str = "") -> str:
    """Returns the name of what an alert is about: its kind, and the subject of a story."""
    return f"{kind.value}:{subject_column(subject)}"


def open_alerts() -> list[Alert]:
    """Returns the alerts that are not over."""
    return [*databases.rows(Alert).filter(is_open=True)]


def last_end(kind: Alert.Kind) -> datetime | None:
    """Returns when the last alert of that kind was over; None if none is."""
    ended = databases.rows(Alert).filter(name=name_of(kind), ended__isnull=False)
    last = ended.order_by("-ended").values_list("ended", flat=True).first()
    return None if last is None else buckets.now(last)


def new_among(sightings: Iterable[Sighting], *, at: datetime) -> list[Sighting]:
    """Returns those that have to be told: not those that are open, or were told a short while ago.

    Stories are in the order in which they are given, as many as may be told in an hour.
    """
    left = MOST_STORIES - _begun_since(at - buckets.HOUR, kind=Alert.Kind.STORY)
    new = []
    for sighting in sightings:
        if not _is_new(sighting, at=at):
            continue
        if sighting.kind == Alert.Kind.STORY:
            left -= 1
        if sighting.kind != Alert.Kind.STORY or left >= 0:
            new.append(sighting)
    return new


def _begun_since(time: datetime, **filters: Any) -> int:
    since = value_of_time(Alert._meta.get_field("started"), time)
    return databases.rows(Alert).filter(started__gt=since, **filters).count()


def _is_new(sighting: Sighting, *, at: datetime) -> bool:
    if databases.rows(Alert).filter(name=sighting.name, is_open=True).exists():
        return False
    return not _begun_since(at - AGAIN[sighting.kind], name=sighting.name)


def begin(
    sighting: Sighting, *, channels: Sequence[AlertDelivery.Channel], at: datetime
) -> Alert | None:
    """Stores an alert, and that it has to be told in these channels. Returns None if another
    process has begun it.
    """
    connection = databases.of(Alert)
    now = value_of_time(Alert._meta.get_field("started"), at)
    alert = Alert(**sighting._asdict(), name=sighting.name, started=now)
    try:
        with databases.own_transaction(connection):
            alert.save(force_insert=True, using=connection.alias)
            deliveries = [AlertDelivery(alert=alert, channel=way, due=now) for way in channels]
            databases.rows(AlertDelivery).bulk_create(deliveries)
    except IntegrityError:
        return None
    return alert


def end(alerts: Collection[Alert], *, at: datetime) -> None:
    """Ends the alerts, and deletes those that were over long ago."""
    if not alerts:
        return
    field = Alert._meta.get_field("ended")
    rows = databases.rows(Alert)
    of_these = rows.filter(pk__in=[alert.pk for alert in alerts], is_open=True)
    of_these.update(is_open=None, ended=value_of_time(field, at))
    rows.filter(ended__lt=value_of_time(field, at - KEPT)).delete()


def claimed(*, at: datetime) -> Iterator[AlertDelivery]:
    """Yields the deliveries that are due, those of the oldest alerts first, and which no other
    process tries.

    Each of them is due again after a pause, also if this process is killed.
    """
    field = AlertDelivery._meta.get_field("due")
    now = value_of_time(field, at)
    began = monotonic()
    due = databases.rows(AlertDelivery).filter(due__lte=now).select_related("alert")
    for delivery in due.order_by("alert", "pk"):
        pause = PAUSES[min(delivery.tries, len(PAUSES) - 1)]
        row = databases.rows(AlertDelivery).filter(pk=delivery.pk, due=delivery.due)
        # Those before it may have taken long.
        present = at + timedelta(seconds=monotonic() - began)
        later = value_of_time(field, present + pause * buckets.MINUTE)
        if row.update(due=later, tries=F("tries") + 1):
            delivery.tries += 1
            yield delivery


def note_sent(delivery: AlertDelivery, *, at: datetime) -> None:
    """Notes that the alert was told in this channel."""
    row = databases.rows(AlertDelivery).filter(pk=delivery.pk)
    row.update(sent=value_of_time(AlertDelivery._meta.get_field("sent"), at), due=None, error="")


def note_failure(delivery: AlertDelivery, error: str) -> bool:
    """Notes that a try failed. Returns True if it was the last one."""
    is_last = delivery.tries > len(PAUSES)
    values: dict[str, Any] = {"error": error}
    if is_last:
        values["due"] = None
    databases.rows(AlertDelivery).filter(pk=delivery.pk).update(**values)
    return is_last
