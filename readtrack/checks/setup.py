"""The check that the app registers: all of the tables."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage

from readtrack.checks import models, project, values

CHECKS = (*values.TYPE_CHECKS, *project.CHECKS, *models.CHECKS, *values.CHECKS)


def check_setup(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Everything that the tables find. What settings mean is looked at once all are of their types."""
    rows = values.TYPE_CHECKS if any(values.wrong_types()) else CHECKS
    return [
        CheckMessage(check.level, check.message.format(*words), check.hint.format(*words), id=check.id)
        for check in rows
        for words in check.problems()
    ]
