"""Storing the visitors of each day: what SQL has, united with what Redis has.

Redis has a sketch of each object and day. That of a model is the union of its objects' sketches,
and is made here, so that a page does nothing for it. A union takes nothing away, and a visitor who
is in it twice counts once: so flushes may overlap and repeat, and a Redis that was emptied or
restored loses nothing that SQL has.
"""

from collections import ChainMap, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Q

from readtrack import buckets
from readtrack.numbers.counted import counts_days
from readtrack.numbers.sql import day_visitors
from readtrack.numbers.sql.day_visitors import LENGTHS, AskedDays, Day, StoredDay
from readtrack.sql import databases
from readtrack.store import keys, scripts
from readtrack.store.scripts import Call
from readtrack.store.uniques import Union, union
from readtrack.subjects import label_in, subject_column

Sketches = Mapping[Day, Sequence[bytes]]

# Visitors of a part of a block from which on the block is made. With fewer, sketches are small, and
# are quickly united.
MANY = 300
BLOCKS_AT_ONCE = 100
DAYS_KEPT: int = keys.day_visitors.ttl // keys.DAY  # whole days for which Redis has sketches


def all_days(at: datetime) -> list[date]:
    """Returns the days of which Redis may have visitors that no flush has stored."""
    return buckets.local_days(at - DAYS_KEPT * buckets.DAY, at)


def last_days(at: datetime) -> list[date]:
    """Returns the days of the views that the minute buckets have: mostly one day.

    A web server's clock may be off by some minutes.
    """
    minutes = timedelta(seconds=keys.trending_bucket.ttl)
    return buckets.local_days(at - minutes, at + 5 * buckets.MINUTE)


