"""What Redis remembers of the flushes, by its own clock."""

from typing import NamedTuple

from readtrack.store import keys, scripts
from readtrack.store.connection import connect
from readtrack.store.scripts import Call


class FlushMemory(NamedTuple):
    """Times in microseconds, 0 for none: the last flush, the full flush that is requested, the last full flush done."""

    last: int = 0
    requested: int = 0
    full: int = 0

    @property
    def is_full_requested(self) -> bool:
        """Whether no full flush that ended well has begun since one was called for."""
        return self.requested > self.full


def memory() -> FlushMemory:
    """What this Redis remembers."""
    found = connect(patient=True).mget([keys.flush_last(), keys.flush_requested(), keys.flush_full()])
    return FlushMemory(*(int(time or 0) for time in found))


def remember(time: int, *, known: int) -> bool:
    """Leaves the mark of a flush, `known` being the one that it found; False where Redis has gone back since."""
    return scripts.run(Call("remember", [keys.flush_last()], (known, time), bool), patient=True)


def request_full_flush(since: int) -> None:
    """A snapshot was restored: only a full flush that begins after this puts Redis right."""
    connect(patient=True).set(keys.flush_requested(), since)


def remember_full(started: int) -> None:
    """A full flush that began then has ended well."""
    connect(patient=True).set(keys.flush_full(), started)
