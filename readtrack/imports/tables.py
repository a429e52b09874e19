"""Takes over tables: the counts of django-hitcount 1.3, which need not be installed, and a table of
reads.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any

from django.apps.registry import Apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db import connections, models

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.hits import exclusions, readers, visitors
from readtrack.imports.ledger import Batch, ImportRefusedError, Report, add, resume
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
            add(record, batch, position=position)
        progress(len(some))
    return report


def _batch(rows: Sequence[HitCountRow], report: Report, *, using: str) -> Batch:
    """Returns the views of rows whose objects exist and have counts, and the visitors that are
    still on record.
    """
    report.read += len(rows)
    batch, subjects = Batch(), dict[int, str]()
    kinds = ContentType.objects.in_bulk({row.content_type_id for row in rows})
    for kind in dict.fromkeys(row.content_type_id for row in rows):
        some = [row for row in rows if row.content_type_id == kind]
        model = kinds[kind].model_class() if kind in kinds else None
        if model is None or not is_counted(model):
            report.skipped[f"not tracked: {model._meta.label if model else '?'}"] += len(some)
            continue
        pks: dict[int, Any] = {}  # of objects, by those of the rows
        for row in some:
            with suppress(ValidationError):
                pks[row.pk] = model._meta.pk.to_python(row.object_pk)
        present = row_counts.stored(model, list(pks.values()))
        subjects.update(
            {row: subject_of_row(model, pk) for row, pk in pks.items() if pk in present}
        )
        report.skipped["no such object"] += sum(row.pk not in subjects for row in some)
    for row in rows:
        if row.pk in subjects and row.hits > 0:
            batch.views[subjects[row.pk]] += row.hits
            report.counted += row.hits
    hits = HitRow._base_manager.using(using).filter(hitcount_id__in=list(subjects)).order_by()
    for hit in hits.iterator():
        at, user = buckets.now(hit.created), hit.user_id
        visitor = (
            visitors.logged(hit.ip, hit.user_agent, at=at).id
            if user is None
            else visitors.user_id(user)
        )
        batch.visitors[subjects[hit.hitcount_id]].add(visitor)
    return batch


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
