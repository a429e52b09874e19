"""The outbox, an SQL table of publications that must not be lost.

A publication is written in the transaction of the post, and sent to Redis on commit. What a crash
leaves unsent is sent by the next flush. It stays in the outbox until SQL has a later copy of the
category's read state: if Redis loses its own before, the copy is restored and the publication is
sent again. So a dot may come on once too often, but never stays off.
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
from readtrack.models import PendingPublication
from readtrack.registry import registry
from readtrack.sql import databases, read_states
from readtrack.store import keys, read_state, scripts
from readtrack.store.circuit import SilentError, fail_open

DIGEST = 8  # bytes of a token that name its post


def outboxes() -> list[str]:
    """Returns the aliases of the databases that have an outbox, first that of the app itself."""
    app_alias = router.db_for_write(PendingPublication)
    models: list[Any] = [*subjects.tracked_models()]
    for label, options in registry().items():
        model = subjects.model_with_label(label)
        if options.news_for and model is not None:
            models.append(model)
    aliases = {router.db_for_write(model) for model in models} - {app_alias}
    return [app_alias, *sorted(filter(_has_outbox, aliases))]


@cached_setting("DATABASES", "DATABASE_ROUTERS")
def _has_outbox(alias: str) -> bool:
    """Returns True if the database has the table of the outbox."""
    return PendingPublication._meta.db_table in connections[alias].introspection.table_names()


def send_on_commit(publications: Sequence[PendingPublication], *, using: str | None) -> None:
    """Puts publications into the outbox of their posts' database, and sends them on commit.

    `using` is the alias of that database, None for the default one. If it has no outbox, they go
    into the app's own outbox after the commit.
    """
    if not publications:
        return
    alias = using or DEFAULT_DB_ALIAS
    has_outbox = alias in outboxes()
    if has_outbox:
        PendingPublication.objects.using(alias).bulk_create(publications)

    # A function and no partial, because Django 5.2 logs an error with the function's __qualname__.
    def send_at_last() -> None:
        if has_outbox:
            fail_open(send, None, publications, alias)
        else:
            fail_open(send_now, None, publications)

    # Robust, because the post is saved by then: Django logs an error, and the page is served.
    transaction.on_commit(send_at_last, using=alias, robust=True)


def token_of(post: str) -> UUID:
    """Returns a token for one publication of the post with that subject.

    All tokens of a post begin alike, so that its publications can be found again.
    """
    return UUID(bytes=_digest(post) + token_bytes(8), version=4)


def _token_start(post: str) -> str:
    """Returns the beginning of the post's tokens, in hexadecimal digits."""
    return UUID(bytes=_digest(post) + bytes(8), version=4).hex[: 2 * DIGEST]


def _digest(post: str) -> bytes:
    """Returns the bytes of a token that name its post."""
    return blake2b(post.encode(), digest_size=DIGEST).digest()


def withdraw_on_commit(categories: Mapping[str, Sequence[str]], *, using: str | None) -> None:
    """Takes publications back on commit: out of the outbox, and out of Redis.

    `categories` has the subjects of the categories by the subject of each post.
    """
    calls: list[scripts.Call[int]] = []
    for post, subject_names in categories.items():
        calls += read_state.unpublish(subject_names, post=post, token_start=_token_start(post))
    for alias in outboxes():
        _delete_of_posts(categories, alias)

    def withdraw() -> None:
        fail_open(scripts.run_all, [], *calls)

    if calls:
        transaction.on_commit(withdraw, using=using or DEFAULT_DB_ALIAS, robust=True)


def _delete_of_posts(categories: Mapping[str, Sequence[str]], alias: str) -> None:
    """Deletes the publications of each post alone from the outbox of that database, in the post's
    categories. `categories` is as in `withdraw_on_commit`.
    """
    subjects_by_token_start: dict[str, Sequence[str]] = {}
    all_subjects: set[str] = set()
    for post, subject_names in categories.items():
        subjects_by_token_start[_token_start(post)] = subject_names
        all_subjects.update(subject_names)
    rows = PendingPublication.objects.using(alias).filter(subject__in=all_subjects, items=1)
    tokens: list[UUID] = []
    # Not by ranges of tokens, because MariaDB sorts them by their ends.
    for token, subject in rows.values_list("token", "subject"):
        token_start = token.hex[: 2 * DIGEST]
        if subject in subjects_by_token_start.get(token_start, ()):
            tokens.append(token)
    for portion in scripts.sliced(tokens):
        rows.filter(token__in=portion).delete()


def send_now(publications: Sequence[PendingPublication]) -> None:
    """Puts publications into the app's own outbox, and sends them at once.

    Raises redis.RedisError. Then the next flush sends them.
    """
    outbox = databases.of(PendingPublication).alias
    PendingPublication.objects.using(outbox).bulk_create(publications)
    send(publications, outbox)


def send(publications: Sequence[PendingPublication], outbox: str) -> None:
    """Sends publications to Redis, and notes that in the outbox of that database.

    If a server of a cluster is silent, the publications for the others are sent first. Raises
    redis.RedisError.
    """
    sent = _send_portions(publications, outbox)
    if sent.silent:
        raise sent.silent


