"""Funnels and breakdowns for display: what Redis counted, and what SQL keeps of hashes that Redis lost."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from readtrack.conf import conf
from readtrack.hits import dimensions
from readtrack.models import Tracked
from readtrack.reports.live import views
from readtrack.sql import archive
from readtrack.store import breakdowns
from readtrack.store.breakdowns import Hash
from readtrack.store.circuit import fail_open
from readtrack.subjects import enters_funnel, subject_of

FUNNEL = "funnel"  # the family of its hashes


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a funnel: how often it was reached, as a share of the first stage and of the one before (0 to 1)."""

    name: str
    count: int
    rate: float
    step_rate: float


def funnel(objs: Tracked | Iterable[Tracked]) -> list[Stage]:
    """The stages in their order, of one object or of several together, in at most two round trips.

    Never less than SQL keeps of a hash that Redis lost: that takes a query and another round trip. Where views
    do not enter the funnel (setting FUNNELS, `has_funnel`), the live count stands for its first stage.
    """
    if not conf.FUNNEL:
        return []
    several = [objs] if isinstance(objs, Tracked) else list(objs)
    viewed = [obj for obj in several if not enters_funnel(type(obj))]
    found = _hashes([subject_of(obj) for obj in several], kind=FUNNEL)
    others = _summed(found.pop(subject_of(obj), Counter[str]()) for obj in viewed)
    totals = _summed(found.values())
    # Who took a step without a view that counted stands in the first stage all the same.
    totals[conf.FUNNEL[0]] += max(others.pop(conf.FUNNEL[0], 0), sum(views(viewed).values()))
    totals.update(others)
    first = totals[conf.FUNNEL[0]]
    counts = [totals[name] for name in conf.FUNNEL]
    return [
        Stage(name, count, _share(count, first), _share(count, before))
        for name, count, before in zip(conf.FUNNEL, counts, [first, *counts])  # noqa: B905 - nothing comes after the last
    ]


def breakdown(objs: Tracked | Iterable[Tracked], dimension: str) -> dict[str, int]:
    """Views by value of the dimension, of one object or of several together, most first, in one round trip.

    Never less than SQL keeps of a hash that Redis lost: that takes a query and another round trip. Raises ValueError
    for a dimension that DIMENSIONS lacks.
    """
    dimensions.check(dimension)
    several = [objs] if isinstance(objs, Tracked) else list(objs)
    found = _summed(_hashes([subject_of(obj) for obj in several], kind=f"views:{dimension}").values())
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _hashes(subjects: Sequence[str], *, kind: str) -> dict[str, Counter[str]]:
    """Returns the counts of each subject; while Redis is down, those that SQL stores."""
    found = fail_open(breakdowns.hashes, {}, subjects, kind=kind)
    lacking = [subject for subject in subjects if subject not in found or not found[subject].is_settled]
    stored = archive.breakdowns([(kind, subject) for subject in lacking]) if lacking else {}
    if any(stored.values()):
        # Read again after SQL, so that SQL's count is not added to a hash that was settled in between.
        found |= fail_open(breakdowns.hashes, {}, subjects, kind=kind)
    counts = {subject: Counter(one.counts) for subject, one in found.items()}
    for subject in lacking:
        kept, live = Counter(stored[kind, subject]), found.get(subject, Hash({}))
        counts[subject] = Counter(live.counts) | kept if live.is_settled else Counter(live.counts) + kept
    return counts


def _summed(found: Iterable[Counter[str]]) -> Counter[str]:
    return sum(found, Counter[str]())


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
