"""Charts of the past: what a part of a log adds to the history of its subjects, their models and the whole site.

A row holds the absolute total at the end of its hour, so a view of the past raises its own hour and all later ones.
Nothing is counted twice:

- Rows of a subject that a flush writes after the part was added in Redis hold the live total, and so the part. They
  are told by their value: all rows from before are below the total right after that step, all rows since are not.
- Sums of young hours are left to the flush, which goes on from its last row by what Redis counted in each hour since,
  the part included. Of earlier hours it takes the rows as they are.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import BigIntegerField, Case, F, QuerySet, Value, When
from django.db.models.constants import OnConflict

from readtrack import buckets, databases, history, subjects
from readtrack.conf import conf
from readtrack.imports.batches import Batch
from readtrack.models import History, Import

STEPS = 100  # hours of a subject in one UPDATE; SQLite takes some 1,000 parameters


def part(batch: Batch, *, at: datetime) -> dict[str, Any]:
    """What to fill in once the batch is added, as JSON; empty where no history is kept."""
    if not conf.HISTORY:
        return {}
    present = buckets.hour_number(at)
    hours: Counter[tuple[str, int]] = Counter()
    sums: Counter[tuple[str, int]] = Counter()
    for (token, start), count in batch.hours.items():
        hour = min(max(buckets.hour_number(start), 0), present)  # a log may hold any time
        hours[token, hour] += count
        for subject in (history.SITE, token.partition(":")[0]):
            sums[subject, hour] += count
    summed = history.summed_from({subject for subject, _ in sums}, at=at)
    return {
        "tokens": list(batch.views),
        "hours": [[*key, count] for key, count in hours.items()],
        "sums": [[*key, count] for key, count in sums.items() if key[1] < summed[key[0]]],
    }


def fill(part: Mapping[str, Any], totals: Sequence[int]) -> None:
    """Raises the history by that part; `totals` are those of its tokens right after it was added.

    To be called once, in the transaction that confirms the part.
    """
    below = dict(zip(part["tokens"], totals, strict=True))
    gains: defaultdict[tuple[str, int | None], Counter[int]] = defaultdict(Counter)
    for token, hour, count in part["hours"]:
        gains[subjects.column(token), below[token]][hour] += count
    for subject, hour, count in part["sums"]:
        gains[subject, None][hour] += count
    if not gains:
        return
    # What another import inserts meanwhile would not be seen, and so not be raised: they take turns.
    Import.objects.using(databases.of(Import).alias).select_for_update().order_by("pk").first()
    _insert([(subject, hour) for (subject, _), hours in gains.items() for hour in hours])
    for (subject, limit), hours in sorted(gains.items(), key=lambda item: item[0][0]):
        rows = _rows().filter(subject=subject)
        _raise(rows if limit is None else rows.filter(views__lt=limit), hours)


def _insert(missing: Sequence[tuple[str, int]]) -> None:
    """Rows of those hours, with the counts of the row before; those that exist stay as they are."""
    connection = databases.of(History)
    ops, table = connection.ops, connection.ops.quote_name(History._meta.db_table)
    fields: list[Any] = [History._meta.get_field(name) for name in ("subject", "hour", "views", "visitors")]
    subject, hour, *counts = (ops.quote_name(field.column) for field in fields)
    earlier = [
        f"COALESCE((SELECT row.{name} FROM {table} row WHERE row.{subject} = %s AND row.{hour} < %s"
        f" ORDER BY row.{hour} DESC LIMIT 1), 0)"
        for name in counts
    ]
    with connection.cursor() as cursor:
        cursor.executemany(
            f"{ops.insert_statement(on_conflict=OnConflict.IGNORE)} {table} ({', '.join((subject, hour, *counts))})"
            f" SELECT %s, %s, {', '.join(earlier)} {ops.on_conflict_suffix_sql(fields, OnConflict.IGNORE, [], [])}",
            [key * 3 for key in sorted(missing)],
        )


def _raise(rows: "QuerySet[History]", hours: Mapping[int, int]) -> None:
    """Raises the rows by what was counted up to their hours."""
    ordered = sorted(hours.items())
    for start in range(0, len(ordered), STEPS):
        total, steps = 0, []
        for hour, count in ordered[start : start + STEPS]:
            total += count
            steps.append(When(hour__gte=hour, then=Value(total, BigIntegerField())))
        later = rows.filter(hour__gte=ordered[start][0])
        later.update(views=F("views") + Case(*reversed(steps)))


def _rows() -> "QuerySet[History]":
    return History.objects.using(databases.of(History).alias)
