"""Flushes counts from Redis to SQL: absolute numbers, which only rise, so the two merge by maximum.

- settle: a counter that began anew in Redis lacks what SQL had counted; SQL's count is added to it, once;
- write: rows that store less than the settled total are raised to it; unsettled totals are left out;
- lift: settled totals below SQL's count are raised to it (an old snapshot was restored, a replica lagged).
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import chain, islice

from django.db.models import Max
from django.utils import timezone as django_timezone

from readtrack import buckets
from readtrack.conf import conf
from readtrack.flush import archiving, resets
from readtrack.flush.merging import settle, write_chunk, write_hours
from readtrack.models import FlushRun, Reset
from readtrack.signals import flushed
from readtrack.sql import databases, history, popular, runs, schema
from readtrack.store import counters, flush_notes, keys, resetting, scripts, uniques
from readtrack.store.connection import server_time

# Buckets are named by Redis's clock as the web servers compute it (see clock.py). A machine's clock
# that is set by more than that hides changes from this flush for a minute; the next full flush
# makes it good.
OVERLAP = timedelta(minutes=3)
AHEAD = timedelta(minutes=2)
REACH = timedelta(seconds=keys.trending_bucket.ttl) - timedelta(
    minutes=5
)  # buckets this old exist for sure


def flush(
    *, only_changed: bool = False, part: str = "", progress: Callable[[int], object] = int
) -> FlushRun:
    """Writes every total that Redis holds, or only those that changed. Returns the saved record of
    what was done.

    A part such as "2/8" is every eighth of the partitions, from the second one on. If the minute
    buckets do not reach back to the last good flush, or Redis was restored from a snapshot,
    everything is written. `progress` is called with numbers of totals. Raises redis.RedisError or
    django.db.Error; the next flush does the rest.
    """
    run = FlushRun(started=django_timezone.now(), part=part)
    try:
        epoch = runs.SqlEpoch(part)
        is_restored, minutes = _begin(run, epoch, only_changed=only_changed)
        run.settled += settle(epoch)
        changed = dict.fromkeys(chain.from_iterable(counters.changed(minutes, tags=epoch.tags)))
        for subjects in _chunks(changed):
            if counters.have_hashes(subjects):
                archiving.store_breakdowns(
                    subjects, epoch, hour=run.flushed_until // archiving.HOUR
                )
        archived = frozenset[str]()  # subjects with a sketch that were viewed in the last hour
        if run.kind == run.Kind.FULL and conf.ARCHIVE_EVERY:
            minutes = buckets.minute_buckets(
                REACH // buckets.MINUTE, until=buckets.time_of(run.flushed_until) + AHEAD
            )
            viewed = chain.from_iterable(counters.changed(minutes, tags=epoch.tags))
            archived = frozenset(
                subject for subject in viewed if uniques.strategy_of(subject).has_sketch
            )
        every = counters.scan(tags=epoch.tags if part else ())
        for subjects in _chunks(changed if run.kind == run.Kind.CHANGED else every):
            write_chunk(subjects, run, epoch, changed=changed, archived=archived)
            if is_restored:  # its hashes may be behind, whatever changed
                archiving.store_breakdowns(
                    subjects, epoch, hour=run.flushed_until // archiving.HOUR
                )
            progress(len(subjects))
        _finish(run, epoch, has_changes=bool(changed))
    except Exception as error:
        run.error = f"{type(error).__name__}: {error}"
        raise
    finally:
        run.ended = django_timezone.now()
        run.save()
    flushed.send_robust(sender=None, run=run)
    return run


def write_subjects(subjects: Iterable[str]) -> None:
    """Writes these totals and the hours of models as a flush does, without a record. Raises as
    `flush` does.
    """
    now = server_time(patient=True)
    run = FlushRun(
        started=django_timezone.now(), redis_time=now, flushed_until=now, kind=FlushRun.Kind.CHANGED
    )
    epoch = runs.SqlEpoch()
    settle(epoch)
    for some in _chunks(subjects):
        write_chunk(some, run, epoch, changed={})
    if conf.HISTORY:
        write_hours(run, epoch)


def _chunks(subjects: Iterable[str]) -> Iterator[list[str]]:
    source = iter(subjects)
    while chunk := list(dict.fromkeys(islice(source, conf.FLUSH_CHUNK))):
        yield chunk


def _begin(run: FlushRun, epoch: runs.SqlEpoch, *, only_changed: bool) -> tuple[bool, list[str]]:
    """Enters the run in Redis and SQL. Returns True for a restored Redis, and the minute buckets to
    read.

    A Redis that does not know the newest flush that SQL knows was restored from before it, so
    everything has to be written. Redis is told first, so that a kill between the two does not make
    a sound Redis look restored.
    """
    is_restored = _enter(run, epoch)
    past = (
        runs.ended_well(part__in={"", run.part})
        .order_by("-pk")
        .values_list("flushed_until", flat=True)
    )
    now, since = buckets.time_of(run.flushed_until), buckets.time_of(past.first() or 0)
    # A time in the future comes from a clock that was set back since, and proves nothing.
    is_known = now - REACH <= since <= now
    run.kind = run.Kind.CHANGED if only_changed and is_known and not is_restored else run.Kind.FULL
    if run.kind == run.Kind.FULL and conf.ARCHIVE_EVERY:
        # On a new site the first archive comes at the end of the first period.
        last = past.filter(kind=run.Kind.ARCHIVE).first() or past.last() or run.flushed_until
        is_due = not 0 <= run.flushed_until - last < conf.ARCHIVE_EVERY * 1_000_000
        run.kind = run.Kind.ARCHIVE if is_due else run.Kind.FULL
    run.save()
    if run.kind != run.Kind.CHANGED and conf.HISTORY:
        schema.add_months(at=now)
    since = since if is_known else now - REACH
    return is_restored, buckets.minute_buckets(
        (now + AHEAD - since + OVERLAP) // buckets.MINUTE + 2, until=now + AHEAD
    )


def _enter(run: FlushRun, epoch: runs.SqlEpoch) -> bool:
    while True:
        # Of each partition, because flushes of other parts, and whole ones, enter themselves in it,
        # too.
        newest = dict.fromkeys(epoch.tags, 0)
        for part, time in (
            databases.rows(FlushRun).order_by().values_list("part").annotate(Max("redis_time"))
        ):
            newest.update(
                {tag: max(time, newest[tag]) for tag in runs.SqlEpoch(part).tags if tag in newest}
            )
        known, is_restored = flush_notes.last_flushes(epoch.tags)
        past = databases.rows(Reset).filter(redis_time__gt=min(known.values()))
        if times := dict(past.values_list("full_subject", "redis_time")):
            own = [subject for subject in times if keys.tag(subject) in epoch.tags]
            # Counts from before a reset; SQL holds only what came after it.
            scripts.run_all(
                *(resetting.purge(some, times) for some in scripts.parted(own)), patient=True
            )
        for tag in [tag for tag, last in known.items() if last < newest[tag]]:
            flush_notes.begin_anew(tag, newest=newest[tag])
            is_restored = True
        run.flushed_until = server_time(patient=True)
        # Keeps flushes in order even if the clock was set back.
        run.redis_time = max(run.flushed_until, *(time + 1 for time in newest.values()))
        if flush_notes.note_flush(run.redis_time, after=known):
            return is_restored


def _finish(run: FlushRun, epoch: runs.SqlEpoch, *, has_changes: bool) -> None:
    """Does what comes after the totals: raced resets, hours of models, and in full flushes the
    cleaning up.
    """
    is_full, at = run.kind != run.Kind.CHANGED, buckets.time_of(run.flushed_until)
    is_first = keys.tags()[0] in epoch.tags  # of the parts: it does what is of the whole site
    if marks := resetting.recent_resets(epoch.tags):
        resets.finish(marks, epoch, now=run.redis_time)
    if conf.HISTORY and (is_full or has_changes or run.settled):
        write_hours(run, epoch)
    if is_full:
        if conf.HISTORY and is_first:
            archiving.store_readers(at=at)
            popular.renew(at=at)
            popular.renew_sums(at=at)
        flush_notes.note_full(run.redis_time, tags=epoch.tags)
        # The last of each kind that ended well stays, however old it is.
        newest = runs.ended_well().order_by().values_list("kind", "part").annotate(Max("pk"))
        old = databases.rows(FlushRun).filter(pk__lte=run.pk - conf.FLUSH_RUNS)
        old.exclude(pk__in=[pk for *_, pk in newest]).delete()
    if run.kind == run.Kind.ARCHIVE and is_first:
        history.thin(at=at)
    # So that a snapshot taken during this run is known as an old one, too.
    end = max(server_time(patient=True), run.redis_time + 1)
    if flush_notes.note_flush(end, after=dict.fromkeys(epoch.tags, run.redis_time)):
        run.redis_time = end
