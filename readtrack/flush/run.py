"""Flushes counts from Redis to SQL: absolute numbers, which only rise, so the two merge by maximum.

- settle: a counter that began anew in Redis lacks what SQL had counted; SQL's count is added to it, once;
- write: rows that store less than the settled total are raised to it; unsettled totals are left out;
- lift: settled totals below SQL's count are raised to it (an old snapshot was restored, a replica lagged).
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from django.db import Error
from django.db.models import Max, QuerySet, Subquery
from django.utils import timezone as django_timezone

from readtrack import buckets
from readtrack.conf import conf, logger
from readtrack.flush import read_state, resets, waiting
from readtrack.flush.settling import settle
from readtrack.flush.steps import Steps, steps_of_parts, subjects_left_out
from readtrack.flush.totals import Extent, write_chunk
from readtrack.flush.waiting import Waiting
from readtrack.models import FlushRun, KnownEpoch, Reset
from readtrack.progress import Progress, no_progress
from readtrack.signals import flushed
from readtrack.sql import (
    absent,
    databases,
    deletions,
    epochs,
    layouts,
    runs,
    vendors,
)
from readtrack.sql.faults import Faults
from readtrack.store import (
    counters,
    dimension_names,
    flush_notes,
    keys,
    resetting,
    scripts,
    uniques,
)
from readtrack.store.connection import server_time
from readtrack.store.counters import Taken
from readtrack.store.read_state import copies
from readtrack.unread import outbox
from readtrack.unread.outbox import Pending

# The list of what changed has not expired since a flush that was so long ago, nor has any bucket of
# these last minutes.
REACH = timedelta(seconds=keys.changed.ttl) - timedelta(minutes=5)
# The buckets of so many minutes after the present one are read, too, because a web server's clock
# may be ahead.
AHEAD = timedelta(minutes=2)

AFTER_ALL = 2**63 - 1  # a time (µs) that is later than all others
TOTALS_AT_ONCE = 10_000  # totals in a chunk, which is written before the next chunk is read
RECORDS_KEPT = 10_000  # records of past flushes: a week of one a minute
# From one archive to the next. The full flushes between them archive what was viewed in the last
# hour.
ARCHIVE_INTERVAL = timedelta(days=1)


def flush(
    *,
    only_changed: bool = False,
    must_archive: bool = False,
    part: str = "",
    progress: Progress = no_progress,
) -> FlushRun:
    """Writes all totals that Redis has to SQL, or with `only_changed` those that changed.

    Writes all totals, too, if the last good flush was so long ago that the list of what changed may
    have expired, or if Redis was restored from a snapshot. With `must_archive` a full flush archives, even if no
    archive is due. `part` limits the flush to some partitions: "2/8" is every eighth partition from
    the second one on, "" is all partitions. `progress` is called with numbers of totals.

    Returns the saved record of the flush, whose `faults` name the partitions of a cluster that did
    not answer. Raises redis.RedisError or django.db.Error; the next flush then writes what is
    missing. Raises ValueError for a part without partitions.
    """
    if not epochs.SqlEpoch(part).tags:
        raise ValueError(
            f"READTRACK['PARTITIONS'] is {conf.PARTITIONS}, so part {part} has no partitions."
        )
    layouts.check_tables()  # before the record, whose table may have changed, too
    run = FlushRun(started=django_timezone.now(), part=part)
    faults = Faults()
    work = partial(
        _flush,
        run,
        faults,
        only_changed=only_changed,
        must_archive=must_archive,
        progress=progress,
    )
    with ExitStack() as tables_left_out:
        try:
            with databases.retrying():
                taken = _without_absent_tables(work, run, faults, tables_left_out)
        except Exception as error:
            run.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            run.ended = django_timezone.now()
            run.failed = len(faults.failed)
            run.faults = "\n".join(filter(None, [run.faults, str(faults)]))
            _save(run)
    if not run.error:
        counters.forget_taken(taken)
    flushed.send_robust(sender=None, run=run)
    return run


def _without_absent_tables(
    work: Callable[[], Taken], run: FlushRun, faults: Faults, left_out: ExitStack
) -> Taken:
    """Does the work of the flush, and returns what that returns. If the database lacks tables of
    the app, it begins again without these tables, and notes them as faults. They stay left out
    until the stack is closed.
    """
    while True:
        try:
            return work()
        except Error as error:
            # Without KnownEpoch a flush would not notice that Redis has lost its data.
            if not absent.is_newly_absent(error) or KnownEpoch in absent.absent_tables():
                raise
        tables = absent.absent_tables()
        left_out.enter_context(absent.leaving_out(tables))
        faults.leave_out(tables)
        run.read = 0
        run.orphans = 0


def _save(run: FlushRun) -> None:
    """Saves the record of the flush at its end, under another id if the database was restored
    meanwhile from before it began.

    The database would hand out the old id again. And it lacks what this flush had stored by then.
    """
    if run.pk is None:
        _write_record(run)
        return
    if _write_record(run, is_update=True):
        return
    run.pk = None
    run.error = run.error or "The database was restored while this flush ran."
    _write_record(run)


def _write_record(run: FlushRun, *, is_update: bool = False) -> bool:
    """Inserts the record, or updates its row. Returns False if it has no row any more."""
    if absent.is_absent(FlushRun):
        return True
    write = _update if is_update else _insert
    try:
        return write(run)
    except (Error, UnicodeEncodeError) as error:
        if isinstance(error, Error) and not vendors.is_impossible_value(error):
            raise
        # A message has characters that the database lacks.
        run.error = run.error.encode("ascii", "backslashreplace").decode()
        run.faults = run.faults.encode("ascii", "backslashreplace").decode()
        return write(run)


def _insert(run: FlushRun) -> bool:
    """Inserts the row of the record. Returns True, as `_update` does for a row that is there."""
    run.save()
    return True


def _update(run: FlushRun) -> bool:
    """Updates the row of the record. Returns False if it is gone."""
    fields = [field.attname for field in run._meta.concrete_fields if not field.primary_key]
    row_of_run = databases.rows(FlushRun).filter(pk=run.pk, started=run.started)
    changed_rows = row_of_run.update(**{name: getattr(run, name) for name in fields})
    return bool(changed_rows)


def write_subjects(subjects: Iterable[str]) -> None:
    """Writes the totals of the subjects as a flush does.

    It saves no record of a flush, and parts keep nothing of the subjects' hours. Raises
    redis.RedisError or django.db.Error, as `flush` does. What cannot be written is logged, and
    later flushes try it again.
    """
    now = server_time(patient=True)
    subjects = [*subjects]
    run = FlushRun(
        started=django_timezone.now(), redis_time=now, flushed_until=now, kind=FlushRun.Kind.CHANGED
    )
    faults = Faults()
    epoch = epochs.SqlEpoch()
    steps = steps_of_parts(run, epoch, faults)
    with databases.retrying():
        settle(epoch, faults)
        for chunk in _chunks(subjects):
            write_chunk(chunk, run, epoch=epoch, faults=faults, steps=steps, extent=Extent())
        for step in steps:
            step.finish(has_changes=True)
    _leave(run, faults, changed=frozenset(subjects))


def _flush(
    run: FlushRun,
    faults: Faults,
    *,
    only_changed: bool,
    must_archive: bool,
    progress: Progress,
) -> Taken:
    """Does what `flush` does, and sets the numbers of the run, which `flush` saves.

    Returns the subjects that changed, which are stored.
    """
    epoch = epochs.SqlEpoch(run.part)
    sent = outbox.sent_publications(epoch.tags)  # before the flush notes itself in Redis
    found, is_late = _begin(run, epoch, only_changed=only_changed, must_archive=must_archive)
    taken = found.taken
    run.faults = _silent_partitions(epoch)
    if run.faults:
        logger.warning("Not flushed: %s", run.faults)
    steps = steps_of_parts(run, epoch, faults, is_late=is_late)
    if run.kind == run.Kind.CHANGED and not (taken.subjects or found.has_more or sent):
        _end_quietly(run, faults, steps)
        return taken
    _write_record(run)
    for step in steps:
        step.begin()
    changed = taken.subjects
    run.settled += settle(epoch, faults)
    # After settling, so that what begins meanwhile is not compared.
    left_out = subjects_left_out() if is_late else frozenset()
    work = Work(run, epoch, faults, steps, changed, left_out, progress)
    _store_changed(work)
    recently_viewed: frozenset[str] = frozenset()
    if is_late:
        _write_compared(work)
    else:
        recently_viewed = _recently_viewed(run, epoch)
        _write(work, recently_viewed)
    _finish(work, recently_viewed)
    faults.attempt("read state", partial(_keep_read_state, run, epoch, sent), None)
    _leave(run, faults, changed=changed)
    _note_end(run, epoch)
    return taken


def _end_quietly(run: FlushRun, faults: Faults, steps: Sequence[Steps]) -> None:
    """Ends a flush that has nothing to store. Its record is written after that only."""
    for step in steps:
        step.begin()
        step.finish(has_changes=False)
    _leave(run, faults, changed=())


class Work(NamedTuple):
    """What a flush works with."""

    run: FlushRun
    epoch: epochs.SqlEpoch
    faults: Faults
    steps: Sequence[Steps]  # of the parts
    changed: dict[str, None]  # subjects that may have been viewed since the last good flush
    left_out: frozenset[str]  # subjects whose past a part is writing, if the flush is late
    progress: Progress

    def write_chunk(self, subjects: list[str], extent: Extent) -> None:
        """Writes the totals of the subjects, and what the extent says beside them."""
        write_chunk(
            subjects,
            self.run,
            epoch=self.epoch,
            faults=self.faults,
            steps=self.steps,
            extent=extent,
        )
        self.progress(len(subjects))


def _store_changed(work: Work) -> None:
    """Lets parts store what changed, before the totals."""
    for step in work.steps:
        step.changed_subjects = work.changed
        step.left_out = work.left_out
    for chunk in _chunks(work.changed):
        for step in work.steps:
            step.changed(chunk)


def _write(work: Work, recently_viewed: frozenset[str]) -> None:
    """Writes the totals of this flush, and what comes with those that changed."""
    run = work.run
    # An archiving flush archives all subjects, a full one the sketches of those viewed lately.
    extent = Extent(
        changed=work.changed,
        archived={each for each in recently_viewed if uniques.strategy_of(each).has_sketch},
    )
    is_changed = run.kind == run.Kind.CHANGED
    subjects = work.changed if is_changed else _every_subject(run, work.epoch)
    is_archive = run.kind == run.Kind.ARCHIVE
    gone_dimensions = dimension_names.gone(work.epoch.tags) if is_archive else []
    for chunk in _chunks(subjects):
        if is_archive:
            extent = extent._replace(archived=chunk)
        if gone_dimensions:
            dimension_names.remove(gone_dimensions, chunk)
        work.write_chunk(chunk, extent)
    if gone_dimensions:
        dimension_names.forget(gone_dimensions, work.epoch.tags)


def _write_compared(work: Work) -> None:
    """Compares everything with SQL, and lets parts store what SQL lacks under the hours in which it
    came.

    Adds to `changed` what could not be written. Subjects whose past a part is writing are left out,
    except those that were viewed lately: that part stores their hours.
    """
    for chunk in _chunks(_every_subject(work.run, work.epoch)):
        for step in work.steps:
            step.compare(chunk)
        subjects = frozenset(chunk)
        left_out = work.left_out - work.changed.keys()
        extent = Extent(changed=subjects - left_out, archived=subjects)
        work.write_chunk(chunk, extent)
        work.changed.update(dict.fromkeys(work.faults.failed & subjects))


def _keep_read_state(
    run: FlushRun, epoch: epochs.SqlEpoch, sent: Mapping[str, Sequence[Pending]]
) -> None:
    """Restores read state that Redis lost, and stores what changed.

    `sent` are publications that Redis had before the flush noted itself there.
    """
    is_full = run.kind != run.Kind.CHANGED
    if is_full:
        read_state.separate_readers(epoch.tags)
    read_state.restore(epoch.tags)
    read_state.store(epoch.tags, sent, is_full=is_full)


def _leave(run: FlushRun, faults: Faults, *, changed: Container[str]) -> None:
    """Leaves what could not be written to the next flush, and says so."""
    run.locked += len(faults.locked)
    again = [*faults.locked, *(subject for subject in faults.failed if subject in changed)]
    if again:
        counters.mark_changed(again)
    if faults.failed:
        logger.error("The flush could not store %d rows or models:\n%s", len(faults.failed), faults)


def _silent_partitions(epoch: epochs.SqlEpoch) -> str:
    """Returns a line for each error by which partitions were left out."""
    names: dict[str, list[str]] = {}
    for tag, error in epoch.silent.items():
        names.setdefault(str(error), []).append(tag.strip(":{}"))
    return "\n".join(f"partitions {', '.join(tags)}: {error}" for error, tags in names.items())


def _every_subject(run: FlushRun, epoch: epochs.SqlEpoch) -> Iterator[str]:
    """Yields the subjects of all totals in the partitions of this flush."""
    is_whole = not run.part and not epoch.silent
    return counters.scan(tags=() if is_whole else epoch.tags)


def _recently_viewed(run: FlushRun, epoch: epochs.SqlEpoch) -> frozenset[str]:
    """Returns the subjects that were viewed recently, for a full flush: as far as the minute buckets
    reach back, about an hour.

    For flushes of another kind it returns no subjects.
    """
    if run.kind != run.Kind.FULL:
        return frozenset()
    until = buckets.time_of(run.flushed_until) + AHEAD
    minutes = buckets.minute_buckets(REACH // buckets.MINUTE, until=until)
    return frozenset(chain.from_iterable(counters.viewed(minutes, tags=epoch.tags)))


def _chunks(subjects: Iterable[str]) -> Iterator[list[str]]:
    """Yields the subjects in lists of TOTALS_AT_ONCE, each list without duplicates."""
    source = iter(subjects)
    while chunk := list(dict.fromkeys(islice(source, TOTALS_AT_ONCE))):
        yield chunk


def _begin(
    run: FlushRun, epoch: epochs.SqlEpoch, *, only_changed: bool, must_archive: bool
) -> tuple[Waiting, bool]:
    """Notes the run in Redis, takes what changed there, and decides the run's kind.

    Returns what waits in Redis, and True if the list of what changed does not say all: the last
    good flush is too long ago, or Redis was restored from a snapshot. So everything is compared
    with SQL, not only the totals.

    If Redis does not know the newest flush that SQL knows, Redis was restored from an older
    snapshot, so everything has to be written. The run is noted in Redis first. If it is killed
    before it is noted in SQL, Redis knows more than SQL, which is harmless. What it has taken is
    taken again by the next flush.
    """
    # The times until which earlier good flushes have read Redis (µs), newest first.
    past_times = (
        runs.ended_well(part__in={"", run.part})
        .order_by("-pk")
        .values_list("flushed_until", flat=True)
    )
    found, last_good_flush, is_restored = _note_in_redis(run, epoch, past_times)
    now = buckets.time_of(run.flushed_until)
    since = buckets.time_of(last_good_flush)
    # If the last flush is in the future, the clock was set back since then.
    is_in_reach = now - REACH <= since <= now
    if only_changed and is_in_reach and not is_restored:
        run.kind = run.Kind.CHANGED
    elif must_archive or _is_archive_due(run, past_times):
        run.kind = run.Kind.ARCHIVE
    else:
        run.kind = run.Kind.FULL
    return found, is_restored or not is_in_reach


def _is_archive_due(run: FlushRun, past_times: "QuerySet[FlushRun, Any]") -> bool:
    """Returns True if the last archive is ARCHIVE_INTERVAL old, or in the future.

    `past_times` has the times of earlier good flushes (µs), newest first.
    """
    last_archive = past_times.filter(kind=run.Kind.ARCHIVE).first()
    if not last_archive:
        # On a new site the first archive is due ARCHIVE_INTERVAL after the first flush.
        last_archive = past_times.last() or run.flushed_until
    interval = ARCHIVE_INTERVAL // timedelta(microseconds=1)
    is_recent = 0 <= run.flushed_until - last_archive < interval
    return not is_recent


def _note_in_redis(
    run: FlushRun, epoch: epochs.SqlEpoch, past_times: "QuerySet[FlushRun, Any]"
) -> tuple[Waiting, int, bool]:
    """Notes the run in Redis, and sets its times.

    Returns what waits in Redis; until when the last good flush has read Redis (µs, 0 for none), the
    first of the `past_times`; and True if a partition was restored from a snapshot that is older
    than its last flush, so that a full flush is due. Starts over if Redis is restored meanwhile.

    Partitions whose server of a cluster is silent are left out. As SQL then knows of a later flush
    than they do, the first flush that finds them again writes everything.
    """
    attempts = databases.attempts("times of flushes")
    while True:
        next(attempts)
        # SQL is asked after Redis, because the flush may wait for Redis: a row that is deleted in
        # that time has a later note than any flush, but an earlier one than this flush will have.
        last_in_redis, is_restored = _last_flushes(epoch)
        known = _known_in_sql([*epoch.tags, *epoch.silent], past_times)
        if any(last_in_redis[tag] < known.newest_flushes[tag] for tag in epoch.tags):
            # Another flush may have noted itself meanwhile, first in Redis and then in SQL.
            last_in_redis, is_restored = _last_flushes(epoch)
        earliest = min(last_in_redis.values())
        if known.newest_reset > earliest:
            _purge(epoch.tags, since=earliest)
        for tag in epoch.tags:
            if last_in_redis[tag] > known.newest_flushes[tag]:
                # SQL was restored, or a flush was killed here.
                copies.mark_all_changed(tag)
            if last_in_redis[tag] < known.newest_flushes[tag]:
                flush_notes.begin_anew(tag, newest=known.newest_flushes[tag])
                is_restored = True
        run.flushed_until = server_time(patient=True)
        # Later than all earlier flushes, even if the clock was set back.
        next_times = [time + 1 for time in known.newest_flushes.values()]
        run.redis_time = max(run.flushed_until, *next_times)
        found = waiting.begin(run.redis_time, after=last_in_redis)
        if found is not None:
            return found, known.last_good_flush, is_restored


def _last_flushes(epoch: epochs.SqlEpoch) -> tuple[dict[str, int], bool]:
    """Returns the times (µs) of the last flushes that the partitions know, by tag, and True if a
    full flush is due. Leaves out the partitions whose server is silent.
    """
    last_in_redis, is_full_due, silent = flush_notes.last_flushes(epoch.tags)
    epoch.leave_out(silent)
    return last_in_redis, is_full_due


class KnownInSql(NamedTuple):
    """What SQL knows of earlier flushes and of resets. Times are in µs by Redis's clock."""

    newest_flushes: Mapping[str, int]  # by the tag of the partition; 0 for none
    last_good_flush: int  # until when it has read Redis; 0 for none
    newest_reset: int


