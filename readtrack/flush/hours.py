"""Merging the views of whole models by the hour: Redis and SQL both get the higher number."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from django.db import transaction

from readtrack.flush.settling import settle
from readtrack.models import FlushRun, History
from readtrack.sql import databases, epochs, history
from readtrack.store import counters, keys, scripts
from readtrack.store.counters import MODEL_HOURS, Epoch, Stored, Total
from readtrack.subjects import counted_models, label_of

HOUR = 3_600_000_000  # µs


class Merged(NamedTuple):
    """The last hours of one model, merged."""

    raised: Mapping[int, int]  # absolute views at the end of each hour that SQL is to raise
    behind: Mapping[int, int]  # views of each hour of which Redis has fewer


def hour_at(redis_time: int) -> int:
    """Returns the hour (since 1970) of a time of Redis's clock (µs)."""
    return redis_time // HOUR


def write_hours(run: FlushRun, epoch: epochs.SqlEpoch) -> None:
    """Writes the hours of models, lifts those that SQL holds more of, and adds the numbers to the
    run.
    """
    present = hour_at(run.flushed_until)
    while (behind := store_hours(present, tags=epoch.tags)) is None:
        run.settled += settle(epoch)
    run.lifted += sum(scripts.run_all(*counters.lift(behind), patient=True))


def store_hours(present: int, *, tags: Sequence[str] = ()) -> dict[str, Stored] | None:
    """Raises SQL's last hours up to the present one (since 1970) to those in Redis.

    Returns the stored hours that Redis has less of, by the names of their counters. Returns None if
    Redis has to be settled first.
    """
    first = present - MODEL_HOURS + 1
    tags = tags or keys.tags()
    labels = [label_of(model) for model in counted_models()]
    hour_calls = counters.model_hours(labels, range(first, present + 1), tags=tags)
    epoch_calls = [counters.epoch(tag) for tag in tags]
    scripts.run_all(*hour_calls, *epoch_calls, patient=True)
    live = counters.by_model(call.result for call in hour_calls)
    redis_epochs = [call.result for call in epoch_calls]
    write = partial(_write, live, redis_epochs, since=first)
    return databases.retried(databases.of(History), write)


def _write(
    live: Mapping[str, Mapping[int, Total]], redis_epochs: Sequence[Epoch], *, since: int
) -> dict[str, Stored] | None:
    # One writer at a time, because rows are computed from the rows before them.
    with transaction.atomic(using=databases.of(History).alias):
        epochs.lock_epoch()
        epoch = epochs.SqlEpoch()
        epoch.known(redis_epochs)  # in one query
        if not epoch.advance(redis_epochs):
            return None
        rows: list[tuple[str, int, int, int]] = []
        behind: dict[str, Stored] = {}
        stored = history.sums(live, since=since, until=history.FOREVER)
        for model, sums in stored.items():
            merged = _merge(sums, live[model])
            rows += [(model, hour, total, 0) for hour, total in merged.raised.items()]
            for hour, views in merged.behind.items():
                behind[keys.hour_name(model, hour)] = Stored({"": views})
        databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)
    return behind


def _merge(stored: history.Sums, live: Mapping[int, Total]) -> Merged:
    """Merges the hours of one model. An unsettled hour in Redis raises nothing."""
    stored_views = stored.by_hour()
    raised: dict[int, int] = {}
    behind: dict[int, int] = {}
    old_total = stored.before
    new_total = stored.before
    for hour in sorted({*stored_views, *live}):
        least = stored_views.get(hour, 0)
        count = live.get(hour, Total(0))
        views = max(least, count.views) if count.is_settled else least
        old_total += least
        new_total += views
        has_row = hour in stored_views
        if new_total > old_total and (views or has_row):
            raised[hour] = new_total
        if hour in live and count.is_settled and count.views < least:
            behind[hour] = least
    return Merged(raised, behind)
