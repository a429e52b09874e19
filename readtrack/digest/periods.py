"""The days that a digest is about, and the time when it is due."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo

from django.utils.timezone import get_default_timezone

from readtrack import buckets
from readtrack.digest.options import Every
from readtrack.numbers import local_time

DUE_AT = time(7)  # on the morning after the last day, where the reader is
# A digest that could not be sent in this time after it was due is left out. So a site that turns
# the digest on, and a user who becomes an editor, get the first one on the next morning that has
# one.
LATEST = timedelta(days=1)
# The time zones that are the furthest from UTC.
EARLIEST_ZONE = timezone(timedelta(hours=14))
LATEST_ZONE = timezone(timedelta(hours=-12))


@dataclass(frozen=True, slots=True)
class DigestPeriod:
    """The days of a digest. Both are days of TIME_ZONE, by which visitors are counted."""

    first_day: date
    last_day: date

    @property
    def is_day(self) -> bool:
        """Returns True for a single day, False for a week."""
        return self.first_day == self.last_day

    @property
    def parameters(self) -> dict[str, str]:
        """Returns the parameters of the dashboard's address for these days."""
        return {"from": self.first_day.isoformat(), "to": self.last_day.isoformat()}

    @property
    def end(self) -> datetime:
        """Returns when the last day is over."""
        return local_time.day_start(self._morning, zone=get_default_timezone())

    @property
    def _morning(self) -> date:
        return self.last_day + buckets.DAY

    def due(self, zone: tzinfo) -> datetime:
        """Returns when the digest is due in the time zone of a reader."""
        # Where the sun rises earlier than on the site, the days are not over at seven o'clock.
        return max(self.end, local_time.at_clock(self._morning, DUE_AT, zone=zone))

    def is_due(self, zone: tzinfo, *, at: datetime) -> bool:
        """Returns True if the digest is to be sent now to a reader in the time zone."""
        due = self.due(zone)
        return due <= at < due + LATEST

    def may_be_due(self, *, at: datetime) -> bool:
        """Returns False if the digest is due nowhere on earth, so that nobody need be asked."""
        return self.due(EARLIEST_ZONE) <= at < self.due(LATEST_ZONE) + LATEST


def periods_of(every: Every, *, at: datetime) -> list[DigestPeriod]:
    """Returns the periods whose digests may be due at `at`, the earlier one first.

    They are two days, because a day of the site may be over before the morning after the day before
    comes where the reader is.
    """
    earlier = last_period(every, at=at - LATEST)
    last = last_period(every, at=at)
    periods = [last] if earlier == last else [earlier, last]
    return [period for period in periods if period.may_be_due(at=at)]


def next_due(every: Every, zone: tzinfo, *, at: datetime) -> datetime:
    """Returns when the next digest is due to readers in the time zone, after that time."""
    due = last_period(every, at=at).due(zone)
    if due > at:
        return due
    length = buckets.DAY if every == "day" else buckets.WEEK
    return last_period(every, at=at + length).due(zone)


def last_period(every: Every, *, at: datetime) -> DigestPeriod:
    """Returns the last day that is over at `at`, or the last week from Monday to Sunday."""
    today = local_time.day_of(at, zone=get_default_timezone())
    if every == "day":
        yesterday = today - buckets.DAY
        return DigestPeriod(yesterday, yesterday)
    monday = local_time.first_day(today, by="week")
    return DigestPeriod(monday - buckets.WEEK, monday - buckets.DAY)
