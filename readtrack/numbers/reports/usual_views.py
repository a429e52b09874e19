"""Whether objects do well: their views beside what objects of their kind usually had at the same
age, and the site's usual views by hour of the week.

The idea is that of CrowdTangle's and Chartbeat's benchmarks. What is usual is computed by full
flushes, see `readtrack.numbers.sql.usual`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar

from django.db.models import Model
from django.utils.timezone import get_default_timezone, override

from readtrack import buckets
from readtrack.numbers.options import numbers_options
from readtrack.numbers.published import published_at
from readtrack.numbers.sql import usual as usual_bands
from readtrack.numbers.sql.peers import section_of
from readtrack.numbers.sql.usual import (
    HOURS_OF_WEEK,
    AskedUsual,
    Band,
    Bands,
    StoredUsual,
    at_age,
    name_of,
    name_of_week,
)
from readtrack.reports.counts import views
from readtrack.subjects import (
    counted_subject_of,
    is_counted,
    label_of,
    listed,
    subject_column,
    subject_of,
)

AnyModel = TypeVar("AnyModel", bound=Model)

YOUNGEST = 1  # hours from which on an object is compared
LEAST = 1  # usual views below which nothing is compared, because every view would be a multiple


class Usual(NamedTuple):
    """The views of an object since its publication, and what is usual for its kind at its age."""

    views: int
    age: float  # hours
    low: float  # a quarter of its peers had fewer
    usual: float  # the mean of the middle half of its peers
    high: float  # a quarter of its peers had more
    section: (
        str  # the subject of the section that its peers are in; "" for peers of the whole model
    )

    @property
    def times(self) -> float:
        """How many times the usual views it has."""
        return self.views / self.usual


@dataclass(frozen=True, slots=True)
class Rated:
    """An object that can be compared: when it was published, and what it may be compared with."""

    column: str  # its subject as columns have it
    published: datetime
    label: str
    section: str

    @classmethod
    def of(cls, obj: Model) -> "Rated | None":
        """Returns it without a query; None for an object whose publication is not known."""
        # In TIME_ZONE, in which flushes computed what is usual. In the zone of the person who
        # looks, the day of a date would begin at another hour.
        with override(get_default_timezone()):
            published = published_at(obj)
        if published is None or not numbers_options().history or not is_counted(obj.__class__):
            return None
        return cls(
            column=subject_column(subject_of(obj)),
            published=published,
            label=label_of(obj.__class__),
            section=section_of(obj),
        )

    @property
    def names(self) -> dict[str, str]:
        """The names of the bands that it may be compared with, by section; the best ones first."""
        sections = dict.fromkeys([self.section, ""])
        return {section: name_of(self.label, section) for section in sections}

    def compared(self, total: int, stored: StoredUsual, *, at: datetime) -> Usual | None:
        """Returns the comparison of its views of all time; None if too few peers are known."""
        age = (at - self.published) / buckets.HOUR
        if age < YOUNGEST:
            return None
        since_publication = max(0, total - stored.views_before.get(self.column, 0))
        for section, name in self.names.items():
            band = at_age(stored.bands.get(name, {}), age)
            if band is not None and band.usual >= LEAST:
                return Usual(since_publication, age, *band, section)
        return None


def rated(objs: Iterable[Model]) -> dict[str, Rated]:
    """Returns those of the objects that can be compared, by subject. Makes no query."""
    by_subject = {}
    for obj in objs:
        candidate = Rated.of(obj)
        if candidate is not None:
            by_subject[subject_of(obj)] = candidate
    return by_subject


def question(objects: Iterable[Rated]) -> AskedUsual:
    """Returns what SQL is asked for, to compare the objects."""
    names: dict[str, None] = {}
    hours: dict[str, int] = {}
    for candidate in objects:
        names.update(dict.fromkeys(candidate.names.values()))
        hours[candidate.column] = buckets.hour_index(candidate.published)
    return AskedUsual([*names], hours)


def usual(obj: Model) -> Usual | None:
    """Returns the object's views since its publication beside what is usual for its kind at its
    age.

    Its kind are the last 100 objects of its section that are older, so never itself; those of its
    model if the section has fewer than 10. The highest and the lowest quarter of them are left out.
    None if the model has fewer than 10, too, for an object without a time of publication, in its
    first hour, and if less than one view is usual. Raises TypeError for an object without counts.
    Makes one query more than `views`.
    """
    return _usual_of([obj]).get(obj)


def times_usual(objs: Iterable[AnyModel]) -> dict[AnyModel, float]:
    """Returns how many times the usual views for its kind and age each object has, such as 2.3.

    Objects are left out for which `usual` returns None. Makes one query more than `views`.
    """
    return {obj: comparison.times for obj, comparison in _usual_of(objs).items()}


def _usual_of(objs: Iterable[AnyModel]) -> dict[AnyModel, Usual]:
    """Returns the comparison of each object that has one."""
    by_subject = {counted_subject_of(obj): obj for obj in listed(objs)}
    candidates = rated(by_subject.values())
    if not candidates:
        return {}
    # SQL is read before Redis, because what is written in between would count twice.
    stored = usual_bands.stored(question(candidates.values()))
    totals = views([by_subject[subject] for subject in candidates])
    at = buckets.now()
    comparisons = {}
    for subject, candidate in candidates.items():
        obj = by_subject[subject]
        comparison = candidate.compared(totals[obj], stored, at=at)
        if comparison is not None:
            comparisons[obj] = comparison
    return comparisons


def usual_hours(of: type[Model] | None = None) -> Mapping[tuple[int, int], Band]:
    """Returns the usual views of the whole site, or of a model, by weekday (0 is Monday) and hour
    of the day (0 to 23) of TIME_ZONE.

    They are those of the last 8 weeks: the mean of the middle half, with its lowest and highest
    number. Empty for a history of less than 4 weeks. Makes one query.
    """
    bands = week(label_of(of) if of else "")
    return {divmod(slot, 24): band for slot, band in bands.items() if slot < HOURS_OF_WEEK}


def week(label: str) -> Bands:
    """Returns the bands by slot of the week of a model, or of the whole site. Makes one query."""
    if not numbers_options().history:
        return {}
    name = name_of_week(label)
    return usual_bands.stored(AskedUsual([name])).bands.get(name, {})
