"""Making categories unread when something new is in them, and read where a site or an account
starts with no dots.

An SQL table is the outbox: what is new is written in the transaction of the post, sent to Redis on
commit, and deleted once Redis has it. What is left after a crash is sent by the next flush.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, connections, router, transaction
from django.db.models import ManyToManyField, Max, Model

from readtrack import subjects
from readtrack.conf import cached_setting, conf
from readtrack.hits import readers
from readtrack.models import UnsentPublication
from readtrack.sql import databases
from readtrack.store import connection, keys, read_state, scripts
from readtrack.store.circuit import fail_open


def mark_unread(objs: Iterable[Model]) -> None:
    """Makes the categories unread for all, in one trip for 1,000. Raises TypeError without read
    state.
    """
    _send(
        [
            UnsentPublication(subject=subject, token=None)
            for subject in subjects.category_subjects(objs)
        ]
    )


def publish(
    posts: Iterable[Model], *, using: str | None = None, links: Collection[str] | None = None
) -> None:
    """Makes the categories of the posts unread on commit; with `links`, those of these fields
    alone.

    Call it where `save()` is not called: after bulk_create and update, in imports, when a scheduled
    post is due. In the transaction of the posts, no crash can lose it. `using` is the database of
    the posts. Raises TypeError for a model that can be news for nothing: neither `news_for` nor
    NEWS_FOR says for what.
    """
    found: dict[str, list[str]] = {}
    own: list[UnsentPublication] = []
    for post in subjects.listed(posts):
        if not (subjects.news_links(type(post)) or subjects.has_read_state(type(post))):
            ways = "name the fields in news_for or READTRACK['NEWS_FOR']"
            raise TypeError(f"{type(post).__name__} is news for nothing; {ways}.")
        using = using or router.db_for_write(type(post), instance=post)
        author = subjects.author_of(post)
        for subject in categories_of(post, using=using, links=links):
            found.setdefault(subject, []).append(author)
        if links is None and subjects.has_read_state(type(post)):
            own.append(
                UnsentPublication(
                    subject=subjects.subject_of(post), author=author, is_own=bool(author)
                )
            )
    _send_on_commit(found, own, using)


def publish_to(objs: Iterable[Model], posts: Sequence[Model], *, using: str | None = None) -> None:
    """Makes these categories unread on commit, because the posts are new in them; other categories
    stay as they are.

    The posts may be of any model. Raises TypeError for a category without read state.
    """
    authors = [subjects.author_of(post) for post in subjects.listed(posts)]
    _send_on_commit(dict.fromkeys(subjects.category_subjects(objs), authors), [], using)


def resend() -> int:
    """Sends what is in the outbox. Returns the number of publications. Raises redis.RedisError or
    django.db.Error.
    """
    count = 0
    for alias in outboxes():
        while unsent := list(
            UnsentPublication.objects.using(alias).order_by("pk")[: scripts.SLICE]
        ):
            _send(unsent, alias)
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


def categories_of(
    post: Model, *, using: str | None = None, links: Collection[str] | None = None
) -> Iterator[str]:
    """Yields the subjects of the post's categories; one query for each many-to-many field."""
    for field in subjects.news_links(type(post)):
        if links is not None and field.name not in links:
            continue
        if isinstance(field, ManyToManyField):
            yield from map(subjects.subject_of, getattr(post, field.name).using(using).only("pk"))
        elif (key := getattr(post, field.attname)) is not None:
            pk = key if field.target_field.primary_key else getattr(post, field.name).pk
            yield subjects.subject_of_row(field.related_model, pk)


def _send_on_commit(
    found: Mapping[str, list[str]], own: list[UnsentPublication], using: str | None
) -> None:
    """Puts publications into the outbox, if there is one, and sends them on commit. `found` has
    authors by subject.
    """
    news = [  # a single author of all posts of a category gets no dot
        UnsentPublication(subject=subject, items=len(by), author=by[0] if len(set(by)) == 1 else "")
        for subject, by in found.items()
    ] + own
    if not news:
        return
    alias = using or DEFAULT_DB_ALIAS
    outbox = alias if alias in outboxes() else None
    if outbox:
        UnsentPublication.objects.using(outbox).bulk_create(news)

    def send() -> (
        None
    ):  # no partial, because Django 5.2 logs an error with the function's __qualname__
        is_sent = fail_open(_send, False, news, outbox)  # noqa: FBT003 - the default result
        if not is_sent and not outbox:  # the app's own one takes them
            UnsentPublication.objects.bulk_create(news)

    # Robust, because the post is saved by then: an error is logged and the page is served.
    transaction.on_commit(send, using=alias, robust=True)


