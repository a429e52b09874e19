"""Publishing: posts make their categories unread."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from django.db import router
from django.db.models import ManyToManyField, Model

from readtrack import subjects
from readtrack.models import UnsentPublication
from readtrack.store import read_state
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
    posts_by_category: dict[str, list[Model]] = {}
    publications: list[UnsentPublication] = []
    for post in subjects.listed(posts):
        has_read_state = subjects.has_read_state(type(post))
        if not has_read_state and not subjects.news_links(type(post)):
            ways = "name the fields in its news_for or in that of READTRACK['MODELS']"
            raise TypeError(f"{type(post).__name__} is news for nothing; {ways}.")
        using = using or router.db_for_write(type(post), instance=post)
        for subject in categories_of(post, using=using, links=links):
            posts_by_category.setdefault(subject, []).append(post)
        if has_read_state and links is None:
            author = subjects.author_of(post)
            publications.append(
                UnsentPublication(
                    subject=subjects.subject_of(post), author=author, is_own=bool(author)
                )
            )
    outbox.send_on_commit([*_publications(posts_by_category), *publications], using=using)


def publish_to(objs: Iterable[Model], posts: Sequence[Model], *, using: str | None = None) -> None:
    """Makes these categories unread on commit, because the posts are new in them; other categories
    stay as they are.

    The posts may be of any model. Raises TypeError for a category without read state.
    """
    news = list(subjects.listed(posts))
    categories = dict.fromkeys(subjects.category_subjects(objs), news)
    outbox.send_on_commit(_publications(categories), using=using)


def _publications(posts_by_category: Mapping[str, Sequence[Model]]) -> list[UnsentPublication]:
    """Returns one publication for each category."""
    publications = []
    for subject, posts in posts_by_category.items():
        # If all posts are by one author, the author gets no dot.
        authors = {subjects.author_of(post) for post in posts}
        author = authors.pop() if len(authors) == 1 else ""
        publication = UnsentPublication(subject=subject, items=len(posts), author=author)
        if len(posts) == 1 and posts[0].pk is not None:
            publication.token = outbox.token_of(subjects.subject_of(posts[0]))
        publications.append(publication)
    return publications


def unpublish(posts: Iterable[Model], *, using: str | None = None) -> None:
    """Takes the news of these posts back on commit, as their deletion does: nobody is told of them
    any more.

    Call it where a post is hidden, and not deleted. It needs READ_STATE "sequence", because a
    bitmap forgets what a reader had read before; and news of the last 24 hours that was one post
    alone. What else was published stays new.
    """
    if not read_state.strategy_of("").has_numbers:
        return
    for post in subjects.listed(posts):
        own = using or router.db_for_write(type(post), instance=post)
        unpublish_from(categories_of(post, using=own), [post], using=own)


def unpublish_from(
    categories: Iterable[str], posts: Iterable[Model], *, using: str | None = None
) -> None:
    """Takes the news of these posts in the categories with these subjects back on commit."""
    if not read_state.strategy_of("").has_numbers:
        return
    names = list(categories)
    withdrawn = {subjects.subject_of(post): names for post in posts}
    outbox.withdraw_on_commit(withdrawn if names else {}, using=using)


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
