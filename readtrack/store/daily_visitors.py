"""Unique visitors of the last days: a sketch for each day, where the site keeps them (`UNIQUE_DAYS`)."""

from collections.abc import Sequence
from datetime import datetime

from readtrack import buckets
from readtrack.conf import conf
from readtrack.store import keys, scripts
from readtrack.store.scripts import SLICE, Call
from readtrack.store.uniques import DAY_LIFE, UniquesError, strategy_of, union

MERGED_LIFE = 3600  # seconds that a merged sketch is good for
DAY = 86_400


def life() -> int:
    """Seconds that a day's sketch is kept."""
    return conf.UNIQUE_DAYS * DAY


def visitors(subjects: Sequence[str], *, days: int, at: datetime) -> dict[str, int]:
    """The visitors of each subject in the last days (UTC, today being one), up to an hour old.

    Raises UniquesError where nothing was kept that tells.
    """
    if not _has_sketches(subjects, days):
        return {subject: union(_day_sets([subject], days, at)) for subject in subjects}
    found: dict[str, int] = {}
    portion = max(1, SLICE // (days + 1))
    parts = [subjects[start : start + portion] for start in range(0, len(subjects), portion)]
    answers = scripts.run_all(*(_since(part, days=days, at=at) for part in parts))
    for part, counts in zip(parts, answers, strict=True):
        found.update(zip(part, counts, strict=True))
    return found


def daily_visitors_together(subjects: Sequence[str], *, days: int, at: datetime) -> int:
    """The visitors that the subjects had in all in the last days, up to an hour old. Raises UniquesError."""
    if not subjects:
        return 0
    if not _has_sketches(subjects, days):
        return union(_day_sets(subjects, days, at))
    return int(scripts.run(_since(subjects, days=days, at=at, is_together=True))[0])


def _has_sketches(subjects: Sequence[str], days: int) -> bool:
    """Whether sketches tell; False where the sets of the daily strategy do."""
    if days < 1:
        raise UniquesError("Visitors of the last days need one day at least.")
    if days <= conf.UNIQUE_DAYS:
        return True
    if days * DAY <= DAY_LIFE and all(strategy_of(subject).name == "daily" for subject in subjects):
        return False
    raise UniquesError(
        f"Visitors of {days} days are not kept: READTRACK['UNIQUE_DAYS'] is {conf.UNIQUE_DAYS}."
        f" Set it to {days} or more, and they are counted from then on."
    )


def _since(subjects: Sequence[str], *, days: int, at: datetime, is_together: bool = False) -> Call[list[int]]:
    dates = buckets.day_buckets(days, until=at)
    names = [name for subject in subjects for name in keys.sketches(subject, days=dates)]
    return Call("visitors_since", names, (days, MERGED_LIFE, int(is_together)), list)


def _day_sets(subjects: Sequence[str], days: int, at: datetime) -> list[str]:
    return [keys.unique_day(subject, day=day) for subject in subjects for day in buckets.day_buckets(days, until=at)]
