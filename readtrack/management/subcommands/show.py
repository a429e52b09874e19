"""`manage.py readtrack show`."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.core.management.base import CommandError, CommandParser
from django.db import Error
from django.db.models import Model

from readtrack import buckets, parts, reports
from readtrack.lines import one_line
from readtrack.management.subcommands.base import Line, Subcommand
from readtrack.reports.page_state import count_in_memory
from readtrack.sql import databases, row_counts, vendors
from readtrack.store import connection, counters, read_state, scripts, uniques
from readtrack.subjects import (
    counted_models,
    has_read_state,
    is_counted,
    label_in,
    model_with_label,
    parse_subject,
    read_state_models,
    subject_of,
)


class InRedis(NamedTuple):
    """What Redis answers about an object. Without `error`, Redis is there."""

    error: str = ""
    total: counters.Total | None = None  # None if Redis has no total of the object
    readers: int | None = 0  # since the last publication; None for a form that does not know them
    published: int = 0  # time of the last publication (µs), 0 if it is not known


class Show(Subcommand):
    """Prints the numbers of one object."""

    name = "show"
    help = """\
Prints the counts and the read state of one object, and where each number comes from.

  manage.py readtrack show blog.post:1

The object is named by its subject: the label of its model, and its primary key. Numbers are live.
While Redis is down, they are those that SQL stores, and the command says so. It changes nothing.
"""
    needs_redis = False  # without a usable cache there are SQL's numbers

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("subject", metavar="APP.MODEL:KEY", help="the object")

    def handle(self, *, subject: str, **options: Any) -> str:
        obj = _object(subject)
        # SQL is read before Redis, because a flush may raise SQL's count in between.
        stored = _stored(obj)
        in_redis = _in_redis(obj)
        texts = [f"{subject_of(obj)} {one_line(str(obj))}"]
        if in_redis.error:
            texts.append(
                f"Redis is down, so these are the numbers that SQL stores. {in_redis.error}"
            )
        lines: list[Line] = []
        if is_counted(type(obj)):
            lines += _lines_of_counts(obj, stored, in_redis)
        if has_read_state(type(obj)):
            lines += _lines_of_read_state(obj, in_redis)
        for part in parts.installed():
            lines += part.shown(obj, has_redis=not in_redis.error)
        texts += [f"  {name:18} {number:>20}  {source}" for name, number, source in lines]
        return "\n".join(texts)


def _object(subject: str) -> Model:
    """Returns the object of the subject. Raises CommandError if there is none."""
    model = model_with_label(label_in(subject))
    if model is None or not (is_counted(model) or has_read_state(model)):
        models = dict.fromkeys([*counted_models(), *read_state_models()])
        labels = ", ".join(model._meta.label_lower for model in models)
        raise CommandError(
            f"{label_in(subject)!r} is no model with counts or read state."
            f" This site has: {labels or 'none'}."
        )
    model_and_pk = parse_subject(subject)
    obj = None
    if model_and_pk is not None:
        _, pk = model_and_pk
        obj = _row(model, pk)
    if obj is None:
        raise CommandError(f"There is no object {subject!r} in {model._meta.label}.")
    return obj


def _row(model: type[Model], pk: Any) -> Model | None:
    """Returns the row with the primary key `pk`, also one that the model's manager hides, or
    None.
    """
    try:
        return databases.rows(model).filter(pk=pk).first()
    except Error as error:
        if vendors.is_impossible_value(error):
            return None
        raise


def _stored(obj: Model) -> row_counts.RowCounts:
    """Returns the counts that SQL stores of the object; zero for an object without counts."""
    views = count_in_memory(obj)
    visitors = count_in_memory(obj, "visitor_count")
    if views is not None and visitors is not None:
        return row_counts.RowCounts(views, visitors)
    subject = subject_of(obj)
    return row_counts.by_subject([subject]).get(subject, row_counts.RowCounts(0, 0))


def _in_redis(obj: Model) -> InRedis:
    """Returns what Redis answers about the object, or why it does not answer."""
    subject = subject_of(obj)
    [published_call] = read_state.last_published([subject])
    try:
        [totals, published] = scripts.run_all(
            counters.totals([subject]), published_call, patient=True
        )
        readers: int | None = 0
        if has_read_state(type(obj)):
            readers = read_state.count_readers([subject], patient=True).get(subject)
    except (connection.RedisError, OSError) as error:
        return InRedis(error=one_line(f"{type(error).__name__}: {error}"))
    return InRedis(total=totals.get(subject), readers=readers, published=published.get(subject, 0))


def _lines_of_counts(obj: Model, stored: row_counts.RowCounts, in_redis: InRedis) -> Iterator[Line]:
    """Yields views and visitors."""
    views = reports.views([obj])[obj]
    visitors = reports.visitors([obj])[obj]
    strategy = uniques.strategy_of(subject_of(obj)).name
    source = "Redis"
    if in_redis.error:
        source = "SQL"
    yield Line("views", f"{views:,}", _source_of_total(in_redis))
    yield Line("  stored", f"{stored.views:,}", "SQL")
    yield Line("  unflushed", f"{views - stored.views:,}", "the difference")
    yield Line("visitors", f"{visitors:,}", f"{source} (strategy {strategy})")
    yield Line("  stored", f"{stored.visitors:,}", "SQL")


def _source_of_total(in_redis: InRedis) -> str:
    """Returns where the live views come from."""
    if in_redis.error:
        return "SQL"
    if in_redis.total is None:
        return "SQL, because Redis has no total"
    if not in_redis.total.is_settled:
        return "Redis and SQL, because the total began anew since the last flush"
    return "Redis"


def _lines_of_read_state(obj: Model, in_redis: InRedis) -> Iterator[Line]:
    """Yields the readers of a category and its last publication."""
    if in_redis.error:
        yield Line("last publication", "unknown", "only Redis knows it")
        return
    if in_redis.readers is None:
        yield Line("readers", "unknown", "this form of read state is kept by reader")
    else:
        yield Line("readers", f"{in_redis.readers:,}", "Redis")
    if in_redis.published:
        time = buckets.time_of(in_redis.published)
        yield Line("last publication", f"{time:%Y-%m-%d %H:%M} UTC", "Redis")
    elif read_state.form_of(subject_of(obj)).knows_readers:
        yield Line("last publication", "never", "Redis")
    else:
        yield Line("last publication", "unknown", "Redis keeps the last ones only")
