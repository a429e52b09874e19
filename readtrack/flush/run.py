"""Flushes counts from Redis to SQL: absolute numbers, which only rise, so the two merge by maximum.

- settle: a counter that began anew in Redis lacks what SQL had counted. SQL's count is added to it,
  once.
- write: rows that store less than the settled total are raised to it. Unsettled totals are left
  out.
- lift: settled totals below SQL's count are raised to it, because an old snapshot was restored, or
  a replica lagged.
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
from readtrack.conf import logger
from readtrack.flush import read_state, resets, waiting
from readtrack.flush.settling import settle
from readtrack.flush.steps import Steps, steps_of_parts, subjects_left_out
from readtrack.flush.totals import Extent, Work, write_chunk
from readtrack.flush.waiting import Waiting
from readtrack.models import FlushRun, KnownEpoch, Reset
from readtrack.progress import Progress, no_progress
from readtrack.signals import flushed
from readtrack.sql import absent, databases, deletions, epochs, layouts, runs, vendors
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
    share: str = "",
    progress: Progress = no_progress,
) -> FlushRun:
    """Writes all totals that Redis has to SQL, or with `only_changed` those that changed.

    Writes all totals, too, if the last good flush was so long ago that the list of what changed may
    have expired, or if Redis was restored from a snapshot. With `must_archive` a full flush
    archives, even if no archive is due. `share` limits the flush to some partitions: "2/8" is every
    eighth partition from the second one on, "" is all partitions. `progress` is called with the
    number of totals.

    Returns the saved record of the flush, whose `faults` name the partitions of a cluster that did
    not answer. Raises redis.RedisError or django.db.Error; the next flush then writes what is
    missing. Raises ValueError for a share without partitions.
    """
    if not epochs.SqlEpoch(share).tags:
        raise ValueError(
            f"The number of partitions is {len(keys.tags())}, so share {share} has no partitions."
        )
    layouts.check_tables()  # before the record, whose table may have changed, too
    record = FlushRun(started=django_timezone.now(), share=share)
    faults = Faults()
    work = partial(
        _flush,
        record,
        faults,
        only_changed=only_changed,
        must_archive=must_archive,
        progress=progress,
    )
    with ExitStack() as tables_left_out:
        try:
            with databases.retrying():
                taken_changes = _without_absent_tables(work, record, faults, tables_left_out)
        except Exception as error:
            record.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            record.ended = django_timezone.now()
            record.failed = len(faults.failed)
            record.faults = "\n".join(filter(None, [record.faults, str(faults)]))
            _save(record)
    if not record.error:  # `_save` sets one, too, if the database was restored meanwhile
        counters.forget_taken(taken_changes)
    flushed.send_robust(sender=None, record=record)
    return record


def _without_absent_tables(
    work: Callable[[], Taken], record: FlushRun, faults: Faults, tables_left_out: ExitStack
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
        tables_left_out.enter_context(absent.leaving_out(tables))
        faults.leave_out(tables)
        record.read = 0
        record.orphans = 0


def _save(record: FlushRun) -> None:
    """Saves the record of the flush at its end, under another id if the database was restored
    meanwhile from before it began.

    The database would hand out the old id again. And it lacks what this flush had stored by then.
    """
    if record.pk is None:
        _write_record(record, _insert)
        return
    if _write_record(record, _update):
        return
    record.pk = None
    record.error = record.error or "The database was restored while this flush ran."
    _write_record(record, _insert)


def _write_record(record: FlushRun, write: Callable[[FlushRun], bool]) -> bool:
    """Writes the record by `_insert` or `_update`. Returns False if it has no row any more."""
    if absent.is_absent(FlushRun):
        return True
    try:
        return write(record)
    except (Error, UnicodeEncodeError) as error:
        if isinstance(error, Error) and not vendors.is_impossible_value(error):
            raise
        # A message has characters that the database lacks.
        record.error = record.error.encode("ascii", "backslashreplace").decode()
        record.faults = record.faults.encode("ascii", "backslashreplace").decode()
        return write(record)


def _insert(record: FlushRun) -> bool:
    """Inserts the row of the record. Returns True, as `_update` does for a row that is there."""
    record.save()
    return True


def _update(record: FlushRun) -> bool:
    """Updates the row of the record. Returns False if it is gone, or is another flush's."""
    fields = [field.attname for field in record._meta.concrete_fields if not field.primary_key]
    row_of_record = databases.rows(FlushRun).filter(pk=record.pk, started=record.started)
    changed_rows = row_of_record.update(**{name: getattr(record, name) for name in fields})
    return bool(changed_rows)


