"""Takes over what django-hitcount 1.3 has counted, by its tables alone: the app need not be installed."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.apps.registry import Apps
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db import connections, models

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.hits import visitors
from readtrack.imports import ledger
from readtrack.imports.backfill import Batch
from readtrack.models import Import, Tracked
from readtrack.sql import row_counts
from readtrack.subjects import subject_of_row

ROWS = 500  # of django-hitcount's counts in a batch
HITS = 5_000  # fetched at once


@dataclass(slots=True)
class Report:
    """What was taken over, in subjects and views, and what not."""

    rows: int = 0
    subjects: int = 0
    views: int = 0
    hits: int = 0  # single ones, which tell who the visitors were
    known: int = 0  # rows taken over before
    untracked: Counter[str] = field(default_factory=Counter)  # rows by the name of a model without counts
    gone: int = 0  # rows whose object does not exist
    lost: int = 0


class MissingTablesError(LookupError):
    """The database has no tables of django-hitcount."""


class HitCount(models.Model):  # noqa: DJ008 - nobody looks at one
    """A row of theirs, in a registry of its own, so that this site has no such model."""

    hits = models.PositiveIntegerField()
    content_type_id = models.IntegerField()
    object_pk = models.TextField()  # a number or text: whatever the site's version has

    class Meta:
        apps = Apps()
        app_label = "hitcount"
        db_table = "hitcount_hit_count"
        managed = False


class Hit(models.Model):  # noqa: DJ008 - nor at this
    """One hit of theirs."""

    hitcount_id = models.IntegerField()
    ip = models.TextField()
    user_agent = models.TextField()
    created = models.DateTimeField()
    user_id = models.TextField(null=True)  # noqa: DJ001 - theirs

    class Meta:
        apps = Apps()
        app_label = "hitcount"
        db_table = "hitcount_hit"
        managed = False


def run(
    *, using: str = "default", dry_run: bool = False, progress: Callable[[int], object] = lambda rows: None
) -> Report:
    """Adds their counts to ours, each row once; rows that come later are added by the next run.

    `progress` is called with the number of rows just taken. Raises MissingTablesError, ledger.ImportConflictError,
    redis.RedisError or django.db.Error.
    """
    tables = connections[using].introspection.table_names()
    if HitCount._meta.db_table not in tables:
        raise MissingTablesError(HitCount._meta.db_table)
    source = f"hitcount.{using}"
    record = Import.objects.filter(source=source).first() or Import(source=source, name="django-hitcount")
    resumed = ledger.resume(record, dry_run=dry_run)
    if not dry_run:
        record.save()
        flush()  # a Redis restored from before the last flush catches up with SQL first
    rows = HitCount._base_manager.using(using).order_by("pk")
    report = Report(known=rows.filter(pk__lte=resumed.position).count(), lost=resumed.lost)
    for some in _chunks(rows, after=resumed.position):
        batch = _batch(some, report, using=using, has_hits=Hit._meta.db_table in tables)
        if not dry_run:
            ledger.add(record, batch, position=some[-1].pk)
        progress(len(some))
    return report


def total(*, using: str = "default") -> int:
    """How many rows there are."""
    return HitCount._base_manager.using(using).count()


def _chunks(rows: "models.QuerySet[HitCount]", *, after: int) -> Iterator[list[HitCount]]:
    while some := list(rows.filter(pk__gt=after)[:ROWS]):
        yield some
        after = some[-1].pk


def _batch(rows: list[HitCount], report: Report, *, using: str, has_hits: bool) -> Batch:
    """What those rows add: their views as they are, and the visitors that are still on record."""
    batch, subjects = Batch(), _subjects(rows, report)
    report.rows += len(rows)
    for row in rows:
        if row.pk in subjects and row.hits > 0:
            batch.views[subjects[row.pk]] += row.hits
            report.views += row.hits
    report.subjects += len(batch.views)
    if not has_hits:
        return batch
    found = Hit._base_manager.using(using).filter(hitcount_id__in=list(subjects)).order_by()
    columns = ("hitcount_id", "ip", "user_agent", "user_id", "created")
    for row_id, ip, agent, user, at in found.values_list(*columns).iterator(HITS):
        report.hits += 1
        who = visitors.user_id(user) if user is not None else visitors.logged(ip, agent, at=buckets.now(at)).id
        batch.visitors[subjects[row_id]][who] = None
    return batch


def _subjects(rows: list[HitCount], report: Report) -> dict[int, str]:
    """Our subjects by the ids of their rows, of objects that exist and have counts."""
    wanted: dict[type[Tracked], dict[int, Any]] = {}
    for row in rows:
        model = _model(row.content_type_id)
        if model is None or not issubclass(model, Tracked):
            report.untracked[model._meta.label if model else "?"] += 1
            continue
        try:
            wanted.setdefault(model, {})[row.pk] = model._meta.pk.to_python(row.object_pk)
        except ValidationError:
            report.gone += 1
    subjects = {}
    for model, pks in wanted.items():
        present = row_counts.stored(model, list(pks.values()))
        report.gone += sum(pk not in present for pk in pks.values())
        subjects.update({row: subject_of_row(model, pk) for row, pk in pks.items() if pk in present})
    return subjects


def _model(content_type: int) -> type[models.Model] | None:
    try:
        return ContentType.objects.get_for_id(content_type).model_class()
    except ContentType.DoesNotExist:
        return None
