"""The records of flushes."""

from django.db.models import QuerySet

from readtrack.conf import conf
from readtrack.models import FlushRun
from readtrack.sql import databases

Kind = FlushRun.Kind


def prune(run: FlushRun) -> None:
    """Forgets the records of old flushes, all but the last of each kind that ended well."""
    kept = [ended_well().filter(kind=kind).order_by("-pk").values_list("pk", flat=True).first() or 0 for kind in Kind]
    _runs().filter(pk__lte=run.pk - conf.FLUSH_RUNS).exclude(pk__in=kept).delete()


def last_good() -> FlushRun | None:
    """The newest flush that ended well."""
    return ended_well().first()


def ended_well() -> "QuerySet[FlushRun]":
    return _runs().filter(ended__isnull=False, error="")


def _runs() -> "QuerySet[FlushRun]":
    return FlushRun.objects.using(databases.of(FlushRun).alias)
