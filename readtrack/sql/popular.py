"""Views and new visitors of subjects in a period, and lists of the most viewed ones of the last
days.

A full flush renews the list of so many days once it is as many hours old. So each list costs the
same: in an hour, to read the rows of history of one day.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from django.db import transaction
from django.db.models import (
    CharField,
    IntegerField,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    UUIDField,
    Value,
)
from django.db.models.functions import Cast, Coalesce, Concat

from readtrack import buckets
from readtrack.models import History, Popular, Reset
from readtrack.sql import databases, row_counts
from readtrack.sql.history import BASELINE, of_reads, of_visitors, sums
from readtrack.sql.row_counts import RowCounts
from readtrack.sql.runs import lock_epoch
from readtrack.store import keys, scripts
from readtrack.subjects import counted_models, label_of

DAYS = (1, 7, 30, 90)  # that have a list
EVER = 32_767  # days of the list of all time, which has views only
LISTED = 1_000  # subjects of each model by views, and by visitors
# hours whose sums are computed once more, because another flush may have written rows of them since
AGAIN = 2
QUARTER = 92 * 24  # hours of history that one flush adds up at most
AT_ONCE = 10_000  # subjects in one query
DENSE = 12  # hours of two days with rows, above which the rows of a subject are not all read
OF_OBJECTS = (
    "subject NOT LIKE '%%:{rt%%'"  # no row of a model in a partition, such as `blog.post:{rt00}`
)

By = Literal["views", "visitors", "reads"]
COLUMNS: dict[By, str] = {
    "views": "views",
    "visitors": "visitors",
    "reads": "views",
}  # reads have rows of their own


def _listed(labels: Iterable[str], days: int) -> Any:
    """Returns the rows of the lists of so many days and fewer."""
    among = (Q(subject__startswith=f"{label}:") for label in labels)
    return databases.rows(Popular).filter(Q(*among, _connector=Q.OR), days__lte=days)


def entries(*labels: str, days: int, by: str) -> Any:
    """Returns subjects, bounds of their numbers by now, and since, until and number in their list,
    highest first.
    """
    own = Q(days=days)
    found = _listed(labels, days).values("subject")
    found = found.annotate(
        first=Max("since", filter=own), end=Max("until", filter=own), own=Sum(by, filter=own)
    )
    # Shorter lists end later, so they have what came after this one.
    ordered = found.annotate(bound=Sum(by)).order_by("-bound", "subject")
    return ordered.values_list("subject", "bound", "first", "end", "own")


def renew(*, at: datetime) -> None:
    """Computes the lists that are due anew, each by one query; that of all time by one for each
    model.
    """
    until = buckets.hour_index(at)
    ends = dict(
        databases.rows(Popular).values("days").annotate(end=Max("until")).values_list("days", "end")
    )
    labels = [
        name for label in map(label_of, counted_models()) for name in (label, of_reads(label))
    ]
    for days in (EVER, *reversed(DAYS)) if labels else ():
        if 0 <= until - ends.get(days, 0) < min(days, DAYS[-1]):
            continue
        since = max(BASELINE, until + 1 - days * 24)
        if days == EVER:
            found = [one for model in counted_models() for one in row_counts.highest(model, LISTED)]
        else:
            found = most(labels, since=since, until=until)
        rows = [
            Popular(subject=row[0], days=days, since=since, until=until, **row[1]._asdict())
            for row in found
        ]
        if not rows and days != EVER and ends.keys() <= {EVER}:
            return  # a shorter list has none either
        with transaction.atomic(using=databases.of(Popular).alias):
            lock_epoch()  # because another flush may do the same
            databases.rows(Popular).filter(days=days).delete()
            databases.rows(Popular).bulk_create(rows)


def most(
    labels: Sequence[str], *, since: int, until: int, rows: "Sequence[QuerySet[Any]]" = ()
) -> list[tuple[str, RowCounts]]:
    """Returns each model's most viewed and most visited subjects in these hours. Reads all history
    of these hours.

    With `rows`, some of each model, PostgreSQL reads the history of these alone if it writes their
    keys as subjects do.
    """
    best = "SELECT * FROM (SELECT * FROM gains WHERE views > 0 AND subject LIKE %s ORDER BY {} DESC LIMIT {}) best"
    both = " UNION ".join(best.format(by, LISTED) for _ in labels for by in ("views", "visitors"))
    patterns = [f"{label}:%" for label in labels]
    among = f"({' OR '.join('subject LIKE %s' for _ in labels)}) AND {OF_OBJECTS}"
    values: list[Any] = [*patterns]
    own = databases.of(History)
    is_own = own.vendor == "postgresql" and all(one.db == own.alias for one in rows)
    if (
        rows
        and is_own
        and all(isinstance(one.model._meta.pk, (IntegerField, UUIDField)) for one in rows)
    ):
        subjects = [Concat(Value(f"{label}:"), Cast("pk", CharField())) for label in labels]
        first, *others = (
            one.order_by().values_list(named) for one, named in zip(rows, subjects, strict=True)
        )
        # One array, because PostgreSQL reads the hours of all subjects for two.
        statement, given = (
            first.union(*others, all=True).query.get_compiler(using=own.alias).as_sql()
        )
        among, values = f"subject = ANY(ARRAY({statement}))", [*given]
    values += (pattern for pattern in patterns for _ in range(2))
    best_ones = _gains(f"WITH gains AS ({{}}) {both}", among, values, since=since, until=until)
    return [(subject, counts) for subject, _, counts in best_ones]


def gains(columns: Collection[str], *, since: int, until: int) -> dict[str, RowCounts]:
    """Returns the views and new visitors of those of the subjects that have rows in these hours."""
    found: dict[str, RowCounts] = {}
    for some in scripts.sliced([*columns]) if since < until else ():
        gained = _gains("{}", *_among(some), since=since, until=until)
        found.update((column, counts) for column, _, counts in gained)
    return found


def rises(labels: Sequence[str], *, days: int, since: int, until: int) -> dict[str, int]:
    """Returns the views of listed subjects in these hours, by two rows each; fewer where a reset
    was between.
    """

    def before(hour: int) -> Any:
        past = (
            databases.rows(History)
            .filter(subject=OuterRef("subject"), hour__lt=hour)
            .order_by("-hour")
        )
        return Coalesce(Subquery(past.values("views")[:1]), 0)

    found = (
        _listed(labels, days)
        .order_by()
        .values_list("subject", before(since), before(until))
        .distinct()
    )
    return {subject: max(0, last - first) for subject, first, last in found}


class Steps(NamedTuple):
    """The views and the new visitors of a subject by place of the period; none of a place without a
    row of history.
    """

    # No pair for each place, as ten thousands of them wake the garbage collector, which looks at
    # all that there is.
    views: dict[int, int]
    visitors: dict[int, int]


def steps(
    columns: Sequence[str],
    starts: Sequence[int],
    *,
    until: int,
    places: Sequence[int] | None = None,
) -> dict[str, Steps]:
    """Returns the steps of each subject, from one query for thousands of them.

    `starts` are the first hours of the periods, of which the last one ends before `until`. It is
    quicker with the most viewed subjects first. With `places` (numbers of periods, the last one
    too) a step may be that of all periods since the one asked for before, which takes half the
    time.
    """
    found = {column: Steps({}, {}) for column in columns}
    is_postgresql = databases.of(History).vendor == "postgresql"
    in_place = (
        f"width_bucket(hour, ARRAY[{', '.join(map(str, starts))}]) - 1"
        if is_postgresql
        else _place(starts)
    )
    words: dict[str, Any] = {
        **databases.words(History),
        "since": max(starts[0], BASELINE + 1),
        "until": until,
    }
    asked, ends = range(len(starts)) if places is None else places, (*starts[1:], until)
    words |= {
        "place": in_place,
        "places": ", ".join(map(str, asked)),
        "resets": Reset._meta.db_table,
    }
    words |= {"ends": ", ".join(str(ends[place]) for place in asked)}
    words |= {"dense": DENSE, "earlier": max(starts[len(starts) // 2], until - 30 * 24)}
    found_by = (
        databases.STATEMENTS["dense_postgresql"] if places is None else "SELECT subject FROM names"
    )
    words["found_by"] = found_by.format(**words)
    name = (
        "steps_postgresql" if is_postgresql and until - starts[0] >= 12 * len(starts) else "steps"
    )
    for some in scripts.sliced(columns, AT_ONCE):
        condition, values = _among(some)
        statement = databases.STATEMENTS[name].format(**words, condition=condition)
        if is_postgresql:
            arrays = "array_agg(place), array_agg(views), array_agg(visitors)"
            statement = f"SELECT subject, {arrays} FROM ({statement}) AS highest GROUP BY 1"
        with databases.of(History).cursor() as cursor:
            cursor.execute(statement, values)
            rows = cursor.fetchall()
        if not is_postgresql:
            own = (
                row for row in rows if row[0] in found
            )  # MySQL finds keys that differ in case, too
            groups = groupby(sorted(own, key=itemgetter(0)), key=itemgetter(0))
            rows = [
                (column, *zip(*(row[1:] for row in some), strict=True)) for column, some in groups
            ]
        for column, *arrays in rows:
            (_, views, visitors), *later = sorted(zip(*arrays, strict=True))
            old_views, old_visitors = views or 0, visitors or 0  # None without an earlier row
            for place, views, visitors in later:
                if views < old_views:  # it was reset in between
                    old_views = old_visitors = 0
                risen, new = views - old_views, visitors - old_visitors
                found[column].views[place] = risen
                # No more visitors than views, because an import adds those of all its views at
                # once.
                found[column].visitors[place] = 0 if new < 0 else risen if new > risen else new
                old_views, old_visitors = views, visitors
    return found


def _among(columns: Sequence[str]) -> tuple[str, Sequence[Any]]:
    """Returns the condition of rows of these subjects, and its parameters: one, where the database
    has arrays.
    """
    if databases.of(History).vendor == "postgresql":
        # In a subquery, because to estimate thousands of names for each partition takes longer than
        # to find the rows.
        return "subject = ANY(ARRAY(SELECT unnest(%s::text[])))", [[*columns]]
    return f"subject IN ({', '.join('%s' for _ in columns)})", columns


def _place(starts: Sequence[int], first: int = 0) -> str:
    """Returns the place of an hour's period in SQL, found by halves because a year has many."""
    if len(starts) == 1:
        return str(first)
    half = len(starts) // 2
    earlier, later = _place(starts[:half], first), _place(starts[half:], first + half)
    return f"CASE WHEN hour < {starts[half]} THEN {earlier} ELSE {later} END"


