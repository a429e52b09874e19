"""Publishing: makes categories unread when something new is in them. An SQL table is the outbox while Redis is down."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db import transaction
from django.db.models import ManyToManyField, Model

from readtrack.hits import readers
from readtrack.models import Tracked, UnsentPublication
from readtrack.store import read_state, scripts
from readtrack.store.circuit import fail_open
from readtrack.store.read_state import Publication
from readtrack.subjects import has_read_state, listed, news_links, subject_of, subject_of_row, subjects_of


def mark_unread(objs: Iterable[Model]) -> None:
    """Makes the categories unread for everybody now, in one round trip for every 1,000. Raises redis.RedisError."""
    _send([Publication(subject) for subject in subjects_of(objs).values()])


def publish(posts: Iterable[Tracked], *, using: str | None = None) -> None:
    """Makes the categories of the posts unread on commit.

    Call it where `save()` is not called: after bulk_create and update, in imports, when a scheduled post is due.
    """
    found: dict[str, list[Any]] = {}
    own: list[Publication] = []
    for post in listed(posts):
        author = _author_of(post)
        for subject in categories_of(post):
            found.setdefault(subject, []).append(author)
        if has_read_state(type(post)):
            own.append(Publication(subject_of(post), author=author, is_own=author is not None))
    _send_on_commit([*_publications(found), *own], using=using)


def publish_to(objs: Iterable[Model], posts: Sequence[Tracked], *, using: str | None = None) -> None:
    """Makes these categories unread on commit, because the posts are new in them; other categories stay as they are."""
    authors = [_author_of(post) for post in listed(posts)]
    _send_on_commit(_publications(dict.fromkeys(subjects_of(objs).values(), authors)), using=using)


def resend() -> int:
    """Sends up to 1,000 publications that are in the outbox. Returns their number. Raises redis.RedisError."""
    unsent = dict(UnsentPublication.objects.order_by("pk").values_list("pk", "subject")[: scripts.SLICE])
    _send([Publication(subject) for subject in dict.fromkeys(unsent.values())])
    UnsentPublication.objects.filter(pk__in=unsent).delete()
    return len(unsent)


def categories_of(post: Tracked) -> Iterator[str]:
    """Yields the subjects of the post's categories; one query for each many-to-many field."""
    for field in news_links(type(post)):
        if isinstance(field, ManyToManyField):
            yield from (subject_of(category) for category in getattr(post, field.name).only("pk"))
        elif getattr(post, field.attname) is None:
            continue
        elif field.target_field.primary_key:
            yield subject_of_row(field.related_model, getattr(post, field.attname))
        else:
            yield subject_of(getattr(post, field.name))


def _author_of(post: Tracked) -> readers.Reader | None:
    if not post.news_author:
        return None
    field: Any = post._meta.get_field(post.news_author)
    pk = getattr(post, field.attname)
    return None if pk is None else readers.or_none(pk)


def _publications(found: dict[str, list[Any]]) -> list[Publication]:
    """Returns one publication for each category. A single author of all its posts gets no dot."""
    return [Publication(subject, len(by), by[0] if len(set(by)) == 1 else None) for subject, by in found.items()]


def _send_on_commit(publications: list[Publication], *, using: str | None) -> None:
    def send_or_store() -> None:
        if not fail_open(_send, False, publications):  # noqa: FBT003 - the default result
            UnsentPublication.objects.bulk_create(UnsentPublication(subject=entry.subject) for entry in publications)

    if publications:
        # Robust, because the post is saved by then: an error is logged and the page is served.
        transaction.on_commit(send_or_store, using=using, robust=True)


def _send(publications: Sequence[Publication]) -> bool:
    for some in scripts.sliced(publications):
        scripts.run(read_state.publish(some))
    return True
