"""The views of whole models that reached each stage, by the hour.

The flush stores the views of whole models in history. These stages of the views of a model are
added up here, from the history of its objects.
"""

from collections.abc import Mapping
from datetime import datetime

from django.db.models import Max, Min

from readtrack import buckets
from readtrack.hits.stages import STAGES
from readtrack.numbers.models import History
from readtrack.numbers.sql.history import BASELINE, of_reads, of_stage, sums
from readtrack.numbers.sql.history_lock import lock_history
from readtrack.numbers.sql.period_gains import (
    OF_LABEL,
    OF_OBJECTS,
    gains_statement,
    pattern,
    rows_of,
)
from readtrack.sql import databases
from readtrack.store import keys
from readtrack.subjects import counted_models, label_of

# Hours whose sums are computed once more, because another flush may have written rows of them.
HOURS_AGAIN = 2
QUARTER = 92 * 24  # hours of history that one transaction adds up at most
# The SQL expression for the stage whose history a row is.
STAGE_OF_ROW = " ".join(
    [
        "CASE",
        *(f"WHEN subject LIKE '{stage}:%%' THEN '{stage}'" for stage in STAGES),
        "END",
    ]
)


def renew_sums(*, at: datetime) -> None:
    """Adds up the stages of the views of each model, by the hour up to `at`, in history.

    It goes on from the last hour that it has added up before. The first time it adds up all
    history.
    """
    # History has the views of a model for each partition, such as `blog.post:{rt00}`.
    label_by_subject: dict[str, str] = {}
    for label in map(label_of, counted_models()):
        for tag in keys.past_tags():
            label_by_subject[f"{label}{tag}"] = label
    rows = databases.rows(History).filter(subject__in=[*label_by_subject])
    subjects_with_history = rows.order_by().values_list("subject", flat=True).distinct()
    labels_with_history = {label_by_subject[subject] for subject in subjects_with_history}
    until = buckets.hour_index(at) + 1
    for label in sorted(labels_with_history):
        has_more = True
        while has_more:
            has_more = _add_sums(label, until=until)


def _add_sums(label: str, *, until: int) -> bool:
    """Adds up the next QUARTER of the model's history. Returns False if it has reached `until`."""
    with databases.own_transaction(databases.of(History)):
        lock_history()  # because another flush may do the same
        first = _first_hour(label, until=until)
        if first is None:
            return False
        end = min(until, first + QUARTER)
        names = [of_stage(stage, label) for stage in STAGES]
        stored = sums(names, since=first, until=end)
        gains_by_name = _gains(label, since=first, until=end)
        rows = []
        for name in names:
            gains = gains_by_name[name]
            if name == of_reads(label):
                # A row even if nothing was gained, because the next call goes on from there.
                gains.setdefault(end - 1, 0)
            rows += _rows(name, gains, before=stored[name].before)
        databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)
    return end < until


def _gains(label: str, *, since: int, until: int) -> dict[str, dict[int, int]]:
    """Returns how many views of the model's objects reached each stage in these hours (since 1970):
    by the name of the sums in history, then by hour.
    """
    gains: dict[str, dict[int, int]] = {}
    parameters = []
    for stage in STAGES:
        name = of_stage(stage, label)
        gains[name] = {}
        parameters.append(pattern(name))
    is_of_stage = " OR ".join(OF_LABEL for _ in parameters)
    statement = gains_statement(
        f"({is_of_stage}) AND {OF_OBJECTS}",
        since=since,
        until=until,
        subject=STAGE_OF_ROW,
        slot="hour",
    )
    for stage, hour, views in rows_of(statement, parameters):
        gains[of_stage(stage, label)][int(hour)] = int(views)
    return gains


def _first_hour(label: str, *, until: int) -> int | None:
    """Returns the hour from which to add up the model's history; None without history.

    That is HOURS_AGAIN before the last hour that was added up, or the first hour with views.
    """
    last_added = _last_added(label)
    if last_added is not None and last_added >= until:
        # From before Redis's clock was set back. The hours in between have changed since.
        names = [of_stage(stage, label) for stage in STAGES]
        databases.rows(History).filter(subject__in=names, hour__gte=until).delete()
        last_added = _last_added(label)
    if last_added is not None:
        return last_added - HOURS_AGAIN
    # The views of a model are in one row for each partition and hour.
    views = databases.rows(History).filter(
        subject__in=[f"{label}{tag}" for tag in keys.past_tags()], hour__gt=BASELINE
    )
    first_viewed: int | None = views.aggregate(hour=Min("hour"))["hour"]
    return first_viewed


def _last_added(label: str) -> int | None:
    """Returns the last hour that was added up; None for none."""
    sums_of_reads = databases.rows(History).filter(subject=of_reads(label), hour__gt=BASELINE)
    last_added: int | None = sums_of_reads.aggregate(hour=Max("hour"))["hour"]
    return last_added


def _rows(name: str, gains: Mapping[int, int], *, before: int) -> list[tuple[str, int, int, int]]:
    """Returns the new rows of history for these gains by hour: name, hour, absolute sum, and 0.

    `before` is the sum before the first of these hours.
    """
    rows = []
    total = before
    for hour in sorted(gains):
        total += gains[hour]
        rows.append((name, hour, total, 0))
    return rows
