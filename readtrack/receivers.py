"""Receivers of Django's signals for saved, linked and deleted rows, which change nothing before the
commit, and for users who sign in.

Each imports what it works with when it is called: the models are ready in every process, also in
those that save nothing.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from django.apps import apps
from django.contrib.auth.signals import user_logged_in
from django.db import transaction
from django.db.models import Model
from django.db.models.expressions import DatabaseDefault
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_delete, pre_save

from readtrack import parts
from readtrack.conf import conf, logger
from readtrack.hits import readers
from readtrack.models import PendingPublication, Tracked, tracked
from readtrack.subjects import (
    has_read_state,
    is_counted,
    is_news_by_models_setting,
    label_of,
    news_links,
    owner,
    subject_of,
    subject_of_row,
)

# Models whose rows an app of readtrack publishes itself, at another moment than a save.
models_published_by_their_app: set[type[Model]] = set()


def leave_publishing_to_app(models: Iterable[type[Model]]) -> None:
    """Leaves it to an app when rows of the models are news, whichever app is ready first."""
    for model in models:
        models_published_by_their_app.add(model)
        tracked.row_saving.disconnect(sender=model, dispatch_uid="readtrack.before_save")
        post_save.disconnect(sender=model, dispatch_uid="readtrack.on_create")
        pre_delete.disconnect(sender=model, dispatch_uid="readtrack.before_delete")
        for field in news_links(model):
            if field.many_to_many:
                m2m_changed.disconnect(sender=field.remote_field.through, dispatch_uid=field)


def connect() -> None:
    """Connects the receivers to the users, and to every model of the site that has counts or read
    state.
    """
    user_logged_in.connect(on_sign_in, dispatch_uid="readtrack.on_sign_in")
    users = readers.user_model()
    for model in apps.get_models():
        if model._meta.concrete_model is users:  # a proxy of it sends its own signal
            post_save.connect(on_sign_up, sender=model, dispatch_uid="readtrack.on_sign_up")
            post_delete.connect(on_user_gone, sender=model, dispatch_uid="readtrack.on_user_gone")
        _connect_news(model)
        # Not a child that shares its parent's subject, because it may be deleted alone.
        is_owner = model._meta.concrete_model is owner(model)
        if is_owner and (is_counted(model) or has_read_state(model)):
            post_delete.connect(on_delete, sender=model, dispatch_uid="readtrack.on_delete")
        if is_owner and is_counted(model):
            pre_save.connect(before_insert, sender=model, dispatch_uid="readtrack.before_insert")


def _connect_news(model: type[Model]) -> None:
    """Connects the receivers that publish the model's rows and take their news back.

    Connects none if the model's app publishes its rows.
    """
    if model in models_published_by_their_app:
        return
    links = news_links(model)
    if issubclass(model, Tracked):
        # Also without links, because the rows of the model may have read state themselves.
        tracked.row_saving.connect(before_save, sender=model, dispatch_uid="readtrack.before_save")
    elif links:
        post_save.connect(on_create, sender=model, dispatch_uid="readtrack.on_create")
    if links:
        pre_delete.connect(before_delete, sender=model, dispatch_uid="readtrack.before_delete")
    for field in links:
        if field.many_to_many:
            m2m_changed.connect(
                partial(on_link, field.name),
                sender=field.remote_field.through,
                weak=False,
                dispatch_uid=field,
            )


def on_sign_up(
    sender: type[Model], instance: Model, *, created: bool, raw: bool, using: str, **kwargs: Any
) -> None:
    """Receives post_save of a user. With `start_as_read` in DOTS it marks everything as read for a
    new one on commit.
    """
    if not created or raw or not conf.DOTS.start_as_read:
        return

    # No partial, because Django 5.2 logs an error with the function's __qualname__.
    def mark_read() -> None:
        from readtrack.store.circuit import fail_open
        from readtrack.unread.starting import start_reader

        if not fail_open(start_reader, False, instance.pk):  # noqa: FBT003 - the default result
            logger.error("Redis failed, so dots of the new user %s stay on.", instance.pk)

    transaction.on_commit(mark_read, using=using, robust=True)


def on_sign_in(sender: Any, request: Any, user: Any, **kwargs: Any) -> None:
    """Receives user_logged_in. Where anonymous visitors have dots, what the visitor has read before
    becomes read for the user.
    """
    # An app may send the signal without a request, or with an object of its own.
    has_cookies = bool(getattr(request, "COOKIES", None))
    if not conf.DOTS.anonymous or not has_cookies or _was_signed_in(request):
        return
    from readtrack.hits import visitors
    from readtrack.store.circuit import fail_open
    from readtrack.unread import signing_in

    anonymous_reader = visitors.reader(request, None)
    reader = readers.reader_or_none(user.pk)
    if anonymous_reader is not None and reader is not None:
        fail_open(signing_in.take_over, 0, anonymous_reader, reader)


def _was_signed_in(request: Any) -> bool:
    """Returns True if the request came from a signed-in user, such as one who impersonates another.

    The cookie of such a user says nothing about the account that is signed in now.
    """
    # Django keeps here the user that the request brought; `request.user` is the new one already.
    for attribute in ("_cached_user", "_acached_user"):
        former_user = getattr(request, attribute, None)
        if former_user is not None and former_user.is_authenticated:
            return True
    return False


def on_delete(sender: type[Model], instance: Model, *, using: str, **kwargs: Any) -> None:
    """Receives post_delete of a row, and deletes its counts and its read state on commit.

    Does nothing if a trigger of the database has kept the row. It is asked now and not on commit,
    because the same transaction may insert a new row with the key of a deleted one.
    """
    from readtrack.sql import deletions, read_states
    from readtrack.store import read_state
    from readtrack.store.circuit import fail_open

    if tracked.every_row(sender, using=using).filter(pk=instance.pk).exists():
        return
    subject = subject_of(instance)

    def delete() -> None:
        if is_counted(sender):
            deletions.remove([subject])
        if has_read_state(sender):
            is_removed = fail_open(read_state.remove, False, subject)  # noqa: FBT003 - a result
            if not is_removed:
                # It waits in the outbox, so that a new row with this key is unread for all.
                PendingPublication.objects.create(subject=subject)
            read_states.delete([subject])

    transaction.on_commit(delete, using=using, robust=True)


def on_user_gone(sender: type[Model], instance: Model, *, using: str, **kwargs: Any) -> None:
    """Receives post_delete of a user, and deletes what parts keep of the user, on commit: a later
    user may get the same primary key.
    """
    for part in parts.installed():
        forget = partial(part.forget_user, instance.pk)
        transaction.on_commit(forget, using=using, robust=True)


def before_delete(sender: type[Model], instance: Model, *, using: str, **kwargs: Any) -> None:
    """Receives pre_delete of a post, while its links are there. Takes its news back on commit."""
    from readtrack.unread import publishing

    publishing.unpublish([instance], using=using)


def before_insert(
    sender: type[Model], instance: Any, *, raw: bool, using: str, **kwargs: Any
) -> None:
    """Receives pre_save. If a new row is given its key, what Redis still has of a deleted row with
    this key is removed on commit.
    """
    is_new = instance._state.adding and not raw
    # A key that the database will give, or that is random, was no other row's.
    is_given = instance._is_pk_set() and not isinstance(instance.pk, DatabaseDefault)
    if not is_new or not is_given or instance._meta.pk.has_default() or not is_counted(sender):
        return
    subject = subject_of(instance)

    def make_way() -> None:
        """Removes from Redis what it still has of a deleted row with the same key."""
        from readtrack.sql import deletions
        from readtrack.store.circuit import fail_open

        fail_open(deletions.make_way, None, subject)

    transaction.on_commit(make_way, using=using, robust=True)


def on_create(
    sender: type[Model], instance: Model, *, created: bool, raw: bool, using: str, **kwargs: Any
) -> None:
    """Receives post_save of a row of a model that has a `news_for` in MODELS, and publishes a new
    one.
    """
    if created and not raw and is_news_by_models_setting(instance):
        from readtrack.unread import publishing

        publishing.publish([instance], using=using)


def before_save(
    sender: type[Tracked], instance: Tracked, *, force_insert: bool, using: str, **kwargs: Any
) -> Any:
    """Receives `row_saving`, and returns a function that publishes the written row if it is news.

    Returns None if the row is certainly no news.
    """
    if not news_links(sender) and not has_read_state(sender):
        return None
    stored = None
    if not _is_new(instance, force_insert=force_insert):
        stored = tracked.stored_values(instance, kwargs["update_fields"], using=using)
    if stored is not None and _is_unchanged(instance, stored):
        return None

    def on_save(*, created: bool) -> None:
        """Publishes the row if it is news. If only its categories changed, in the new ones."""
        from readtrack.unread import publishing

        values_before = stored or {}
        changed: set[str] = set()
        if not created:
            changed = _changed(instance, values_before, using=using)
        links = news_links(sender)
        for field in links:
            if field.name in changed:
                former_key = values_before.get(field.attname)
                former_category = _category_at(field, former_key, using=using)
                publishing.withdraw(former_category, [instance], using=using)
        if not instance.is_news(created=created, changed=changed):
            return
        link_names = {field.name for field in links}
        if changed and changed <= link_names:  # only its categories
            publishing.publish([instance], using=using, links=changed)
        else:
            publishing.publish([instance], using=using)

    return on_save


def _changed(instance: Tracked, stored: Mapping[str, Any], *, using: str) -> set[str]:
    """Returns the names of the fields that a save has changed."""
    generated = tracked.generated_values(instance, stored, using=using)
    return tracked.changed_fields(instance, stored, generated=generated)


def _category_at(field: Any, key: Any, *, using: str) -> list[str]:
    """Returns the subject of the category to which a foreign key with that value leads, in a list;
    an empty list without a category, and for one whose news cannot be taken back.
    """
    from readtrack.store import read_state

    form = read_state.form_of(label_of(field.related_model))
    if key is None or not form.has_numbers:
        return []
    if field.target_field.primary_key:
        return [subject_of_row(field.related_model, key)]
    rows = tracked.every_row(field.related_model, using=using)
    pks = rows.filter(**{field.target_field.name: key}).values_list("pk", flat=True)
    return [subject_of_row(field.related_model, pk) for pk in pks]


def _is_new(instance: Tracked, *, force_insert: bool) -> bool:
    """Returns True if the row certainly does not exist yet."""
    if instance.pk is None or force_insert:
        return True
    return bool(instance._state.adding and instance._meta.pk.has_default())


def _is_unchanged(instance: Tracked, stored: Mapping[str, Any]) -> bool:
    """Returns True if saving certainly changes none of the stored values that make news."""
    model = type(instance)
    # A site's own is_news() may be based on other fields.
    if instance._state.adding or model.is_news is not Tracked.is_news:
        return False
    # A field with auto_now, or a generated one, changes only when the row is written.
    fields: list[Any] = [model._meta.get_field(name) for name in stored]
    sets_itself = any(getattr(field, "auto_now", False) or field.generated for field in fields)
    return not sets_itself and not tracked.changed_fields(instance, stored)


def on_link(
    field_name: str, sender: Any, instance: Model, *, action: str, using: str, **kwargs: Any
) -> None:
    """Receives m2m_changed of a field in `news_for`. Publishes the posts in their new categories,
    and takes their news back in those that they leave.
    """
    if action not in {"post_add", "post_remove"}:
        return
    from readtrack.unread import publishing

    all_rows = tracked.every_row(kwargs["model"], using=using)
    linked: Iterable[Any] = all_rows.filter(pk__in=kwargs["pk_set"])
    if kwargs["reverse"]:  # posts were added to a category
        posts = linked
        categories: Iterable[Any] = [instance]
    else:
        posts = [instance]
        categories = linked
    if action == "post_remove":
        publishing.withdraw(map(subject_of, categories), posts, using=using)
        return
    news = [post for post in posts if _is_news_when_linked(post, field_name)]
    if news:
        publishing.publish_to(categories, news, using=using)


def _is_news_when_linked(post: Any, field_name: str) -> bool:
    """Returns True if the post is news in the categories just added to its field `field_name`."""
    if isinstance(post, Tracked):
        return post.is_news(created=False, changed={field_name})
    return is_news_by_models_setting(post)
