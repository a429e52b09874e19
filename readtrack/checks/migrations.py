"""Checks of the site's migrations."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from django.core import checks
from django.db.migrations import DeleteModel, Migration, SeparateDatabaseAndState
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

from readtrack import subjects
from readtrack.models import Tracked
from readtrack.models.tracked import COUNTS


def check_migrations() -> list[checks.CheckMessage]:
    """Checks that the migrations of a tracked model add its columns."""
    if sys.argv[1:2] == ["makemigrations"]:  # which is about to add what is missing
        return []
    models = subjects.tracked_models()
    try:
        # An app, such as that of a custom user, may not have its first migration yet. Like
        # makemigrations, this ignores that.
        loader = MigrationLoader(None, ignore_no_migrations=True)
        state = _state(loader, models)
    except Exception:
        # Django's own commands report broken migrations. A check that fails would keep them from
        # merging these.
        return []
    messages: list[checks.CheckMessage] = []
    for model in models:
        app_label = model._meta.app_label
        missing_fields = _missing_fields(model, state)
        if not missing_fields or app_label not in loader.migrated_apps:
            continue
        messages.append(
            checks.Warning(
                f"{model._meta.label} counts views, but no migration adds"
                f" {' and '.join(missing_fields)}.",
                hint=f"Run: manage.py makemigrations {app_label} && manage.py migrate",
                id="readtrack.W011",
            )
        )
    return messages


def _state(loader: MigrationLoader, models: list[type[Tracked]]) -> ProjectState:
    """Returns the models as they are after the last migrations of their apps."""
    last_migrations = []
    for model in models:
        last_migrations += loader.graph.leaf_nodes(model._meta.app_label)
    return loader.project_state(last_migrations)


def _missing_fields(model: type[Tracked], state: ProjectState) -> list[str]:
    """Returns the names of the count fields that the migrations do not give the model."""
    model_state = state.models.get((model._meta.app_label, model._meta.model_name or ""))
    if model_state is None:
        return list(COUNTS)
    return [field_name for field_name in COUNTS if field_name not in model_state.fields]


def check_moves() -> list[checks.CheckMessage]:
    """Checks that a model that came from another app with its table has its numbers, too."""
    loader = MigrationLoader(None, load=False)
    try:
        loader.load_disk()
    except Exception:  # Django's own commands report broken migrations
        return []
    migrations = loader.disk_migrations.values()
    labels_of_follow_renames = set(_followed_labels(migrations))
    former_models: list[FormerModel] = []
    for migration in migrations:
        former_models += _former_models(migration)
    messages: list[checks.CheckMessage] = []
    for model in dict.fromkeys([*subjects.counted_models(), *subjects.read_state_models()]):
        if model._meta.label_lower in labels_of_follow_renames:
            continue
        label = model._meta.label
        for app, name in former_models:
            if name != model._meta.model_name or app == model._meta.app_label:
                continue
            messages.append(
                checks.Warning(
                    f"{label} took over the table of a model of the app {app}, and no migration"
                    " moves its counts and dots.",
                    hint=(
                        "Put this last in the migration that made"
                        f" {label}: readtrack.operations.FollowRename("
                        f"'{app}.{model.__name__}', '{label}'). If that migration has run, make"
                        " another one for it."
                    ),
                    id="readtrack.W049",
                )
            )
    return messages


def _followed_labels(migrations: Iterable[Migration]) -> Iterator[str]:
    """Yields the new labels in the FollowRename of these migrations, in lower case."""
    for migration in migrations:
        operations: list[Any] = [*migration.operations]
        for operation in operations:
            # By name, because operations are above the checks.
            if type(operation).__name__ == "FollowRename":
                yield operation.after.lower()


class FormerModel(NamedTuple):
    """A model whose table an app has given away."""

    app: str  # its label
    name: str  # of the model, in lower case


def _former_models(migration: Migration) -> Iterator[FormerModel]:
    """Yields the models that the migration deletes without their tables."""
    for operation in migration.operations:
        if isinstance(operation, SeparateDatabaseAndState):
            for state_operation in operation.state_operations:
                if isinstance(state_operation, DeleteModel):
                    yield FormerModel(migration.app_label, state_operation.name_lower)
