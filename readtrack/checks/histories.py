"""The check for packages that keep a history of each change of a row."""

from functools import partial
from typing import Any

from django.apps import apps
from django.core import checks

from readtrack.models.tracked import COUNTS
from readtrack.subjects import tracked_models

HINTS = {
    "pghistory": "@pghistory.track(exclude=['view_count', 'visitor_count'])",
    "auditlog": "auditlog.register(…, exclude_fields=['view_count', 'visitor_count'])",
}


def check_counts() -> list[checks.CheckMessage]:
    """Checks that packages which keep each former version of a row leave the counts out, because
    each flush would add a version of every row whose count it raises.
    """
    return [
        checks.Warning(
            f"{app} keeps each change of the counts of {model._meta.label}.",
            hint=f"Leave the counts out: {HINTS[app]}",
            id="readtrack.W087",
        )
        for model in tracked_models()
        for app in _histories_with_counts(model)
    ]


def _histories_with_counts(model: Any) -> list[str]:
    """Returns the names of the installed packages whose history of the model has its counts."""
    packages = []
    if apps.is_installed("pghistory") and any(map(partial(_is_history, model), apps.get_models())):
        packages.append("pghistory")
    if apps.is_installed("auditlog"):
        from auditlog.registry import auditlog

        if auditlog.contains(model):
            excluded = auditlog.get_model_fields(model)["exclude_fields"]
            if set(COUNTS).difference(excluded):
                packages.append("auditlog")
    return packages


def _is_history(model: Any, history_model: Any) -> bool:
    """Returns True if the second model has the rows that pghistory keeps of the model's counts."""
    if getattr(history_model, "pgh_tracked_model", None) is not model:
        return False
    names = {field.name for field in history_model._meta.get_fields()}
    return not names.isdisjoint(COUNTS)
