"""What readtrack has about an object or a model moves to its new name.

SQL follows in the transaction that changes the name, and keeps a row of `Rename`. Redis follows on
commit. If it is gone at that moment, the next flush does it.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Concat, Substr
from django.utils import timezone

from readtrack import parts, subjects
from readtrack.conf import logger
from readtrack.models import PendingPublication, Rename
from readtrack.sql import absent, databases
from readtrack.sql import renaming as sql_renaming
from readtrack.store import keys, renaming
from readtrack.store.circuit import fail_open
from readtrack.unread.outbox import outboxes

# For so long full flushes also move what comes to an old name again: from processes with the old
# code, from pages that were open, and from snapshots of Redis.
FOLLOWED_FOR = timedelta(days=1)


def rename_model(before: str, after: str, *, pks: Iterable[Any], using: str | None) -> None:
    """Moves everything about the model with the label `before` to the label `after`.

    `pks` are the primary keys of its rows, `using` is the database of its table.
    """
    _rename_model_in_sql(before, after, pks=pks)
    _let_redis_follow(before, after, using=using)


def rename_subject(before: str, after: str, *, using: str | None) -> None:
    """Moves what is kept about the subject `before`, a row of the database `using`, to `after`."""
    sql_renaming.rename_subject(before, after)
    for part in parts.installed():
        part.rename(before, after)
    for alias in outboxes():
        rows = PendingPublication.objects.using(alias).filter(subject=before)
        rows.update(subject=after)
    _let_redis_follow(before, after, using=using)


def _rename_model_in_sql(before: str, after: str, *, pks: Iterable[Any]) -> None:
    """Moves what the tables of the core, of parts and of the outboxes have about the model."""
    # A part's tables may come in a later migration than the new name.
    with absent.leaving_out(absent.absent_tables()):
        sql_renaming.rename_model(before, after, pks=pks)
        for part in parts.installed():
            part.rename(before, after)
    for alias in outboxes():
        rows = PendingPublication.objects.using(alias).filter(subject__startswith=f"{before}:")
        rows.update(subject=Concat(Value(after), Substr("subject", len(before) + 1)))


def _let_redis_follow(before: str, after: str, *, using: str | None) -> None:
    """Lets Redis follow once the transaction is committed."""
    databases.rows(Rename).create(before=before, after=after)
    transaction.on_commit(_follow_now, using=using, robust=True)


def _follow_now() -> None:
    """Lets Redis follow if it can."""
    if keys.test_prefix():  # a test's migrations, which need no Redis
        return
    if not fail_open(_follow, False):  # noqa: FBT003 - the default result
        logger.warning("Redis failed, so the next flush moves the keys of what was renamed.")


def _follow() -> bool:
    """Calls `follow`. Returns True, by which `fail_open` tells that it did not fail."""
    follow(is_patient=False)
    return True


def follow(*, again: bool = False, is_patient: bool = True) -> int:
    """Moves the keys in Redis to the names that SQL has already; call it before a flush.

    With `again` it also moves what came to an old name since. Returns the number of keys. Raises
    redis.RedisError or django.db.Error; the next call then moves what is left.
    """
    rows = databases.rows(Rename).order_by("pk")
    moved_keys = 0
    if again:
        since = timezone.now() - FOLLOWED_FOR
        for row in rows.filter(is_done=True, at__gte=since):
            moved_keys += _follow_again(row)
    if not rows.filter(is_done=False).exists():
        return moved_keys
    with renaming.turn(is_patient=is_patient):
        # Read anew for each step, because another process may have had its turn meanwhile. They
        # are followed in their order, so that two models may swap their names.
        while row := rows.filter(is_done=False).first():
            moved_keys += renaming.move(renaming.Rename(row.before, row.after))
            rows.filter(pk=row.pk).update(is_done=True)
    return moved_keys


def _follow_again(row: Rename) -> int:
    """Moves what came to the old name of a model, unless another model has that name by now.

    Returns the number of keys. Renames of single objects are not followed again.
    """
    is_of_object = ":" in row.before
    if is_of_object or subjects.model_with_label(row.before) is not None:
        return 0
    model = subjects.model_with_label(row.after)
    pks: Iterable[Any] = ()
    if model is not None:
        pks = databases.rows(model).values_list("pk", flat=True).iterator()
    _rename_model_in_sql(row.before, row.after, pks=pks)
    with renaming.turn():
        return renaming.move(renaming.Rename(row.before, row.after))
