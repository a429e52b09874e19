"""Checks of the strategies by which unique visitors are counted."""

from collections.abc import Iterable
from typing import NamedTuple

from django.core import checks

from readtrack import subjects
from readtrack.conf import conf
from readtrack.hits import readers
from readtrack.store.uniques import STRATEGIES


class Choice(NamedTuple):
    """A strategy that the site or a model has chosen."""

    where: str  # the setting, or the attribute of the model
    strategy: str  # its name


def _choices() -> list[Choice]:
    """Returns the choice of the site, and the choices of its models."""
    choices = [Choice("READTRACK['UNIQUE']", conf.UNIQUE)]
    for model in subjects.tracked_models():
        if model.unique_strategy:
            where = f"{model._meta.label}.unique_strategy"
            choices.append(Choice(where, model.unique_strategy))
    return choices


def _quoted(strategy_names: Iterable[str]) -> str:
    return ", ".join(map(repr, strategy_names))


def check_strategies() -> list[checks.CheckMessage]:
    """Checks that each strategy exists."""
    return [
        checks.Error(
            f"{choice.where} is {choice.strategy!r}, which is no way to count unique visitors.",
            hint=f"Choose one of {_quoted(STRATEGIES)}.",
            id="readtrack.E030",
        )
        for choice in _choices()
        if choice.strategy not in STRATEGIES
    ]


def check_reader_numbers() -> list[checks.CheckMessage]:
    """Checks that users have numbers if a strategy counts users by their numbers."""
    if readers.has_whole_ids():
        return []
    counting_numbers = [name for name, strategy in STRATEGIES.items() if strategy.needs_reader]
    usable = [name for name in STRATEGIES if name not in counting_numbers]
    return [
        checks.Warning(
            f"{choice.where} is {choice.strategy!r},"
            " which counts nobody here, because user ids are not whole numbers.",
            hint=f"Choose one of {_quoted(usable)}.",
            id="readtrack.W034",
        )
        for choice in _choices()
        if choice.strategy in counting_numbers
    ]
