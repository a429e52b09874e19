"""Metrics of the running system, in the formats that Prometheus reads.

They are measured when they are asked for, from what SQL and Redis have. So they are those of the
whole site, whichever of its processes answers.

A metric of which a part is not known is left out. In its place, a number without that part would
look like a counter that began anew, and Prometheus would count everything once more.

Needs the extra `metrics`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.db import Error
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from readtrack import buckets
from readtrack.doctor import measurements
from readtrack.hits.hit import REASONS
from readtrack.hits.stages import STAGES
from readtrack.models import FlushRun
from readtrack.numbers import recent_minutes
from readtrack.numbers.options import numbers_options
from readtrack.numbers.sql import history
from readtrack.sql import runs
from readtrack.store import connection, counters, keys, scripts, skips, uniques
from readtrack.store.circuit import ask_anyway
from readtrack.store.servers import SeveralServers
from readtrack.subjects import counted_models, label_of

RECENT_MINUTES = 5  # of the visitors that are here now


class ModelCounter(NamedTuple):
    """A counter of whole models that SQL's history has."""

    name: str
    meaning: str
    stage: str = ""  # of views; "" for the views themselves

    def columns(self, label: str) -> list[str]:
        """Returns the names under which history has the counter of the model `label`."""
        if self.stage:
            return [history.of_stage(self.stage, label)]
        # One for each partition that the site has, or had.
        return [f"{label}{tag}" for tag in keys.past_tags()]


MODEL_COUNTERS = (
    ModelCounter("readtrack_views", "Views that counted, as of the last flush."),
    *(
        ModelCounter(f"readtrack_{name}", f"{stage.meaning}, as of the last full flush.", name)
        for name, stage in STAGES.items()
    ),
)


@dataclass(frozen=True, slots=True)
class RedisAnswers:
    """What Redis answered. A value is None if a server of a cluster did not answer."""

    skips: Mapping[str, int] | None  # hits since midnight (UTC) that did not count, by reason
    unsettled: int | None  # counters
    visitors: int | None  # of the last minutes
    memory: measurements.Memory | None  # None for a cluster, whose servers have one each

    @property
    def is_whole(self) -> bool:
        """Returns False if Redis, or a server of a cluster, did not answer."""
        return None not in (self.skips, self.unsettled, self.visitors)


@dataclass(frozen=True, slots=True)
class SqlAnswers:
    """What SQL answered."""

    sums: Mapping[str, int]  # absolute numbers by name in history
    last_flush: FlushRun | None  # the last one that ended well
    last_full_flush: FlushRun | None
    has_last_flush_failed: bool
    outbox: measurements.Outbox


def exposition(accept: str) -> tuple[bytes, str]:
    """Returns the metrics in the format that the header `Accept` asks for, and its content type."""
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # the header asks for a version that is no number
        encode, content_type = choose_encoder("")
    return encode(_Metrics(families())), content_type


