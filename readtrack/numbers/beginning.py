"""The beginning of history on a site that has counted before: what was viewed until then is the
baseline of each object, and the views of no hour.
"""

from collections.abc import Sequence

from django.db import Error
from django.db.migrations import Migration

from readtrack.conf import logger
from readtrack.numbers.models import History
from readtrack.numbers.sql import history
from readtrack.sql import databases, row_counts
from readtrack.store import scripts
from readtrack.subjects import counted_models

FIRST = ("readtrack_numbers", "0001_initial")


def on_migrate(using: str, plan: Sequence[tuple[Migration, bool]]) -> None:
    """Begins history if this plan has made its table. `using` is the alias of the database."""
    made = {(each.app_label, each.name) for each, is_backwards in plan if not is_backwards}
    if FIRST not in made or databases.of(History).alias != using:
        return
    try:
        begin()
    except Error:
        # Such as that of another database, which is migrated later.
        logger.exception("History has no baseline: earlier views will look like those of one hour.")


def begin() -> None:
    """Stores the counts that SQL has of each object as its baseline, where it has no history."""
    for model in counted_models():
        for subjects in scripts.sliced(row_counts.subjects(model)):
            stored = row_counts.by_subject(subjects)
            history.begin({subject: row for subject, row in stored.items() if row.views})
