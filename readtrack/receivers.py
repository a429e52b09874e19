"""Receivers of Django's signals for saved, linked and deleted rows. They change nothing before the
commit.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_delete, post_save

from readtrack import unread
from readtrack.conf import conf, logger
from readtrack.models import ReaderHistory, Tracked, tracked
from readtrack.sql import archive
from readtrack.store import read_state, removal, scripts
from readtrack.store.circuit import fail_open
from readtrack.subjects import has_read_state, is_counted, news_links, owner, subject_of


def connect() -> None:
    """Connects the receivers to the users, and to every model of the site that has counts or read
    state.
    """
    for model in apps.get_models():
        if model._meta.concrete_model is get_user_model():  # a proxy of it sends its own signal
            post_save.connect(on_sign_up, sender=model, dispatch_uid="readtrack.on_sign_up")
        links = news_links(model)
        if issubclass(model, Tracked):
            tracked.row_saving.connect(
                before_save, sender=model, dispatch_uid="readtrack.before_save"
            )
        elif links:
            post_save.connect(on_create, sender=model, dispatch_uid="readtrack.on_create")
        for field in links:
            if field.many_to_many:
                through = field.remote_field.through
                m2m_changed.connect(
                    partial(on_link, field.name), sender=through, weak=False, dispatch_uid=field
                )
        # Not a child that shares its parent's subject, because it may be deleted alone.
        if model._meta.concrete_model is owner(model) and (
            is_counted(model) or has_read_state(model)
        ):
            post_delete.connect(on_delete, sender=model, dispatch_uid="readtrack.on_delete")


def on_sign_up(
    sender: type[Model], instance: Model, *, created: bool, raw: bool, using: str, **kwargs: Any
) -> None:
    """Receives post_save of a user, and marks everything read for a new one on commit, with
    START_AS_READ.
    """
    if created and not raw and conf.START_AS_READ:

        def start() -> (
            None
        ):  # no partial, because Django 5.2 logs an error with the function's __qualname__
            if not fail_open(unread.start_reader, False, instance.pk):  # noqa: FBT003 - the default result
                logger.error("Redis failed, so dots of the new user %s stay on.", instance.pk)

        transaction.on_commit(start, using=using, robust=True)


def on_delete(sender: type[Model], instance: Model, *, using: str, **kwargs: Any) -> None:
    """Receives post_delete of a row, and deletes its counts and its read state on commit."""
    subject = subject_of(instance)

    def delete() -> None:
        if is_counted(sender):
            # While Redis is down its keys stay; a flush finds them as an orphan.
            fail_open(scripts.run, 0, removal.remove([subject]))
            archive.delete([subject])
        if has_read_state(sender):
            fail_open(read_state.remove, None, subject)
            archive.delete([subject], models=[ReaderHistory])

    transaction.on_commit(delete, using=using, robust=True)


def on_create(
    sender: type[Model], instance: Model, *, created: bool, raw: bool, using: str, **kwargs: Any
) -> None:
    """Receives post_save of a row of a model that NEWS_FOR names, and publishes a new one."""
    if created and not raw:
        unread.publish([instance], using=using)


def before_save(
    sender: type[Tracked], instance: Tracked, *, force_insert: bool, using: str, **kwargs: Any
) -> Any:
    """Returns a function that publishes the row once it is written, if it is news; None if it is
    none for sure.
    """
    if not news_links(sender) and not has_read_state(sender):
        return None
    is_new = (
        instance.pk is None
        or force_insert
        or (instance._state.adding and sender._meta.pk.has_default())
    )
    stored = (
        None if is_new else tracked.stored_values(instance, kwargs["update_fields"], using=using)
    )
    if stored is not None and not instance._state.adding and sender.is_news is Tracked.is_news:
        # A field with auto_now changes only when the row is written.
        sets_itself = any(
            getattr(sender._meta.get_field(name), "auto_now", False) for name in stored
        )
        if not sets_itself and not tracked.changed_fields(instance, stored):
            return None

    def on_save(*, created: bool) -> None:
        """Publishes the row if it is news: where it came to, if it moved."""
        changed = set() if created else tracked.changed_fields(instance, stored or {})
        if instance.is_news(created=created, changed=changed):
            has_moved = changed and changed <= {field.name for field in news_links(sender)}
            unread.publish([instance], using=using, links=changed if has_moved else None)

    return on_save


def on_link(
    name: str, sender: Any, instance: Model, *, action: str, using: str, **kwargs: Any
) -> None:
    """Receives m2m_changed of a field in `news_for`, and publishes the posts in their new
    categories.
    """
    if action != "post_add":
        return
    linked = kwargs["model"]._base_manager.using(using).filter(pk__in=kwargs["pk_set"])
    posts: Iterable[Any] = linked if kwargs["reverse"] else [instance]
    news = [
        post
        for post in posts
        if not isinstance(post, Tracked) or post.is_news(created=False, changed={name})
    ]
    if news:
        unread.publish_to([instance] if kwargs["reverse"] else linked, news, using=using)
