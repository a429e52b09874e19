"""Days of visitors, as flushes would have stored them."""

from collections.abc import Iterable
from datetime import date
from typing import Any

from readtrack.numbers.models import DayVisitors
from readtrack.store import keys, uniques
from readtrack.store.connection import connect
from readtrack.store.scripts import run


def add_people(names: Iterable[str], people: Iterable[str], *, day: date) -> None:
    """Stores that these people viewed each of the subjects or models on that day."""
    connect().delete("people")
    connect().pfadd("people", *people)
    new: Any = connect().get("people")
    for name in names:
        row, _ = DayVisitors.objects.get_or_create(
            subject=name, day=day, defaults={"visitors": 0, "sketch": b""}
        )
        sketches = [bytes(sketch) for sketch in (row.sketch, new) if sketch]
        union = run(uniques.union(sketches, tag=keys.tags()[0], wants_sketch=True))
        rows = DayVisitors.objects.filter(subject=name, day=day)
        rows.update(visitors=union.visitors, sketch=union.sketch)
