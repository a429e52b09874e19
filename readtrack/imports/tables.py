"""Takes over tables: the counts of django-hitcount 1.3, which need not be installed, and a table of
reads.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import chain, islice
from typing import Any

from django.apps.registry import Apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db import connections, models
from django.db.models.functions import Cast
from django.utils.dateparse import parse_datetime

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.hits import exclusions, readers, visitors
from readtrack.imports import logs
from readtrack.imports.ledger import MOST_VIEWS, Batch, ImportRefusedError, Report, add, resume
from readtrack.models import Import
from readtrack.sql import databases, row_counts
from readtrack.store import connection, read_state, scripts
from readtrack.subjects import has_read_state, is_counted, model_with_label, subject_of_row

ROWS = 500  # of django-hitcount's counts in a batch


class HitCountRow(models.Model):  # noqa: DJ008 - nobody looks at one
    """Row of django-hitcount, in a registry of its own, so that this site has no such model."""

    hits = models.PositiveIntegerField()
    content_type_id = models.IntegerField()
    object_pk = models.TextField()  # a number or text: whatever the site's version has

    class Meta:
        apps = Apps()
        db_table = "hitcount_hit_count"


class HitRow(models.Model):  # noqa: DJ008
    """One hit of django-hitcount."""

    hitcount_id = models.IntegerField()
    ip = models.TextField()
    user_agent = models.TextField()
    created = models.DateTimeField()
    user_id = models.TextField(null=True)  # noqa: DJ001 - not ours to change

    class Meta:
        apps = Apps()
        db_table = "hitcount_hit"


def take_hitcount(
    *, using: str = "default", dry_run: bool = False, progress: Callable[[int], object] = int
) -> Report:
    """Adds the counts, each row once, and calls `progress` with numbers of rows. The next run adds
    later rows.
    """
    table = HitCountRow._meta.db_table
    if table not in connections[using].introspection.table_names():
        raise ImportRefusedError(
            f"The database has no table {table}, so there is nothing of django-hitcount."
        )
    source = f"hitcount.{using}"
    record = Import.objects.filter(source=source).first() or Import(
        source=source, name="django-hitcount"
    )
    position, lost = resume(record, dry_run=dry_run)
    if not dry_run:
        record.save()
        flush()  # a Redis that was restored from before the last flush catches up with SQL first
    rows = HitCountRow._base_manager.using(using).order_by("pk")
    before = rows.filter(pk__lte=position).count()
    report = Report(read=before, skipped=Counter({"imported before": before}))
    groups = getattr(settings, "HITCOUNT_EXCLUDE_USER_GROUP", None)
    if groups and not set(groups) <= set(exclusions.rules()[0]["groups"]):
        line = f"READTRACK['EXCLUDE'] = {{'groups': {sorted(groups)}}}"
        report.notes.append(
            f"django-hitcount left out views of HITCOUNT_EXCLUDE_USER_GROUP. To go on so, set {line}."
        )
    if lost:
        report.notes.append(
            "Redis lost its data during an earlier import; some rows are passed over."
        )
    while some := list(rows.filter(pk__gt=position)[:ROWS]):
        position = some[-1].pk
        batch = _batch(some, report, using=using)
        if not dry_run:
            for subject, views in add(record, batch, position=position).items():
                report.counted -= views
                report.refuse(
                    f"Hits of {subject} are refused: with its {views:,} hits it would have more than"
                    f" {MOST_VIEWS:,} views"
                )
        progress(len(some))
    return report


def _batch(rows: Sequence[HitCountRow], report: Report, *, using: str) -> Batch:
    """Returns the views of rows whose objects exist and have counts, and the visitors that are
    still on record. Reports the other rows.
    """
    report.read += len(rows)
    batch = Batch()
    subjects: dict[int, str] = {}  # by primary key of the row
    for row, subject, stored_views in _rows_of_objects(rows, report):
        reason = _refusal(row, subject, total=stored_views + batch.views[subject])
        if reason:
            report.refuse(reason)
            continue
        subjects[row.pk] = subject
        if row.hits > 0:
            batch.views[subject] += row.hits
            report.counted += row.hits
    _add_visitors(batch, subjects, report, using=using)
    return batch


def _rows_of_objects(
    rows: Sequence[HitCountRow], report: Report
) -> Iterator[tuple[HitCountRow, str, int]]:
    """Yields each row whose object exists and has counts, the object's subject, and the views that
    SQL stores of it. Reports the other rows.
    """
    # Another app's table, or one of SQLite, may hold text instead of the id of a content type.
    type_ids = {row.content_type_id for row in rows if isinstance(row.content_type_id, int)}
    content_types = ContentType.objects.in_bulk(type_ids)
    rows_by_type: defaultdict[Any, list[HitCountRow]] = defaultdict(list)
    for row in rows:
        rows_by_type[row.content_type_id].append(row)
    for type_id, rows_of_type in rows_by_type.items():
        content_type = content_types.get(type_id)
        model = content_type.model_class() if content_type else None
        if model is None or not is_counted(model):
            label = model._meta.label if model else "?"
            report.skipped[f"not tracked: {label}"] += len(rows_of_type)
            continue
        pks = {row.pk: _pk_of(model, row.object_pk) for row in rows_of_type}
        stored = row_counts.stored(model, [pk for pk in pks.values() if pk is not None])
        for row in rows_of_type:
            pk = pks[row.pk]
            if pk in stored:
                yield row, subject_of_row(model, pk), stored[pk].views
            else:
                report.skipped["no such object"] += 1


def _pk_of(model: type[models.Model], value: Any) -> Any:
    """Returns the value as a primary key of the model; None for a value that no field takes."""
    if "\0" in str(value):  # PostgreSQL refuses a query with such a text
        return None
    # to_python() does not turn every error into a ValidationError: infinity is an OverflowError.
    with suppress(ValidationError, ValueError, TypeError, ArithmeticError):
        return model._meta.pk.to_python(value)
    return None


def _refusal(row: HitCountRow, subject: str, *, total: int) -> str:
    """Returns the reason why the row cannot be added to that total; "" if it can."""
    start = f"Row {row.pk} of {row._meta.db_table} is refused:"
    hits: Any = row.hits  # SQLite stores text and fractions in columns of numbers, too
    if not isinstance(hits, int) or not 0 <= hits <= MOST_VIEWS:
        return f"{start} its hits are no whole number from 0 to {MOST_VIEWS:,}: {str(hits)[:40]!r}"
    if total + hits > MOST_VIEWS:
        return f"{start} with its {hits:,} hits {subject} would have more than {MOST_VIEWS:,} views"
    return ""


def _add_visitors(
    batch: Batch, subjects: Mapping[int, str], report: Report, *, using: str
) -> None:
    """Adds the visitors of the rows, whose subjects are given by primary key. Reports visitors
    without a user and without a time from 1970 on.
    """
    hits = HitRow._base_manager.using(using).filter(hitcount_id__in=list(subjects)).order_by()
    # The time as text, because drivers raise for times beyond datetime, such as PostgreSQL's
    # infinity.
    columns = ("hitcount_id", "ip", "user_agent", "user_id", Cast("created", models.TextField()))
    for row, address, agent, user, time in hits.values_list(*columns).iterator():
        at = _time(time, using=using)
        if user is not None:
            batch.visitors[subjects[row]].add(visitors.user_id(user))
        elif at is not None:
            visitor = visitors.logged(address or "", agent or "", at=at)
            batch.visitors[subjects[row]].add(visitor.id)
        else:
            report.skipped["visitor without a time"] += 1


def _time(text: str | None, *, using: str) -> datetime | None:
    """Returns the database's text of a time as aware UTC; None for a text or a year of damage."""
    with suppress(ValueError, OverflowError):
        at = parse_datetime(text or "")
        if at is None:
            return None
        if at.tzinfo is None and settings.USE_TZ:
            at = at.replace(tzinfo=connections[using].timezone)
        at = buckets.now(at)
        if at.year in logs.YEARS:
            return at
    return None