def _flush(
    record: FlushRun,
    faults: Faults,
    *,
    only_changed: bool,
    must_archive: bool,
    progress: Progress,
) -> Taken:
    """Does what `flush` does, and sets the numbers of the record, which `flush` saves.

    Returns what it took from the lists of what changed.
    """
    epoch = epochs.SqlEpoch(record.share)
    sent = outbox.sent_publications(epoch.tags)  # before the flush notes itself in Redis
    begun = _begin(record, epoch, only_changed=only_changed, must_archive=must_archive)
    must_compare = begun.must_compare
    taken = begun.waiting.taken
    changed = taken.subjects
    record.faults = _silent_partitions(epoch)
    if record.faults:
        logger.warning("Not flushed: %s", record.faults)
    steps = steps_of_parts(record, epoch, faults, must_compare=must_compare)
    if record.kind == record.Kind.CHANGED and not (changed or begun.waiting.has_more or sent):
        _end_quietly(record, faults, steps)
        return taken
    _write_record(record, _insert)
    for step in steps:
        step.begin()
    record.settled += settle(epoch, faults)
    left_out: frozenset[str] = frozenset()
    if must_compare:
        # Asked after settling, so that what begins meanwhile is not compared.
        left_out = subjects_left_out()
    work = Work(record, epoch, faults, steps, changed, left_out, progress)
    _store_changed(work)
    recently_viewed: frozenset[str] = frozenset()
    if must_compare:
        _write_compared(work)
    else:
        recently_viewed = _recently_viewed(record, epoch)
        _write(work, recently_viewed)
    _finish(work, recently_viewed)
    faults.attempt("read state", partial(_keep_read_state, record, epoch, sent), None)
    leave_to_next_flush(record, faults, changed=changed)
    _note_end(record, epoch)
    return taken


def _end_quietly(record: FlushRun, faults: Faults, steps: Sequence[Steps]) -> None:
    """Ends a flush that has nothing to store. Its record is written after that only."""
    for step in steps:
        step.begin()
        step.finish(has_changes=False)
    leave_to_next_flush(record, faults, changed=())


def _store_changed(work: Work) -> None:
    """Lets parts store what changed, before the totals."""
    for step in work.steps:
        step.changed_subjects = work.changed
        step.left_out = work.left_out
    for chunk in chunks(work.changed):
        for step in work.steps:
            step.changed(chunk)


def _write(work: Work, recently_viewed: frozenset[str]) -> None:
    """Writes the totals of this flush, and what comes with those that changed.

    An archiving flush archives all subjects, a full one the sketches of those viewed recently.
    """
    record = work.record
    with_sketch = [
        subject for subject in recently_viewed if uniques.strategy_of(subject).has_sketch
    ]
    extent = Extent(changed=work.changed, archived=frozenset(with_sketch))
    subjects: Iterable[str] = work.changed
    if record.kind != record.Kind.CHANGED:
        subjects = _every_subject(record, work.epoch)
    is_archive = record.kind == record.Kind.ARCHIVE
    gone_dimensions: list[str] = []
    if is_archive:
        gone_dimensions = dimension_names.gone(work.epoch.tags)
    for chunk in chunks(subjects):
        if is_archive:
            extent = extent._replace(archived=chunk)
        if gone_dimensions:
            dimension_names.remove(gone_dimensions, chunk)
        write_chunk(chunk, work, extent=extent)
    if gone_dimensions:
        dimension_names.forget(gone_dimensions, work.epoch.tags)


