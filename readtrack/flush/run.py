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

from django.utils import timezone

from readtrack.conf import conf
from readtrack.flush import archiving, hours, readers, resets
from readtrack.flush.scope import begin_run, end_run, run_time
from readtrack.flush.settling import settle
from readtrack.flush.writing import write_chunk
from readtrack.models import FlushRun
from readtrack.signals import flushed
from readtrack.sql import history, runs
from readtrack.store import counters, flushes, lifecycle


def flush(*, only_changed: bool = False, progress: Callable[[int], object] = lambda read: None) -> FlushRun:
    """Writes every total that Redis holds, or those that changed; gives the saved record of what it did.

    What changed is told by the minute buckets since the last flush that ended well. Where they do not reach
    back that far, or a restored Redis has to be put right, everything is written all the same.
    `progress` is called with the number of totals just read. Raises redis.RedisError or
    django.db.Error; what was written until then stays, and the next flush does the rest.
    """
    run = FlushRun.objects.create(started=timezone.now())
    try:
        scope = begin_run(run, only_changed=only_changed)
        run.settled += settle()
        changed = _changed(scope.minutes)
        for subjects in _chunks(changed):
            archiving.store_breakdowns(subjects)
        for subjects in _chunks(changed if run.kind == run.Kind.CHANGED else counters.scan()):
            write_chunk(subjects, run, changed=changed)
            if scope.is_restored:  # its hashes may be behind wherever they are
                archiving.store_breakdowns(subjects)
            progress(len(subjects))
        _finish(run)
    except Exception as error:
        run.error = f"{type(error).__name__}: {error}"
        raise
    finally:
        run.ended = timezone.now()
        run.save()
    flushed.send_robust(sender=None, run=run)
    return run


def write_subjects(subjects: Iterable[str]) -> None:
    """Writes these totals and the models' hours, as a flush would, and leaves no record. Raises as `flush` does."""
    now = counters.clock()
    run = FlushRun(started=timezone.now(), redis_time=now, flushed_until=now, kind=FlushRun.Kind.CHANGED)
    settle()
    for some in _chunks(subjects):
        write_chunk(some, run, changed={})
    if conf.HISTORY:
        _store_hours(run)


def _changed(span: Sequence[datetime]) -> dict[str, None]:
    """The subjects viewed in those minutes."""
    return {subject: None for subjects in counters.changed(span) for subject in subjects}


def _chunks(subjects: Iterable[str]) -> Iterator[list[str]]:
    source = iter(subjects)
    while chunk := list(dict.fromkeys(islice(source, conf.FLUSH_CHUNK))):
        yield chunk


def _store_hours(run: FlushRun) -> None:
    while (lifted := hours.store(at=run_time(run))) is None:
        run.settled += settle()
    run.lifted += lifted


def _finish(run: FlushRun) -> None:
    """What comes after the counts: resets that were raced, sums, old records."""
    resets.finish(now=run.redis_time)
    if conf.HISTORY:
        _store_hours(run)
        if run.kind != run.Kind.CHANGED:
            readers.store(at=run_time(run))
    if run.kind != run.Kind.CHANGED:
        flushes.remember_full(run.redis_time)
        lifecycle.delete_old_orphans(now=run.redis_time)
    if run.kind == run.Kind.ARCHIVE:
        history.thin(at=run_time(run))
    runs.prune(run)
    end_run(run)
