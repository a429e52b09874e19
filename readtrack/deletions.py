"""What a deletion takes along: the receivers of Django's signals. Nothing goes before it is committed."""

from functools import partial
from typing import Any

from django.apps import apps
from django.db import transaction
from django.db.models import Model
from django.db.models.signals import post_delete

from readtrack import archives, categories, subjects
from readtrack.models import Readership, Tracked
from readtrack.store import reads, scripts, upkeep
from readtrack.store.connection import fail_open


def connect() -> None:
    """Listens to every model of the site that has counts or carries dots."""
    for model in apps.get_models():
        # A child may go and leave its parent, which has the counts.
        if model._meta.concrete_model is not subjects.owner(model):
            continue
        if issubclass(model, Tracked):
            post_delete.connect(on_delete, sender=model, dispatch_uid="readtrack.forget")
        if categories.has_read_state(model):
            post_delete.connect(on_category_delete, sender=model, dispatch_uid="readtrack.forget_read_state")


def on_delete(sender: type[Tracked], instance: Tracked, *, using: str, **kwargs: Any) -> None:
    """Receives post_delete: what the app holds of the row goes once the row is gone for everybody."""
    transaction.on_commit(partial(_forget, subjects.token(instance)), using=using)


def on_category_delete(sender: type[Model], instance: Model, *, using: str, **kwargs: Any) -> None:
    """Receives post_delete of what carries dots: who had read it goes with it."""
    transaction.on_commit(partial(_forget_read_state, subjects.token(instance)), using=using)


def _forget_read_state(token: str) -> None:
    fail_open(reads.remove, None, token)
    archives.forget([token], models=[Readership])


def _forget(token: str) -> None:
    # Redis may be gone, and the row stays deleted: the flush then finds an orphan.
    fail_open(scripts.run, 0, upkeep.remove([token]))
    archives.forget([token])