def renew_sums(*, at: datetime) -> None:
    """Brings the new visitors and the reads of each model by the hour up to now, at first those of
    all history.
    """
    names = {
        f"{label}{tag}": label
        for label in map(label_of, counted_models())
        for tag in keys.past_tags()
    }
    counted = (
        databases.rows(History)
        .filter(subject__in=[*names])
        .order_by()
        .values_list("subject", flat=True)
        .distinct()
    )
    for label in sorted({names[name] for name in counted}):
        while _add_sums(label, until=buckets.hour_index(at) + 1):
            pass


def _add_sums(label: str, *, until: int) -> bool:
    """Adds up a quarter of a year at most. Returns False once nothing is left."""
    names = {of_visitors(label): f"{label}:%", of_reads(label): f"{of_reads(label)}:%"}
    with transaction.atomic(using=databases.of(History).alias):
        lock_epoch()  # because another flush may do the same
        past = databases.rows(History).filter(hour__gt=BASELINE)
        last = past.filter(subject=of_visitors(label)).aggregate(hour=Max("hour"))["hour"]
        own = past.filter(subject__in=[f"{label}{tag}" for tag in keys.past_tags()])
        first: int | None = last - AGAIN if last else own.aggregate(hour=Min("hour"))["hour"]
        if first is None:
            return False
        end = min(until, first + QUARTER)
        stored, rows = sums([*names], since=first, until=end), []
        for name, pattern in names.items():
            among = f"subject LIKE %s AND {OF_OBJECTS}"
            found = _gains("{}", among, [pattern], since=first, until=end, of="''", by="hour")
            # An import adds the visitors of all its views at once, at no hour of theirs.
            risen = {
                int(hour): counts.views if name == of_reads(label) else min(counts)
                for _, hour, counts in found
            }
            total = stored[name].before
            for hour in sorted({*risen, end - 1}):
                total += risen.get(hour, 0)
                rows.append((name, hour, total, 0))
        databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)
    return end < until


def _gains(
    statement: str,
    condition: str,
    values: Any,
    *,
    since: int,
    until: int,
    of: str = "subject",
    by: str = "0",
) -> list[Any]:
    words = {
        **databases.words(History),
        "since": max(since, BASELINE + 1),
        "until": until,
        "of": of,
        "by": by,
    }
    source = databases.STATEMENTS["gains"].format(**words, condition=condition)
    with databases.of(History).cursor() as cursor:
        cursor.execute(statement.format(source), values)
        return [
            (subject, place, RowCounts(int(views), int(new)))
            for subject, place, views, new in cursor.fetchall()
        ]
