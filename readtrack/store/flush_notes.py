"""What flushes note in Redis: when they ran, for how many partitions, and in which layout."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from readtrack import layouts
from readtrack.store import keys, scripts
from readtrack.store.circuit import SilentError
from readtrack.store.connection import RedisError, connect, server_time
from readtrack.store.scripts import Call

ORPHANS_KEPT = 30 * keys.DAY * 1_000_000  # µs that the note of an orphan stays


class LayoutError(RedisError):
    """Redis has another number of partitions than the settings, and the keys are not moved yet."""


class NewerLayoutError(RedisError):
    """A newer version of readtrack works with the same Redis and SQL, in a layout of its own."""


class NotedLayout(NamedTuple):
    """How flushes have arranged the keys."""

    partitions: int  # 0 before the first flush
    layout: int  # the newest that a version has written, see `readtrack.layouts`; 0 before that


class FlushTimes(NamedTuple):
    """The times that are noted in one partition (µs by Redis's clock, 0 for none)."""

    last: int  # last start or end of a flush
    requested: int  # when a restored snapshot requested a full flush
    full: int  # start of the last full flush that ended well


class LastFlushes(NamedTuple):
    """What partitions note of their last flushes, by the tags of the partitions."""

    times: dict[str, int]  # of the last flush of each (µs, 0 for none)
    is_full_due: bool
    silent: dict[str, Exception]  # partitions whose server of a cluster did not answer


def last_flushes(tags: Sequence[str]) -> LastFlushes:
    """Returns what the partitions note, except those whose server is silent while others answer.

    Raises redis.RedisError, LayoutError if there are more or fewer partitions than in the settings,
    and NewerLayoutError if a newer version has changed the keys.
    """
    rows = (keys.flush_last, keys.flush_requested, keys.flush_full)
    calls = {tag: Call("MGET", [row(tag) for row in rows], (), _flush_times) for tag in tags}
    arguments = (len(keys.tags()), layouts.WRITTEN)
    layout = Call("layout", [keys.flush_layout("")], arguments, _noted_layout)
    with suppress(SilentError):  # each call has its own answer
        scripts.run_all(layout, *calls.values(), patient=True)
    silent: dict[str, Exception] = {}
    times: dict[str, int] = {}
    is_full_due = False
    for tag, call in calls.items():
        if isinstance(call.outcome, SilentError):
            silent[tag] = call.outcome
            continue
        noted = call.result
        # If only `flush:last` was evicted, Redis still has the resets from before its last full
        # flush.
        times[tag] = max(noted.last, noted.full)
        # A request stands until a full flush that began after it has ended well.
        is_full_due = is_full_due or noted.requested > noted.full
    if not times:
        raise next(iter(silent.values()))
    _check_layout(layout, times)
    return LastFlushes(times, is_full_due, silent)


def _check_layout(layout: Call[NotedLayout], times: Mapping[str, int]) -> None:
    """Raises NewerLayoutError if Redis has a layout that this version does not know, and
    LayoutError if it has another number of partitions.

    `layout` is the call that asked for it, `times` are those of the last flushes by tag.
    """
    # While its server is silent, partitions that were flushed before are those of today: new ones
    # were not.
    is_silent = isinstance(layout.outcome, SilentError)
    if is_silent and all(times.values()):
        return
    check_keys(layout.result)
    partitions = layout.result.partitions
    if partitions > len(keys.tags()):
        raise LayoutError(
            f"The number of partitions in Redis is {partitions}, and cannot fall. Set 'partitions'"
            f" of READTRACK['CLUSTER'] to {partitions}, with 'readtrack.cluster' in INSTALLED_APPS."
        )
    if partitions < len(keys.tags()):
        raise LayoutError(
            f"The number of partitions in Redis is {partitions}."
            " Run: manage.py readtrack repartition"
        )


def check_keys(noted: NotedLayout) -> None:
    """Raises NewerLayoutError if the keys have a layout that this version does not know."""
    if noted.layout > layouts.KNOWN:
        raise NewerLayoutError(layouts.sentence("Redis has keys", noted.layout))


def _noted_layout(answer: Sequence[bytes | None]) -> NotedLayout:
    """Returns the layout in the answer to HMGET."""
    return NotedLayout(*(int(number or 0) for number in answer))


def _flush_times(answer: Sequence[bytes | None]) -> FlushTimes:
    """Returns the times in the answer to MGET."""
    return FlushTimes(*(int(time or 0) for time in answer))


def note_flush(time: int, *, after: Mapping[str, int]) -> list[Call[bool]]:
    """Returns calls that note the time of a flush (µs) in each partition.

    `after` has the times by tag that `last_flushes` returned to the flush. A call gives False if
    the partition knows an earlier time by now, because its Redis was restored from a snapshot.
    """
    calls = []
    for tag, last_time in after.items():
        key_names = [keys.flush_last(tag), keys.flush_full(tag)]
        calls.append(Call("note_flush", key_names, (last_time, time), bool))
    return calls


def begin_anew(tag: str, *, newest: int) -> None:
    """Requests a full flush of a partition whose Redis was restored from a snapshot.

    `newest` is the time of the last flush (µs), which the restored partition does not know.
    """
    client = connect(patient=True)
    client.unlink(keys.reads_began(tag))  # its read state is too old, see flush/read_state.py
    # Its resets from before that flush are dropped, because its live counts may be too low to
    # lower SQL's counts to them.
    client.zremrangebyscore(keys.reset(tag), "-inf", f"({newest}")
    client.set(keys.flush_requested(tag), max(server_time(patient=True), newest + 1))


def note_full(started: int, *, tags: Sequence[str]) -> None:
    """Notes a full flush that began at this time (µs) and ended well, unless Redis was rolled back
    since it began.

    Deletes the notes of orphans that are older than 30 days.
    """
    calls = [
        Call(
            "note_full",
            [keys.flush_last(tag), keys.flush_full(tag), keys.flush_orphans(tag)],
            (started, started - ORPHANS_KEPT),
            bool,
        )
        for tag in tags
    ]
    scripts.run_all(*calls, patient=True)


def known_layout() -> NotedLayout:
    """Returns the layout that flushes know. Raises redis.RedisError."""
    call = Call("HMGET", [keys.flush_layout("")], NotedLayout._fields, _noted_layout)
    return scripts.run(call, patient=True)
