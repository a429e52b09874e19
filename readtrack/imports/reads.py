"""Taking over a table of reads, one row for each user and category that the user has seen all of."""

from collections import defaultdict
from collections.abc import Callable
from itertools import islice
from typing import Any

from django.contrib.auth import get_user_model

from readtrack import buckets
from readtrack.hits import readers
from readtrack.hits.hit import Hit
from readtrack.hits.visitors import Visitor, digest
from readtrack.imports.ledger import ImportRefusedError, Report
from readtrack.models import Import
from readtrack.sql import databases
from readtrack.store import read_state, scripts
from readtrack.store.connection import server_time
from readtrack.subjects import has_read_state, model_with_label, subject_of_row


def run(label: str, *, user: str, category: str, dry_run: bool, progress: Callable[[int], object] = int) -> Report:
    """Marks read what the table says, but for what was published to since the first start. May be started again."""
    model = model_with_label(label)
    if model is None:
        raise ImportRefusedError(f"There is no model {label!r}.")
    links: dict[str, Any] = {field.name: field.related_model for field in model._meta.fields if field.remote_field}
    is_of_users = issubclass(get_user_model(), links.get(user, ()))
    if not is_of_users or category not in links or not has_read_state(links[category]):
        raise ImportRefusedError(f"{label} has to point at a user by {user!r}, and by {category!r} at read state.")
    as_of = 0 if dry_run else _as_of(f"reads:{model._meta.label_lower}:{user}:{category}")
    report = Report()
    named = databases.rows(model).filter(**{f"{user}__isnull": False, f"{category}__isnull": False})
    rows = named.values_list(f"{user}__pk", f"{category}__pk").iterator(chunk_size=scripts.SLICE)
    while some := list(islice(rows, scripts.SLICE)):
        reads: defaultdict[Any, list[str]] = defaultdict(list)
        for reader_pk, category_pk in some:
            reads[readers.or_none(reader_pk)].append(subject_of_row(links[category], category_pk))
        report.skipped["id out of bounds"] += len(reads.pop(None, ()))
        wanted = marked = sum(map(len, reads.values()))
        if not dry_run:
            hits = [
                Hit(Visitor(""), buckets.now(), reads=tuple(some), reader=reader, as_of=as_of)
                for reader, subjects in reads.items()
                for some in scripts.parted(dict.fromkeys(subjects))
            ]
            marked = sum(map(len, scripts.run_all(*map(read_state.mark, hits), patient=True)))
        report.counted += marked
        report.skipped["published to since the import began"] += wanted - marked
        report.read += len(some)
        progress(len(some))
    return report


def _as_of(source: str) -> int:
    """Returns Redis's time (µs) of the first start of this import, because what came later the table may not know."""
    now = server_time(patient=True)
    read_state.begin(now)
    named = {"name": source, "position": now}
    begun: Import = databases.rows(Import).get_or_create(source=digest("import", source), defaults=named)[0]
    if now - begun.position > read_state.PUBLISHED_FOR:
        raise ImportRefusedError(
            f"{begun} was imported on {begun.started:%Y-%m-%d}, and importing it again could hide what is new since. "
            "Delete its row of readtrack's imports to do so all the same."
        )
    return begun.position
