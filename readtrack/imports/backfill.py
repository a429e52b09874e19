"""Charts of the past: what a part of a log adds to the history of its subjects and their models.

A row holds the absolute total at the end of its hour, so a view of the past raises its own hour and all later ones.
Nothing is counted twice:

- Rows of a subject that a flush writes after the part was added in Redis hold the live total, and so the part. They
  are told by their value: all rows from before are below the total right after that step, all rows since are not.
- Sums of young hours are left to the flush: Redis counts them, the part included. Of earlier hours it takes the
  rows as they are.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BigIntegerField, Case, F, QuerySet, Value, When
from django.db.models.constants import OnConflict

from readtrack import buckets
from readtrack.conf import conf
from readtrack.models import History
from readtrack.sql import databases
from readtrack.sql.runs import lock_epoch
from readtrack.store.imports import first_hour
from readtrack.subjects import subject_column

VIEWS = 2_000  # in a batch: a script that applies more would keep the server from its pages


class Batch:
    """Views by subject, by subject and hour, and who the visitors were."""

    def __init__(self) -> None:
        self.views: Counter[str] = Counter()
        self.hours: Counter[tuple[str, datetime]] = Counter()
        self.visitors: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self.size = 0

    @property
    def is_full(self) -> bool:
        """Whether it has to be applied before more comes."""
        return self.size >= VIEWS

    def add(self, subject: str, *, visitor: str, at: datetime) -> None:
        """One view."""
        self.views[subject] += 1
        self.hours[subject, at.replace(minute=0, second=0, microsecond=0)] += 1
        self.visitors[subject][visitor] = None
        self.size += 1


ANY = 2**63 - 1  # what every row is below: a sum has no such limit
STEPS = 100  # hours of a subject in one UPDATE; SQLite takes some 1,000 parameters


def part(batch: Batch, *, at: datetime) -> str:
    """What to fill in once the batch is added, as JSON; empty where no history is kept."""
    if not conf.HISTORY:
        return ""
    present = buckets.hour_index(at)
    hours: Counter[tuple[str, int]] = Counter()
    models: Counter[tuple[str, int]] = Counter()
    for (subject, start), count in batch.hours.items():
        hour = min(max(buckets.hour_index(start), 0), present)  # a log may hold any time
        hours[subject, hour] += count
        models[subject.partition(":")[0], hour] += count
    found = {
        "subjects": list(batch.views),
        "hours": [[*key, count] for key, count in hours.items()],
        "sums": [[*key, count] for key, count in models.items() if key[1] < first_hour(at)],
    }
    return json.dumps(found, separators=(",", ":"))


def fill(part: str, totals: Sequence[int]) -> None:
    """Raises the history by that part; `totals` are those of its subjects right after it was added.

    To be called once, in the transaction that confirms the part.
    """
    found = json.loads(part)
    below = dict(zip(found["subjects"], totals, strict=True))
    gains: defaultdict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for subject, hour, count in found["hours"]:
        gains[subject_column(subject), below[subject]][hour] += count
    for column, hour, count in found["sums"]:
        gains[column, ANY][hour] += count
    if not gains:
        return
    # What others insert meanwhile would not be seen, and so not be raised: they take turns.
    lock_epoch()
    connection = databases.of(History)
    if connection.vendor == "postgresql":
        _fill_postgresql(
            connection,
            [(column, hour, views, below) for (column, below), hours in gains.items() for hour, views in hours.items()],
        )
        return
    _insert([(column, hour) for (column, _), hours in gains.items() for hour in hours])
    for (column, limit), hours in sorted(gains.items()):
        _raise(History.objects.using(connection.alias).filter(subject=column, views__lt=limit), hours)


def _fill_postgresql(connection: BaseDatabaseWrapper, gains: Sequence[tuple[str, int, int, int]]) -> None:
    """The same in two statements. Gains are a subject, an hour, its views, and what a row must be below."""
    table = connection.ops.quote_name(History._meta.db_table)
    names, *numbers = zip(*sorted(gains), strict=True)
    columns = [list(names), *map(databases.array, numbers)]
    earlier = (
        f"FROM {table} AS row WHERE row.subject = new.subject AND row.hour < new.hour ORDER BY row.hour DESC LIMIT 1"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} (subject, hour, views, visitors) SELECT new.subject, new.hour,"
            f" COALESCE((SELECT row.views {earlier}), 0), COALESCE((SELECT row.visitors {earlier}), 0)"
            f" FROM unnest(%s::varchar[], %s::integer[]) AS new(subject, hour) ON CONFLICT DO NOTHING",
            columns[:2],
        )
        cursor.execute(
            f"UPDATE {table} AS row SET views = row.views + gained.views"
            f" FROM (SELECT old.subject, old.hour, sum(new.views)::bigint AS views, max(new.below) AS below"
            f" FROM {table} AS old JOIN unnest(%s::varchar[], %s::integer[], %s::bigint[], %s::bigint[])"
            f" AS new(subject, hour, views, below) ON old.subject = new.subject AND old.hour >= new.hour"
            f" WHERE old.subject = ANY(%s::varchar[]) GROUP BY old.subject, old.hour) AS gained"
            # Looked at again in a row that a flush has raised meanwhile.
            f" WHERE row.subject = gained.subject AND row.hour = gained.hour AND row.views < gained.below"
            f" AND row.subject = ANY(%s::varchar[])",
            [*columns, *[list(dict.fromkeys(names))] * 2],
        )


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
