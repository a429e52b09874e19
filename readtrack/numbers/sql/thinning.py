"""Thinning history: the `days` of NUMBERS keep their hours, older days keep one row, and history
that is older than its `years` is deleted.
"""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db.models import QuerySet, Sum

from readtrack import buckets
from readtrack.numbers import local_time
from readtrack.numbers.models import BreakdownHistory, History, ReaderHistory
from readtrack.numbers.options import numbers_options
from readtrack.numbers.sql import day_breakdowns, day_visitors, history_months
from readtrack.numbers.sql.breakdown_history import add_gains
from readtrack.numbers.sql.history import BASELINE
from readtrack.numbers.sql.history_lock import lock_history
from readtrack.sql import databases, vendors

WHOLE_DAYS = 3  # days that keep their hours in any case, because Redis's hours are merged with them
# So many days before the last one to be thinned are thinned as well, in case some runs were missed.
DAYS_AGAIN = timedelta(days=7)


def thin(*, at: datetime) -> int:
    """Leaves one row a day after the days of NUMBERS, and no row after its years. Returns how many
    rows it deleted.
    """
    deleted = 0
    oldest = oldest_kept(at=at)
    if oldest is not None:
        deleted += _forget(before=buckets.hour_index(oldest))
        oldest_day = buckets.local_day(buckets.hour_index(oldest))
        deleted += day_visitors.delete_before(oldest_day)
        deleted += day_breakdowns.delete_before(oldest_day)
    end = at - timedelta(days=whole_days())
    # The first hour of each day.
    days = [local_time.first_hour_of(day) for day in buckets.local_days(end - DAYS_AGAIN, end)]
    for model in (History, ReaderHistory, BreakdownHistory):
        rows = databases.rows(model)
        if not rows.filter(hour__gte=days[0], hour__lt=days[-1]).exists():
            continue
        for first, end_of_day in pairwise(days):
            if model is BreakdownHistory:  # it has gains; the other models have absolute numbers
                day = rows.filter(hour__gte=first, hour__lt=end_of_day)
                deleted += _add_up(day, hour=end_of_day - 1)
            else:
                deleted += _thin_day(model, first, end_of_day)
    return deleted


def oldest_kept(*, at: datetime) -> datetime | None:
    """Returns the time before which history is deleted, by the years of NUMBERS; None if all is
    kept.
    """
    years = numbers_options().years
    return at - timedelta(days=365.25 * years) if years else None


def first_whole_hour(*, at: datetime) -> int:
    """Returns the first hour (since 1970) of the days that are not thinned."""
    end = at - timedelta(days=whole_days())
    return local_time.first_hour_of(buckets.local_day(buckets.hour_index(end)))


def whole_days() -> int:
    """Returns the number of the last days that keep their hours."""
    return max(numbers_options().days, WHOLE_DAYS)


def _thin_day(model: Any, first: int, until: int) -> int:
    """Leaves only the last row of each subject in these hours (since 1970, `until` is exclusive).

    The model has absolute numbers. Returns how many rows it deleted.
    """
    with databases.of(model).cursor() as cursor:
        cursor.execute(databases.statement(model, "thin"), [first, until] * 2)
        deleted: int = cursor.rowcount
    return deleted


def _forget(*, before: int) -> int:
    """Deletes the rows of hours before that hour, or drops the tables of the months before it.

    The last deleted row of each subject becomes its baseline. Returns how many rows it deleted,
    without the rows of dropped tables.
    """
    connection = databases.of(History)
    old_months = history_months.old_months(before=before)
    delete_until = before  # earlier rows are deleted by a DELETE
    if old_months:
        # The rows of whole months go with their tables. Later rows are left to the next run.
        delete_until = old_months[0].since
        before = old_months[-1].until
    replace = vendors.vendor_of(connection).replace_on_conflict(
        ("subject", "hour"), ("views", "visitors")
    )
    with databases.own_transaction(connection):
        with connection.cursor() as cursor:
            raise_baselines = databases.statement(History, "raise_baselines", replace=replace)
            cursor.execute(raise_baselines, [before, before])
        rows = databases.rows(History).filter(hour__gt=BASELINE, hour__lt=delete_until)
        deleted, _ = rows.delete()
    # The months are dropped after the transaction. If the process is killed in between, the next
    # run finds the same rows in them and raises the baselines again.
    history_months.drop_months(old_months)
    for model in (ReaderHistory, BreakdownHistory):
        deleted_rows, _ = databases.rows(model).filter(hour__lt=before).delete()
        deleted += deleted_rows
    return deleted


def _add_up(day: "QuerySet[Any]", *, hour: int) -> int:
    """Adds up the gains of a day in one of its hours. Returns by how many rows the day has fewer.

    `day` are the rows of BreakdownHistory of that day.
    """
    if not day.exclude(hour=hour).exists():
        return 0
    with databases.own_transaction(databases.of(BreakdownHistory)):
        lock_history()  # because another flush may do the same
        rows = day.order_by().values_list("subject", "kind", "field").annotate(Sum("count"))
        sums = {(label, kind, field): int(count) for label, kind, field, count in rows}
        deleted: int = day.delete()[0]
        add_gains(sums, hour=hour)
        return deleted - day.count()
