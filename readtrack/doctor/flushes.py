"""Examines whether flushes run and succeed."""

from collections.abc import Iterator
from datetime import timedelta

from django.apps import apps
from django.db import connections, router
from django.db.migrations.executor import MigrationExecutor

from readtrack import buckets
from readtrack.conf import conf
from readtrack.doctor.findings import FLUSH, Context, Finding, duration
from readtrack.models import FlushRun
from readtrack.sql.runs import last_good
from readtrack.subjects import tracked_models

LATE = 3  # intervals: one tick may be dropped, and one flush takes its time
PERIOD = 10  # intervals, in which about as many flushes should begin
MANY = 25  # flushes in that period
START_BEAT = (
    "Are Celery's worker and beat running, with readtrack_schedule in CELERY_BEAT_SCHEDULE?"
    f" Without Celery, let cron run: {FLUSH}"
)


def migrations(context: Context) -> Iterator[Finding]:
    """Examines whether the tables fit the models."""
    labels = {"readtrack", *(model._meta.app_label for model in tracked_models())}
    models = [model for label in labels for model in apps.get_app_config(label).get_models()]
    for alias in {router.db_for_write(model) for model in models}:
        executor = MigrationExecutor(connections[alias])
        targets = [node for node in executor.loader.graph.leaf_nodes() if node[0] in labels]
        if missing := [f"{one.app_label}.{one.name}" for one, _ in executor.migration_plan(targets)]:
            message = f"The database '{alias}' lacks {', '.join(missing)}."
            yield Finding("error", message, f"Run: manage.py migrate --database {alias}")
        else:
            yield Finding("ok", f"The database '{alias}' has every migration.")


def flushes(context: Context) -> Iterator[Finding]:
    """Examines when flushes ran, how they ended, how long they took and how many there are."""
    now, interval, last = buckets.now(), timedelta(seconds=conf.FLUSH_INTERVAL), FlushRun.objects.first()
    if last is None:
        yield Finding("warning", "No flush has run yet.", START_BEAT)
        return
    if last.error:
        hint = f"Run {FLUSH}, and see whether it fails again."
        yield Finding("error", f"The last flush failed: {last.error}", hint)
    good = last_good()
    if good is None:
        yield Finding("error", "No flush has succeeded yet.", START_BEAT)
        return
    message = f"The last successful flush began {duration(now - good.began)} ago."
    if now - good.began > LATE * interval:
        yield Finding("error", message, START_BEAT)
        return
    yield Finding("ok", message)
    if good.took and good.took > interval:
        message = f"It took {duration(good.took)}, longer than the interval of {duration(interval)}."
        yield Finding("warning", message, "Flush less often, and set READTRACK['FLUSH_INTERVAL'] to the new interval.")
    recent = FlushRun.objects.filter(started__gt=buckets.for_field(now - PERIOD * interval)).count()
    if recent > MANY:
        message = f"{recent:,} flushes began in the last {duration(PERIOD * interval)}; one every {duration(interval)}"
        hint = "This is harmless. But if two Celery beats are running, stop one."
        yield Finding("note", f"{message} is enough.", hint)