def _write_compared(work: Work) -> None:
    """Compares everything with SQL, and lets parts store what SQL lacks under the hours in which it
    came.

    Adds to `changed` what could not be written. Subjects whose past a part is writing are left out,
    except those that were viewed lately: that part stores their hours.
    """
    for chunk in chunks(_every_subject(work.record, work.epoch)):
        for step in work.steps:
            step.compare(chunk)
        subjects = frozenset(chunk)
        left_out = work.left_out - work.changed.keys()
        extent = Extent(changed=subjects - left_out, archived=subjects)
        write_chunk(chunk, work, extent=extent)
        work.changed.update(dict.fromkeys(work.faults.failed & subjects))


def _keep_read_state(
    record: FlushRun, epoch: epochs.SqlEpoch, sent: Mapping[str, Sequence[Pending]]
) -> None:
    """Restores read state that Redis lost, and stores what changed.

    `sent` are publications that Redis had before the flush noted itself there.
    """
    is_full = record.kind != record.Kind.CHANGED
    if is_full:
        read_state.separate_readers(epoch.tags)
    read_state.restore(epoch.tags)
    read_state.store(epoch.tags, sent, is_full=is_full)


def leave_to_next_flush(record: FlushRun, faults: Faults, *, changed: Container[str]) -> None:
    """Leaves what could not be written to the next flush, and says so."""
    record.locked += len(faults.locked)
    failed_and_changed = [subject for subject in faults.failed if subject in changed]
    for_next_flush = [*faults.locked, *failed_and_changed]
    if for_next_flush:
        counters.mark_changed(for_next_flush)
    if faults.failed:
        logger.error("The flush could not store %d rows or models:\n%s", len(faults.failed), faults)


def _silent_partitions(epoch: epochs.SqlEpoch) -> str:
    """Returns a line for each error by which partitions were left out."""
    names: dict[str, list[str]] = {}
    for tag, error in epoch.silent.items():
        names.setdefault(str(error), []).append(tag.strip(":{}"))
    return "\n".join(f"partitions {', '.join(tags)}: {error}" for error, tags in names.items())


def _every_subject(record: FlushRun, epoch: epochs.SqlEpoch) -> Iterator[str]:
    """Yields the subjects of all totals in the partitions of this flush."""
    if not record.share and not epoch.silent:
        return counters.scan()  # of all partitions
    return counters.scan(tags=epoch.tags)


