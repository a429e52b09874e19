"""Unique visitors, each subject's by the strategy that its model names, or else the site's.

A strategy may be changed at any time: its keys are its own, so the new one begins at nothing and the old
key stays until it is forgotten.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from django.core.signals import setting_changed

from readtrack import subjects
from readtrack.conf import conf
from readtrack.store.scripts import Call
from readtrack.store.strategies import Bitmaps, DailySets, HyperLogLogs, Sets, Strategy, UniquesError

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy for strategy in (HyperLogLogs(), Sets(), DailySets(), Bitmaps())
}


def strategy_of(token: str) -> Strategy:
    """The strategy of the subject's model."""
    return _strategy(token.partition(":")[0])


@lru_cache(maxsize=256)
def _strategy(label: str) -> Strategy:
    name = getattr(subjects.model_named(label), "unique_strategy", "") or conf.UNIQUE
    return STRATEGIES.get(name, STRATEGIES["hll"])  # a system check names an unknown one


def need_reader(tokens: Iterable[str]) -> bool:
    """Whether a view of one of the subjects is counted by its reader's number."""
    return any(strategy_of(token).name == "bitmap" for token in tokens)


def visitors(tokens: Sequence[str]) -> Call[dict[str, int]]:
    """How many different visitors each subject had, whatever the strategies of their models."""

    def decode(counts: list[int]) -> dict[str, int]:
        return dict(zip(tokens, counts, strict=True))

    strategies = [strategy_of(token) for token in tokens]
    names = [strategy.key(token) for strategy, token in zip(strategies, tokens, strict=True)]
    commands = [strategy.command for strategy in strategies]
    return Call("visitors", names, commands if set(commands) - {"PFCOUNT"} else (), decode)


def together(tokens: Sequence[str]) -> int:
    """How many different visitors the subjects had in all. Raises UniquesError where that is not known."""
    if not tokens:
        return 0
    first, *others = {strategy_of(token) for token in tokens}
    if others:
        names = ", ".join(sorted(strategy.name for strategy in (first, *others)))
        raise UniquesError(f"Visitors counted in different ways ({names}) cannot be counted together.")
    return first.together(tokens)


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "READTRACK":
        _strategy.cache_clear()


setting_changed.connect(_forget)