class _Metrics(Collector):
    """Hands the metrics to the library's encoders."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def families() -> list[Metric]:
    """Returns the metrics. Makes five queries, and one more for each further outbox, and two round
    trips to Redis.
    """
    sql = _sql_answers()
    redis = _redis_answers(at=buckets.now())
    metrics = [
        _gauge(
            "readtrack_redis_up",
            "1 if Redis answers, and all servers of a cluster.",
            redis.is_whole,
        ),
        _gauge("readtrack_sql_up", "1 if the database answers.", sql is not None),
        *_of_redis(redis),
    ]
    if sql is not None:
        metrics += _of_sql(sql)
    return metrics


def _gauge(name: str, meaning: str, value: float, *, unit: str = "") -> Metric:
    return GaugeMetricFamily(name, meaning, value=float(value), unit=unit)


def _redis_answers(*, at: datetime) -> RedisAnswers:
    """Asks Redis, even while pages go on without it, because it may answer again by now."""
    # Midnight, because Redis keeps skips for two days. The sum of the last 24 hours would fall.
    skip_call = replace(skips.by_hour(at.hour + 1, at=at), absent=None)
    unsettled_calls = [counters.number_of_unsettled(tag) for tag in keys.tags()]
    visitor_calls = recent_minutes.visitors(_labels(), RECENT_MINUTES, at=at)
    ask_anyway(scripts.run_all, [], skip_call, *unsettled_calls, *visitor_calls)
    if not skip_call.has_result:
        return RedisAnswers(None, None, None, None)
    recent = [call.result for call in visitor_calls]
    union_calls = _union_calls(recent)
    memory_calls = _memory_calls()
    # Not with the first questions: a Redis user who is refused INFO is no failure of Redis.
    with suppress(connection.RedisError, OSError):
        scripts.run_all(*union_calls, *memory_calls)
    return RedisAnswers(
        skips=_by_reason(skip_call.result),
        unsettled=_sum([call.result for call in unsettled_calls]),
        visitors=_visitors(recent, union_calls),
        memory=next((call.result for call in memory_calls if call.has_result), None),
    )


def _labels() -> list[str]:
    return [label_of(model) for model in counted_models()]


def _by_reason(skips_by_hour: Sequence[Mapping[str, int]] | None) -> dict[str, int] | None:
    """Returns the skips by reason; None if they are not known.

    What else Redis counts by the hour, such as the names of robots, is left out.
    """
    if skips_by_hour is None:
        return None
    return {reason: sum(hour.get(reason, 0) for hour in skips_by_hour) for reason in REASONS}


def _sum(numbers: Sequence[int | None]) -> int | None:
    """Returns the sum; None if one of the numbers is not known."""
    known_numbers = [number for number in numbers if number is not None]
    return sum(known_numbers) if len(known_numbers) == len(numbers) else None


def _union_calls(recent: Sequence[Any]) -> list[scripts.Call[uniques.Union]]:
    """Returns the call that counts the visitors of several partitions together; else none.

    `recent` has the sketch of each partition; None for one that is not known.
    """
    if not keys.is_divided() or not recent or None in recent:
        return []
    return [uniques.union(recent, tag=keys.tags()[0])]


def _visitors(
    recent: Sequence[Any], union_calls: Sequence[scripts.Call[uniques.Union]]
) -> int | None:
    """Returns the number of different visitors of all partitions; None if it is not known."""
    if not keys.is_divided() or not recent:
        return _sum(recent)
    unions = [call.result for call in union_calls if call.has_result]
    return unions[0].visitors if unions else None


def _memory_calls() -> list[scripts.Call[measurements.Memory]]:
    """Returns the call that asks Redis for its memory; none for a cluster."""
    if isinstance(connection.connect(), SeveralServers):
        return []
    return [scripts.Call("INFO", [], ("memory",), _memory_in)]


def _memory_in(answer: bytes) -> measurements.Memory:
    """Returns the memory in an answer to INFO, which has a line for each value: `maxmemory:0`."""
    lines = [line.partition(":") for line in answer.decode().splitlines()]
    return measurements.memory_in({name: value for name, _, value in lines})


def _sql_answers() -> SqlAnswers | None:
    """Asks SQL. Returns None if a database fails."""
    try:
        newest = runs.newest_ended()
        return SqlAnswers(
            sums=_sums(),
            last_flush=runs.last_good(),
            last_full_flush=runs.last_good(is_full=True),
            has_last_flush_failed=newest is not None and newest.error != "",
            outbox=measurements.outbox(),
        )
    except Error:
        return None


def _sums() -> dict[str, int]:
    """Returns the absolute numbers of whole models by their names in history."""
    columns = [
        column
        for counter in MODEL_COUNTERS
        for label in _labels()
        for column in counter.columns(label)
    ]
    if not columns:
        return {}
    # The newest number is the one before an hour that no row reaches.
    newest = history.sums_between(columns, [history.FOREVER])
    return {column: sums.before for column, sums in newest.items()}


def _of_redis(answers: RedisAnswers) -> Iterator[Metric]:
    """Yields the metrics of what Redis answered."""
    if answers.skips is not None:
        by_reason = CounterMetricFamily(
            "readtrack_skips",
            "Hits that did not count, by reason. Begins anew at midnight UTC.",
            labels=["reason"],
        )
        for reason, number in answers.skips.items():
            by_reason.add_metric([reason], number)
        yield by_reason
    if answers.visitors is not None:
        yield _gauge(
            "readtrack_recent_visitors",
            f"Different visitors of the last {RECENT_MINUTES} minutes.",
            answers.visitors,
        )
    if answers.unsettled is not None:
        yield _gauge(
            "readtrack_unsettled_counters",
            "Counters in Redis that lack what SQL has counted, until the next flush.",
            answers.unsettled,
        )
    if answers.memory is not None:
        yield _gauge(
            "readtrack_redis_memory_used",
            "Memory that Redis compares with its limit.",
            answers.memory.used,
            unit="bytes",
        )
        yield _gauge(
            "readtrack_redis_memory_limit",
            "The limit of Redis's memory (maxmemory), 0 for none.",
            answers.memory.limit,
            unit="bytes",
        )


def _of_sql(answers: SqlAnswers) -> Iterator[Metric]:
    """Yields the metrics of what SQL answered."""
    if numbers_options().history:
        yield from _of_models(answers.sums)
    yield from _of_flushes(answers)
    yield _gauge(
        "readtrack_outbox_publications",
        "Publications that were not sent to Redis yet. Their dots are off.",
        answers.outbox.publications,
    )
    yield _gauge(
        "readtrack_outbox_age",
        "The time since the oldest of these publications, 0 without any.",
        answers.outbox.age.total_seconds(),
        unit="seconds",
    )


def _of_models(sums: Mapping[str, int]) -> Iterator[Metric]:
    """Yields the counters of whole models."""
    for counter in MODEL_COUNTERS:
        by_model = CounterMetricFamily(counter.name, counter.meaning, labels=["model"])
        for label in _labels():
            number = sum(sums.get(column, 0) for column in counter.columns(label))
            by_model.add_metric([label], number)
        yield by_model


def _of_flushes(answers: SqlAnswers) -> Iterator[Metric]:
    """Yields the metrics of flushes. A full flush also stores what changed."""
    began = GaugeMetricFamily(
        "readtrack_flush_last_success_timestamp",
        "When the last flush began that ended well (seconds since 1970).",
        labels=["kind"],
        unit="seconds",
    )
    duration = GaugeMetricFamily(
        "readtrack_flush_duration",
        "How long that flush took.",
        labels=["kind"],
        unit="seconds",
    )
    failures = GaugeMetricFamily(
        "readtrack_flush_failures",
        "Rows, and models as a whole, that that flush could not store.",
        labels=["kind"],
    )
    for kind, run in (("changed", answers.last_flush), ("full", answers.last_full_flush)):
        if run is None or run.took is None:
            continue
        began.add_metric([kind], run.began.timestamp())
        duration.add_metric([kind], run.took.total_seconds())
        failures.add_metric([kind], run.failed)
    yield from (began, duration, failures)
    yield _gauge(
        "readtrack_flush_late_after",
        "The age of the last flush from which on the next one is late.",
        runs.late_after().total_seconds(),
        unit="seconds",
    )
    yield _gauge(
        "readtrack_flush_failed",
        "1 if the newest flush ended with an error.",
        answers.has_last_flush_failed,
    )
