"""Breakdowns: views by the values of a dimension, such as the country or the device."""

from collections import Counter
from collections.abc import Iterable

from django.db.models import Model

from readtrack.conf import conf
from readtrack.hits import dimensions
from readtrack.reports.hashes import hashes
from readtrack.subjects import subject_of


def breakdown(objs: Model | Iterable[Model], dimension: str) -> dict[str, int]:
    """Returns the views of one object, or of several together, by value of the dimension. The most
    frequent value comes first.

    Takes one round trip. Raises ValueError for a dimension that is not in DIMENSIONS.
    """
    configured = [dimensions.name_of(path) for path in conf.DIMENSIONS]
    if dimension not in configured:
        listed = ", ".join(configured) or "nothing yet"
        raise ValueError(f"READTRACK['DIMENSIONS'] has no {dimension!r}; it has: {listed}.")
    objs = [objs] if isinstance(objs, Model) else objs
    subjects = [subject_of(obj) for obj in objs]
    counts = sum(hashes(subjects, [f"views:{dimension}"]).values(), Counter[str]())
    values = sorted(counts, key=lambda value: (-counts[value], value))
    return {value: counts[value] for value in values}