def store(subjects: Iterable[str], *, days: Sequence[date]) -> None:
    """Stores the visitors that the subjects and their models had on these days."""
    by_label: defaultdict[str, list[str]] = defaultdict(list)
    for subject in subjects:
        by_label[label_in(subject)].append(subject)
    for label, of_label in by_label.items():
        if counts_days(label):
            for portion in scripts.parted(of_label, max(1, scripts.SLICE // len(days))):
                _store_portion(portion, label=label, days=days)


def _store_portion(subjects: Sequence[str], *, label: str, days: Sequence[date]) -> None:
    """Stores the visitors of some objects of one partition, and of their model, on these days.

    Raises ContendedError.
    """
    columns = [*map(subject_column, subjects)]
    attempts = databases.attempts("visitors of days")
    remaining: Collection[date] = days
    while remaining:
        next(attempts)
        stored = day_visitors.of_days([*columns, label], remaining)
        calls = []
        for day in remaining:
            of_day = {
                (column, day): subject for column, subject in zip(columns, subjects, strict=True)
            }
            calls.append(_united(of_day, stored, of_model=(label, day)))
        unions = ChainMap(*scripts.run_all(*calls, patient=True))
        # Days of which another flush has raised a row meanwhile are united again.
        remaining = {day for _column, day in _raise(unions, stored)}


def _united(
    subject_by_name: Mapping[Day, str], stored: Mapping[Day, Union], *, of_model: Day
) -> Call[dict[Day, Union]]:
    """Unites Redis's visitors of the objects on one day with those that SQL has stored, and those
    of all objects with the stored ones of their model.

    The result has them by the names of the rows. A sketch is b"" where SQL has the same.
    """
    subjects = [*subject_by_name.values()]
    names = [*subject_by_name, of_model]
    _label, day = of_model
    tag = keys.tag(subjects[0])
    bucket = buckets.day_bucket(day)
    key_names = [keys.united(tag, number) for number in range(2)]
    start = keys.day_visitors.start(tag, bucket)
    key_names += [start + subject for subject in subjects]
    nothing = Union(0, b"")
    sketches = [stored.get(name, nothing).sketch for name in names]

    def decode(answer: Sequence[Any]) -> dict[Day, Union]:
        numbers, sketches_of_unions = answer
        return dict(zip(names, map(Union, numbers, sketches_of_unions), strict=True))

    arguments: list[int | bytes] = [keys.day_visitors.ttl, *sketches]
    return Call("readtrack.numbers/unite_days", key_names, arguments, decode)


def store_unions(sketches: Sketches, *, tag: str) -> None:
    """Stores the visitors of these sketches beside those that SQL has. The tag's partition unites
    them. Raises ContendedError.
    """
    attempts = databases.attempts("visitors of days")
    while sketches:
        next(attempts)
        sketches = _unite(sketches, tag=tag)


def add(visitors: Mapping[tuple[str, date], Collection[str]]) -> None:
    """Stores visitors of the past, by subject and day, beside those that SQL has, and those of the
    models. Redis keeps nothing of them. Raises ContendedError.
    """
    counted = [key for key in visitors if counts_days(label_in(key[0]))]
    for portion in scripts.parted(counted, tag_of=_tag_of):
        new: defaultdict[Day, set[str]] = defaultdict(set)
        for subject, day in portion:
            ids = visitors[subject, day]
            new[subject_column(subject), day].update(ids)
            new[label_in(subject), day].update(ids)
        _add(new, tag=_tag_of(portion[0]))


def _tag_of(key: tuple[str, date]) -> str:
    """Returns the tag of the partition of the subject."""
    return keys.tag(key[0])


def _add(visitors: Mapping[Day, Collection[str]], *, tag: str) -> None:
    """Stores these visitors beside those that SQL has. The tag's partition adds them to sketches.
    Raises ContendedError.
    """
    attempts = databases.attempts("visitors of days")
    scratch_key = keys.united(tag, "")
    while visitors:
        next(attempts)
        stored = _stored(visitors)
        calls: dict[Day, Call[Union]] = {}
        for name, ids in visitors.items():
            row = stored.get(name)
            arguments: list[str | bytes] = [row.sketch if row else b"", *ids]
            calls[name] = Call(
                "readtrack.numbers/add_visitors", [scratch_key], arguments, _union_of
            )
        visitors = {name: visitors[name] for name in _raise(_run(calls), stored)}


def _union_of(answer: Sequence[Any]) -> Union:
    """Returns the union that a script has answered."""
    visitors, sketch = answer
    return Union(visitors, sketch)


def _unite(live: Sketches, *, tag: str) -> Sketches:
    """Stores the unions of SQL's sketches and these, which the tag's partition makes.

    Returns those whose rows another flush has raised meanwhile.
    """
    stored = _stored(live)
    calls: dict[Day, Call[Union]] = {}
    for name, sketches in live.items():
        row = stored.get(name)
        all_sketches = [*sketches, row.sketch] if row else sketches
        calls[name] = union(all_sketches, tag=tag, wants_sketch=True)
    return {name: live[name] for name in _raise(_run(calls), stored)}


def _run(calls: Mapping[Day, Call[Union]]) -> dict[Day, Union]:
    """Runs the calls in one round trip, and returns their results."""
    return dict(zip(calls, scripts.run_all(*calls.values(), patient=True), strict=True))


def _raise(
    unions: Mapping[Day, Union], stored: Mapping[Day, Union] | Mapping[Day, StoredDay]
) -> list[Day]:
    """Stores those unions that have more visitors than SQL's rows.

    Returns the days whose rows another flush has raised meanwhile.
    """
    read = {name: row.visitors for name, row in stored.items()}
    risen = {name: new for name, new in unions.items() if new.visitors > read.get(name, 0)}
    return day_visitors.raise_days(risen, read=read) if risen else []


def _stored(names: Iterable[Day]) -> dict[Day, StoredDay]:
    """Returns SQL's rows of the subjects in these days."""
    subjects = {subject for subject, _ in names}
    days = [day for _, day in names]
    asked = AskedDays(subjects, min(days), max(days), has_blocks=False)
    return {(row.subject, row.day): row for row in day_visitors.stored(asked)}


def roll_up(*, at: datetime) -> None:
    """Makes the blocks of days that are over, of the subjects with many visitors.

    No flush of views raises these days any more. A block that an archive has missed is made by the
    next one, and the one after that.
    """
    first_open_day = all_days(at)[0]
    for length in LENGTHS:
        end = day_visitors.block_start(first_open_day, length=length)
        for age in (2, 1):
            start = end - age * length * buckets.DAY
            if not day_visitors.has_blocks(start, length=length):
                _make_blocks(start, length=length)


def _make_blocks(start: date, *, length: int) -> None:
    """Makes the blocks that begin on that day."""
    parts = day_visitors.parts_of(start, length=length)
    # Pages show the visitors of many categories and authors together.
    of_groups = Q(subject__contains=":{")
    parts_to_unite = parts.filter(Q(visitors__gte=MANY) | of_groups).order_by()
    subjects = list(parts_to_unite.values_list("subject", flat=True).distinct())
    for portion in scripts.sliced(subjects, BLOCKS_AT_ONCE):
        sketches: defaultdict[str, list[bytes]] = defaultdict(list)
        read = 0
        rows = parts.filter(subject__in=portion)
        for subject, visitors, sketch in rows.values_list("subject", "visitors", "sketch"):
            sketches[subject].append(bytes(sketch))
            read += visitors
        calls = {
            subject: union(sketches_of_subject, tag=keys.tags()[0], wants_sketch=True)
            for subject, sketches_of_subject in sketches.items()
        }
        scripts.run_all(*calls.values(), patient=True)
        blocks = {subject: call.result for subject, call in calls.items()}
        day_visitors.add_blocks(start, blocks, length=length, read=read)
