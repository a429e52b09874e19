"""Carries the counts from Redis into SQL: absolute, only ever upwards, and as often as one likes.

Redis is the live truth and SQL the durable one. A count only grows, so the two are merged by max:

- settle: a total that Redis began anew lacks what SQL already counted; it gets that base, once;
- write:  rows that store less than the total are raised to it, totals without their base are passed over;
- lift:   totals below what SQL stores (an old snapshot was restored, a replica lagged) are raised to it.

Several flushes at once, and one that is killed anywhere, come to the same as a single whole one.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from readtrack import buckets, lineage, snapshots, subjects
from readtrack.conf import conf
from readtrack.models import FlushRun, Tracked
from readtrack.signals import flushed
from readtrack.snapshots import Snapshot
from readtrack.store import counters, scripts, uniques
from readtrack.store.counters import Epoch, Total

Rows = dict[str, Any]  # primary key by token


def flush(*, progress: Callable[[int], object] = lambda read: None) -> FlushRun:
    """Writes every total that Redis holds; gives the saved record of what it did.

    `progress` is called with the number of totals just read. Raises redis.RedisError or
    django.db.Error; what was written until then stays, and the next flush does the rest.
    """
    run = FlushRun.objects.create(started=buckets.now())
    try:
        run.settled += _settle(until=max(counters.clock(), lineage.head()))
        for tokens in _chunks(counters.scan(), conf.FLUSH_CHUNK):
            _carry(tokens, run)
            progress(len(tokens))
    except Exception as error:
        run.error = f"{type(error).__name__}: {error}"
        raise
    finally:
        run.ended = buckets.now()
        run.save()
    _prune()
    flushed.send_robust(sender=None, run=run)
    return run


def carry(tokens: Iterable[str]) -> None:
    """Writes these totals only, as a flush would, and leaves no record. Raises as `flush` does."""
    _settle(until=max(counters.clock(), lineage.head()))
    for some in _chunks(iter(tokens), conf.FLUSH_CHUNK):
        _carry(some, FlushRun())


def _settle(*, until: int) -> int:
    """Gives totals marked until then (µs) their base, and takes a restored Redis into the line; gives how many."""
    settled = 0
    while True:
        tokens = counters.unbased(until=until)
        bases = dict.fromkeys(tokens, 0)  # a row that is gone has none
        for model, rows in _by_model(tokens).items():
            stored = snapshots.stored(model, list(rows.values()))
            bases.update((token, stored[pk].views) for token, pk in rows.items() if pk in stored)
        # Read after the bases: whatever they hold was settled in this epoch or an earlier one.
        done = scripts.run(counters.settle(bases, head=lineage.head()), patient=True)
        lineage.follow(done.epoch.current, previous=done.epoch.previous)
        settled += done.totals
        if not tokens:
            return settled


def _carry(tokens: list[str], run: FlushRun) -> None:
    """Writes one chunk, then lifts what SQL turned out to hold more of."""
    totals, visitors, epoch = _read(tokens)
    # SQL has to know the epoch of what it stores, or it could not tell a Redis that is restored from before it.
    while not lineage.follow(epoch.current, previous=epoch.previous):
        run.settled += _settle(until=max(counters.clock(), lineage.head()))
        totals, visitors, epoch = _read(tokens)
    based = {token: total.views for token, total in totals.items() if total.is_based}
    run.read += len(totals)
    known = 0
    for model, rows in _by_model(based).items():
        written = snapshots.write(model, {pk: Snapshot(based[token], visitors[token]) for token, pk in rows.items()})
        known += len(written.stored)
        behind = {token: written.stored[pk] for token, pk in rows.items() if written.stored.get(pk, 0) > based[token]}
        run.written += written.raised
        run.lifted += scripts.run(counters.lift(behind), patient=True) if behind else 0
    run.orphans += len(based) - known


def _read(tokens: list[str]) -> tuple[Mapping[str, Total], Mapping[str, int], Epoch]:
    """The totals and visitors that Redis holds, and where it stands."""
    slices = scripts.sliced(tokens)
    reads = [call for some in slices for call in (counters.totals(some), uniques.visitors(some))]
    *answers, epoch = scripts.run_all(*reads, counters.epoch(), patient=True)
    return ChainMap(*answers[::2]), ChainMap(*answers[1::2]), epoch


def _by_model(tokens: Iterable[str]) -> dict[type[Tracked], Rows]:
    """The primary keys by token, for each Tracked model; other tokens are nothing SQL has a column for."""
    models: dict[type[Tracked], Rows] = {}
    for token in tokens:
        model, pk = subjects.parse(token) or (None, None)
        if model is not None and issubclass(model, Tracked):
            models.setdefault(model, {})[token] = pk
    return models


def _chunks(tokens: Iterator[str], size: int) -> Iterator[list[str]]:
    while chunk := list(dict.fromkeys(islice(tokens, size))):
        yield chunk


def _prune() -> None:
    """Forgets the records of old flushes."""
    oldest = FlushRun.objects.order_by("-pk").values_list("pk", flat=True)[conf.FLUSH_RUNS : conf.FLUSH_RUNS + 1]
    FlushRun.objects.filter(pk__lte=oldest[0] if oldest else 0).delete()