def _known_in_sql(tags: Sequence[str], past_times: "QuerySet[FlushRun, Any]") -> KnownInSql:
    """Returns what SQL knows of the flushes of these partitions, and of resets, by one query.

    The first of the `past_times` is that of the last good flush.
    """
    newest_resets = databases.rows(Reset).order_by("-redis_time").values("redis_time")
    by_part = (
        databases.rows(FlushRun)
        .order_by()
        .values_list("part")
        .annotate(
            newest=Max("redis_time"),
            last_good=Subquery(past_times[:1]),
            newest_reset=Subquery(newest_resets[:1]),
        )
    )
    newest_flushes = dict.fromkeys(tags, 0)
    last_good_flush = 0
    newest_reset = AFTER_ALL  # it is not known without any flush
    for part, newest, last_good, reset in by_part:
        last_good_flush = last_good or 0
        newest_reset = reset or 0
        # The same partition may also have been flushed as one of another part, or of all partitions.
        for tag in epochs.SqlEpoch(part).tags:
            if tag in newest_flushes:
                newest_flushes[tag] = max(newest, newest_flushes[tag])
    return KnownInSql(newest_flushes, last_good_flush, newest_reset)


def _purge(tags: Sequence[str], *, since: int) -> None:
    """Removes counts from Redis that are older than a reset, or of a row that was deleted, if that
    came after `since` (µs).

    A Redis that was gone then, or was restored from an older snapshot, may have them.
    """
    # The latest of a subject comes last.
    resets_since = databases.rows(Reset).filter(redis_time__gt=since).order_by("redis_time")
    reset_times = dict(resets_since.values_list("full_subject", "redis_time"))
    subjects = [subject for subject in reset_times if keys.tag(subject) in tags]
    calls = [resetting.purge(portion, reset_times) for portion in scripts.parted(subjects)]
    scripts.run_all(*calls, patient=True)