class Sent(NamedTuple):
    """How many publications were sent, and the error of a server of a cluster that was silent."""

    number: int
    silent: SilentError | None


def _send_portions(publications: Sequence[PendingPublication], outbox: str) -> Sent:
    """Sends the publications of each partition. Raises redis.RedisError."""
    number = 0
    silent = None
    for portion in scripts.parted(publications, tag_of=_tag_of):
        try:
            time = _send_portion(portion)
        except SilentError as error:
            silent = error
            continue
        if not time:
            continue  # until the read state that Redis lost is restored
        number += len(portion)
        pks = [row.pk for row in portion]
        PendingPublication.objects.using(outbox).filter(pk__in=pks).update(sent=time)
    return Sent(number, silent)


def _send_portion(portion: Sequence[PendingPublication]) -> int:
    """Sends publications of one partition. Returns Redis's time (µs), 0 if Redis takes none of
    them, because it has not begun.

    For publications of several forms it is the earliest time. Raises redis.RedisError.
    """
    publications = _for_redis(portion)
    times = [scripts.run(call) for call in read_state.publish(publications)]
    if 0 in times and read_states.begin_new_site():
        times = [scripts.run(call) for call in read_state.publish(publications)]
    return min(times)


def _tag_of(row: PendingPublication) -> str:
    """Returns the tag of the partition of the publication's category."""
    return keys.tag(row.subject)


def _for_redis(rows: Sequence[PendingPublication]) -> list[read_state.Publication]:
    """Returns the rows as publications for Redis. Asks SQL what their categories are within, where
    that is not known.
    """
    asked_subjects = [row.subject for row in rows if row.within is None]
    within_by_subject = read_state.within(asked_subjects)
    publications = []
    for row in rows:
        within = row.within
        if within is None:
            within = within_by_subject.get(row.subject, [])
        publications.append(_row_for_redis(row, within=within))
    return publications


def _row_for_redis(row: PendingPublication, *, within: Sequence[str]) -> read_state.Publication:
    """Returns the row of an outbox as a publication for Redis.

    `within` has the subjects of the objects that the row's category is within.
    """
    return read_state.Publication(
        subject=row.subject,
        items=row.items,
        author=_author(row),
        is_own=row.is_own,
        token=row.token.hex,
        post=row.post,
        within=tuple(within),
    )


def _author(row: PendingPublication) -> readers.Reader | None:
    """Returns the author as a reader; None for no author, or for a key that no user can have."""
    if not row.author:
        return None
    with suppress(ValidationError):  # the site may have another model of users by now
        pk = get_user_model()._meta.pk.to_python(row.author)
        return readers.reader_or_none(pk)
    return None


def resend() -> int:
    """Sends all publications in the outboxes that Redis may not have.

    Returns the number of publications. Those for a server of a cluster that is silent, or whose
    read state is not restored, wait for the next time. Raises redis.RedisError or django.db.Error.
    """
    count = 0
    for alias in outboxes():
        rows = PendingPublication.objects.using(alias).filter(sent=None)
        for unsent in databases.in_portions(rows, "pk", scripts.SLICE):
            count += _send_portions(unsent, alias).number  # the outbox keeps the others
    return count


class Pending(NamedTuple):
    """A publication that Redis has, and that SQL's copy of the read state may not have."""

    outbox: str  # the alias of its database
    token: UUID
    sent: int  # Redis's time (µs)


def sent_publications(tags: Sequence[str]) -> dict[str, list[Pending]]:
    """Returns the publications in the outboxes that Redis has, by the subjects of their categories.

    The categories are in the partitions with these tags.
    """
    by_subject: dict[str, list[Pending]] = {}
    for alias in outboxes():
        rows = PendingPublication.objects.using(alias).exclude(sent=None)
        for token, subject, sent in rows.values_list("token", "subject", "sent"):
            if sent is not None and keys.tag(subject) in tags:
                by_subject.setdefault(subject, []).append(Pending(alias, token, sent))
    return by_subject


def delete(publications: Sequence[Pending]) -> None:
    """Deletes publications from their outboxes, but not those that were sent again since."""
    for alias, group in _by_outbox(publications).items():
        for portion in scripts.sliced(group):
            tokens = [publication.token for publication in portion]
            latest = max(publication.sent for publication in portion)
            rows = PendingPublication.objects.filter(pk__in=tokens, sent__lte=latest)
            # Not by delete(): if the site has receivers of its signals, it reads each row first.
            rows._raw_delete(alias)


def send_again(publications: Sequence[Pending]) -> None:
    """Lets the next flush send publications again, because Redis has lost them."""
    for alias, group in _by_outbox(publications).items():
        for portion in scripts.sliced([publication.token for publication in group]):
            PendingPublication.objects.using(alias).filter(pk__in=portion).update(sent=None)


def _by_outbox(publications: Sequence[Pending]) -> dict[str, list[Pending]]:
    """Returns the publications by the alias of the database whose outbox has them."""
    groups: dict[str, list[Pending]] = {}
    for publication in publications:
        groups.setdefault(publication.outbox, []).append(publication)
    return groups
