"""Whether the counts reach SQL, and are the same there."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from django.apps import apps
from django.db import connections, router
from django.db.migrations.executor import MigrationExecutor

from readtrack import buckets, lineage, snapshots, subjects
from readtrack.doctor.findings import Finding, Order
from readtrack.models import FlushRun
from readtrack.schedule import FLUSH_EVERY
from readtrack.store import counters, scripts, server
from readtrack.store.counters import Total

INTERVAL = timedelta(seconds=FLUSH_EVERY)
LATE = 3 * INTERVAL  # one tick may be dropped, and one flush take its time
REMEMBERED = timedelta(hours=1)  # that the minute buckets tell views of

UNITS = ((86_400, "days"), (3600, "h"), (60, "min"))
FLUSH_NOW = "Run: manage.py readtrack flush"
START_BEAT = "Are Celery's worker and beat running, with readtrack_schedule in CELERY_BEAT_SCHEDULE? Or cron with: "


def migrations(order: Order) -> Iterator[Finding]:
    """Whether the tables are as the models have them."""
    labels = {"readtrack", *(model._meta.app_label for model in subjects.tracked_models())}
    models = [model for label in labels for model in apps.get_app_config(label).get_models()]
    for alias in {router.db_for_write(model) for model in models}:
        executor = MigrationExecutor(connections[alias])
        targets = [node for node in executor.loader.graph.leaf_nodes() if node[0] in labels]
        if missing := [f"{one.app_label}.{one.name}" for one, _ in executor.migration_plan(targets)]:
            hint = f"Run: manage.py migrate --database {alias}"
            yield Finding("error", f"The database '{alias}' lacks {', '.join(missing)}.", hint)
        else:
            yield Finding("ok", f"The database '{alias}' has every migration.")


def beat(order: Order) -> Iterator[Finding]:
    """Whether flushes run, and end well."""
    now, last = buckets.now(), FlushRun.objects.first()
    if last is None:
        yield Finding("warning", "Nothing was ever flushed.", START_BEAT + "manage.py readtrack flush")
        return
    good = FlushRun.objects.filter(ended__isnull=False, error="").first()
    if last.error:
        yield Finding("error", f"The last flush failed: {last.error}", f"{FLUSH_NOW}, and see whether it fails again.")
    if good is None or now - good.started > LATE:
        since = f"{_words(now - good.started)} ago" if good else "never"
        yield Finding(
            "error", f"The last flush that ended well began {since}.", START_BEAT + "manage.py readtrack flush"
        )
        return
    yield Finding("ok", f"The last flush that ended well began {_words(now - good.started)} ago.")
    if good.took and good.took > INTERVAL:
        yield Finding("warning", f"It took {_words(good.took)}, longer than the interval.", "Flush less often.")
    recent = FlushRun.objects.filter(started__gt=now - 10 * INTERVAL).count()
    if recent > 25:
        hint = "Harmless, but is a second beat running? Keep one."
        yield Finding("note", f"{recent} flushes ran in the last ten intervals.", hint)


def marks(order: Order) -> Iterator[Finding]:
    """Whether totals get their base."""
    found = server.marks()
    if found.oldest > LATE.total_seconds():
        message = f"{found.totals:,} totals lack SQL's base, the oldest for {_words(timedelta(seconds=found.oldest))}."
        yield Finding("warning", message, FLUSH_NOW)
    else:
        yield Finding("ok", f"{found.totals:,} totals wait for SQL's base, which the next flush gives them.")


def line(order: Order) -> Iterator[Finding]:
    """Whether Redis is the one that SQL followed last."""
    head = lineage.head()
    if head in scripts.run(counters.epoch(), patient=True):
        yield Finding("ok", "Redis is the one of the last flush.")
    else:
        hint = f"The next flush merges the two. {FLUSH_NOW}"
        yield Finding("warning", "Redis was emptied, or restored from a snapshot, since the last flush.", hint)


def drift(order: Order) -> Iterator[Finding]:
    """Whether SQL holds what Redis does, but for the views since the last flush."""
    now = buckets.now()
    # Taken first: what is viewed from here on may be in the totals, and is in the buckets then.
    good = FlushRun.objects.filter(ended__isnull=False, error="").first()
    if good is None or now - good.started > REMEMBERED:
        yield Finding("note", "No flush in the last hour to compare Redis and SQL by.", FLUSH_NOW)
        return
    totals = {token: total for token, total in server.some_totals(order.sample).items() if total.is_based}
    off = _off(totals, since=good.started) if totals else []
    if off:
        shown = ", ".join(off[:3])
        yield Finding("warning", f"{len(off):,} of {len(totals):,} totals differ from SQL, such as {shown}.", FLUSH_NOW)
    else:
        yield Finding("ok", f"{len(totals):,} totals compared with SQL: they agree.")


def _off(totals: Mapping[str, Total], *, since: datetime) -> list[str]:
    """Those that SQL holds more of, or less than the views since then explain."""
    stored: dict[str, int] = {}
    for model, rows in subjects.rows(totals).items():
        stored.update((rows[pk], row.views) for pk, row in snapshots.stored(model, list(rows)).items())
    now = buckets.now() + buckets.MINUTE  # the web servers' clocks name the buckets
    minutes = buckets.minutes(int((now - since) / buckets.MINUTE) + 2, until=now)
    recent = server.recent(list(totals), minutes=minutes)
    return [token for token, count in stored.items() if not 0 <= totals[token].views - count <= recent[token]]


def _words(span: timedelta) -> str:
    """`75 s`, `3 h`: as much as one has to know."""
    seconds = max(0, round(span.total_seconds()))
    return next((f"{seconds // size} {unit}" for size, unit in UNITS if seconds >= 2 * size), f"{seconds} s")
