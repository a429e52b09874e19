"""Adding views of the past to history, as imports do."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple

from readtrack.numbers.models import History
from readtrack.numbers.sql import group_sums
from readtrack.numbers.sql.history import FOREVER
from readtrack.numbers.sql.history_lock import lock_history
from readtrack.sql import databases, vendors
from readtrack.store import keys
from readtrack.subjects import label_in, subject_column

NO_LIMIT = 2**63 - 1  # views that no row reaches
MODELS_ONLY = 0  # views that every row reaches


class Gain(NamedTuple):
    """Views that are added to each row of a subject in a range of hours (since 1970).

    The fields are in the order of the parameters of raise_hours.sql.
    """

    views: int
    subject: str
    since: int
    until: int  # exclusive
    limit: int  # a row with so many views or more stays as it is


def raise_hours(
    hours: Iterable[tuple[str, int, int]], limits: Mapping[str, int], *, first_live: int
) -> None:
    """Adds views of the past to the history of subjects and of their models.

    Each entry of `hours` has a subject, an hour (since 1970) and a number of views. `limits` has a
    limit by subject: a row of history with so many views or more stays as it is, because it was
    stored after the import had added its views. A subject without a limit is left out, and one with
    MODELS_ONLY was reset since, so only the history of its model gets its views. The history
    of models gets only the hours before `first_live`, because Redis has the later ones. Call it in
    a transaction.
    """
    # Views by hour, by the name in history and the limit of its rows.
    added: defaultdict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for subject, hour, views in hours:
        if subject not in limits:  # its partition lost the batch
            continue
        if limits[subject] != MODELS_ONLY:
            added[subject_column(subject), limits[subject]][hour] += views
        if hour < first_live:
            # History has the views of a model for each partition: `blog.post:{rt00}`.
            model = label_in(subject) + keys.tag(subject)
            added[model, NO_LIMIT][hour] += views
    gains: list[Gain] = []
    for (column, limit), views_by_hour in sorted(added.items()):
        gains += _gains(column, views_by_hour, limit=limit)
    if gains:
        _write(gains)


def lower_hours(
    hours: Iterable[tuple[str, int, int]], ends: Mapping[str, int], *, end_of_models: int
) -> None:
    """Takes views of the past back from the history of subjects and of their models.

    Each entry of `hours` has a subject, an hour (since 1970) and a number of views. `ends` has by
    subject the hour at which rows no longer have these views; a subject without one is left out.
    The history of models loses only the hours before `end_of_models`. Call it in a transaction,
    after `lock_history`.
    """
    # Views by hour, by the name in history and the end of its rows.
    taken: defaultdict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for subject, hour, views in hours:
        if subject not in ends:
            continue
        taken[subject_column(subject), ends[subject]][hour] += views
        if hour < end_of_models:
            model = label_in(subject) + keys.tag(subject)
            taken[model, FOREVER][hour] += views
    losses: list[tuple[int, str, int, int]] = []
    for (column, end), views_by_hour in sorted(taken.items()):
        for views, subject, since, until, _ in _gains(column, views_by_hour, limit=NO_LIMIT):
            if since < end:
                losses.append((views, subject, since, min(until, end)))
    if losses:
        _lower(losses)


def _lower(losses: list[tuple[int, str, int, int]]) -> None:
    """Lowers rows: each loss has views, a subject, an hour, and the hour of the end."""
    first_hour = min(since for _, _, since, _ in losses)
    group_sums.forget({label_in(subject) for _, subject, _, _ in losses}, since=first_hour)
    connection = databases.of(History)
    statement = databases.statement(History, "lower_hours")
    with connection.cursor() as cursor:
        if vendors.vendor_of(connection).has_arrays:
            cursor.execute(statement, [*map(databases.array, zip(*losses, strict=True))])
        else:
            cursor.executemany(statement, [(loss[0], *loss) for loss in losses])


def _gains(subject: str, views_by_hour: Mapping[int, int], *, limit: int) -> list[Gain]:
    """Returns what each row of a subject gains: the views of its hour and of all hours before it.

    Rows have absolute numbers, so a row of a later hour gains the views of earlier hours, too. All
    rows between two of the hours gain the same, and so do all rows after the last one.
    """
    starts = sorted(views_by_hour)
    stops = [*starts[1:], FOREVER]
    totals = accumulate(views_by_hour[hour] for hour in starts)
    return [
        Gain(views, subject, since, until, limit)
        for views, since, until in zip(totals, starts, stops, strict=True)
    ]


def _write(gains: list[Gain]) -> None:
    """Inserts a row for each hour that has none, and then adds the gains to all rows."""
    # Other writers of history have to wait, because a row that they insert meanwhile would not be
    # raised.
    lock_history()
    first_hour = min(gain.since for gain in gains)
    group_sums.forget({label_in(gain.subject) for gain in gains}, since=first_hour)
    connection = databases.of(History)
    insert_hours = databases.statement(History, "insert_hours")
    raise_hours = databases.statement(History, "raise_hours")
    with connection.cursor() as cursor:
        if vendors.vendor_of(connection).has_arrays:  # with arrays an import takes half the time
            views, subjects, starts, stops, limits = map(databases.array, zip(*gains, strict=True))
            cursor.execute(insert_hours, [subjects, starts])
            cursor.execute(raise_hours, [views, subjects, starts, stops, limits])
        else:
            # The statement takes the subject and the hour three times.
            cursor.executemany(insert_hours, [(gain.subject, gain.since) * 3 for gain in gains])
            cursor.executemany(raise_hours, gains)
