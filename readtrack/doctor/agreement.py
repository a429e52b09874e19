"""Examines whether SQL and Redis hold the same counts."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from readtrack import buckets
from readtrack.conf import conf
from readtrack.doctor.findings import FLUSH, Context, Finding, counted, duration
from readtrack.doctor.flushes import LATE
from readtrack.sql import row_counts, runs
from readtrack.sql.runs import last_good
from readtrack.store import counters, scripts, server
from readtrack.store.counters import Total
from readtrack.subjects import rows_by_model

SHOWN = 3  # subjects
REMEMBERED = timedelta(hours=1)  # for which the minute buckets hold the views of each subject


def unsettled(context: Context) -> Iterator[Finding]:
    """Examines whether counters that began anew are given SQL's count."""
    found = server.unsettled()
    message = f"{counted(found.counters, 'counter')} without SQL's count"
    if not found.counters:
        yield Finding("ok", "Every counter includes SQL's count.")
    elif found.age > LATE * conf.FLUSH_INTERVAL:
        message = f"{message}, the oldest for {duration(timedelta(seconds=found.age))}."
        yield Finding("warning", message, f"Flushes add it. Run: {FLUSH}")
    else:
        yield Finding("ok", f"{message}. The next flush adds it.")


def epoch(context: Context) -> Iterator[Finding]:
    """Examines whether Redis has its data of the last flush."""
    if last_good() is None:
        yield Finding("ok", "No flush has succeeded yet, so Redis cannot have fallen behind SQL.")
        return
    # SQL is read first: a flush between the two reads advances Redis by one epoch, and Redis keeps the previous one.
    known = runs.known_epoch()
    if known in scripts.run(counters.epoch(), patient=True):
        yield Finding("ok", "Redis has its data of the last flush.")
    else:
        message = "Redis was emptied, or restored from a snapshot, since the last flush."
        yield Finding("warning", message, f"The next flush merges Redis and SQL. Run: {FLUSH}")


def drift(context: Context) -> Iterator[Finding]:
    """Compares totals with SQL. They may differ by the views since the last flush."""
    now = buckets.now()
    # Read first, because views from here on may be in the totals, and then are in the minute buckets.
    good = last_good()
    if good is None or now - good.began > REMEMBERED:
        message = "Redis and SQL cannot be compared, because no flush succeeded in the last hour."
        yield Finding("note", message, f"Run: {FLUSH}")
        return
    totals = {subject: total for subject, total in server.some_totals(context.sample).items() if total.is_settled}
    message = f"{counted(len(totals), 'total')} compared with SQL"
    if different := _different(totals, since=good.began):
        message = f"{message}, {len(different):,} different, such as {', '.join(different[:SHOWN])}."
        yield Finding("warning", message, f"Run: {FLUSH}")
    else:
        yield Finding("ok", f"{message}, none different.")


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
