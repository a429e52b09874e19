"""Whether flushes run, and end well."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.apps import apps
from django.db import connections, router
from django.db.migrations.executor import MigrationExecutor
from django.utils.translation import gettext

from readtrack import buckets
from readtrack.conf import conf
from readtrack.doctor import findings
from readtrack.doctor.findings import Finding, Order
from readtrack.models import FlushRun
from readtrack.numerals import exact
from readtrack.sql.runs import last_good
from readtrack.subjects import tracked_models

LATE = 3  # intervals: one tick may be dropped, and one flush take its time
SPAN = 10  # intervals, in which about as many flushes should begin
MANY = 25
FLUSH = "manage.py readtrack flush"


def migrations(order: Order) -> Iterator[Finding]:
    """Whether the tables are as the models have them."""
    labels = {"readtrack", *(model._meta.app_label for model in tracked_models())}
    models = [model for label in labels for model in apps.get_app_config(label).get_models()]
    for alias in {router.db_for_write(model) for model in models}:
        executor = MigrationExecutor(connections[alias])
        targets = [node for node in executor.loader.graph.leaf_nodes() if node[0] in labels]
        if missing := [f"{one.app_label}.{one.name}" for one, _ in executor.migration_plan(targets)]:
            message = gettext("The database '%(alias)s' lacks %(migrations)s.")
            words = {"alias": alias, "migrations": ", ".join(missing)}
            yield Finding("error", message % words, findings.run(f"manage.py migrate --database {alias}"))
        else:
            yield Finding("ok", gettext("The database '%(alias)s' has every migration.") % {"alias": alias})


def beat(order: Order) -> Iterator[Finding]:
    """Whether flushes run, and end well."""
    now, last = buckets.now(), FlushRun.objects.first()
    if last is None:
        yield Finding("warning", gettext("Nothing was ever flushed."), _start_beat())
        return
    if last.error:
        hint = gettext("Run %(command)s, and see whether it fails again.") % {"command": FLUSH}
        yield Finding("error", gettext("The last flush failed: %(error)s") % {"error": last.error}, hint)
    good = last_good()
    if good is None:
        yield Finding("error", gettext("No flush ever ended well."), _start_beat())
        return
    began = gettext("The last flush that ended well began %(time)s ago.") % {"time": findings.span(now - good.began)}
    if now - good.began > LATE * timedelta(seconds=conf.FLUSH_INTERVAL):
        yield Finding("error", began, _start_beat())
        return
    yield Finding("ok", began)
    yield from _pace(good, now=now)


def _pace(good: FlushRun, *, now: datetime) -> Iterator[Finding]:
    """Whether flushes last too long, or come too often."""
    interval = timedelta(seconds=conf.FLUSH_INTERVAL)
    if good.took and good.took > interval:
        message = gettext("It took %(time)s, longer than the interval.") % {"time": findings.span(good.took)}
        yield Finding("warning", message, gettext("Flush less often."))
    recent = FlushRun.objects.filter(started__gt=buckets.for_field(now - SPAN * interval)).count()
    if recent > MANY:
        message = gettext("%(count)s flushes began in the last %(span)s, and one every %(interval)s would do.")
        words = {"count": exact(recent), "span": findings.span(SPAN * interval), "interval": findings.span(interval)}
        yield Finding("note", message % words, gettext("Harmless, but is a second beat running? Keep one."))


def _start_beat() -> str:
    words = {"setting": "CELERY_BEAT_SCHEDULE", "schedule": "readtrack_schedule", "command": FLUSH}
    hint = gettext("Are Celery's worker and beat running, with %(schedule)s in %(setting)s? Or cron with: %(command)s")
    return hint % words