def _send(news: Sequence[UnsentPublication], outbox: str | None = None) -> bool:
    """Sends publications, and deletes them from their outbox."""
    for some in scripts.parted(news, tag_of=lambda row: keys.tag(row.subject)):
        publications = []
        for row in some:
            author = None
            with suppress(ValidationError):  # the site may have other users by now
                author = (
                    readers.or_none(get_user_model()._meta.pk.to_python(row.author))
                    if row.author
                    else None
                )
            token = row.token.hex if row.token else ""
            publications.append(
                read_state.Publication(row.subject, row.items, author, row.is_own, token)
            )
        scripts.run(read_state.publish(publications))
    for pks in scripts.sliced([row.pk for row in news]) if outbox else ():
        # Without the signals of delete(), for which a site may have receivers that read each row
        # first.
        UnsentPublication.objects.filter(pk__in=pks)._raw_delete(outbox)
    return True


def start_as_read(model: type[Model], *, progress: Callable[[int], object] = int) -> int:
    """Marks each row read for all users, unless published to meanwhile. Returns how many. May be
    started again.
    """
    as_of = connection.server_time(patient=True)
    read_state.begin(as_of)
    highest = (
        number_readers()
        if readers.has_ordinals()
        else dict.fromkeys(keys.tags(), highest_position())
    )
    # One script writes 10 MB at most, which the server does in some milliseconds.
    count, size = 0, max(1, min(scripts.SLICE, 10_000_000 // size_of(max(highest.values()))))
    for names in subjects_of_rows(model, size):
        for some in scripts.parted(names):
            count += scripts.run(
                read_state.fill(some, highest=highest[keys.tag(some[0])], as_of=as_of), patient=True
            )
        progress(len(names))
    return count


def highest_position() -> int:
    """Returns the highest position of a user's read state; at least 0."""
    users = databases.rows(get_user_model())
    highest = (
        users.count() - 1
        if readers.has_ordinals()
        else users.aggregate(highest=Max("pk"))["highest"] or 0
    )
    return max(0, min(highest, readers.highest()))


def number_readers() -> dict[str, int]:
    """Gives an ordinal to each user who has none yet. Returns the highest one of each partition, at
    least 0, by tag.
    """
    names = map(
        readers.reader_by_id,
        databases.rows(get_user_model()).values_list("pk", flat=True).iterator(),
    )
    highest = dict.fromkeys(keys.tags(), 0)
    while some := list(islice(names, scripts.SLICE)):
        highest = dict(
            zip(keys.tags(), scripts.run_all(*read_state.number(some), patient=True), strict=True)
        )
    return highest


def size_of(highest: int) -> int:
    """Returns the memory of a category's read state up to that position (bytes)."""
    return (highest + 1) * readers.BITS[conf.READ_STATE] // 8 + 1


def start_reader(pk: Any) -> bool:
    """Marks all read for a new account. Returns False if a server of a cluster was silent. Raises
    redis.RedisError.
    """
    is_done = True
    if (reader := readers.or_none(pk)) is None:
        return is_done
    for model in subjects.read_state_models():
        for names in subjects_of_rows(model, scripts.SLICE):
            is_done &= None not in scripts.run_all(*read_state.marks(reader, names, absent=None))
    return is_done


def subjects_of_rows(model: type[Model], size: int) -> Iterator[list[str]]:
    """Yields the subjects of all rows of the model, `size` at once. No cursor stays open in
    between.
    """
    rows = databases.rows(model).order_by("pk").values_list("pk", flat=True)
    page = list(rows[:size])
    while page:
        yield [subjects.subject_of_row(model, pk) for pk in page]
        page = list(rows.filter(pk__gt=page[-1])[:size])
