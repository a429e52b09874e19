"""Absolute counts by the hour: the views of a range are the difference of two, so they agree with
the total.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F, Q, QuerySet, Sum, Window
from django.db.models.functions import RowNumber

from readtrack import buckets
from readtrack.conf import conf
from readtrack.models import BreakdownHistory, History, ReaderHistory
from readtrack.sql import databases, schema
from readtrack.sql.row_counts import RowCounts
from readtrack.sql.runs import lock_epoch
from readtrack.store import keys
from readtrack.subjects import subject_column

BASELINE = 0  # hour of a row with what a subject had before its history began, which is in no chart
FOREVER = 2**31 - 1  # an hour (since 1970) that no row reaches
NO_LIMIT = 2**63 - 1  # views that no row reaches
WHOLE_DAYS = 3  # that keep their hours, because the hours in Redis are compared with them
VALUES = 100  # values of a dimension that a model keeps of an hour, beside "other"

Gain = tuple[str, str, str]  # the label of a model, the kind of a hash, and its field
Gains = defaultdict[tuple[str, str], Counter[str]]  # by kind and label, then by field


class Sums(NamedTuple):
    """An absolute number before a time, and at the end of each later hour that has a row."""

    before: int
    rows: dict[int, int]

    def by_hour(self) -> dict[int, int]:
        """Returns how much the number rose in each of these hours. One that fell was reset in
        between.
        """
        numbers = pairwise([(0, self.before), *self.rows.items()])
        return {hour: new - last if new >= last else new for (_, last), (hour, new) in numbers}


def of_reads(subject: str) -> str:
    """Returns the subject under which history has the reads of an object, or with a model's label
    of all of them.
    """
    return f"reads:{subject}"


def of_visitors(label: str) -> str:
    """Returns the subject under which history has the new visitors of all objects of a model."""
    return f"visitors:{label}"


def store(live: Mapping[str, RowCounts], *, hour: int) -> None:
    """Stores the present counts of subjects under that hour."""
    rows = ((subject_column(subject), hour, *counts) for subject, counts in live.items())
    databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)


def begin(stored: Mapping[str, RowCounts]) -> None:
    """Stores the counts of subjects without any row as their baseline."""
    rows = [
        (subject_column(subject), *counts, subject_column(subject))
        for subject, counts in sorted(stored.items())
    ]
    with databases.of(History).cursor() as cursor:
        cursor.executemany(
            databases.STATEMENTS["begin_history"].format_map(databases.words(History)), rows
        )


def raise_hours(
    hours: Iterable[tuple[str, int, int]], limits: Mapping[str, int], *, first_live: int
) -> None:
    """Adds views of the past (subject, hour, number) to the rows of subjects below a limit, and to
    those of models.

    Models get only what is before the first hour that Redis keeps. Call it in a transaction.
    """
    gained: defaultdict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for subject, hour, count in hours:
        if subject not in limits:  # its partition lost the batch
            continue
        gained[subject_column(subject), limits[subject]][hour] += count
        if hour < first_live:
            gained[subject.partition(":")[0] + keys.tag(subject), NO_LIMIT][hour] += count
    gains: list[
        tuple[int, str, int, int, int]
    ] = []  # views to add from one hour until another, below a limit
    for (subject, limit), counts in sorted(gained.items()):
        starts = sorted(counts)
        # Each row gains the views of its own hour and of all earlier ones.
        sums = accumulate(counts[hour] for hour in starts)
        steps = zip(sums, starts, [*starts[1:], FOREVER], strict=True)
        gains += [(views, subject, since, until, limit) for views, since, until in steps]
    if not gains:
        return
    # Other writers of sums wait, because this would neither see nor raise a row that they insert
    # meanwhile.
    lock_epoch()
    connection, words = databases.of(History), databases.words(History)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # an import so takes half the time
            columns = [databases.array(column) for column in zip(*gains, strict=True)]
            cursor.execute(
                databases.STATEMENTS["insert_hours_postgresql"].format_map(words), columns[1:3]
            )
            cursor.execute(
                databases.STATEMENTS["raise_hours_postgresql"].format_map(words), columns
            )
            return
        cursor.executemany(
            databases.STATEMENTS["insert_hours"].format_map(words),
            [gain[1:3] * 3 for gain in gains],
        )
        cursor.executemany(databases.STATEMENTS["raise_hours"].format_map(words), gains)


def sums(
    subjects: Collection[str], *, since: int, until: int, model: Any = History
) -> dict[str, Sums]:
    """Returns the views of subjects (of History) or their readers (of ReaderHistory), oldest first,
    from one query.
    """
    since, columns = (
        max(since, BASELINE + 1),
        ("subject", "hour", "views" if model is History else "readers"),
    )
    rows = databases.rows(model).filter(subject__in=subjects)
    newest = Window(RowNumber(), partition_by="subject", order_by=F("hour").desc())
    last = rows.filter(hour__lt=since).alias(place=newest).filter(place=1).values_list(*columns)
    later = rows.filter(hour__gte=since, hour__lt=until).values_list(*columns)
    found = {subject: Sums(0, {}) for subject in subjects}
    # MySQL finds names that differ in case, too.
    for subject, hour, number in sorted(
        row for row in later.union(last, all=True) if row[0] in found
    ):
        if hour < since:
            found[subject] = Sums(number, {})
        else:
            found[subject].rows[hour] = number
    return found


def sums_between(subjects: Collection[str], hours: Sequence[int]) -> dict[str, Sums]:
    """Returns the sums before the first of these hours and before each later one, each looked up by
    the index.
    """
    connection = databases.of(History)
    row = (
        "ROW(%s)"
        if connection.vendor == "mysql" and not getattr(connection, "mysql_is_mariadb", False)
        else "(%s)"
    )
    words = {
        "names": ", ".join([row] * len(subjects)),
        "hours": ", ".join(row % int(hour) for hour in hours),
    }
    with connection.cursor() as cursor:
        statement = databases.STATEMENTS["absolute"].format(**databases.words(History), **words)
        cursor.execute(statement, [*subjects])
        rows = sorted((subject, hour, views or 0) for subject, hour, views in cursor.fetchall())
    found, last = {subject: Sums(0, {}) for subject in subjects}, 0
    for subject, hour, views in rows:
        if hour == hours[0]:
            found[subject] = Sums(views, {})
        elif views > last:
            found[subject].rows[hour - 1] = views
        last = views
    return found


def first_hour(subjects: Collection[str]) -> "QuerySet[Any]":
    """Returns the first hour that has a row of one of the subjects, as a query of one row or of
    none.
    """
    rows = databases.rows(History).filter(subject__in=subjects, hour__gt=BASELINE)
    return rows.order_by("hour").values_list("hour", flat=True)[:1]


def thin(*, at: datetime) -> int:
    """Leaves one row a day after HISTORY_DAYS, none after HISTORY_YEARS. Returns how many rows it
    deleted.
    """
    years = timedelta(days=365.25 * conf.HISTORY_YEARS)
    gone = _forget(before=buckets.hour_index(at - years)) if years else 0
    # A week more than needed, in case some runs were missed; older days have been thinned.
    end = at - timedelta(days=max(conf.HISTORY_DAYS, WHOLE_DAYS))
    days = [
        buckets.hour_index(day)
        for day in buckets.period_starts(end - timedelta(days=7), end, by="day")
    ]
    for model in (History, ReaderHistory, BreakdownHistory):
        rows = databases.rows(model)
        has_some = rows.filter(hour__gte=days[0], hour__lt=days[-1]).exists()
        for first, last in pairwise(days) if has_some else ():
            if model is BreakdownHistory:
                gone += _add_up(rows.filter(hour__gte=first, hour__lt=last), hour=last - 1)
                continue
            with databases.of(model).cursor() as cursor:
                cursor.execute(
                    databases.STATEMENTS["thin"].format_map(databases.words(model)),
                    [first, last] * 2,
                )
                gone += cursor.rowcount
    return gone


def _forget(*, before: int) -> int:
    """Deletes earlier rows, or whole months that are over by then; the last ones become the
    baselines of charts.
    """
    connection = databases.of(History)
    months = schema.old_months(before=before)
    first, before = (months[0].since, months[-1].until) if months else (before, before)
    with transaction.atomic(using=connection.alias):
        replace = "ON CONFLICT (subject, hour) DO UPDATE SET views = EXCLUDED.views, visitors = EXCLUDED.visitors"
        if connection.vendor == "mysql":
            replace = "ON DUPLICATE KEY UPDATE views = VALUES(views), visitors = VALUES(visitors)"
        statement = databases.STATEMENTS["raise_baselines"].format(
            **databases.words(History), replace=replace
        )
        with connection.cursor() as cursor:
            cursor.execute(statement, [before, before])
        gone = databases.rows(History).filter(hour__gt=BASELINE, hour__lt=first).delete()[0]
    # Last, because a baseline that is raised again finds the same rows in them.
    schema.drop_months(months)
    rest = (
        databases.rows(model).filter(hour__lt=before) for model in (ReaderHistory, BreakdownHistory)
    )
    return gone + sum(rows.delete()[0] for rows in rest)


def _add_up(day: "QuerySet[Any]", *, hour: int) -> int:
    """Leaves the gains of the day in that hour of it. Returns how many rows less there are."""
    if not day.exclude(hour=hour).exists():
        return 0
    with transaction.atomic(using=databases.of(BreakdownHistory).alias):
        lock_epoch()  # because another flush may do the same
        found = day.order_by().values_list("subject", "kind", "field").annotate(Sum("count"))
        sums = {row[:3]: int(row[3]) for row in found}
        gone: int = day.delete()[0]
        add_gains(sums, hour=hour)
        return gone - day.count()


def add_gains(new: Mapping[Gain, int], *, hour: int) -> None:
    """Adds gains to that hour, of too many fields of a kind the least to "other". The caller has
    locked the epoch.
    """
    labels, kinds = {label for label, _, _ in new}, {kind for _, kind, _ in new}
    rows = databases.rows(BreakdownHistory).filter(hour=hour, subject__in=labels, kind__in=kinds)
    stored = Counter(
        {row[:3]: row[3] for row in rows.values_list("subject", "kind", "field", "count")}
    )
    found = stored + Counter(new)
    for group in {name[:2] for name in found}:
        fields = [
            name for name, _ in found.most_common() if name[:2] == group and name[2] != "other"
        ]
        for name in fields[VALUES:]:
            found[(*group, "other")] += found.pop(name)
        # Those that have a row: MySQL would take a new one for another that differs in case, and
        # delete that.
        gone = [name[2] for name in fields[VALUES:] if name in stored]
        rows.filter(subject=group[0], kind=group[1], field__in=gone).delete()
    risen = (
        (*name[:2], hour, name[2], count) for name, count in found.items() if count > stored[name]
    )
    databases.upsert(BreakdownHistory, ("subject", "kind", "hour", "field"), ("count",), rows=risen)


def gains(labels: Sequence[str], kinds: Sequence[str], spans: Sequence[range]) -> list[Gains]:
    """Returns what the models gained in each of these ranges of hours, from one query."""
    inside = [Q(hour__gte=span.start, hour__lt=span.stop) for span in spans]
    rows = databases.rows(BreakdownHistory).filter(
        Q(*inside, _connector=Q.OR), subject__in=labels, kind__in=kinds
    )
    sums = {f"sum_{number}": Sum("count", filter=one) for number, one in enumerate(inside)}
    found: list[Gains] = [defaultdict(Counter) for _ in spans]
    for kind, label, field, *counts in (
        rows.order_by().values_list("kind", "subject", "field").annotate(**sums)
    ):
        for gained, count in zip(found, counts, strict=True):
            gained[kind, label].update({field: int(count)} if count else {})
    return found


def newest_readers(columns: Sequence[str]) -> dict[str, int]:
    """Returns the newest number of readers of each subject, 0 if it has none."""
    found = sums(columns, since=FOREVER, until=FOREVER, model=ReaderHistory)
    return {column: one.before for column, one in found.items()}
