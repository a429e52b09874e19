"""Carries the counts from Redis into SQL: absolute, only ever upwards, and as often as one likes.

Redis is the live truth and SQL the durable one. A count only grows, so the two are merged by max:

- settle: a counter that Redis began anew lacks what SQL already counted; it gets that base, once;
- write:  rows that store less than the total are raised to it, totals without their base are passed over;
- lift:   totals below what SQL stores (an old snapshot was restored, a replica lagged) are raised to it.

Several flushes at once, and one that is killed anywhere, come to the same as a single whole one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import transaction

from readtrack import (
    archives,
    buckets,
    databases,
    history,
    keys,
    lineage,
    readership,
    resets,
    runs,
    snapshots,
    subjects,
    sums,
)
from readtrack.conf import conf
from readtrack.models import FlushRun, Tracked
from readtrack.signals import flushed
from readtrack.snapshots import Snapshot, Written
from readtrack.store import counters, minutes, scripts, uniques, upkeep
from readtrack.store import runs as run_store
from readtrack.store.counters import Base, Kept


def flush(*, only_changed: bool = False, progress: Callable[[int], object] = lambda read: None) -> FlushRun:
    """Writes every total that Redis holds, or those that changed; gives the saved record of what it did.

    What changed is told by the minute buckets since the last flush that ended well. Where they do not reach
    back that far, or a restored Redis has to be put right, everything is written all the same.
    `progress` is called with the number of totals just read. Raises redis.RedisError or
    django.db.Error; what was written until then stays, and the next flush does the rest.
    """
    run = FlushRun.objects.create(started=buckets.now())
    try:
        scope = runs.begin(run, only_changed=only_changed)
        run.settled += settle()
        changed = _changed(scope.minutes)
        for tokens in _chunks(changed):
            archives.keep_breakdowns(tokens)
        for tokens in _chunks(changed if run.kind == run.Kind.CHANGED else counters.scan()):
            _carry(tokens, run, changed=changed)
            if scope.is_restored:  # its hashes may be behind wherever they are
                archives.keep_breakdowns(tokens)
            progress(len(tokens))
        _finish(run)
    except Exception as error:
        run.error = f"{type(error).__name__}: {error}"
        raise
    finally:
        run.ended = buckets.now()
        run.save()
    flushed.send_robust(sender=None, run=run)
    return run


def carry(tokens: Iterable[str]) -> None:
    """Writes these totals and the models' hours, as a flush would, and leaves no record. Raises as `flush` does."""
    now = counters.clock()
    run = FlushRun(started=buckets.now(), redis_time=now, covers=now, kind=FlushRun.Kind.CHANGED)
    settle()
    for some in _chunks(tokens):
        _carry(some, run, changed={})
    if conf.HISTORY:
        _keep_sums(run)


def _changed(span: Sequence[datetime]) -> dict[str, None]:
    """The tokens viewed in those minutes."""
    return {token: None for tokens in minutes.changed(span) for token in tokens}


def settle() -> int:
    """Gives counters marked until now their base, and takes a restored Redis into the line; gives how many."""
    settled, until = 0, max(counters.clock(), lineage.head())
    while True:
        names = counters.unbased(until=until)
        bases = _bases(names)
        # Read after the bases: whatever they hold was settled in this epoch or an earlier one.
        done = scripts.run(counters.settle(bases, head=lineage.head()), patient=True)
        lineage.follow(done.epoch.current, previous=done.epoch.previous)
        settled += done.counters
        if not names:
            return settled


def _bases(names: list[str]) -> dict[str, Base]:
    """What SQL keeps of each counter; a row that is gone has nothing."""
    hours = [name for name in names if keys.is_hour(name)]
    hashes = [name for name in names if keys.split_member(name)[0] and not keys.is_hour(name)]
    bases: dict[str, Base] = {**dict.fromkeys(names, 0), **archives.breakdowns(hashes), **sums.bases(hours)}
    for model, rows in subjects.rows(names).items():
        stored = snapshots.stored(model, list(rows))
        sketches = archives.sketches(rows.values())
        for pk, row in stored.items():
            bases[rows[pk]] = Kept({"": row.views}, sketches.get(rows[pk], b""))
    return bases


