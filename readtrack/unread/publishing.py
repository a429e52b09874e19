"""Publishing: posts make their categories unread."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from django.db import router
from django.db.models import ManyToManyField, Model

from readtrack import subjects
from readtrack.models import UnsentPublication
from readtrack.unread import outbox


def mark_unread(objs: Iterable[Model]) -> None:
    """Makes the categories unread for all, in one trip for 1,000. Raises TypeError without read
    state.
    """
    outbox.send(
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
    the posts. Raises TypeError for a model that can be news for nothing: neither its `news_for` nor
    that of MODELS says for what.
    """
    authors: dict[str, list[str]] = {}  # of the posts of each category
    publications: list[UnsentPublication] = []
    for post in subjects.listed(posts):
        has_read_state = subjects.has_read_state(type(post))
        if not has_read_state and not subjects.news_links(type(post)):
            ways = "name the fields in its news_for or in that of READTRACK['MODELS']"
            raise TypeError(f"{type(post).__name__} is news for nothing; {ways}.")
        using = using or router.db_for_write(type(post), instance=post)
        author = subjects.author_of(post)
        for subject in categories_of(post, using=using, links=links):
            authors.setdefault(subject, []).append(author)
        if has_read_state and links is None:
            publications.append(
                UnsentPublication(
                    subject=subjects.subject_of(post), author=author, is_own=bool(author)
                )
            )
    outbox.send_on_commit([*_publications(authors), *publications], using=using)


def publish_to(objs: Iterable[Model], posts: Sequence[Model], *, using: str | None = None) -> None:
    """Makes these categories unread on commit, because the posts are new in them; other categories
    stay as they are.

    The posts may be of any model. Raises TypeError for a category without read state.
    """
    authors = [subjects.author_of(post) for post in subjects.listed(posts)]
    categories = dict.fromkeys(subjects.category_subjects(objs), authors)
    outbox.send_on_commit(_publications(categories), using=using)


def _publications(authors: Mapping[str, Sequence[str]]) -> list[UnsentPublication]:
    """Returns one publication for each category, by the authors of its posts."""
    publications = []
    for subject, authors_of_posts in authors.items():
        # If all posts are by one author, the author gets no dot.
        is_single = len(set(authors_of_posts)) == 1
        author = authors_of_posts[0] if is_single else ""
        publications.append(
            UnsentPublication(subject=subject, items=len(authors_of_posts), author=author)
        )
    return publications


def categories_of(
    post: Model, *, using: str | None = None, links: Collection[str] | None = None
) -> Iterator[str]:
    """Yields the subjects of the post's categories, with one query for each many-to-many field.

    With `links` they are those of these fields alone.
    """
    for field in subjects.news_links(type(post)):
        if links is not None and field.name not in links:
            continue
        if isinstance(field, ManyToManyField):
            yield from map(subjects.subject_of, getattr(post, field.name).using(using).only("pk"))
            continue
        key = getattr(post, field.attname)
        if key is not None:
            pk = key if field.target_field.primary_key else getattr(post, field.name).pk
            yield subjects.subject_of_row(field.related_model, pk)