def _finish(work: Work, recently_viewed: frozenset[str]) -> None:
    """Does what comes after the totals.

    It lowers rows that were reset, and lets parts do what comes last. After a full flush it also
    deletes old records of flushes.
    """
    run, epoch, faults, steps, changed, *_ = work
    resets.finish(resetting.noted_resets(epoch.tags), steps, faults, now=run.redis_time)
    for step in steps:
        step.finish(has_changes=bool(changed))
    if run.kind != run.Kind.CHANGED:
        for step in steps:
            step.full(recently_viewed)
            if epoch.has_first:
                step.full_once()
        flush_notes.note_full(run.redis_time, tags=epoch.tags)
        _delete_old_records(run)
    if run.kind == run.Kind.ARCHIVE:
        _finish_archive(run, epoch, steps)


def _finish_archive(run: FlushRun, epoch: epochs.SqlEpoch, steps: Sequence[Steps]) -> None:
    """Deletes old notes of deletions, and lets flushes copy all read state again."""
    for tag in epoch.tags:
        copies.mark_all_changed(tag)  # in case that Redis has lost the notes of what changed
    if epoch.has_first:
        for step in steps:
            step.archive_once()
        deletions.forget_old(now=run.redis_time)


def _note_end(run: FlushRun, epoch: epochs.SqlEpoch) -> None:
    """Notes the end of the run as well as its start, so that a snapshot that was taken during the
    run is also recognized as an old one.
    """
    # Redis still has the counts of a row that was deleted during the run by a process that found
    # Redis gone. Once the end is noted, no flush looks for such a row.
    _purge(epoch.tags, since=run.redis_time)
    # SQL gets the end only if all partitions have noted it, because a Redis that knows an earlier
    # time than SQL is taken for a restored one.
    end = max(server_time(patient=True), run.redis_time + 1)
    calls = flush_notes.note_flush(end, after=dict.fromkeys(epoch.tags, run.redis_time))
    if all(scripts.run_all(*calls, patient=True)):
        run.redis_time = end


def _delete_old_records(run: FlushRun) -> None:
    """Deletes the records of old flushes.

    Keeps the last RECORDS_KEPT records, and the last good one of each kind and part.
    """
    if absent.is_absent(FlushRun):
        return
    by_kind = runs.ended_well().order_by().values_list("kind", "part").annotate(newest=Max("pk"))
    newest_pks = [pk for _kind, _part, pk in by_kind]
    old = databases.rows(FlushRun).filter(pk__lte=run.pk - RECORDS_KEPT)
    old.exclude(pk__in=newest_pks).delete()