def _carry(tokens: list[str], run: FlushRun, *, changed: dict[str, None]) -> None:
    """Writes one chunk, then lifts what SQL turned out to hold more of."""
    live = _live(tokens, run)
    run.orphans += len(live)
    for model, rows in subjects.rows(live).items():
        written = _write(model, rows, live, changed=changed, hour=runs.hour(run))
        run.written += len(written.raised)
        run.lifted += _lift({rows[pk]: views for pk, views in written.ahead.items()})
        run.orphans -= len(rows) - len(written.missing)  # what is no row of a model stays: an app may come back
        _remove_orphans([rows[pk] for pk in written.missing])
        if run.kind == run.Kind.ARCHIVE:
            known = {token: live[token] for token in rows.values()}
            archives.archive(known, hour=runs.hour(run))


def _live(tokens: list[str], run: FlushRun) -> dict[str, Snapshot]:
    """The counts of those totals that have their base."""
    slices = scripts.sliced(tokens)
    reads = [call for some in slices for call in (counters.based(some), uniques.visitors(some))]
    *answers, epoch = scripts.run_all(*reads, counters.epoch(), patient=True)
    # SQL has to know the epoch of what it stores, or it could not tell a Redis that is restored from before it.
    while not lineage.follow(epoch.current, previous=epoch.previous):
        run.settled += settle()
        *answers, epoch = scripts.run_all(*reads, counters.epoch(), patient=True)
    live: dict[str, Snapshot] = {}
    for some, (found, totals), visitors in zip(slices, answers[::2], answers[1::2], strict=True):
        run.read += found
        pairs = zip(some, totals, strict=True)
        live.update((token, Snapshot(int(total), visitors[token])) for token, total in pairs if total is not None)
    return live


def _write(
    model: type[Tracked], rows: dict[Any, str], live: dict[str, Snapshot], *, changed: dict[str, None], hour: int
) -> Written:
    connection = databases.of(model)

    def write() -> Written:
        # One transaction where the two share a database: a kill must not come between count and history.
        with transaction.atomic(using=connection.alias):
            written = snapshots.write(model, {pk: live[token] for pk, token in rows.items()})
            # What changed before the buckets began has no hour that is known.
            if conf.HISTORY and changed:
                raised = changed.keys() & {rows[pk] for pk in written.raised}
                history.keep({token: live[token] for token in raised}, hour=hour)
        return written

    return databases.retried(connection, write)


def _lift(behind: dict[str, int]) -> int:
    if not behind:
        return 0
    sketches = archives.sketches(behind)
    stored = {token: Kept({"": views}, sketches.get(token, b"")) for token, views in behind.items()}
    return sum(
        scripts.run_all(
            *(counters.lift({t: stored[t] for t in some}) for some in scripts.sliced(list(stored))), patient=True
        )
    )


def _remove_orphans(tokens: list[str]) -> None:
    """Removes the keys of rows that were missing before, and are missing still."""
    if not tokens:
        return
    ripe = scripts.run(upkeep.ripe_orphans(tokens, age=conf.ORPHAN_AGE), patient=True)
    for some in scripts.sliced(ripe):
        scripts.run(upkeep.remove(some), patient=True)
        archives.forget(some)


def _chunks(tokens: Iterable[str]) -> Iterator[list[str]]:
    source = iter(tokens)
    while chunk := list(dict.fromkeys(islice(source, conf.FLUSH_CHUNK))):
        yield chunk


def _keep_sums(run: FlushRun) -> None:
    while (lifted := sums.keep(at=runs.time(run))) is None:
        run.settled += settle()
    run.lifted += lifted


def _finish(run: FlushRun) -> None:
    """What comes after the counts: resets that were raced, sums, old records."""
    resets.finish(now=run.redis_time)
    if conf.HISTORY:
        _keep_sums(run)
        if run.kind != run.Kind.CHANGED:
            readership.keep(at=runs.time(run))
    if run.kind != run.Kind.CHANGED:
        run_store.remember_full(run.redis_time)
        upkeep.forget_orphans(now=run.redis_time)
    if run.kind == run.Kind.ARCHIVE:
        history.thin(at=runs.time(run))
    runs.prune(run)
    runs.end(run)
