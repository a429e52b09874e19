"""Merging the views of whole models by the hour: Redis and SQL both get the higher number.

Redis has the views of each of the last hours. SQL's history has absolute views, those of all time
up to the end of an hour.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from readtrack import buckets
from readtrack.flush.settling import settle
from readtrack.models import FlushRun
from readtrack.numbers import hours_of_models
from readtrack.numbers.models import History
from readtrack.numbers.sql import history
from readtrack.numbers.sql.history_lock import lock_history
from readtrack.sql import databases, epochs
from readtrack.sql.faults import Faults
from readtrack.store import counters, keys, scripts
from readtrack.store.counters import Epoch, Stored, Total
from readtrack.subjects import counted_models, label_of

HOURS_KEPT: int = keys.model_hour.ttl // keys.HOUR + 1  # hours of models that Redis may have


class Merged(NamedTuple):
    """The last hours of one model, merged. Both mappings are by hour (since 1970)."""

    raised: Mapping[int, int]  # absolute views at the end of each hour that SQL has to raise
    behind: Mapping[int, int]  # SQL's views of each hour of which Redis has fewer


def write_hours(
    record: FlushRun, epoch: epochs.SqlEpoch, faults: Faults, *, must_compare: bool = False
) -> None:
    """Writes the last hours of all models to SQL, and raises those in Redis that have fewer views.

    With `must_compare` it writes all hours that Redis has. Adds the numbers of settled and of
    lifted counters to the record of the flush.
    """
    store = partial(
        store_hours,
        buckets.hour_of(record.flushed_until),
        number=HOURS_KEPT if must_compare else hours_of_models.MODEL_HOURS,
        tags=epoch.tags,
    )
    attempts = databases.attempts("hours of models")
    behind = store()
    while behind is None:
        next(attempts)
        record.settled += settle(epoch, faults)
        behind = store()
    record.lifted += sum(scripts.run_all(*counters.lift(behind), patient=True))


def store_hours(
    present: int, *, number: int = hours_of_models.MODEL_HOURS, tags: Sequence[str] = ()
) -> dict[str, Stored] | None:
    """Raises the last hours of all models in SQL, up to the present hour, to Redis's views.

    `present` is the present hour (since 1970), `number` is that of the hours. Without `tags` it
    does so for all partitions.
    Returns SQL's views of the hours of which Redis has fewer, by the names of the counters in
    Redis. Returns None if Redis has to be settled first; then nothing is stored.
    """
    first = present - number + 1
    tags = tags or keys.tags()
    labels = [label_of(model) for model in counted_models()]
    hour_calls = hours_of_models.calls(labels, range(first, present + 1), tags=tags)
    epoch_calls = [counters.epoch(tag) for tag in tags]
    scripts.run_all(*hour_calls, *epoch_calls, patient=True)
    live = hours_of_models.by_model(call.result for call in hour_calls)
    redis_epochs = [call.result for call in epoch_calls]
    write = partial(_write, live, redis_epochs, since=first)
    return databases.retried(databases.of(History), write)


def _write(
    live: Mapping[str, Mapping[int, Total]], redis_epochs: Sequence[Epoch], *, since: int
) -> dict[str, Stored] | None:
    """Merges SQL's hours with the `live` ones. Returns what `store_hours` returns.

    `live` has the views by model and hour, from the hour `since` on.
    """
    with databases.own_transaction(databases.of(History)):
        # One writer at a time, because rows are computed from the rows before them.
        lock_history()
        epoch = epochs.SqlEpoch()
        epoch.known(redis_epochs)  # so that `advance` needs no query for an epoch that SQL knows
        if not epoch.advance(redis_epochs):
            return None
        rows: list[tuple[str, int, int, int]] = []
        behind: dict[str, Stored] = {}
        stored = history.sums(live, since=since, until=history.FOREVER)
        for model, sums in stored.items():
            merged = _merge(sums, live[model])
            rows += [(model, hour, total, 0) for hour, total in merged.raised.items()]
            for hour, views in merged.behind.items():
                behind[hours_of_models.hour_name(model, hour)] = Stored({"": views})
        databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)
    return behind


def _merge(stored: history.Sums, live: Mapping[int, Total]) -> Merged:
    """Returns what SQL has to raise, and where Redis is behind, for the last hours of one model.

    An unsettled hour in Redis raises nothing.
    """
    stored_by_hour = stored.by_hour()
    raised: dict[int, int] = {}
    behind: dict[int, int] = {}
    # Absolute views at the end of each hour, as SQL has them and as it will have them. If an hour
    # rises, the absolute views of all later hours rise as well.
    old_total = stored.before
    new_total = stored.before
    for hour in sorted({*stored_by_hour, *live}):
        in_sql = stored_by_hour.get(hour, 0)
        in_redis = live.get(hour, Total(0))
        views = in_sql
        if in_redis.is_settled:
            views = max(in_sql, in_redis.views)
        old_total += in_sql
        new_total += views
        has_row = hour in stored_by_hour
        if new_total > old_total and (views or has_row):
            raised[hour] = new_total
        if hour in live and in_redis.is_settled and in_redis.views < in_sql:
            behind[hour] = in_sql
    return Merged(raised, behind)
