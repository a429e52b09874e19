"""Funnels, reading and breakdowns, out of Redis and, for hashes that Redis lost, out of SQL."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from django.db.models import Model

from readtrack.conf import conf
from readtrack.hits import dimensions
from readtrack.hits.reading import BINS, ENGAGED, READ
from readtrack.reports.live import is_sound, views
from readtrack.sql import archive
from readtrack.store import counters, keys
from readtrack.store.circuit import fail_open
from readtrack.subjects import counted_subject_of, enters_funnel, subject_of


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a funnel: its count, and the count's share of the first stage and of the stage before (0 to 1)."""

    name: str
    count: int
    rate: float
    step_rate: float


def funnel(objs: Model | Iterable[Model]) -> list[Stage]:
    """Returns the stages in their order, of one object or of several together, in at most two round trips.

    Where views do not enter the funnel (FUNNELS, `has_funnel`), the live count is the first stage.
    """
    if not conf.FUNNEL:
        return []
    several = [objs] if isinstance(objs, Model) else list(objs)
    found = hashes([subject_of(obj) for obj in several], ["funnel"])
    outside = [obj for obj in several if not enters_funnel(type(obj))]
    return stages(found, {subject_of(obj): count for obj, count in views(outside).items()})


def stages(found: Mapping[counters.Name, Counter[str]], viewed: Mapping[str, int]) -> list[Stage]:
    """Returns the stages of funnels together; `viewed` are the views of subjects whose views enter no funnel."""
    totals, others = Counter[str](), Counter[str]()
    for (_, subject), counted in found.items():
        (others if subject in viewed else totals).update(counted)
    # A step without a counted view counts as a view, too.
    totals[conf.FUNNEL[0]] += max(others.pop(conf.FUNNEL[0], 0), sum(viewed.values()))
    totals.update(others)
    first = totals[conf.FUNNEL[0]]
    counts = [totals[name] for name in conf.FUNNEL]
    return [
        Stage(name, count, count / first if first else 0.0, count / before if before else 0.0)
        for name, count, before in zip(conf.FUNNEL, counts, [first, *counts])  # noqa: B905 - nothing comes after the last
    ]


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of one text, or of those of several objects together."""

    views: int
    engaged: int  # views with signs of a person
    reads: int
    ratio: float  # of reads to views, 0 to 1
    seconds: int  # median engagement of the engaged views, within a quarter


def reading(objs: Model | Iterable[Model]) -> Reading:
    """Returns the reads, live, of one object or of several together, in at most two round trips.

    Views are all views: a ratio is low where the text was marked after it was published, or the script is blocked.
    """
    several = [objs] if isinstance(objs, Model) else list(objs)
    found = _together(several, "reading")
    total = sum(views(several).values())
    return Reading(total, found[ENGAGED], found[READ], found[READ] / total if total else 0.0, median(found))


def reads(obj: Model) -> int:
    """Returns the reads of an object, live; see `reading`. Raises TypeError for an object that has no counts."""
    subject = counted_subject_of(obj)
    return hashes([subject], ["reading"])["reading", subject][READ]


def median(found: Counter[str]) -> int:
    """Returns the seconds that half of the engaged views reached, from the numbers of those that reached each bin."""
    half, before, most = found[ENGAGED] / 2, 0, found[ENGAGED]
    for least in BINS if half else ():
        reached = found[str(least)]
        if reached < half:  # between two bins, as if views were spread evenly
            return round(before + (least - before) * (most - half) / (most - reached))
        before, most = least, reached
    return before


def breakdown(objs: Model | Iterable[Model], dimension: str) -> dict[str, int]:
    """Returns the views by value of the dimension, of one object or of several together, most frequent value first.

    Takes one round trip. Raises ValueError for a dimension that DIMENSIONS lacks.
    """
    names = list(map(dimensions.name_of, conf.DIMENSIONS))
    if dimension not in names:
        raise ValueError(f"READTRACK['DIMENSIONS'] has no {dimension!r}; it has: {', '.join(names) or 'nothing yet'}.")
    found = _together([objs] if isinstance(objs, Model) else objs, f"views:{dimension}")
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _together(objs: Iterable[Model], kind: str) -> Counter[str]:
    return sum(hashes([subject_of(obj) for obj in objs], [kind]).values(), Counter[str]())


def hashes(
    subjects: Sequence[str], kinds: Sequence[str], live: Mapping[counters.Name, counters.Hash] | None = None
) -> dict[counters.Name, Counter[str]]:
    """Returns the counts by kind and subject; a hash that Redis lost takes a query and another round trip.

    `live` is what Redis has, where a caller has asked already. While Redis is down they are those that SQL stores.
    """
    found = dict(fail_open(counters.live_hashes, {}, subjects, kinds) if live is None else live)
    names = [(kind, subject) for kind in kinds for subject in subjects]
    lacking = [name for name in names if name not in found or not found[name].is_settled]
    stored = archive.breakdowns(lacking) if lacking else {}
    if any(stored.values()):
        # Read again after SQL, so that SQL's count is not added to a hash that was settled in between.
        found |= fail_open(counters.live_hashes, {}, subjects, kinds)
    counts = {name: Counter(one.counts) for name, one in found.items()}
    asked = cache(is_sound)
    for name in lacking:
        in_sql, now = Counter(stored[name]), found.get(name, counters.Hash({}))
        is_whole = now.is_settled or not in_sql or not asked(keys.tag(name[1]))
        counts[name] = Counter(now.counts) | in_sql if is_whole else Counter(now.counts) + in_sql
    return counts
