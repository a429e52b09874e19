"""Publishing: posts make their categories unread."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db import router
from django.db.models import ManyToManyField, Model

from readtrack import subjects
from readtrack.models import PendingPublication
from readtrack.models.tracked import every_row
from readtrack.store import read_state
from readtrack.unread import outbox


def mark_unread(objs: Iterable[Model]) -> None:
    """Makes the categories unread for everybody, in one round trip for each 1,000 categories.

    Raises TypeError for an object without read state, and redis.RedisError; after that the next
    flush makes them unread.
    """
    publications = [
        PendingPublication(subject=subject) for subject in subjects.category_subjects(objs)
    ]
    outbox.send_now(publications)


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
    posts_by_category: dict[str, list[Model]] = {}
    own_publications: list[PendingPublication] = []  # of posts that have read state themselves
    for post in subjects.listed(posts):
        has_read_state = subjects.has_read_state(type(post))
        if not has_read_state and not subjects.news_links(type(post)):
            ways = "name the fields in its news_for or in that of READTRACK['MODELS']"
            raise TypeError(f"{type(post).__name__} is news for nothing; {ways}.")
        using = using or router.db_for_write(type(post), instance=post)
        for subject in categories_of(post, using=using, links=links):
            posts_by_category.setdefault(subject, []).append(post)
        if has_read_state and links is None:
            subject = subjects.subject_of(post)
            author = subjects.author_of(post)
            own_publications.append(
                PendingPublication(subject=subject, author=author, is_own=bool(author))
            )
    publications = [*_publications(posts_by_category), *own_publications]
    outbox.send_on_commit(publications, using=using)


def publish_to(
    categories: Iterable[Model], posts: Sequence[Model], *, using: str | None = None
) -> None:
    """Makes the categories unread on commit, because the posts are new in them. Other categories
    stay as they are.

    The posts may be of any model. Raises TypeError for a category without read state.
    """
    news = list(subjects.listed(posts))
    posts_by_category = dict.fromkeys(subjects.category_subjects(categories), news)
    outbox.send_on_commit(_publications(posts_by_category), using=using)


def publish_each_to(categories: Iterable[Model], posts: Sequence[Model]) -> None:
    """Does what `publish_to` does, by one publication for each post, so that each one can be taken
    back.
    """
    subject_names = subjects.category_subjects(categories)
    publications = [_publication(name, [post]) for post in posts for name in subject_names]
    outbox.send_on_commit(publications, using=None)


def _publications(posts_by_category: Mapping[str, Sequence[Model]]) -> list[PendingPublication]:
    """Returns one publication for each category, or one for each post where the category's form of
    read state has `keeps_posts`.

    `posts_by_category` has the new posts of each category, by the category's subject.
    """
    publications = []
    for subject, posts in posts_by_category.items():
        if read_state.form_of(subject).keeps_posts:
            publications += [_publication(subject, [post]) for post in posts]
        else:
            publications.append(_publication(subject, posts))
    return publications


def _publication(subject: str, posts: Sequence[Model]) -> PendingPublication:
    """Returns the publication of the posts in the category `subject`."""
    authors = {subjects.author_of(post) for post in posts}
    author = ""
    if len(authors) == 1:  # a single author of all posts gets no dot
        author = authors.pop()
    publication = PendingPublication(subject=subject, items=len(posts), author=author)
    if len(posts) == 1 and posts[0].pk is not None:
        publication.post = subjects.subject_of(posts[0])
        publication.token = outbox.token_of(publication.post)
    category = _loaded_category(subject, posts[0])
    if category is not None:
        publication.within = read_state.form_of(subject).loaded_within(category)
    return publication


def _loaded_category(subject: str, post: Model) -> Model | None:
    """Returns the object whose subject is `subject` if the post has loaded it, else None."""
    for link in subjects.news_links(type(post)):
        if isinstance(link, ManyToManyField) or not link.is_cached(post):
            continue
        category: Model | None = getattr(post, link.name)
        if category is not None and subjects.subject_of(category) == subject:
            return category
    return None


def unpublish(posts: Iterable[Model], *, using: str | None = None) -> None:
    """Takes the news of the posts back on commit, as their deletion does.

    Call it where a post is hidden, and not deleted. A reader who has not seen the post has one less
    that is new; what else was published stays new. It needs a form of read state with numbers,
    because a bitmap forgets what a reader had read before; and posts that were news each by itself,
    with "sequence" in the last 24 hours. `using` is the alias of the posts' database.
    """
    for post in subjects.listed(posts):
        links = [link for link in subjects.news_links(type(post)) if _can_withdraw(link)]
        if not links:
            continue
        alias = using or router.db_for_write(type(post), instance=post)
        withdraw(categories_of(post, using=alias), [post], using=alias)


def unpublish_from(
    objs: Iterable[Model], posts: Sequence[Model], *, using: str | None = None
) -> None:
    """Takes back on commit what `publish_to` published for these categories, like `unpublish`.

    Raises TypeError for a category without read state.
    """
    withdraw(subjects.category_subjects(objs), subjects.listed(posts), using=using)


def withdraw(categories: Iterable[str], posts: Iterable[Model], *, using: str | None) -> None:
    """Takes the news of the posts in the categories with these subjects back on commit.

    Does nothing for a category whose form of read state cannot.
    """
    names = [name for name in categories if read_state.form_of(name).has_numbers]
    if names:
        withdrawn = {subjects.subject_of(post): names for post in posts}
        outbox.withdraw_on_commit(withdrawn, using=using)


def _can_withdraw(link: Any) -> bool:
    """Returns True if news can be taken back in the categories that the field leads to."""
    label = subjects.label_of(link.related_model)
    return read_state.form_of(label).has_numbers


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
            for pk in _linked(post, field, using=using):
                yield subjects.subject_of_row(field.related_model, pk)
            continue
        pk = getattr(post, field.attname)
        if pk is None:
            continue
        if not field.target_field.primary_key:  # the foreign key has a `to_field`
            pk = getattr(post, field.name).pk
        yield subjects.subject_of_row(field.related_model, pk)


def _linked(post: Model, field: "ManyToManyField[Any, Any]", *, using: str | None) -> list[Any]:
    """Returns the primary keys of the rows that the field links to the post.

    The post's own manager is not asked: that of django-modelcluster answers with what is still to
    be linked, and a further signal tells of that.
    """
    link_model: Any = field.remote_field.through
    links = every_row(link_model, using=using).filter(**{field.m2m_field_name(): post})
    # The name ends with `__pk`, because a link may refer to the category by another field.
    return [*links.values_list(f"{field.m2m_reverse_field_name()}__pk", flat=True)]
