"""Storing the visitors of each day: what SQL has, united with what Redis has.

Redis has a sketch of each object and day. That of a model is the union of its objects' sketches,
and is made here, so that a page does nothing for it. A union takes nothing away, and a visitor who
is in it twice counts once: so flushes may overlap and repeat, and a Redis that was emptied or
restored loses nothing that SQL has.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta

from readtrack import buckets
from readtrack.sql import day_visitors
from readtrack.sql.day_visitors import Day
from readtrack.store import keys, scripts
from readtrack.store.effects import counts_days
from readtrack.store.scripts import Call
from readtrack.store.uniques import Union, union
from readtrack.subjects import label_in, subject_column

Sketches = Mapping[Day, Sequence[bytes]]

DAYS_KEPT: int = keys.day_visitors.ttl // keys.DAY  # days for which Redis has sketches at least


def all_days(at: datetime) -> list[date]:
    """Returns the days of which Redis may have visitors that no flush has stored."""
    return buckets.local_days(at - (DAYS_KEPT - 1) * buckets.DAY, at)


def last_days(at: datetime) -> list[date]:
    """Returns the days of the views that the minute buckets have: mostly one day.

    A web server's clock may be off by some minutes.
    """
    minutes = timedelta(seconds=keys.trending_bucket.ttl)
    return buckets.local_days(at - minutes, at + 5 * buckets.MINUTE)


def store(subjects: Iterable[str], *, days: Sequence[date]) -> None:
    """Stores the visitors that the subjects and their models had on these days."""
    counted = [subject for subject in subjects if counts_days(label_in(subject))]
    for portion in scripts.sliced(counted):
        live = _live(portion, days=days)
        while live:
            live = _unite(live, tag=keys.tag(portion[0]))


def _live(subjects: Sequence[str], *, days: Sequence[date]) -> Sketches:
    """Returns Redis's sketches by subject and day, and those of all objects by model and day."""
    calls: list[Call[Sequence[bytes | None]]] = []
    days_of_calls: list[list[tuple[str, date]]] = []
    for portion in scripts.parted(subjects, max(1, scripts.SLICE // len(days))):
        subjects_and_days = [(subject, day) for day in days for subject in portion]
        names = [keys.day_visitors(f"{day:%Y%m%d}", subject) for subject, day in subjects_and_days]
        calls.append(Call("MGET", names))
        days_of_calls.append(subjects_and_days)
    scripts.run_all(*calls, patient=True)
    live: defaultdict[Day, list[bytes]] = defaultdict(list)
    for call, subjects_and_days in zip(calls, days_of_calls, strict=True):
        for (subject, day), sketch in zip(subjects_and_days, call.result, strict=True):
            if sketch:
                live[subject_column(subject), day].append(sketch)
                live[label_in(subject), day].append(sketch)
    return dict(live)


def _unite(live: Sketches, *, tag: str) -> Sketches:
    """Stores the unions of SQL's sketches and these, which the tag's partition makes.

    Returns those whose rows another flush has raised meanwhile.
    """
    days = [day for _, day in live]
    subjects = {subject for subject, _ in live}
    stored = {
        (row.subject, row.day): row
        for row in day_visitors.stored(subjects, first=min(days), last=max(days))
    }
    calls: dict[Day, Call[Union]] = {}
    for name, sketches in live.items():
        row = stored.get(name)
        all_sketches = [*sketches, row.sketch] if row else sketches
        calls[name] = union(all_sketches, tag=tag, wants_sketch=True)
    scripts.run_all(*calls.values(), patient=True)
    read = {name: row.visitors for name, row in stored.items()}
    risen = {
        name: call.result
        for name, call in calls.items()
        if call.result.visitors > read.get(name, 0)
    }
    if not risen:
        return {}
    return {name: live[name] for name in day_visitors.raise_days(risen, read=read)}
