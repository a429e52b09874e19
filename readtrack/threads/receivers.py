"""The receiver of Django's signal for saved rows that are in boards.

It imports what it works with when it is called, because it is connected in every process.
"""

from collections.abc import Collection
from typing import Any

from django.apps import apps
from django.db.models import Model
from django.db.models.signals import post_save

from readtrack.threads.paths import board_paths


def connect() -> None:
    """Connects the receiver to each model whose rows are in boards."""
    for model in apps.get_models():
        if board_paths(model):
            post_save.connect(on_move, sender=model, dispatch_uid="readtrack.on_move")


def on_move(
    sender: type[Model],
    instance: Model,
    *,
    created: bool,
    raw: bool,
    using: str,
    update_fields: Collection[str] | None,
    **kwargs: Any,
) -> None:
    """Receives post_save of a row that is in boards, and places a changed one in them on commit."""
    if created or raw:
        return
    field_names = {path.partition("__")[0] for path in board_paths(sender)}
    if update_fields is None or field_names.intersection(update_fields):
        from readtrack.threads.placing import place_on_commit

        place_on_commit(instance, using=using)
