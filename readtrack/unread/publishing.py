"""Publishing: makes categories unread when something new is in them.

An SQL table is the outbox: what is new is written in the transaction of the post, sent to Redis on commit, and deleted
once Redis has it. What is left after a crash is sent by the next flush.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, connections, router, transaction
from django.db.models import ManyToManyField, Model

from readtrack import subjects
from readtrack.conf import cached_setting, conf
from readtrack.hits import readers
from readtrack.models import Tracked, UnsentPublication
from readtrack.store import keys, read_state, scripts
from readtrack.store.circuit import fail_open
from readtrack.store.read_state import Publication


def mark_unread(objs: Iterable[Model]) -> None:
    """Makes the categories unread for all, in one trip for 1,000. Raises TypeError without read state."""
    _send([Publication(subject) for subject in subjects.category_subjects(objs)])


def publish(posts: Iterable[Model], *, using: str | None = None, links: Collection[str] | None = None) -> None:
    """Makes the categories of the posts unread on commit; with `links`, those of these fields alone.

    Call it where `save()` is not called: after bulk_create and update, in imports, when a scheduled post is due. In
    the transaction of the posts, no crash can lose it. `using` is the database of the posts. Raises TypeError for a
    model that can be news for nothing: neither `news_for` nor NEWS_FOR says for what.
    """
    found: dict[str, list[Any]] = {}
    own: list[UnsentPublication] = []
    for post in subjects.listed(posts):
        if not (isinstance(post, Tracked) or subjects.news_for(type(post)) or subjects.has_read_state(type(post))):
            raise TypeError(f"{type(post).__name__} is news for nothing; name the fields in READTRACK['NEWS_FOR'].")
        using = using or router.db_for_write(type(post), instance=post)
        author = subjects.author_of(post)
        for subject in categories_of(post, using=using, links=links):
            found.setdefault(subject, []).append(author)
        if links is None and subjects.has_read_state(type(post)):
            own.append(UnsentPublication(subject=subjects.subject_of(post), author=author, is_own=bool(author)))
    _send_on_commit([*_unsent(found), *own], using=using)


def publish_to(objs: Iterable[Model], posts: Sequence[Model], *, using: str | None = None) -> None:
    """Makes these categories unread on commit, because the posts are new in them; other categories stay as they are."""
    authors = [subjects.author_of(post) for post in subjects.listed(posts)]
    _send_on_commit(_unsent(dict.fromkeys(subjects.subjects_of(objs).values(), authors)), using=using)


def resend() -> int:
    """Sends what is in the outbox. Returns the number of publications. Raises redis.RedisError or django.db.Error."""
    count = 0
    for alias in outboxes():
        rows = UnsentPublication.objects.using(alias).order_by("pk")
        while unsent := list(rows[: scripts.SLICE]):
            _send([_publication(row) for row in unsent])
            _delete(unsent, alias)
            count += len(unsent)
    return count


def outboxes() -> list[str]:
    """Returns the aliases of the databases that have an outbox, the app's own first."""
    own = router.db_for_write(UnsentPublication)
    named = [model for label in conf.NEWS_FOR if (model := subjects.model_with_label(str(label)))]
    others = {router.db_for_write(model) for model in (*subjects.tracked_models(), *named)} - {own}
    return [own, *sorted(filter(_has_outbox, others))]


@cached_setting("DATABASES", "DATABASE_ROUTERS")
def _has_outbox(alias: str) -> bool:
    return UnsentPublication._meta.db_table in connections[alias].introspection.table_names()


def categories_of(post: Model, *, using: str | None = None, links: Collection[str] | None = None) -> Iterator[str]:
    """Yields the subjects of the post's categories; one query for each many-to-many field."""
    for field in subjects.news_links(type(post)):
        if links is not None and field.name not in links:
            continue
        if isinstance(field, ManyToManyField):
            linked = getattr(post, field.name).using(using)
            yield from (subjects.subject_of(category) for category in linked.only("pk"))
        elif getattr(post, field.attname) is None:
            continue
        elif field.target_field.primary_key:
            yield subjects.subject_of_row(field.related_model, getattr(post, field.attname))
        else:
            yield subjects.subject_of(getattr(post, field.name))


def _unsent(found: dict[str, list[str]]) -> list[UnsentPublication]:
    """Returns one publication for each category. A single author of all its posts gets no dot."""
    return [
        UnsentPublication(subject=subject, items=len(by), author=by[0] if len(set(by)) == 1 else "")
        for subject, by in found.items()
    ]


def _publication(row: UnsentPublication) -> Publication:
    author = None
    with suppress(ValidationError):  # the site may have other users by now
        author = readers.or_none(get_user_model()._meta.pk.to_python(row.author)) if row.author else None
    return Publication(row.subject, row.items, author, row.is_own, row.token.hex)


def _send_on_commit(news: Sequence[UnsentPublication], *, using: str | None) -> None:
    """Writes publications into the outbox, if the database has one, sends them on commit, and deletes them."""
    if not news:
        return
    alias = using or DEFAULT_DB_ALIAS
    outbox = alias if alias in outboxes() else None
    if outbox:
        UnsentPublication.objects.using(outbox).bulk_create(news)

    def send() -> None:  # no partial, because Django 5.2 logs an error with the function's __qualname__
        is_sent = fail_open(_send, False, [_publication(row) for row in news])  # noqa: FBT003 - the default result
        if is_sent and outbox:
            _delete(news, outbox)
        elif not is_sent and not outbox:  # the app's own one takes them
            UnsentPublication.objects.bulk_create(news)

    # Robust, because the post is saved by then: an error is logged and the page is served.
    transaction.on_commit(send, using=alias, robust=True)


def _send(publications: Sequence[Publication]) -> bool:
    for group in keys.by_tag(publications, lambda one: keys.tag(one.subject)).values():
        for some in scripts.sliced(group):
            scripts.run(read_state.publish(some))
    return True


def _delete(rows: Iterable[UnsentPublication], alias: str) -> None:
    # Without the signals of delete(), for which a site may have receivers that read each row first.
    for some in scripts.sliced([row.pk for row in rows]):
        UnsentPublication.objects.filter(pk__in=some)._raw_delete(alias)
