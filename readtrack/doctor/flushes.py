"""Examines whether flushes run and succeed, and whether SQL and Redis hold the same counts."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from operator import itemgetter

from django.db.models import Count, Min

from readtrack import buckets
from readtrack.conf import conf
from readtrack.doctor.findings import FLUSH, Context, Finding, counted, duration
from readtrack.models import FlushRun, UnsentPublication
from readtrack.sql import databases, row_counts, runs
from readtrack.store import server
from readtrack.store.counters import Total
from readtrack.subjects import rows_by_model, tracked_models
from readtrack.unread import publishing

SHOWN = 3  # subjects
STATEMENT = 200  # characters of a statement that are shown
REMEMBERED = timedelta(hours=1)  # for which the minute buckets hold the views of each subject
START_BEAT = (
    "Are Celery's worker and beat running, with readtrack_schedule in CELERY_BEAT_SCHEDULE?"
    f" Without Celery, let cron run: {FLUSH}"
)


def flushes(context: Context) -> Iterator[Finding]:
    """Examines when flushes ran, how they ended and how long they took."""
    now, last, good = buckets.now(), FlushRun.objects.first(), runs.last_good()
    if last is None:
        yield Finding("warning", "No flush has run yet.", START_BEAT)
        return
    if last.error:
        hint = f"Run {FLUSH}, and see whether it fails again."
        yield Finding("error", f"The last flush failed: {last.error}", hint)
    if good is None:
        yield Finding("error", "No flush has succeeded yet.", START_BEAT)
        return
    message = f"The last successful flush began {duration(now - good.began)} ago."
    if now - good.began > runs.late_after():
        yield Finding("error", message, START_BEAT)
        return
    yield Finding("ok", message)
    interval = timedelta(seconds=conf.FLUSH_INTERVAL)
    if good.took and good.took > interval:
        message = f"It took {duration(good.took)}, longer than the interval of {duration(interval)}."
        yield Finding("warning", message, "Flush less often, and set READTRACK['FLUSH_INTERVAL'] to the new interval.")


def outbox(context: Context) -> Finding:
    """Examines whether publications reach Redis."""
    waiting = [
        UnsentPublication.objects.using(alias).aggregate(number=Count("pk"), oldest=Min("written"))
        for alias in publishing.outboxes()
    ]
    number = sum(found["number"] for found in waiting)
    if not number:
        return Finding("ok", "Every publication has reached Redis.")
    age = buckets.now() - min(buckets.now(found["oldest"]) for found in waiting if found["number"])
    message = f"{counted(number, 'publication')} not sent to Redis yet, the oldest for {duration(age)}"
    if age > runs.late_after():
        return Finding("warning", f"{message}. Their dots are off.", f"Flushes send them. Run: {FLUSH}")
    return Finding("ok", f"{message}. The next flush sends them.")


def locks(context: Context) -> Finding:
    """Examines whether another transaction keeps flushes from writing rows."""
    good = runs.last_good()
    if good is None or not good.locked:
        return Finding("ok", "The last flush found no row locked.")
    found = [lock for model in tracked_models() if (lock := databases.oldest_lock(model))]
    message = f"The last flush left {counted(good.locked, 'row')} of which another transaction has a lock"
    if not found:
        return Finding("ok", f"{message}. The next flush writes them.")
    session, age, statement = max(found, key=itemgetter(1))
    message = f"{message}: session {session}, open for {duration(age)}, last statement: {statement[:STATEMENT]}"
    hint = f"Let it commit. If it hangs, end session {session}: pg_terminate_backend({session}); MySQL: KILL {session}."
    return Finding("warning", message, hint)


def totals(context: Context) -> Finding:
    """Looks for totals that are no numbers, which flushes and pages skip."""
    number, broken = server.broken_totals()
    if not broken:
        return Finding("ok", f"{counted(number, 'total')} looked at, and all of them are numbers.")
    message = f"Not a number in Redis: {counted(len(broken), 'total')}, such as {', '.join(broken[:SHOWN])}."
    hint = "Its views do not count, and pages show SQL's. Delete the key in Redis: it then goes on from SQL's."
    return Finding("error", message, hint)


def drift(context: Context) -> Finding:
    """Compares totals with SQL. They may differ by the views since the last flush."""
    # Read first, because views from here on may be in the totals, and then are in the minute buckets.
    now, good = buckets.now(), runs.last_good()
    if good is None or now - good.began > REMEMBERED:
        message = "Redis and SQL cannot be compared, because no flush succeeded in the last hour."
        return Finding("note", message, f"Run: {FLUSH}")
    totals = {subject: total for subject, total in server.some_totals(context.sample).items() if total.is_settled}
    message = f"{counted(len(totals), 'total')} compared with SQL"
    if different := _different(totals, since=good.began):
        message = f"{message}, {len(different):,} different, such as {', '.join(different[:SHOWN])}."
        return Finding("warning", message, f"Run: {FLUSH}")
    return Finding("ok", f"{message}, none different.")


def _different(totals: Mapping[str, Total], *, since: datetime) -> list[str]:
    """Returns the subjects whose count in SQL is higher, or lower by more than the views since then."""
    if not totals:
        return []
    stored: dict[str, int] = {}
    for model, rows in rows_by_model(totals).items():
        stored.update((rows[pk], row.views) for pk, row in row_counts.stored(model, list(rows)).items())
    now = buckets.now() + buckets.MINUTE  # because the web servers' clocks, which name the buckets, may be fast
    minutes = buckets.minute_starts(int((now - since) / buckets.MINUTE) + 2, until=now)
    recent = server.recent(list(totals), minutes=minutes)
    return [subject for subject, count in stored.items() if not 0 <= totals[subject].views - count <= recent[subject]]
