"""Checks of the site's migrations."""

import sys

from django.core import checks
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
        missing = _missing_fields(model, state)
        if not missing or app_label not in loader.migrated_apps:
            continue
        messages.append(
            checks.Warning(
                f"{model._meta.label} counts views, but no migration adds {' and '.join(missing)}.",
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
