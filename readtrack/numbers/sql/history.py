"""History: the absolute counts of subjects at the end of each hour in which they changed.

The views of a range of hours are the difference of two absolute counts, so they agree with the
total. Hours are numbers since 1970 (`buckets.hour_index`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import Any, NamedTuple

from django.db.models import F, Max, QuerySet, Window
from django.db.models.functions import RowNumber

from readtrack import buckets
from readtrack.hits.stages import READS, STAGES
from readtrack.numbers.models import History, ReaderHistory
from readtrack.numbers.options import numbers_options
from readtrack.sql import absent, databases, vendors
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import subject_column

# The "hour" of the row that has what a subject had counted before its history began. No chart shows
# it.
BASELINE = 0
FOREVER = 2**31 - 1  # an hour that no row reaches
MARGIN = timedelta(minutes=1)  # by which this machine's clock may be behind Redis's


def is_kept() -> bool:
    """Returns True if flushes store history: the site wants it, and its table is there."""
    return numbers_options().history and not absent.is_absent(History)


class Row(NamedTuple):
    """A row of history."""

    subject: str  # as columns have it
    hour: int
    views: int
    visitors: int


class Sums(NamedTuple):
    """The absolute number of a subject before a range of hours, and in the rows of that range."""

    before: int
    rows: dict[int, int]  # by hour, in ascending order: the absolute number at the end of the hour

    def by_hour(self) -> dict[int, int]:
        """Returns how much the number rose from row to row, by the hour of the later row."""
        rises = {}
        old_number = self.before
        for hour, number in self.rows.items():
            if number < old_number:  # the subject was reset in between
                old_number = 0
            rises[hour] = number - old_number
            old_number = number
        return rises


def of_stage(stage: str, subject: str) -> str:
    """Returns the name under which history has a stage of the subject's views:
    `reads:blog.post:42`.

    For the label of a model it is the name of the stage of all its objects: `reads:blog.post`.
    """
    return f"{stage}:{subject}"


def of_reads(subject: str) -> str:
    """Returns the name under which history has the reads of the subject; see `of_stage`."""
    return of_stage(READS, subject)


def subject_of(name: str) -> str:
    """Returns the subject of a name of history: `blog.post:42` of `reads:blog.post:42`."""
    stage, _, subject = name.partition(":")
    return subject if stage in STAGES else name


def store(live: Mapping[str, RowCounts], *, hour: int, newest_flush: int | None = None) -> None:
    """Stores the present absolute counts of the subjects as those at the end of the hour.

    `newest_flush` is that of `store_hours`.
    """
    rows = ((subject, hour, counts) for subject, counts in live.items())
    store_hours(rows, newest_flush=newest_flush)


def store_hours(
    hours: Iterable[tuple[str, int, RowCounts]], *, newest_flush: int | None = None
) -> None:
    """Stores absolute counts of subjects, each as those at the end of its hour.

    `newest_flush` is the last hour (since 1970) of any flush that began before this one, if that is
    known.
    """
    rows: list[Row] = []
    for subject, hour, counts in hours:
        rows.append(Row(subject_column(subject), hour, counts.views, counts.visitors))
    databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)
    if newest_flush is None or _may_have_later(rows, newest_flush):
        _raise_later(rows)


def _may_have_later(rows: Sequence[Row], newest_flush: int) -> bool:
    """Returns True if another flush may have stored rows of later hours than some of these.

    To look for later rows takes as long as to store these, and hardly ever are there any.
    """
    # A flush that began meanwhile has stored rows up to the present hour of Redis's clock.
    newest_hour = max(newest_flush, buckets.hour_index(buckets.now() + MARGIN))
    return any(row.hour < newest_hour for row in rows)


def _raise_later(rows: Sequence[Row]) -> None:
    """Raises the rows of later hours that have less than these rows of their subjects.

    There are some after Redis's clock was set back, and where a flush that began in a later hour
    was faster than this one. A row that is below an earlier one looks as if the subject was reset,
    and all its views would be gained once more.
    """
    if not rows or absent.is_absent(History):
        return
    rows_by_subject: dict[str, list[Row]] = {}
    for row in rows:
        rows_by_subject.setdefault(row.subject, []).append(row)
    later_rows = databases.rows(History).filter(hour__gt=min(row.hour for row in rows))
    later_rows = databases.having(later_rows, "subject", [*rows_by_subject])
    stored = later_rows.order_by("subject", "hour").values_list("subject", "hour", "views")
    for subject, hour, views in stored:
        higher = [row for row in rows_by_subject[subject] if row.hour < hour and row.views > views]
        if higher:
            highest = max(higher, key=attrgetter("views"))
            # Another flush may have raised it.
            too_low = databases.rows(History).filter(
                subject=subject, hour=hour, views__lt=highest.views
            )
            too_low.update(views=highest.views, visitors=highest.visitors)


def begin(stored: Mapping[str, RowCounts]) -> None:
    """Stores the counts as the baseline of those subjects that have no row of history yet."""
    parameters = []
    for subject, counts in sorted(stored.items()):
        column = subject_column(subject)
        # The last one is for the condition of begin_history.sql that there is no row yet.
        parameters.append((column, counts.views, counts.visitors, column))
    databases.execute_many(History, databases.statement(History, "begin_history"), parameters)


def sums(
    subjects: Collection[str], *, since: int, until: int, model: Any = History
) -> dict[str, Sums]:
    """Returns the absolute views of each subject before and in a range of hours, by subject.

    `until` is exclusive. With ReaderHistory as the model, the numbers are numbers of readers. Makes
    one query.
    """
    since = max(since, BASELINE + 1)
    number_field = "views" if model is History else "readers"
    columns = ("subject", "hour", number_field)
    rows = databases.rows(model).filter(subject__in=subjects)
    rank = Window(RowNumber(), partition_by="subject", order_by=F("hour").desc())
    earlier_rows = rows.filter(hour__lt=since)
    last_before = earlier_rows.alias(rank=rank).filter(rank=1).values_list(*columns)
    in_range = rows.filter(hour__gte=since, hour__lt=until).values_list(*columns)
    by_subject = {subject: Sums(0, {}) for subject in subjects}
    # Sorted, so that the last row before the range comes first, and the hours are ascending.
    for subject, hour, number in sorted(in_range.union(last_before, all=True)):
        if hour < since:
            by_subject[subject] = Sums(number, {})
        else:
            by_subject[subject].rows[hour] = number
    return by_subject


def sums_between(subjects: Collection[str], hours: Sequence[int]) -> dict[str, Sums]:
    """Returns the absolute views of each subject at the start of each of these hours, by subject.

    It answers as `sums` does, but for some hours only, which are in ascending order. `before` is
    the number at the start of the first hour. A row has the number at the start of a later hour,
    and belongs to the hour that ends there: for the hours 10 and 20, the number at the start of 20
    is `rows[19]`. It has no row if it is not higher than the number before it.

    The database looks up each number by the index, which is quicker than to read all rows between
    hours that are far apart.
    """
    connection = databases.of(History)
    row = vendors.vendor_of(connection).row
    statement = databases.statement(
        History,
        "absolute",
        subjects=", ".join([row] * len(subjects)),
        hours=", ".join(row % int(hour) for hour in hours),
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [*subjects])
        # Sorted, so that each subject begins with the first hour. Views are NULL where history
        # has no row before the hour.
        rows = sorted((subject, hour, views or 0) for subject, hour, views in cursor.fetchall())
    by_subject = {subject: Sums(0, {}) for subject in subjects}
    last_views = 0  # of the row before
    for subject, hour, views in rows:
        if hour == hours[0]:
            by_subject[subject] = Sums(views, {})
        elif views > last_views:
            by_subject[subject].rows[hour - 1] = views
        last_views = views
    return by_subject


def views_before(subjects: Collection[str], hour: int) -> dict[str, int]:
    """Returns the absolute views of each subject before that hour (since 1970), its baseline
    included, by subject; none for a subject without a row.
    """
    rows = databases.rows(History).filter(subject__in=subjects, hour__lt=hour)
    return dict(rows.order_by().values_list("subject").annotate(Max("views")))


def first_hour(subjects: Collection[str]) -> "QuerySet[Any]":
    """Returns the query for the first hour in which any of the subjects has a row.

    It has one result, or none without history, and can be a subquery.
    """
    rows = databases.rows(History).filter(subject__in=subjects, hour__gt=BASELINE)
    return rows.order_by("hour").values_list("hour", flat=True)[:1]


def newest_readers(columns: Sequence[str]) -> dict[str, int]:
    """Returns the newest stored number of readers of each category, 0 if it has none.

    `columns` are the subjects as columns have them, which are also the keys of the result.
    """
    # The newest number is the one before an hour that no row reaches.
    newest = sums(columns, since=FOREVER, until=FOREVER, model=ReaderHistory)
    return {column: numbers.before for column, numbers in newest.items()}
