"""The check that the app registers. It runs all tables."""

from collections.abc import Mapping, Sequence
from configparser import ConfigParser
from functools import cache
from importlib.resources import files
from typing import Any

from django.apps import AppConfig
from django.core.checks import ERROR, WARNING, CheckMessage

from readtrack.checks import models, settings

CHECKS = {**settings.TYPE_CHECKS, **settings.CHECKS, **models.CHECKS}  # by id
LEVELS = {"E": ERROR, "W": WARNING}  # by the letter of an id


@cache
def texts(name: str, package: str = "readtrack.checks") -> Mapping[str, str]:
    """Returns the message and the hint of that name in the package's messages.ini."""
    parser = ConfigParser(interpolation=None)
    parser.read_string(files(package).joinpath("messages.ini").read_text(encoding="utf-8"))
    return {key: text.replace("\n", " ") for key, text in parser[name].items()}


def check_setup(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Returns all problems. While a setting has a wrong type, only the types are checked."""
    found = []
    for name, problems in (settings.TYPE_CHECKS if any(settings.wrong_types()) else CHECKS).items():
        for words in problems():
            message, hint = (text.format(*words) for text in texts(name).values())
            found.append(CheckMessage(LEVELS[name[-4]], message, hint, id=name))
    return found
