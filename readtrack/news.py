"""What a save makes unread: the receivers of Django's signals. Nothing is published before it is committed."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from django.apps import apps
from django.db import transaction
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_save

from readtrack import categories, changes, tracker
from readtrack.models import Tracked


def connect() -> None:
    """Listens to every Tracked model of the site."""
    for model in apps.get_models():
        if not issubclass(model, Tracked):
            continue
        post_save.connect(on_save, sender=model, dispatch_uid="readtrack.news")
        for field in categories.news_links(model):
            if field.many_to_many:
                through = field.remote_field.through
                m2m_changed.connect(partial(on_link, field.name), sender=through, weak=False, dispatch_uid=field)


def on_save(sender: type[Tracked], instance: Tracked, *, created: bool, using: str, **kwargs: Any) -> None:
    """Receives post_save."""
    if kwargs.get("raw"):
        return
    values = changes.held(instance, kwargs.get("update_fields"))
    changed = set() if created else changes.changed(instance, values)
    if values:
        # Not before the commit: after a rollback the next save has to find the change again.
        transaction.on_commit(partial(changes.remember, instance, values), using=using)
    if instance.is_news(created=created, changed=changed):
        tracker.publish([instance], using=using)


def on_link(name: str, sender: Any, instance: Model, *, action: str, using: str, **kwargs: Any) -> None:
    """Receives m2m_changed for the field of that name: a post is news in a category it is put into."""
    if action != "post_add":
        return
    linked = kwargs["model"]._base_manager.using(using).filter(pk__in=kwargs["pk_set"])
    posts: Iterable[Any] = linked if kwargs["reverse"] else [instance]
    news = [post for post in posts if post.is_news(created=False, changed={name})]
    targets = [instance] if kwargs["reverse"] else linked
    if news and targets:
        tracker.publish_to(targets, news, using=using)