def take_reads(
    label: str, *, user: str, category: str, dry_run: bool, progress: Callable[[int], object]
) -> Report:
    """Marks read what the table says, but for what was published to since the first start. May be
    started again.
    """
    model = model_with_label(label)
    if model is None:
        raise ImportRefusedError(f"There is no model {label!r}.")
    links: dict[str, Any] = {
        field.name: field.related_model for field in model._meta.fields if field.remote_field
    }
    is_of_users = issubclass(get_user_model(), links.get(user, ()))
    if not is_of_users or category not in links or not has_read_state(links[category]):
        raise ImportRefusedError(
            f"{label} has to point at a user by {user!r}, and by {category!r} at read state."
        )
    as_of, report = 0, Report()
    if not dry_run:
        # What was published after the first start of this import is not in the table.
        now, source = (
            connection.server_time(patient=True),
            f"reads:{model._meta.label_lower}:{user}:{category}",
        )
        read_state.begin(now)
        first = {"name": source, "position": now}
        begun, _ = databases.rows(Import).get_or_create(
            source=visitors.digest("import", source), defaults=first
        )
        if now - begun.position > read_state.PUBLISHED_FOR:
            raise ImportRefusedError(
                f"{begun} was imported on {begun.started:%Y-%m-%d}, and importing it again could hide what is new"
                " since. Delete its row of readtrack's imports to do so all the same."
            )
        as_of = begun.position
    named = databases.rows(model).filter(**{f"{user}__isnull": False, f"{category}__isnull": False})
    rows = named.values_list(f"{user}__pk", f"{category}__pk").iterator(chunk_size=scripts.SLICE)
    while some := list(islice(rows, scripts.SLICE)):
        reads: defaultdict[Any, list[str]] = defaultdict(list)
        for reader_pk, category_pk in some:
            reads[readers.or_none(reader_pk)].append(subject_of_row(links[category], category_pk))
        report.skipped["id out of bounds"] += len(reads.pop(None, ()))
        wanted = marked = sum(map(len, reads.values()))
        if not dry_run:
            marks = (
                read_state.marks(reader, list(set(subjects)), as_of=as_of)
                for reader, subjects in reads.items()
            )
            marked = sum(map(len, scripts.run_all(*chain.from_iterable(marks), patient=True)))
        report.counted += marked
        report.skipped["published to since the import began"] += wanted - marked
        report.read += len(some)
        progress(len(some))
    return report
