"""Adding views of the past to history, as imports do."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple

from readtrack.models import History
from readtrack.sql import databases, vendors
from readtrack.sql.epochs import lock_epoch
from readtrack.sql.history import FOREVER
from readtrack.store import keys
from readtrack.subjects import subject_column

NO_LIMIT = 2**63 - 1  # views that no row reaches


class Gain(NamedTuple):
    """Views that are added to each row of a subject in a range of hours."""

    views: int
    subject: str
    since: int
    until: int
    limit: int  # rows with so many views or more stay as they are


def raise_hours(
    hours: Iterable[tuple[str, int, int]], limits: Mapping[str, int], *, first_live: int
) -> None:
    """Adds views of the past to the rows of subjects below a limit, and to those of models.

    `hours` has a subject, an hour (since 1970) and a number of views in each entry, `limits` the
    views that a row may have by subject. Subjects without a limit are left out. Models only get
    what is before `first_live`, the first hour that Redis keeps. Call it in a transaction.
    """
    added: defaultdict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for subject, hour, count in hours:
        if subject not in limits:  # its partition lost the batch
            continue
        added[subject_column(subject), limits[subject]][hour] += count
        if hour < first_live:
            model = subject.partition(":")[0] + keys.tag(subject)
            added[model, NO_LIMIT][hour] += count
    gains: list[Gain] = []
    for (column, limit), counts in sorted(added.items()):
        gains += _gains(column, counts, limit=limit)
    if gains:
        _write(gains)


def _gains(subject: str, counts: Mapping[int, int], *, limit: int) -> list[Gain]:
    """Returns what the rows of a subject gain. Each row has the views of all earlier hours."""
    starts = sorted(counts)
    stops = [*starts[1:], FOREVER]
    totals = accumulate(counts[hour] for hour in starts)
    return [
        Gain(views, subject, since, until, limit)
        for views, since, until in zip(totals, starts, stops, strict=True)
    ]


def _write(gains: list[Gain]) -> None:
    """Inserts the rows that are missing, and raises all."""
    # Other writers of sums wait, because this would neither see nor raise a row that they insert
    # meanwhile.
    lock_epoch()
    connection = databases.of(History)
    insert_hours = databases.statement(History, "insert_hours")
    raise_hours = databases.statement(History, "raise_hours")
    with connection.cursor() as cursor:
        if vendors.vendor_of(connection).has_arrays:  # an import takes half the time
            views, subjects, starts, stops, limits = map(databases.array, zip(*gains, strict=True))
            cursor.execute(insert_hours, [subjects, starts])
            cursor.execute(raise_hours, [views, subjects, starts, stops, limits])
        else:
            cursor.executemany(insert_hours, [(gain.subject, gain.since) * 3 for gain in gains])
            cursor.executemany(raise_hours, gains)
