"""Publishing: posts make their categories unread."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from django.db import router
from django.db.models import ManyToManyField, Model

from readtrack import subjects
from readtrack.models import UnsentPublication
from readtrack.unread import outbox


def mark_unread(objs: Iterable[Model]) -> None:
    """Makes the categories unread for everybody, in one round trip for each 1,000 categories.

    Raises TypeError for an object without read state, and redis.RedisError.
    """
    publications = [
        UnsentPublication(subject=subject, token=None)
        for subject in subjects.category_subjects(objs)
    ]
    outbox.send(publications)


def publish(
    posts: Iterable[Model], *, using: str | None = None, links: Collection[str] | None = None
) -> None:
    """Makes the categories of the posts unread on commit.

    Call it where `save()` is not called: after bulk_create and update, in imports, when a scheduled
    post is due. If it is called in the transaction of the posts, no crash can lose it. `using` is
    the alias of the posts' database. With `links`, it takes only the categories that these fields
    lead to. Raises TypeError for a model that has neither read state nor fields that lead to
    categories (`news_for`, of the model or in MODELS).
    """
    authors_by_category: dict[str, list[str]] = {}  # the author of each post
    own_publications: list[UnsentPublication] = []  # of posts that have read state themselves
    for post in subjects.listed(posts):
        has_read_state = subjects.has_read_state(type(post))
        if not has_read_state and not subjects.news_links(type(post)):
            ways = "name the fields in its news_for or in that of READTRACK['MODELS']"
            raise TypeError(f"{type(post).__name__} is news for nothing; {ways}.")
        using = using or router.db_for_write(type(post), instance=post)
        author = subjects.author_of(post)
        for subject in categories_of(post, using=using, links=links):
            authors_by_category.setdefault(subject, []).append(author)
        if has_read_state and links is None:
            subject = subjects.subject_of(post)
            own_publications.append(
                UnsentPublication(subject=subject, author=author, is_own=bool(author))
            )
    publications = [*_publications(authors_by_category), *own_publications]
    outbox.send_on_commit(publications, using=using)


def publish_to(objs: Iterable[Model], posts: Sequence[Model], *, using: str | None = None) -> None:
    """Makes the categories `objs` unread on commit, because the posts are new in them. Other
    categories stay as they are.

    The posts may be of any model. Raises TypeError for a category without read state.
    """
    authors = [subjects.author_of(post) for post in subjects.listed(posts)]
    authors_by_category = dict.fromkeys(subjects.category_subjects(objs), authors)
    outbox.send_on_commit(_publications(authors_by_category), using=using)


def _publications(authors_by_category: Mapping[str, Sequence[str]]) -> list[UnsentPublication]:
    """Returns one publication for each category.

    `authors_by_category` has the author of each new post (a primary key as text, or "") by the
    subject of the category.
    """
    publications = []
    for subject, authors in authors_by_category.items():
        author = ""
        if len(set(authors)) == 1:  # a single author of all posts gets no dot
            author = authors[0]
        publications.append(UnsentPublication(subject=subject, items=len(authors), author=author))
    return publications


def categories_of(
    post: Model, *, using: str | None = None, links: Collection[str] | None = None
) -> Iterator[str]:
    """Yields the subjects of the post's categories, with one query for each many-to-many field.

    With `links` it yields only the categories that these fields lead to.
    """
    for field in subjects.news_links(type(post)):
        if links is not None and field.name not in links:
            continue
        if isinstance(field, ManyToManyField):
            categories = getattr(post, field.name).using(using).only("pk")
            yield from map(subjects.subject_of, categories)
            continue
        pk = getattr(post, field.attname)
        if pk is None:
            continue
        if not field.target_field.primary_key:  # the foreign key has a `to_field`
            pk = getattr(post, field.name).pk
        yield subjects.subject_of_row(field.related_model, pk)
