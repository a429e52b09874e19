"""What the hashes of an object gained by the day of TIME_ZONE, by value of a dimension or stage of a
funnel.

The gains of whole models are kept by the hour (breakdown_history.py). Those of objects are in a
table of their own, because there are so many of them: a day is one row for each value, is never
thinned, and is deleted as a whole.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import reduce
from operator import or_
from typing import NamedTuple

from django.db.models import Q, QuerySet, Sum

from readtrack.models import DayBreakdown
from readtrack.sql import databases
from readtrack.sql.breakdown_history import OTHER
from readtrack.store import scripts

VALUES = 50  # fields that one day keeps of an object and a kind of hash, beside "other"
HASHES_AT_ONCE = 100  # hashes whose lighter fields one query deletes

Gain = tuple[str, str, str]  # the subject as columns have it, the kind of a hash, and its field
HashName = tuple[str, str]  # a subject as columns have it, and a kind


class Days(NamedTuple):
    """A period of whole days of TIME_ZONE, the last one included."""

    first: date
    last: date


class DayGain(NamedTuple):
    """What a subject (as columns have it) gained on a day by one value."""

    subject: str
    day: date
    views: int


def add_gains(new: Mapping[Gain, int], *, day: date) -> None:
    """Adds the new gains to the gains of that day.

    If an object has too many fields of a kind, the least frequent ones are added up in "other". The
    caller has to lock the epoch, because the stored gains are read and then replaced.
    """
    if not new:
        return
    rows = databases.rows(DayBreakdown).filter(
        day=day,
        subject__in={subject for subject, _, _ in new},
        kind__in={hash_kind for _, hash_kind, _ in new},
    )
    stored = _stored_by_hash(rows)
    excess_of_hashes: dict[HashName, list[str]] = {}
    raised = []
    for name, gains_of_hash in _by_hash(new).items():
        before = stored[name]
        counts = before + gains_of_hash
        excess_fields = _excess_fields(counts)
        for field in excess_fields:
            counts[OTHER] += counts.pop(field)
        if not before.keys().isdisjoint(excess_fields):
            excess_of_hashes[name] = excess_fields
        subject, hash_kind = name
        for field, count in counts.items():
            if count > before[field]:
                raised.append((subject, hash_kind, day, field, count))
    _delete(rows, excess_of_hashes)
    databases.upsert(DayBreakdown, ("subject", "kind", "day", "field"), ("count",), rows=raised)


def _stored_by_hash(rows: "QuerySet[DayBreakdown]") -> defaultdict[HashName, Counter[str]]:
    """Returns the gains that these rows have, by the name of the hash."""
    stored: defaultdict[HashName, Counter[str]] = defaultdict(Counter)
    for subject, hash_kind, field, count in rows.values_list("subject", "kind", "field", "count"):
        stored[subject, hash_kind][field] = count
    return stored


def _by_hash(gains: Mapping[Gain, int]) -> defaultdict[HashName, Counter[str]]:
    """Returns the gains by the name of the hash, then by field."""
    by_hash: defaultdict[HashName, Counter[str]] = defaultdict(Counter)
    for (subject, hash_kind, field), count in gains.items():
        by_hash[subject, hash_kind][field] += count
    return by_hash


def _excess_fields(counts: Counter[str]) -> list[str]:
    """Returns the fields of a hash beyond the VALUES most frequent ones."""
    if len(counts) <= VALUES:
        return []
    fields = [field for field, _count in counts.most_common() if field != OTHER]
    return fields[VALUES:]


def _delete(rows: "QuerySet[DayBreakdown]", fields_of_hashes: Mapping[HashName, list[str]]) -> None:
    """Deletes the rows with these fields, which are added up in "other"."""
    for portion in scripts.sliced([*fields_of_hashes.items()], HASHES_AT_ONCE):
        conditions = [
            Q(subject=subject, kind=hash_kind, field__in=fields)
            for (subject, hash_kind), fields in portion
        ]
        rows.filter(reduce(or_, conditions)).delete()


def gains(
    columns: Collection[str], kinds: Collection[str], periods: Sequence[Days]
) -> list[defaultdict[str, Counter[str]]]:
    """Returns what the subjects gained together in each of these periods, by kind, then by field.

    `columns` are the subjects as columns have them. Makes one query for each SLICE of them. A kind
    with a row in any of the periods has an entry for each of them.
    """
    conditions = [Q(day__gte=days.first, day__lte=days.last) for days in periods]
    sums = {
        f"sum_{number}": Sum("count", filter=condition)
        for number, condition in enumerate(conditions)
    }
    gains_of_periods: list[defaultdict[str, Counter[str]]] = [defaultdict(Counter) for _ in periods]
    for portion in scripts.sliced([*columns]):
        rows = databases.rows(DayBreakdown).filter(
            reduce(or_, conditions), subject__in=portion, kind__in=kinds
        )
        sums_by_field = rows.order_by().values_list("kind", "field").annotate(**sums)
        for hash_kind, field, *counts_of_periods in sums_by_field:
            for gains_of_period, count in zip(gains_of_periods, counts_of_periods, strict=True):
                fields = gains_of_period[hash_kind]  # makes the entry, even without a gain
                if count:
                    fields[field] += int(count)
    return gains_of_periods


def gains_of_value(
    columns: Collection[str], hash_kind: str, field: str, periods: Sequence[Days]
) -> Iterable[DayGain]:
    """Yields what each of the subjects gained by one value on each day of the periods.

    `columns` are the subjects as columns have them. Makes one query for each SLICE of them.
    """
    conditions = [Q(day__gte=days.first, day__lte=days.last) for days in periods]
    for portion in scripts.sliced([*columns]):
        rows = databases.rows(DayBreakdown).filter(
            reduce(or_, conditions), subject__in=portion, kind=hash_kind, field=field
        )
        for subject, day, count in rows.values_list("subject", "day", "count"):
            yield DayGain(subject, day, count)


def delete_fields(subject: str, hash_kind: str, fields: Collection[str]) -> None:
    """Deletes the gains of these fields of an object's hash on all days.

    `subject` is as columns have it.
    """
    rows = databases.rows(DayBreakdown).filter(subject=subject, kind=hash_kind)
    rows.filter(field__in=fields).delete()


def delete_before(day: date) -> int:
    """Deletes the gains of earlier days. Returns the number of deleted rows."""
    deleted, _ = databases.rows(DayBreakdown).filter(day__lt=day).delete()
    return deleted
