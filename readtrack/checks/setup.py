"""The check that the app registers. It runs all tables."""

from collections.abc import Sequence
from configparser import ConfigParser
from functools import cache
from importlib.resources import files
from typing import Any

from django.apps import AppConfig
from django.core.checks import ERROR, WARNING, CheckMessage

from readtrack.checks import models, project, values

CHECKS = {**values.TYPE_CHECKS, **project.CHECKS, **models.CHECKS, **values.CHECKS}  # by id
LEVELS = {"E": ERROR, "W": WARNING}  # by the letter of an id


@cache
def texts(name: str) -> tuple[str, str]:
    """Returns the message and the hint of the check with that id."""
    parser = ConfigParser(interpolation=None)
    parser.read_string(files("readtrack.checks").joinpath("messages.ini").read_text(encoding="utf-8"))
    return parser[name]["message"].replace("\n", " "), parser[name]["hint"].replace("\n", " ")


def check_setup(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Returns all problems. While a setting has a wrong type, only the types are checked."""
    found = []
    for name, problems in (values.TYPE_CHECKS if any(values.wrong_types()) else CHECKS).items():
        for words in problems():
            message, hint = (text.format(*words) for text in texts(name))
            found.append(CheckMessage(LEVELS[name[-4]], message, hint, id=name))
    return found
