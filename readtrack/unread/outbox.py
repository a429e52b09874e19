"""The outbox, an SQL table of publications that Redis does not have yet.

A publication is written in the transaction of the post, sent to Redis on commit, and deleted once
Redis has it. What a crash leaves in the outbox is sent by the next flush.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from secrets import token_bytes
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, connections, router, transaction

from readtrack import subjects
from readtrack.conf import cached_setting
from readtrack.hits import readers
from readtrack.models import UnsentPublication
from readtrack.registry import registry
from readtrack.store import keys, read_state, scripts
from readtrack.store.circuit import SilentError, fail_open

DIGEST = 8  # bytes of a token that name its post


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


def token_of(post: str) -> UUID:
    """Returns a token for one publication of the post with that subject.

    All tokens of a post begin alike, so that its publications can be found again.
    """
    return UUID(bytes=_digest(post) + token_bytes(8), version=4)


def _token_start(post: str) -> str:
    """Returns the beginning of the post's tokens, in hexadecimal digits."""
    return UUID(bytes=_digest(post) + bytes(8), version=4).hex[: 2 * DIGEST]


def _digest(post: str) -> bytes:
    return blake2b(post.encode(), digest_size=DIGEST).digest()


def withdraw_on_commit(categories: Mapping[str, Sequence[str]], *, using: str | None) -> None:
    """Takes publications back on commit: out of the outbox, and out of Redis.

    `categories` has the subjects of the categories by that of each post.
    """
    calls: list[scripts.Call[int]] = []
    for post, subject_names in categories.items():
        start = _token_start(post)
        calls += read_state.unpublish(subject_names, token_start=start)
        for alias in outboxes():
            rows = UnsentPublication.objects.using(alias).filter(subject__in=subject_names, items=1)
            # Not by a range of tokens, because MariaDB sorts them by their ends.
            tokens = [token for token in rows.values_list("token", flat=True) if token]
            tokens_of_post = [token for token in tokens if token.hex.startswith(start)]
            if tokens_of_post:
                rows.filter(token__in=tokens_of_post).delete()

    def withdraw() -> None:
        fail_open(scripts.run_all, [], *calls)

    if calls:
        transaction.on_commit(withdraw, using=using or DEFAULT_DB_ALIAS, robust=True)


def send(publications: Sequence[UnsentPublication], outbox: str | None = None) -> bool:
    """Sends publications to Redis, and then deletes them from the outbox of that database.

    Without an outbox nothing is deleted. If a server of a cluster is silent, the publications for
    the others are sent first. Returns True, so that a caller with `fail_open` knows that it did not
    fail. Raises redis.RedisError.
    """
    _, silent = _send_portions(publications, outbox)
    if silent:
        raise silent
    return True


class Sent(NamedTuple):
    """How many publications were sent, and the error of a server of a cluster that was silent."""

    number: int
    silent: SilentError | None


def _send_portions(publications: Sequence[UnsentPublication], outbox: str | None) -> Sent:
    """Sends the publications of each partition. Raises redis.RedisError."""
    number = 0
    silent = None
    for portion in scripts.parted(publications, tag_of=_tag_of):
        try:
            for call in read_state.publish([_publication(row) for row in portion]):
                scripts.run(call)
        except SilentError as error:
            silent = error
            continue
        number += len(portion)
        if outbox:
            pks = [row.pk for row in portion]
            # Not by delete(): if the site has receivers of its signals, it reads each row first.
            UnsentPublication.objects.filter(pk__in=pks)._raw_delete(outbox)
    return Sent(number, silent)


def _tag_of(row: UnsentPublication) -> str:
    return keys.tag(row.subject)


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

    Returns the number of publications. Those for a server of a cluster that is silent wait for the
    next time. Raises redis.RedisError or django.db.Error.
    """
    count = 0
    for alias in outboxes():
        rows = UnsentPublication.objects.using(alias).order_by("pk")
        unsent = list(rows[: scripts.SLICE])
        while unsent:
            count += _send_portions(unsent, alias).number  # the outbox keeps the others
            unsent = list(rows.filter(pk__gt=unsent[-1].pk)[: scripts.SLICE])
    return count
