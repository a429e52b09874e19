"""Imports the tables of django-hitcount 1.3, which need not be installed."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from django.apps.registry import Apps
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import connections, models
from django.db.models.functions import Cast
from django.utils.dateparse import parse_datetime

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.hits import exclusions, visitors
from readtrack.imports.ledger import MOST_VIEWS, Batch, ImportRefusedError, Report, add, resume
from readtrack.imports.line import YEARS, visitor_of
from readtrack.imports.models import Import
from readtrack.imports.stored import stored_of_any
from readtrack.progress import Progress, no_progress
from readtrack.subjects import is_counted, subject_of_row

ROWS = 500  # in a batch


class HitCountRow(models.Model):  # noqa: DJ008 - nobody looks at one
    """A row of django-hitcount: the count of an object.

    The model is in a registry of its own, so that it is no model of this site.
    """

    hits = models.PositiveIntegerField()
    content_type_id = models.IntegerField()
    object_pk = models.TextField()  # in the database a number or text, by django-hitcount's version

    class Meta:
        apps = Apps()
        db_table = "hitcount_hit_count"


class HitRow(models.Model):  # noqa: DJ008
    """A row of django-hitcount: one of the last hits."""

    hitcount_id = models.IntegerField()
    ip = models.TextField()
    user_agent = models.TextField()
    created = models.DateTimeField()
    user_id = models.TextField(null=True)  # noqa: DJ001 - not ours to change

    class Meta:
        apps = Apps()
        db_table = "hitcount_hit"


def take_hitcount(
    *, using: str = "default", dry_run: bool = False, progress: Progress = no_progress
) -> Report:
    """Adds the counts of django-hitcount in the database `using`, each row once. A later import
    adds only the rows that are new.

    `progress` is told the number of rows. Returns the report. Raises ImportRefusedError if the
    database has no table of django-hitcount, or if another import came first.
    """
    table = HitCountRow._meta.db_table
    if table not in connections[using].introspection.table_names():
        raise ImportRefusedError(
            f"The database has no table {table}, so there is nothing of django-hitcount."
        )
    source = f"hitcount.{using}"
    record = Import.objects.filter(source=source).first()
    if record is None:
        record = Import(source=source, name="django-hitcount")
    position, lost = resume(record, dry_run=dry_run)
    if not dry_run:
        record.save()
        # If Redis was restored from an older snapshot, it first gets SQL's counts.
        flush()
    rows = HitCountRow._base_manager.using(using).order_by("pk")
    imported_before = rows.filter(pk__lte=position).count()
    report = Report(read=imported_before, skipped=Counter({"imported before": imported_before}))
    _note_excluded_groups(report)
    if lost:
        report.notes.append(
            "Redis lost its data during an earlier import; some rows are passed over."
        )
    while chunk := list(rows.filter(pk__gt=position)[:ROWS]):
        position = chunk[-1].pk
        batch = _batch(chunk, report, using=using)
        if not dry_run:
            _add(record, batch, report, position=position)
        progress(len(chunk))
    return report


def _note_excluded_groups(report: Report) -> None:
    """Notes if django-hitcount leaves out groups of users that EXCLUDE does not leave out."""
    groups = getattr(settings, "HITCOUNT_EXCLUDE_USER_GROUP", None)
    if not groups or set(groups) <= set(exclusions.rules().by_key["groups"]):
        return
    line = f"READTRACK['EXCLUDE'] = {{'groups': {sorted(groups)}}}"
    report.notes.append(
        "django-hitcount left out views of HITCOUNT_EXCLUDE_USER_GROUP. To leave them out from now"
        f" on, set {line}."
    )


def _add(record: Import, batch: Batch, report: Report, *, position: int) -> None:
    """Adds the batch to the counts, up to the row at the position. Reports hits that could not be
    added.
    """
    refused = add(record, batch, position=position)
    for subject, hits in refused.items():
        report.counted -= hits
        report.refuse(
            f"Hits of {subject} are refused: with its {hits:,} hits it would have more than"
            f" {MOST_VIEWS:,} views"
        )


def _batch(rows: Sequence[HitCountRow], report: Report, *, using: str) -> Batch:
    """Returns a batch with the views of those rows whose objects exist and have counts, and with
    the visitors of the hits that are still stored. Reports all other rows.
    """
    report.read += len(rows)
    batch = Batch()
    subject_by_row: dict[int, str] = {}  # by the primary key of the row
    for row, subject, stored_views in _tracked_rows(rows, report):
        reason = _refusal(row, subject, total=stored_views + batch.views[subject])
        if reason:
            report.refuse(reason)
            continue
        subject_by_row[row.pk] = subject
        if row.hits > 0:
            batch.views[subject] += row.hits
            report.counted += row.hits
    _add_visitors(batch, subject_by_row, report, using=using)
    return batch


class _TrackedRow(NamedTuple):
    """A row whose object exists and has counts."""

    row: HitCountRow
    subject: str
    stored_views: int  # of the object, in SQL


def _tracked_rows(rows: Sequence[HitCountRow], report: Report) -> Iterator[_TrackedRow]:
    """Yields the rows whose objects exist and have counts. Reports all other rows as skipped."""
    rows_by_type: defaultdict[Any, list[HitCountRow]] = defaultdict(list)
    for row in rows:
        rows_by_type[row.content_type_id].append(row)
    # SQLite may hold text in place of the id of a content type.
    type_ids = [type_id for type_id in rows_by_type if isinstance(type_id, int)]
    # Here, because a site without django-hitcount may lack the app.
    from django.contrib.contenttypes.models import ContentType

    content_types = ContentType.objects.in_bulk(type_ids)
    for type_id, rows_of_type in rows_by_type.items():
        content_type = content_types.get(type_id)
        model = content_type.model_class() if content_type else None
        if model is None or not is_counted(model):
            label = model._meta.label if model else "?"
            report.skipped[f"not tracked: {label}"] += len(rows_of_type)
        else:
            yield from _rows_of_objects(model, rows_of_type, report)


def _rows_of_objects(
    model: type[models.Model], rows: Sequence[HitCountRow], report: Report
) -> Iterator[_TrackedRow]:
    """Yields the rows whose objects exist. Reports all other rows as skipped.

    The rows are about objects of the model.
    """
    object_pks = {row.pk: pk_of(model, row.object_pk) for row in rows}
    known_pks = [pk for pk in object_pks.values() if pk is not None]
    stored = stored_of_any(model, known_pks)
    for row in rows:
        pk = object_pks[row.pk]
        if pk in stored:
            yield _TrackedRow(row, subject_of_row(model, pk), stored[pk].views)
        else:
            report.skipped["no such object"] += 1


def pk_of(model: type[models.Model], value: Any) -> Any:
    """Returns the value as a primary key of the model. None for a value that is none."""
    if "\0" in str(value):  # PostgreSQL refuses a query with such a text
        return None
    # to_python() does not turn every error into a ValidationError: infinity is an OverflowError.
    with suppress(ValidationError, ValueError, TypeError, ArithmeticError):
        return model._meta.pk.to_python(value)
    return None


def _refusal(row: HitCountRow, subject: str, *, total: int) -> str:
    """Returns the reason why the row's hits cannot be added to the total of the subject, or ""."""
    start = f"Row {row.pk} of {row._meta.db_table} is refused:"
    hits: Any = row.hits  # SQLite stores text and fractions in columns of numbers, too
    if not isinstance(hits, int) or not 0 <= hits <= MOST_VIEWS:
        return f"{start} its hits are no whole number from 0 to {MOST_VIEWS:,}: {str(hits)[:40]!r}"
    if total + hits > MOST_VIEWS:
        return f"{start} with its {hits:,} hits {subject} would have more than {MOST_VIEWS:,} views"
    return ""


