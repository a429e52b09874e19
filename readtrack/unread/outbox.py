"""The outbox, an SQL table of publications that Redis does not have yet.

A publication is written in the transaction of the post, sent to Redis on commit, and deleted once
Redis has it. What a crash leaves in the outbox is sent by the next flush.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, connections, router, transaction

from readtrack import subjects
from readtrack.conf import cached_setting
from readtrack.hits import readers
from readtrack.models import UnsentPublication
from readtrack.registry import registry
from readtrack.store import read_state, scripts
from readtrack.store.circuit import fail_open


def outboxes() -> list[str]:
    """Returns the aliases of the databases that have an outbox, first that of the app itself."""
    app_alias = router.db_for_write(UnsentPublication)
    news_models = [
        subjects.model_with_label(label)
        for label, options in registry().items()
        if options.news_for
    ]
    models: list[Any] = [*subjects.tracked_models(), *filter(None, news_models)]
    aliases = {router.db_for_write(model) for model in models} - {app_alias}
    return [app_alias, *sorted(alias for alias in aliases if _has_outbox(alias))]


@cached_setting("DATABASES", "DATABASE_ROUTERS")
def _has_outbox(alias: str) -> bool:
    """Returns True if the database has the table of the outbox."""
    return UnsentPublication._meta.db_table in connections[alias].introspection.table_names()


def send_on_commit(publications: Sequence[UnsentPublication], *, using: str | None) -> None:
    """Puts publications into the outbox of their posts' database, and sends them on commit.

    `using` is the alias of that database. If it has no outbox, publications that cannot be sent go
    into the app's own outbox after the commit.
    """
    if not publications:
        return
    alias = using or DEFAULT_DB_ALIAS
    outbox = alias if alias in outboxes() else None
    if outbox:
        UnsentPublication.objects.using(outbox).bulk_create(publications)

    # A function and no partial, because Django 5.2 logs an error with the function's __qualname__.
    def send_or_keep() -> None:
        is_sent = fail_open(send, False, publications, outbox)  # noqa: FBT003 - the default result
        if not is_sent and not outbox:
            UnsentPublication.objects.bulk_create(publications)

    # Robust, because the post is saved by then: Django logs an error, and the page is served.
    transaction.on_commit(send_or_keep, using=alias, robust=True)


def send(publications: Sequence[UnsentPublication], outbox: str | None = None) -> bool:
    """Sends publications to Redis, and then deletes them from the outbox of that database.

    Without an outbox nothing is deleted. Returns True, so that a caller with `fail_open` knows that
    it did not fail. Raises redis.RedisError.
    """
    for call in read_state.publish([_publication(row) for row in publications]):
        scripts.run(call)
    if outbox:
        for pks in scripts.sliced([row.pk for row in publications]):
            # Not by delete(): if the site has receivers of its signals, it reads each row first.
            UnsentPublication.objects.filter(pk__in=pks)._raw_delete(outbox)
    return True


def _publication(row: UnsentPublication) -> read_state.Publication:
    """Returns the row of an outbox as a publication for Redis."""
    token = row.token.hex if row.token else ""
    return read_state.Publication(
        subject=row.subject,
        items=row.items,
        author=_author(row),
        is_own=row.is_own,
        token=token,
    )


def _author(row: UnsentPublication) -> readers.Reader | None:
    """Returns the author as a reader; None for no author, or for a key that no user can have."""
    if not row.author:
        return None
    with suppress(ValidationError):  # the site may have another model of users by now
        pk = get_user_model()._meta.pk.to_python(row.author)
        return readers.or_none(pk)
    return None


def resend() -> int:
    """Sends all publications that are in the outboxes.

    Returns the number of publications. Raises redis.RedisError or django.db.Error.
    """
    count = 0
    for alias in outboxes():
        rows = UnsentPublication.objects.using(alias).order_by("pk")
        while unsent := list(rows[: scripts.SLICE]):
            send(unsent, alias)
            count += len(unsent)
    return count
