"""What the hashes of a model gained by the hour, by value of a dimension or stage of a funnel."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from django.db.models import Q, QuerySet, Sum

from readtrack.models import BreakdownHistory
from readtrack.sql import databases

VALUES = 100  # values of a dimension that a model keeps of an hour, beside "other"
OTHER = "other"

Gain = tuple[str, str, str]  # the label of a model, the kind of a hash, and its field
Gains = defaultdict[tuple[str, str], Counter[str]]  # by kind and label, then by field


def add_gains(new: Mapping[Gain, int], *, hour: int) -> None:
    """Adds gains to that hour. Where a kind has too many fields, the least go to "other".

    The caller has locked the epoch.
    """
    rows = databases.rows(BreakdownHistory).filter(
        hour=hour,
        subject__in={label for label, _, _ in new},
        kind__in={hash_kind for _, hash_kind, _ in new},
    )
    stored = _stored_gains(rows)
    counts = stored + Counter(new)
    for label, hash_kind in {(label, hash_kind) for label, hash_kind, _ in counts}:
        excess = _excess(counts, label, hash_kind)
        for gain in excess:
            counts[label, hash_kind, OTHER] += counts.pop(gain)
        # Only fields that have a row: MySQL would take a new one for another that differs in case,
        # and delete that.
        fields = [gain[2] for gain in excess if gain in stored]
        rows.filter(subject=label, kind=hash_kind, field__in=fields).delete()
    risen = [
        (label, hash_kind, hour, field, count)
        for (label, hash_kind, field), count in counts.items()
        if count > stored[label, hash_kind, field]
    ]
    databases.upsert(BreakdownHistory, ("subject", "kind", "hour", "field"), ("count",), rows=risen)


def _stored_gains(rows: "QuerySet[BreakdownHistory]") -> Counter[Gain]:
    """Returns the counts of these rows."""
    stored: Counter[Gain] = Counter()
    for label, hash_kind, field, count in rows.values_list("subject", "kind", "field", "count"):
        stored[label, hash_kind, field] = count
    return stored


def _excess(counts: Counter[Gain], label: str, hash_kind: str) -> list[Gain]:
    """Returns the fields of one hash that count too little to be kept."""
    ranked = [
        gain
        for gain, _ in counts.most_common()
        if gain[:2] == (label, hash_kind) and gain[2] != OTHER
    ]
    return ranked[VALUES:]


def gains(labels: Sequence[str], kinds: Sequence[str], spans: Sequence[range]) -> list[Gains]:
    """Returns what the models gained in each of these ranges of hours, from one query."""
    conditions = [Q(hour__gte=span.start, hour__lt=span.stop) for span in spans]
    sums = {
        f"sum_{number}": Sum("count", filter=condition)
        for number, condition in enumerate(conditions)
    }
    rows = databases.rows(BreakdownHistory).filter(
        Q(*conditions, _connector=Q.OR), subject__in=labels, kind__in=kinds
    )
    by_field = rows.order_by().values_list("kind", "subject", "field").annotate(**sums)
    by_span: list[Gains] = [defaultdict(Counter) for _ in spans]
    for hash_kind, label, field, *counts in by_field:
        for gained, count in zip(by_span, counts, strict=True):
            fields = gained[hash_kind, label]  # the entry exists even if nothing was gained
            if count:
                fields[field] += int(count)
    return by_span
