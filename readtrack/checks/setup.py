"""The check that the app registers. It runs all tables."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import ERROR, WARNING, CheckMessage

from readtrack.checks import models, project, values

CHECKS = {**values.TYPE_CHECKS, **project.CHECKS, **models.CHECKS, **values.CHECKS}  # by id
LEVELS = {"E": ERROR, "W": WARNING}  # by the letter of an id


def check_setup(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Returns all problems. While a setting has a wrong type, only the types are checked."""
    rows = values.TYPE_CHECKS if any(values.wrong_types()) else CHECKS
    return [
        CheckMessage(LEVELS[name[-4]], check.message.format(*words), check.hint.format(*words), id=name)
        for name, check in rows.items()
        for words in check.problems()
    ]