def _add_visitors(
    batch: Batch, subject_by_row: Mapping[int, str], report: Report, *, using: str
) -> None:
    """Adds the visitors of the rows to the batch.

    `subject_by_row` has the subjects by the primary key of the row. A visitor without a user is
    known by address, agent and day; without a possible time the hit is reported as skipped.
    """
    hits = HitRow._base_manager.using(using).filter(hitcount_id__in=list(subject_by_row)).order_by()
    # The time is read as text, because drivers raise an error for a time that datetime does not
    # have, such as PostgreSQL's infinity.
    columns = ("hitcount_id", "ip", "user_agent", "user_id", Cast("created", models.TextField()))
    for row_pk, address, agent, user_pk, time in hits.values_list(*columns).iterator():
        subject = subject_by_row[row_pk]
        at = _time(time, using=using)
        if user_pk is not None:
            visitor_id = visitors.user_id(user_pk)
        elif at is not None:
            visitor_id = visitor_of(address or "", agent or "", at=at).id
        else:
            report.skipped["visitor without a time"] += 1
            continue
        if at is None:
            batch.visitors[subject].add(visitor_id)  # on a day that is not known
        else:
            batch.add_visitor(subject, visitor=visitor_id, at=at)


def _time(text: str | None, *, using: str) -> datetime | None:
    """Returns the time that the database wrote as this text, aware UTC.

    Returns None for any other text, and for an impossible year.
    """
    with suppress(ValueError, OverflowError):
        at = parse_datetime(text or "")
        if at is None:
            return None
        if at.tzinfo is None and settings.USE_TZ:
            at = at.replace(tzinfo=connections[using].timezone)
        at = buckets.now(at)
        if at.year in YEARS:
            return at
    return None
