"""What waits in Redis for a flush, asked for as the flush notes itself there, in one round trip."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from readtrack.store import counters, flush_notes, keys, read_state, scripts
from readtrack.store.counters import Taken
from readtrack.store.read_state import copies
from readtrack.store.scripts import Call


class Waiting(NamedTuple):
    """What a flush finds in Redis as it begins."""

    taken: Taken  # what changed
    # Beside what changed: counters to settle, resets to finish, or read state to copy or restore.
    has_more: bool


def begin(time: int, *, after: Mapping[str, int]) -> Waiting | None:
    """Notes the time of the flush (µs) in each partition, and takes what changed.

    `after` has the times by tag that `flush_notes.last_flushes` returned to the flush. Returns None
    if a partition knows an earlier time by now, because its Redis was restored from a snapshot;
    what was taken is taken again by the next flush then. Raises redis.RedisError.
    """
    tags = [*after]
    note_calls = flush_notes.note_flush(time, after=after)
    take_calls = counters.take_changed(tags)
    number_calls: list[Call[Any]] = []
    for tag in tags:
        number_calls += (
            counters.number_of_unsettled(tag),
            copies.number_of_changes(tag),
            Call("ZCARD", [keys.readers_new(tag)]),  # readers whose ordinals SQL does not know
            Call("ZCARD", [keys.reset(tag)]),
        )
    begun_calls = read_state.have_begun(tags)
    scripts.run_all(*note_calls, *take_calls, *number_calls, *begun_calls, patient=True)
    if not all(call.result for call in note_calls):
        return None
    has_numbers = any(call.result for call in number_calls)
    has_all_begun = all(call.result for call in begun_calls)
    return Waiting(
        taken=counters.taken(tags, take_calls),
        has_more=has_numbers or not has_all_begun,
    )
