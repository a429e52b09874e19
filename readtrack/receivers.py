"""Receivers of Django's signals: what a save, a new link or a deletion changes. Nothing happens before the commit."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from django.apps import apps
from django.db import transaction
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_delete, post_save

from readtrack.models import ReaderHistory, Tracked, tracked
from readtrack.sql import archive
from readtrack.store import lifecycle, read_state, scripts
from readtrack.store.circuit import fail_open
from readtrack.subjects import has_read_state, news_links, owner, subject_of
from readtrack.unread import publishing


def connect_deletions() -> None:
    """Listens to every model of the site that has counts or carries dots."""
    for model in apps.get_models():
        # A child may go and leave its parent, which has the counts.
        if model._meta.concrete_model is not owner(model):
            continue
        if issubclass(model, Tracked):
            post_delete.connect(on_delete, sender=model, dispatch_uid="readtrack.forget")
        if has_read_state(model):
            post_delete.connect(on_category_delete, sender=model, dispatch_uid="readtrack.forget_read_state")


def on_delete(sender: type[Tracked], instance: Tracked, *, using: str, **kwargs: Any) -> None:
    """Receives post_delete: what the app holds of the row goes once the row is gone for everybody."""
    transaction.on_commit(partial(_delete_subject, subject_of(instance)), using=using)


def on_category_delete(sender: type[Model], instance: Model, *, using: str, **kwargs: Any) -> None:
    """Receives post_delete of what carries dots: who had read it goes with it."""
    transaction.on_commit(partial(_forget_read_state, subject_of(instance)), using=using)


def _forget_read_state(subject: str) -> None:
    fail_open(read_state.remove, None, subject)
    archive.delete([subject], models=[ReaderHistory])


def _delete_subject(subject: str) -> None:
    # Redis may be gone, and the row stays deleted: the flush then finds an orphan.
    fail_open(scripts.run, 0, lifecycle.remove([subject]))
    archive.delete([subject])


def connect_news() -> None:
    """Listens to every Tracked model of the site."""
    for model in apps.get_models():
        if not issubclass(model, Tracked):
            continue
        post_save.connect(on_save, sender=model, dispatch_uid="readtrack.receivers")
        for field in news_links(model):
            if field.many_to_many:
                through = field.remote_field.through
                m2m_changed.connect(partial(on_link, field.name), sender=through, weak=False, dispatch_uid=field)


def on_save(sender: type[Tracked], instance: Tracked, *, created: bool, using: str, **kwargs: Any) -> None:
    """Receives post_save."""
    if kwargs.get("raw"):
        return
    values = tracked.field_values(instance, kwargs.get("update_fields"))
    changed = set() if created else tracked.changed_fields(instance, values)
    if values:
        # Not before the commit: after a rollback the next save has to find the change again.
        transaction.on_commit(partial(tracked.remember_fields, instance, values), using=using)
    if instance.is_news(created=created, changed=changed):
        publishing.publish([instance], using=using)


def on_link(name: str, sender: Any, instance: Model, *, action: str, using: str, **kwargs: Any) -> None:
    """Receives m2m_changed for the field of that name: a post is news in a category it is put into."""
    if action != "post_add":
        return
    linked = kwargs["model"]._base_manager.using(using).filter(pk__in=kwargs["pk_set"])
    posts: Iterable[Any] = linked if kwargs["reverse"] else [instance]
    news = [post for post in posts if post.is_news(created=False, changed={name})]
    targets = [instance] if kwargs["reverse"] else linked
    if news and targets:
        publishing.publish_to(targets, news, using=using)
