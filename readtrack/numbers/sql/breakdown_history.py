"""What the hashes of a model gained by the hour, by value of a dimension or stage of a funnel.

The same table has what categories, authors and ages gained; see `group_sums`.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q, QuerySet, Sum

from readtrack.numbers.models import BreakdownHistory
from readtrack.numbers.sql.memberships import GROUPS
from readtrack.sql import databases

VALUES = 100  # fields that one hour keeps of a model and a kind of hash, beside "other"
MOST_GROUPS = 1_000  # the same of categories, authors and ages
OTHER = "other"  # the field for all further values


Gain = tuple[str, str, str]  # the label of a model, the kind of a hash, and a field of the hash
Gains = defaultdict[tuple[str, str], Counter[str]]  # counts by kind and label, then by field


def add_gains(new: Mapping[Gain, int], *, hour: int) -> None:
    """Adds the new gains to the gains of that hour (since 1970).

    If a model has too many fields of a kind, the least frequent ones are added up in "other". The
    caller has to call `lock_history`, because the stored gains are read and then replaced.
    """
    rows = databases.rows(BreakdownHistory).filter(
        hour=hour,
        subject__in={label for label, _, _ in new},
        kind__in={hash_kind for _, hash_kind, _ in new},
    )
    stored = _stored_gains(rows)
    counts = stored + Counter(new)
    for label, hash_kind in {(label, hash_kind) for label, hash_kind, _ in counts}:
        excess_fields = _excess_fields(counts, label, hash_kind)
        for field in excess_fields:
            gain = (label, hash_kind, field)
            counts[label, hash_kind, OTHER] += counts.pop(gain)
        rows.filter(subject=label, kind=hash_kind, field__in=excess_fields).delete()
    risen = [
        (label, hash_kind, hour, field, count)
        for (label, hash_kind, field), count in counts.items()
        if count > stored[label, hash_kind, field]
    ]
    databases.upsert(BreakdownHistory, ("subject", "kind", "hour", "field"), ("count",), rows=risen)


def _stored_gains(rows: "QuerySet[BreakdownHistory]") -> Counter[Gain]:
    """Returns the gains that these rows have."""
    stored: Counter[Gain] = Counter()
    for label, hash_kind, field, count in rows.values_list("subject", "kind", "field", "count"):
        stored[label, hash_kind, field] = count
    return stored


def _excess_fields(counts: Counter[Gain], label: str, hash_kind: str) -> list[str]:
    """Returns the fields of the model and kind beyond the VALUES most frequent ones.

    Of categories, authors and ages (see `group_sums`) those beyond MOST_GROUPS.
    """
    fields = []  # the most frequent one first
    for (label_of_gain, kind_of_gain, field), _count in counts.most_common():
        if (label_of_gain, kind_of_gain) == (label, hash_kind) and field != OTHER:
            fields.append(field)
    # The kinds of `group_sums` begin with the kind of their groups.
    is_group = hash_kind.partition(":")[0] in GROUPS
    return fields[MOST_GROUPS if is_group else VALUES :]


def gains(labels: Sequence[str], kinds: Sequence[str], spans: Sequence[range]) -> list[Gains]:
    """Returns the gains of these models and kinds in each of these ranges of hours.

    Makes one query. A kind and model with a row in any of the ranges has an entry for each of them.
    """
    conditions = [Q(hour__gte=span.start, hour__lt=span.stop) for span in spans]
    rows = databases.rows(BreakdownHistory).filter(subject__in=labels, kind__in=kinds)
    gains_of_spans: list[Gains] = [defaultdict(Counter) for _ in spans]
    add_sums(gains_of_spans, rows, label="subject", conditions=conditions)
    return gains_of_spans


def add_sums(
    gains_of_periods: Sequence[Gains], rows: "QuerySet[Any]", *, label: str, conditions: Sequence[Q]
) -> None:
    """Adds the sums of the rows in each of some periods to the gains of that period.

    `conditions` are those of the periods, and `label` is the column with the label of the model.
    Makes one query. A kind and model with a row in any of the periods gets an entry in each of
    them.
    """
    sums = {
        f"sum_{number}": Sum("count", filter=condition)
        for number, condition in enumerate(conditions)
    }
    rows = rows.filter(Q(*conditions, _connector=Q.OR)).order_by()
    sums_by_field = rows.values_list("kind", label, "field").annotate(**sums)
    for hash_kind, label_of_row, field, *counts_of_periods in sums_by_field:
        for gains_of_period, count in zip(gains_of_periods, counts_of_periods, strict=True):
            # Makes the entry, even without a gain.
            fields = gains_of_period[hash_kind, label_of_row]
            if count:
                fields[field] += int(count)


def gains_of_value(
    labels: Sequence[str], hash_kind: str, field: str, *, since: int, until: int
) -> Counter[int]:
    """Returns what the models gained together by one value in each hour (since 1970) of a range.

    `until` is exclusive. Makes one query.
    """
    rows = databases.rows(BreakdownHistory).filter(
        subject__in=labels, kind=hash_kind, field=field, hour__gte=since, hour__lt=until
    )
    gains: Counter[int] = Counter()
    for hour, count in rows.values_list("hour", "count"):
        gains[hour] += count
    return gains
