"""Examines whether flushes run and succeed, and whether SQL and Redis hold the same counts."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain
from operator import itemgetter

from django.db.models import Count, Min

from readtrack import buckets, unread
from readtrack.conf import conf
from readtrack.doctor.findings import Context, Finding, counted, duration, finding
from readtrack.models import FlushRun, UnsentPublication
from readtrack.sql import databases, row_counts, runs
from readtrack.store import counters, server
from readtrack.store.counters import Total
from readtrack.subjects import rows_by_model, tracked_models

SHOWN = 3  # subjects
STATEMENT = 200  # characters of a statement that are shown
REMEMBERED = timedelta(hours=1)  # for which the minute buckets hold the views of each subject


def flushes(context: Context) -> Iterator[Finding]:
    """Examines when flushes ran, how they ended and how long they took."""
    now, last, good = buckets.now(), FlushRun.objects.first(), runs.last_good()
    if last is None:
        yield finding("flushes.none")
        return
    if last.error:
        yield finding("flushes.failed", last.error)
    if good is None:
        yield finding("flushes.never")
        return
    age, interval = now - good.began, timedelta(seconds=conf.FLUSH_INTERVAL)
    if age > runs.late_after():
        yield finding("flushes.late", duration(age))
        return
    yield finding("flushes.ok", duration(age))
    if good.took and good.took > interval:
        yield finding("flushes.slow", duration(good.took), duration(interval))


def outbox(context: Context) -> Finding:
    """Examines whether publications reach Redis."""
    waiting = [
        UnsentPublication.objects.using(alias).aggregate(number=Count("pk"), oldest=Min("written"))
        for alias in unread.outboxes()
    ]
    number = sum(found["number"] for found in waiting)
    if not number:
        return finding("outbox.empty")
    age = buckets.now() - min(buckets.now(found["oldest"]) for found in waiting if found["number"])
    kind = "late" if age > runs.late_after() else "waiting"
    return finding(f"outbox.{kind}", counted(number, "publication"), duration(age))


def locks(context: Context) -> Finding:
    """Examines whether another transaction keeps flushes from writing rows."""
    good = runs.last_good()
    if good is None or not good.locked:
        return finding("locks.none")
    left = counted(good.locked, "row")
    found = [lock for model in tracked_models() if (lock := databases.oldest_lock(model))]
    if not found:
        return finding("locks.waiting", left)
    session, age, statement = max(found, key=itemgetter(1))
    return finding("locks.held", left, session, duration(age), statement[:STATEMENT])


def totals(context: Context) -> Finding:
    """Looks for totals that are no numbers, which flushes and pages skip."""
    number, broken = server.broken_totals()
    if not broken:
        return finding("totals.ok", counted(number, "total"))
    return finding("totals.broken", counted(len(broken), "total"), ", ".join(broken[:SHOWN]))


def drift(context: Context) -> Finding:
    """Compares totals with SQL. They may differ by the views since the last flush."""
    # Read first, because views from here on may be in the totals, and then are in the minute buckets.
    now, good = buckets.now(), runs.last_good()
    if good is None or now - good.began > REMEMBERED:
        return finding("drift.unknown")
    totals = {subject: total for subject, total in server.some_totals(context.sample).items() if total.is_settled}
    compared = counted(len(totals), "total")
    if different := _different(totals, since=good.began):
        return finding("drift.some", compared, len(different), ", ".join(different[:SHOWN]))
    return finding("drift.none", compared)


def _different(totals: Mapping[str, Total], *, since: datetime) -> list[str]:
    """Returns the subjects whose count in SQL is higher, or lower although there was no view since then."""
    if not totals:
        return []
    stored: dict[str, int] = {}
    for model, rows in rows_by_model(totals).items():
        stored.update((rows[pk], row.views) for pk, row in row_counts.stored(model, list(rows)).items())
    now = buckets.now() + buckets.MINUTE  # because the web servers' clocks, which name the buckets, may be fast
    minutes = buckets.minute_starts(int((now - since) / buckets.MINUTE) + 2, until=now)
    viewed = set(chain.from_iterable(counters.changed(minutes)))
    behind = {subject: totals[subject].views - count for subject, count in stored.items()}
    return [subject for subject, views in behind.items() if views < 0 or (views > 0 and subject not in viewed)]
