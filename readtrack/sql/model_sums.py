"""The new visitors and the reads of whole models by the hour, as sums of those of their objects."""

from datetime import datetime

from django.db import transaction
from django.db.models import Max, Min

from readtrack import buckets
from readtrack.models import History
from readtrack.sql import databases
from readtrack.sql.epochs import lock_epoch
from readtrack.sql.history import BASELINE, Sums, of_reads, of_visitors, sums
from readtrack.sql.period_gains import gains_by_hour
from readtrack.store import keys
from readtrack.subjects import counted_models, label_of

# Hours whose sums are computed once more, because another flush may have written rows of them.
HOURS_AGAIN = 2
QUARTER = 92 * 24  # hours of history that one flush adds up at most


def renew_sums(*, at: datetime) -> None:
    """Brings the new visitors and the reads of each model by the hour up to now.

    The first time it adds up all history.
    """
    # A model has a subject in each partition, such as `blog.post:{rt00}`.
    label_of_subject = {
        f"{label}{tag}": label
        for label in map(label_of, counted_models())
        for tag in keys.past_tags()
    }
    rows = databases.rows(History).filter(subject__in=[*label_of_subject])
    with_history = rows.order_by().values_list("subject", flat=True).distinct()
    until = buckets.hour_index(at) + 1
    for label in sorted({label_of_subject[subject] for subject in with_history}):
        # Each call adds up one portion of the hours.
        while _add_sums(label, until=until):
            pass


def _add_sums(label: str, *, until: int) -> bool:
    """Adds up a quarter of a year at most. Returns False once everything is added up."""
    with transaction.atomic(using=databases.of(History).alias):
        lock_epoch()  # because another flush may do the same
        first = _first_hour(label)
        if first is None:
            return False
        end = min(until, first + QUARTER)
        stored = sums([of_visitors(label), of_reads(label)], since=first, until=end)
        visitors = gains_by_hour(f"{label}:%", since=first, until=end)
        # An import adds the visitors of all its views at once, to one hour. So an hour has no more
        # new visitors than views.
        new_visitors = {hour: min(counts) for hour, counts in visitors.items()}
        rows = _rows(of_visitors(label), stored, new_visitors, last=end - 1)
        reads = gains_by_hour(f"{of_reads(label)}:%", since=first, until=end)
        new_reads = {hour: counts.views for hour, counts in reads.items()}
        rows += _rows(of_reads(label), stored, new_reads, last=end - 1)
        databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)
    return end < until


def _first_hour(label: str) -> int | None:
    """Returns the first hour that is to be added up; None for a model without history."""
    past = databases.rows(History).filter(hour__gt=BASELINE)
    last: int | None = past.filter(subject=of_visitors(label)).aggregate(hour=Max("hour"))["hour"]
    if last:
        return last - HOURS_AGAIN
    views = past.filter(subject__in=[f"{label}{tag}" for tag in keys.past_tags()])
    first: int | None = views.aggregate(hour=Min("hour"))["hour"]
    return first


def _rows(
    subject: str, stored: dict[str, Sums], risen: dict[int, int], *, last: int
) -> list[tuple[str, int, int, int]]:
    """Returns the rows of history with absolute sums, up to the last hour."""
    rows = []
    total = stored[subject].before
    for hour in sorted({*risen, last}):
        total += risen.get(hour, 0)
        rows.append((subject, hour, total, 0))
    return rows
