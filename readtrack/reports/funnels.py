"""Funnels: how many views, and later steps, each stage has."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Model

from readtrack.conf import conf
from readtrack.reports.counts import views
from readtrack.reports.hashes import hashes
from readtrack.store import counters
from readtrack.subjects import enters_funnel, subject_of


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a funnel: its count, and the count's share of the first stage and of the stage
    before (0 to 1).
    """

    name: str
    count: int
    rate: float
    step_rate: float


def funnel(objs: Model | Iterable[Model]) -> list[Stage]:
    """Returns the stages in their order, of one object or of several together, in at most two round
    trips.

    Where views do not enter the funnel (FUNNELS, `has_funnel`), the live count is the first stage.
    """
    if not conf.FUNNEL:
        return []
    objs = [objs] if isinstance(objs, Model) else list(objs)
    counts = hashes([subject_of(obj) for obj in objs], ["funnel"])
    live_views = views([obj for obj in objs if not enters_funnel(type(obj))])
    return stages(counts, {subject_of(obj): count for obj, count in live_views.items()})


def stages(counts: Mapping[counters.Name, Counter[str]], viewed: Mapping[str, int]) -> list[Stage]:
    """Returns the stages of funnels together; `viewed` are the views of subjects whose views enter
    no funnel.
    """
    totals = Counter[str]()
    without_views = Counter[str]()
    for (_, subject), counts_of_subject in counts.items():
        if subject in viewed:
            without_views.update(counts_of_subject)
        else:
            totals.update(counts_of_subject)
    # A step without a counted view counts as a view, too.
    entry = conf.FUNNEL[0]
    without_views[entry] = max(without_views[entry], sum(viewed.values()))
    totals.update(without_views)
    in_order = []
    before = totals[entry]
    for name in conf.FUNNEL:
        count = totals[name]
        rate = _share(count, of=totals[entry])
        in_order.append(Stage(name, count, rate=rate, step_rate=_share(count, of=before)))
        before = count
    return in_order


def _share(count: int, *, of: int) -> float:
    return count / of if of else 0.0
