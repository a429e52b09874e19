"""Breakdowns: views by the values of a dimension, such as the country or the device."""

from collections import Counter
from collections.abc import Iterable
from datetime import date

from django.db.models import Model

from readtrack.numbers import dimensions
from readtrack.numbers.options import numbers_options
from readtrack.numbers.order import most_first
from readtrack.numbers.reports import people
from readtrack.numbers.reports.hashes import hashes
from readtrack.numbers.sql import day_breakdowns
from readtrack.subjects import subject_column, subject_of


def breakdown(
    objs: Model | Iterable[Model],
    dimension: str,
    *,
    days: int | None = None,
    since: date | None = None,
    until: date | None = None,
) -> dict[str, int]:
    """Returns the views of one object, or of several together, by value of the dimension. The most
    frequent value comes first.

    Without a period they are those of all time, which takes one round trip. With `days` (the last
    days, today included), or with `since` and perhaps `until`, they are those of whole days of
    TIME_ZONE, as of the last flush, which takes a query for each 1,000 objects. `since` and `until`
    are days or times; `until` is exclusive.

    Raises ValueError for a dimension that the site does not have, for a period without history, and
    for a combination of `days`, `since` and `until` that is no period.
    """
    configured = dimensions.names()
    if dimension not in configured:
        listed = ", ".join(configured) or "nothing yet"
        raise ValueError(f"The list of dimensions has no {dimension!r}; it has: {listed}.")
    objs = [objs] if isinstance(objs, Model) else objs
    subjects = [subject_of(obj) for obj in objs]
    kind = f"views:{dimension}"
    if days is None and since is None and until is None:
        counts = sum(hashes(subjects, [kind]).values(), Counter[str]())
    else:
        counts = _gains(subjects, kind, people.days_of(days=days, since=since, until=until))
    return dict(most_first(counts))


def _gains(subjects: Iterable[str], kind: str, period: people.Days) -> Counter[str]:
    """Returns what the subjects gained together in the period, by field."""
    if not numbers_options().history:
        raise ValueError("The values of a period are not stored: that needs history (NUMBERS).")
    columns = [subject_column(subject) for subject in subjects]
    [gained] = day_breakdowns.gains(columns, [kind], [day_breakdowns.Days(*period)])
    return sum(gained.values(), Counter[str]())