def _recently_viewed(record: FlushRun, epoch: epochs.SqlEpoch) -> frozenset[str]:
    """Returns the subjects that were viewed recently, for a full flush: as far as the minute
    buckets reach back, about an hour.

    For flushes of another kind it returns no subjects.
    """
    if record.kind != record.Kind.FULL:
        return frozenset()
    until = buckets.time_of(record.flushed_until) + AHEAD
    minutes = buckets.minute_buckets(REACH // buckets.MINUTE, until=until)
    return frozenset(chain.from_iterable(counters.viewed(minutes, tags=epoch.tags)))


def chunks(subjects: Iterable[str]) -> Iterator[list[str]]:
    """Yields the subjects in lists of TOTALS_AT_ONCE, each list without duplicates."""
    source = iter(subjects)
    while chunk := list(dict.fromkeys(islice(source, TOTALS_AT_ONCE))):
        yield chunk


class Begun(NamedTuple):
    """What a flush has learnt from Redis as it began."""

    waiting: Waiting
    # The list of what changed does not say all, because the last good flush is too long ago, or
    # Redis was restored from a snapshot. So everything is compared with SQL, not only the totals.
    must_compare: bool


def _begin(
    record: FlushRun, epoch: epochs.SqlEpoch, *, only_changed: bool, must_archive: bool
) -> Begun:
    """Notes the flush in Redis, takes what changed there, and decides its kind.

    If Redis does not know the newest flush that SQL knows, Redis was restored from an older
    snapshot, so everything has to be written. The flush is noted in Redis first. If it is killed
    before it is noted in SQL, Redis knows more than SQL, which is harmless. What it has taken is
    taken again by the next flush.
    """
    # Until when earlier good flushes have read Redis (µs), newest first.
    ends_of_good_flushes = (
        runs.ended_well(share__in={"", record.share})
        .order_by("-pk")
        .values_list("flushed_until", flat=True)
    )
    noted = _note_in_redis(record, epoch, ends_of_good_flushes)
    now = buckets.time_of(record.flushed_until)
    since = buckets.time_of(noted.last_good_flush)
    # If the last flush is in the future, the clock was set back since then.
    is_in_reach = now - REACH <= since <= now
    if only_changed and is_in_reach and not noted.is_full_due:
        record.kind = record.Kind.CHANGED
    elif must_archive or _is_archive_due(record, ends_of_good_flushes):
        record.kind = record.Kind.ARCHIVE
    else:
        record.kind = record.Kind.FULL
    return Begun(noted.waiting, must_compare=noted.is_full_due or not is_in_reach)


def _is_archive_due(record: FlushRun, ends_of_good_flushes: "QuerySet[FlushRun, Any]") -> bool:
    """Returns True if the last archive is ARCHIVE_INTERVAL old, or in the future.

    `ends_of_good_flushes` says until when earlier good flushes have read Redis (µs), newest first.
    """
    last_archive = ends_of_good_flushes.filter(kind=record.Kind.ARCHIVE).first()
    if not last_archive:
        # On a new site the first archive is due ARCHIVE_INTERVAL after the first flush.
        last_archive = ends_of_good_flushes.last() or record.flushed_until
    interval = ARCHIVE_INTERVAL // timedelta(microseconds=1)
    is_recent = 0 <= record.flushed_until - last_archive < interval
    return not is_recent


class NotedInRedis(NamedTuple):
    """What Redis and SQL said when a flush noted itself in Redis."""

    waiting: Waiting
    last_good_flush: int  # until when it has read Redis (µs); 0 for none
    # A partition was restored from a snapshot that is older than its last flush.
    is_full_due: bool


def _note_in_redis(
    record: FlushRun, epoch: epochs.SqlEpoch, ends_of_good_flushes: "QuerySet[FlushRun, Any]"
) -> NotedInRedis:
    """Notes the flush in Redis, and sets its times. Starts over if Redis is restored meanwhile.

    `ends_of_good_flushes` says until when earlier good flushes have read Redis (µs), newest first.

    Partitions whose server of a cluster is silent are left out. As SQL then knows of a later flush
    than they do, the first flush that finds them again writes everything.
    """
    attempts = databases.attempts("times of flushes")
    while True:
        next(attempts)
        # SQL is asked after Redis, because the flush may wait for Redis: a row that is deleted in
        # that time has a later note than any flush, but an earlier one than this flush will have.
        in_redis = _last_flushes(epoch)
        in_sql = _known_in_sql([*epoch.tags, *epoch.silent], ends_of_good_flushes)
        if any(in_redis.times[tag] < in_sql.newest_flushes[tag] for tag in epoch.tags):
            # Another flush may have noted itself meanwhile, first in Redis and then in SQL.
            in_redis = _last_flushes(epoch)
        earliest = min(in_redis.times.values())
        if in_sql.newest_reset > earliest:
            _purge_old_counts(epoch.tags, since=earliest)
        is_full_due = in_redis.is_full_due
        for tag in epoch.tags:
            if in_redis.times[tag] > in_sql.newest_flushes[tag]:
                # SQL was restored, or a flush was killed here.
                copies.mark_all_changed(tag)
            if in_redis.times[tag] < in_sql.newest_flushes[tag]:
                flush_notes.begin_anew(tag, newest=in_sql.newest_flushes[tag])
                is_full_due = True
        record.flushed_until = server_time(patient=True)
        # Later than all earlier flushes, even if the clock was set back.
        next_times = [time + 1 for time in in_sql.newest_flushes.values()]
        record.redis_time = max(record.flushed_until, *next_times)
        waiting_in_redis = waiting.begin(record.redis_time, after=in_redis.times)
        if waiting_in_redis is not None:
            return NotedInRedis(waiting_in_redis, in_sql.last_good_flush, is_full_due)


def _last_flushes(epoch: epochs.SqlEpoch) -> flush_notes.LastFlushes:
    """Returns what the partitions note of their last flushes. Leaves out of the epoch, and so of
    this flush, the partitions whose server is silent.
    """
    last_flushes = flush_notes.last_flushes(epoch.tags)
    epoch.leave_out(last_flushes.silent)
    return last_flushes


class KnownInSql(NamedTuple):
    """What SQL knows of earlier flushes and of resets. Times are in µs by Redis's clock."""

    newest_flushes: Mapping[str, int]  # by the tag of the partition; 0 for none
    last_good_flush: int  # until when it has read Redis; 0 for none
    newest_reset: int


def _known_in_sql(
    tags: Sequence[str], ends_of_good_flushes: "QuerySet[FlushRun, Any]"
) -> KnownInSql:
    """Returns what SQL knows of the flushes of these partitions, and of resets, by one query.

    `ends_of_good_flushes` says until when earlier good flushes have read Redis (µs), newest first.
    """
    newest_resets = databases.rows(Reset).order_by("-redis_time").values("redis_time")
    by_share = (
        databases.rows(FlushRun)
        .order_by()
        .values_list("share")
        .annotate(
            newest=Max("redis_time"),
            last_good=Subquery(ends_of_good_flushes[:1]),
            newest_reset=Subquery(newest_resets[:1]),
        )
    )
    newest_flushes = dict.fromkeys(tags, 0)
    last_good_flush = 0
    newest_reset = AFTER_ALL  # without any flush no row brings it; then all resets are older
    for share, newest, last_good, reset in by_share:
        # The last two are the same in each row, because the subqueries do not depend on the row.
        last_good_flush = last_good or 0
        newest_reset = reset or 0
        # The same partition may also have been flushed as one of another share, or of all
        # partitions.
        for tag in epochs.SqlEpoch(share).tags:
            if tag in newest_flushes:
                newest_flushes[tag] = max(newest, newest_flushes[tag])
    return KnownInSql(newest_flushes, last_good_flush, newest_reset)


def _purge_old_counts(tags: Sequence[str], *, since: int) -> None:
    """Removes counts from Redis that are older than the last reset or deletion of their subject, if
    that came after `since` (µs).

    A Redis that was gone at that time, or was restored from an older snapshot, may have them.
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
    record = work.record
    tags = work.epoch.tags
    noted_resets = resetting.noted_resets(tags)
    resets.finish(noted_resets, work.steps, work.faults, now=record.redis_time)
    for step in work.steps:
        step.finish(has_changes=bool(work.changed))
    if record.kind != record.Kind.CHANGED:
        for step in work.steps:
            step.full(recently_viewed)
            if work.epoch.has_first:
                step.full_once()
        flush_notes.note_full(record.redis_time, tags=tags)
        _delete_old_records(record)
    if record.kind == record.Kind.ARCHIVE:
        _finish_archive(record, work.epoch, work.steps)


def _finish_archive(record: FlushRun, epoch: epochs.SqlEpoch, steps: Sequence[Steps]) -> None:
    """Deletes old notes of deletions, and lets flushes copy all read state again."""
    for tag in epoch.tags:
        copies.mark_all_changed(tag)  # in case that Redis has lost the notes of what changed
    if epoch.has_first:
        for step in steps:
            step.archive_once()
        deletions.forget_old(now=record.redis_time)


def _note_end(record: FlushRun, epoch: epochs.SqlEpoch) -> None:
    """Notes the end of the flush as well as its start, so that a snapshot that was taken during the
    flush is also recognized as an old one.
    """
    # Redis still has the counts of a row that was deleted during the flush by a process that found
    # Redis gone. Once the end is noted, no flush looks for such a row.
    _purge_old_counts(epoch.tags, since=record.redis_time)
    # SQL gets the end only if all partitions have noted it, because a Redis that knows an earlier
    # time than SQL is taken for a restored one.
    end = max(server_time(patient=True), record.redis_time + 1)
    calls = flush_notes.note_flush(end, after=dict.fromkeys(epoch.tags, record.redis_time))
    if all(scripts.run_all(*calls, patient=True)):
        record.redis_time = end


def _delete_old_records(record: FlushRun) -> None:
    """Deletes the records of old flushes.

    Keeps the last RECORDS_KEPT records, and the last good one of each kind and share.
    """
    if absent.is_absent(FlushRun):
        return
    by_kind = runs.ended_well().order_by().values_list("kind", "share").annotate(newest=Max("pk"))
    newest_pks = [pk for _kind, _share, pk in by_kind]
    old_records = databases.rows(FlushRun).filter(pk__lte=record.pk - RECORDS_KEPT)
    old_records.exclude(pk__in=newest_pks).delete()
