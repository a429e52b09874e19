"""History of subjects whose counts fell: they were reset, or an import was taken back."""

from collections import ChainMap
from collections.abc import Collection, Mapping

from readtrack import buckets
from readtrack.numbers.models import History
from readtrack.numbers.sql import history
from readtrack.sql import databases, deletions
from readtrack.store import counters, keys, resetting, scripts
from readtrack.subjects import subject_column


def correct(subjects: Collection[str]) -> None:
    """Lowers the last rows of those subjects whose counts fell lately to their live totals.

    Another flush that read an older total may have written them. History only rises, so no row may
    be above a later one.
    """
    if not subjects or not history.is_kept():
        return
    resets = _recent_resets(subjects)
    first_hours = _first_hours(subjects, resets)
    if not first_hours:
        return
    # SQL is read before Redis, whose totals only rise meanwhile.
    rows = databases.rows(History).filter(hour__gte=min(first_hours.values()))
    columns = {subject_column(subject): subject for subject in first_hours}
    rows = databases.having(rows, "subject", [*columns])
    stored = [*rows.order_by("subject", "-hour").values_list("subject", "hour", "views")]
    if not stored:
        return
    limits = _live_totals(first_hours, resets)
    for column, hour, views in stored:
        if column not in limits or hour < first_hours[columns[column]]:
            continue
        limits[column] = min(limits[column], views)
        if views > limits[column]:
            # Another flush may have raised it.
            row = databases.rows(History).filter(subject=column, hour=hour, views=views)
            row.update(views=limits[column])


def _recent_resets(subjects: Collection[str]) -> set[str]:
    """Returns those of the subjects that were reset so lately that Redis may remember it."""
    kept_hours = keys.reset.ttl // buckets.SECONDS
    # Twice as long, because no flush may have come for a while.
    oldest = buckets.hour_index(buckets.now()) - 2 * kept_hours
    times = deletions.times_of_resets(subjects)
    return {subject for subject, time in times.items() if buckets.hour_of(time) >= oldest}


def _first_hours(subjects: Collection[str], resets: Collection[str]) -> Mapping[str, int]:
    """Returns the first hour (since 1970) of which a row may be too high, by subject.

    A reset deletes all rows, so each row of a subject that was reset may be an old one.
    """
    first_hours = dict.fromkeys(resets, history.BASELINE)
    for subject, time in deletions.times_of_lowering(subjects).items():
        first_hours.setdefault(subject, buckets.hour_of(time) - 1)
    return first_hours


def _live_totals(subjects: Collection[str], resets: Collection[str]) -> dict[str, int]:
    """Returns the live totals of those subjects that have one, by subject as columns have it.

    Of `resets` it has only those that Redis remembers to have been reset: then a missing total is
    0, and no total lacks what SQL has.
    """
    portions = scripts.parted(subjects)
    total_calls = [counters.totals(portion) for portion in portions]
    # Read after the totals: an idle subject may leave Redis as soon as its note is gone.
    note_calls = [resetting.noted(portion) for portion in portions]
    scripts.run_all(*total_calls, *note_calls, patient=True)
    totals = ChainMap(*(call.result for call in total_calls))
    noted = set().union(*(call.result for call in note_calls))
    live = {}
    for subject in subjects:
        if subject in noted:
            live[subject_column(subject)] = totals[subject].views if subject in totals else 0
        elif subject in totals and subject not in resets:
            live[subject_column(subject)] = totals[subject].views
    return live
