"""Funnels: how many views, and later steps, each stage has."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Model

from readtrack import parts
from readtrack.numbers.options import enters_funnel
from readtrack.numbers.reports.hashes import hashes
from readtrack.reports.counts import views
from readtrack.store import counters
from readtrack.subjects import subject_of


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a funnel, and how many views reached it."""

    name: str
    count: int
    rate: float  # the count's share of the first stage (0 to 1)
    step_rate: float  # the count's share of the stage before (0 to 1)


def funnel(objs: Model | Iterable[Model]) -> list[Stage]:
    """Returns the stages of the funnel in their order, for one object or for several together, in
    at most two round trips.

    If the views of an object do not enter the funnel ('funnels' of NUMBERS, `has_funnel`), its live
    views count as the first stage.
    """
    if not parts.stages():
        return []
    objs = [objs] if isinstance(objs, Model) else list(objs)
    counts = hashes([subject_of(obj) for obj in objs], ["funnel"])
    live_views = views([obj for obj in objs if not enters_funnel(type(obj))])
    return stages(counts, {subject_of(obj): count for obj, count in live_views.items()})


def stages(counts: Mapping[counters.Name, Counter[str]], viewed: Mapping[str, int]) -> list[Stage]:
    """Returns the stages of the funnels of several subjects together.

    `counts` has the counts of "funnel" hashes by kind and subject, then by stage. `viewed` has the
    views of those subjects whose views do not enter the funnel.
    """
    totals = Counter[str]()
    without_views = Counter[str]()  # of subjects whose views do not enter the funnel
    for (_, subject), counts_of_subject in counts.items():
        reached = _reached(counts_of_subject)
        if subject in viewed:
            without_views.update(reached)
        else:
            totals.update(reached)
    first_stage = parts.stages()[0]
    # A later step without a counted view has also counted as the first stage. So that number may be
    # higher than the views.
    without_views[first_stage] = max(without_views[first_stage], sum(viewed.values()))
    totals.update(without_views)
    in_order = []
    count_before = totals[first_stage]
    for name in parts.stages():
        count = totals[name]
        rate = _share(count, of=totals[first_stage])
        step_rate = _share(count, of=count_before)
        in_order.append(Stage(name, count, rate=rate, step_rate=step_rate))
        count_before = count
    return in_order


def _reached(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns how often each stage was reached by the counts of one funnel.

    A later stage stands for the earlier ones: what was counted before a stage was added has none of
    it, and in a period a pass may have been at the earlier ones before the period.
    """
    reached = {}
    highest = 0
    for stage in reversed(parts.stages()):
        highest = max(highest, counts.get(stage, 0))
        reached[stage] = highest
    return reached


def _share(count: int, *, of: int) -> float:
    """Returns the count's share of another count (0 to 1), 0 if that is 0."""
    return count / of if of else 0.0
