"""The hours of views that no flush has stored for long, because the flusher paused.

A flush that runs every minute stores views under the hour in which it runs, which is the hour in
which they came. After a pause it finds the views of many hours together. Redis has the views of
each object in each of the last hours, so they are stored under these hours. If Redis has lost some
of them, or the pause was longer than Redis keeps hours, the others are stored under the present
hour.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from django.db.models import Model

from readtrack.numbers import live_counters
from readtrack.numbers.sql import history
from readtrack.sql import databases, row_counts
from readtrack.sql.faults import Faults
from readtrack.sql.row_counts import RowCounts
from readtrack.store import counters, scripts
from readtrack.subjects import subjects_by_model

HOURS = live_counters.HOURS_KEPT - 1  # whole hours of which Redis has the views of objects
KEYS_AT_ONCE = 50_000  # hours of objects that are read in one round trip


class LateViews(NamedTuple):
    """The views of an object that SQL lacks."""

    stored: RowCounts  # what SQL has
    by_hour: Mapping[int, int]  # the views that it lacks, by hour (since 1970) in ascending order


NOTHING_LATE: Mapping[str, LateViews] = {}  # by subject


def find(
    subjects: Sequence[str], *, present: int, faults: Faults, without: Collection[str]
) -> dict[str, LateViews]:
    """Returns the views that SQL lacks of the subjects, by subject.

    Subjects of which it lacks none are left out, and so are those in `without`. Also begins the
    history of subjects that have views but no history yet. `present` is the present hour (since
    1970). Raises redis.RedisError.
    """
    stored = _stored([subject for subject in subjects if subject not in without], faults)
    late: dict[str, LateViews] = {}
    for portion in scripts.sliced(_behind(stored), KEYS_AT_ONCE // HOURS):
        for subject, by_hour in _missing_by_hour(portion, stored, present=present).items():
            if by_hour:
                late[subject] = LateViews(stored[subject], by_hour)
    return late


def _stored(subjects: Sequence[str], faults: Faults) -> dict[str, RowCounts]:
    """Returns SQL's counts of those subjects that have a row which can be read."""
    stored: dict[str, RowCounts] = {}
    for model, rows in subjects_by_model(subjects).items():
        faults.store([*rows.values()], partial(_read, model, rows, stored))
    return stored


def _read(
    model: type[Model], rows: Mapping[Any, str], stored: dict[str, RowCounts], some: Sequence[str]
) -> None:
    """Puts SQL's counts of some subjects into `stored`, and begins their history.

    `rows` has the subjects of the model by primary key.
    """
    wanted = {*some}
    pks = [pk for pk, subject in rows.items() if subject in wanted]
    with databases.site_transaction(databases.of(model)):
        counts_by_pk = row_counts.stored(model, pks)
    counts = {rows[pk]: row for pk, row in counts_by_pk.items()}
    history.begin({subject: row for subject, row in counts.items() if row.views})
    stored.update(counts)


def _behind(stored: Mapping[str, RowCounts]) -> list[str]:
    """Returns the subjects of which SQL has fewer views than the settled total."""
    portions = scripts.parted([*stored])
    calls = [counters.settled_totals(portion) for portion in portions]
    behind: list[str] = []
    for portion, (_, totals) in zip(portions, scripts.run_all(*calls, patient=True), strict=True):
        for subject, total in zip(portion, totals, strict=True):
            if counters.is_number(total or b"") and int(total) > stored[subject].views:
                behind.append(subject)
    return behind


def _missing_by_hour(
    subjects: Sequence[str], stored: Mapping[str, RowCounts], *, present: int
) -> dict[str, dict[int, int]]:
    """Returns the views that SQL lacks by hour, by subject."""
    hours = range(present - HOURS, present + 1)
    calls = live_counters.totals_and_hours(subjects, hours)
    missing: dict[str, dict[int, int]] = {}
    for found in scripts.run_all(*calls, patient=True):
        for subject, live in found.items():
            lacking = live.total - stored[subject].views
            missing[subject] = _latest(live.views_by_hour, lacking)
    return missing


def _latest(views_by_hour: Mapping[int, int], number: int) -> dict[int, int]:
    """Returns the latest views of these, so many of them, by hour.

    SQL has the earlier ones already. If they are fewer, the rest is added to the last hour.
    """
    latest: dict[int, int] = {}
    remaining = max(0, number)
    for hour in sorted(views_by_hour, reverse=True):
        latest[hour] = min(views_by_hour[hour], remaining)
        remaining -= latest[hour]
    latest[max(latest)] += remaining
    return {hour: views for hour, views in sorted(latest.items()) if views}


def rows_of_history(
    late: Mapping[str, LateViews], live: Mapping[str, RowCounts], *, present: int
) -> Iterator[tuple[str, int, RowCounts]]:
    """Yields the absolute counts at the end of each hour that has views: the subject, the hour and
    the counts.

    `live` are the counts that the flush stores, at the end of the present hour. When first visitors
    came is not known, so they are divided like the views.
    """
    for subject, (stored, by_hour) in late.items():
        first_visitors = max(0, live[subject].visitors - stored.visitors)
        visitors = dict(sums_before(present, divided(first_visitors, by_hour)))
        visitors_so_far = 0
        counts = stored
        for hour, views in sums_before(present, by_hour):
            visitors_so_far = visitors.get(hour, visitors_so_far)
            counts = RowCounts(stored.views + views, stored.visitors + visitors_so_far)
            yield subject, hour, counts
        if counts.views < live[subject].views:
            yield subject, present, live[subject]


def sums_before(present: int, numbers: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Yields each hour before the present one, and the sum of its number and all earlier ones."""
    for hour, number in zip(numbers, accumulate(numbers.values()), strict=True):
        if hour < present:
            yield hour, number


def divided(number: int, views_by_hour: Mapping[int, int]) -> dict[int, int]:
    """Returns the number divided among the hours in proportion to their views.

    No hour gets more than its views, except that the last hour gets what is more than all views.
    """
    all_views = sum(views_by_hour.values())
    shared = min(number, all_views)
    parts: dict[int, int] = {}
    for hour, views in zip(views_by_hour, accumulate(views_by_hour.values()), strict=True):
        parts[hour] = shared * views // all_views - sum(parts.values())
    last_hour = max(views_by_hour)
    parts[last_hour] += number - shared
    return {hour: part for hour, part in parts.items() if part}


def divided_by_field(
    numbers: Mapping[str, int], views_by_hour: Mapping[int, int]
) -> dict[int, Counter[str]]:
    """Returns the numbers of a hash, by field, divided among the hours: by hour, then by field.

    Each field keeps its sum. Each hour gets a share of all fields in proportion to its views.
    """
    remaining = Counter(numbers)
    parts: dict[int, Counter[str]] = {}
    for hour, size in divided(remaining.total(), views_by_hour).items():
        parts[hour] = _sample(remaining, size)
        remaining -= parts[hour]
    return parts


def _sample(numbers: Counter[str], size: int) -> Counter[str]:
    """Returns so many of the numbers, by field, in proportion to the numbers."""
    total = numbers.total()
    sample: Counter[str] = Counter()
    remainders: Counter[str] = Counter()
    for field, number in numbers.items():
        sample[field], remainders[field] = divmod(number * size, total)
    for field, _ in remainders.most_common(size - sample.total()):
        sample[field] += 1
    return +sample
