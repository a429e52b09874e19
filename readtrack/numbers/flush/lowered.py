"""History of subjects whose counts were lowered, because an import was taken back."""

from collections import ChainMap
from collections.abc import Collection

from readtrack import buckets
from readtrack.numbers.models import History
from readtrack.numbers.sql import history
from readtrack.sql import databases, deletions
from readtrack.store import counters, scripts
from readtrack.subjects import subject_column


def correct(subjects: Collection[str]) -> None:
    """Lowers the last rows of those subjects that were lowered lately to their live totals.

    Another flush that read an older total may have written it. History only rises, so no row may be
    above a later one.
    """
    if not subjects or not history.is_kept():
        return
    times = deletions.times_of_lowering(subjects)
    if not times:
        return
    first_hour = buckets.hour_of(min(times.values())) - 1
    # SQL is read before Redis, whose totals only rise meanwhile.
    rows = databases.rows(History).filter(hour__gte=first_hour)
    columns = {subject_column(subject): subject for subject in times}
    rows = databases.having(rows, "subject", [*columns])
    stored = [*rows.order_by("subject", "-hour").values_list("subject", "hour", "views")]
    if not stored:
        return
    limits = _live_totals(times)
    for column, hour, views in stored:
        if column not in limits:
            continue
        limits[column] = min(limits[column], views)
        if views > limits[column]:
            # Another flush may have raised it.
            row = databases.rows(History).filter(subject=column, hour=hour, views=views)
            row.update(views=limits[column])


def _live_totals(subjects: Collection[str]) -> dict[str, int]:
    """Returns the live totals of those subjects that have one, by subject as columns have it."""
    calls = [counters.totals(portion) for portion in scripts.parted(subjects)]
    scripts.run_all(*calls, patient=True)
    totals = ChainMap(*(call.result for call in calls))
    return {subject_column(subject): total.views for subject, total in totals.items()}
