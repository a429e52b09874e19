"""Unique visitors of the last days: a sketch for each day, if the site keeps them (`UNIQUE_DAYS`)."""

from collections.abc import Sequence
from datetime import datetime

from readtrack import buckets
from readtrack.conf import conf
from readtrack.store import keys, scripts
from readtrack.store.scripts import SLICE, Call
from readtrack.store.uniques import Strategy, UniquesError, strategy_of


def life() -> int:
    """Returns the lifetime of a day's sketch (s)."""
    return conf.UNIQUE_DAYS * keys.DAY


def visitors(subjects: Sequence[str], *, days: int, at: datetime) -> dict[str, int]:
    """Returns the visitors of each subject in the last days (UTC, today included), up to an hour old.

    Raises UniquesError if nothing was kept that tells, and redis.RedisError.
    """
    if not subjects:
        return {}
    if strategy := _own_strategy(subjects, days):
        dates = buckets.day_buckets(days, until=at)
        return {subject: strategy.recent([subject], days=dates) for subject in subjects}
    found: dict[str, int] = {}
    portion = max(1, SLICE // (days + 1))
    parts = [subjects[start : start + portion] for start in range(0, len(subjects), portion)]
    answers = scripts.run_all(*(_since(part, days=days, at=at) for part in parts))
    for part, counts in zip(parts, answers, strict=True):
        found.update(zip(part, counts, strict=True))
    return found


def visitors_together(subjects: Sequence[str], *, days: int, at: datetime) -> int:
    """Returns the different visitors of all subjects in the last days, up to an hour old. Raises as `visitors` does."""
    if not subjects:
        return 0
    if strategy := _own_strategy(subjects, days):
        return strategy.recent(subjects, days=buckets.day_buckets(days, until=at))
    return int(scripts.run(_since(subjects, days=days, at=at, is_together=True))[0])


def _own_strategy(subjects: Sequence[str], days: int) -> Strategy | None:
    """Returns the strategy whose own keys tell; None if the daily sketches do."""
    if days < 1:
        raise UniquesError("Visitors of the last days need one day at least.")
    if days <= conf.UNIQUE_DAYS:
        return None
    strategies = {strategy_of(subject) for subject in subjects}
    if len(strategies) == 1 and days <= (strategy := strategies.pop()).covers_days:
        return strategy
    raise UniquesError(
        f"Visitors of {days} days are not kept: READTRACK['UNIQUE_DAYS'] is {conf.UNIQUE_DAYS}."
        f" Set it to {days} or more, and they are counted from then on."
    )


def _since(subjects: Sequence[str], *, days: int, at: datetime, is_together: bool = False) -> Call[list[int]]:
    dates = buckets.day_buckets(days, until=at)
    names = [name for subject in subjects for name in keys.days(subject, dates=dates)]
    return Call("visitors_since", names, (days, keys.last_days.ttl, int(is_together)), list)
