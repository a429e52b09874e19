"""The newest epochs of Redis that SQL knows. If Redis is in an older epoch, it was restored.

An epoch is the name of a settling. Each list of unsettled counters in Redis has epochs of its own,
and a name, its `origin`.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from secrets import randbits

from django.db.models import Max
from django.db.models.functions import Greatest

from readtrack.models import KnownEpoch
from readtrack.sql import databases
from readtrack.store import keys
from readtrack.store.connection import server_time
from readtrack.store.counters import Epoch

LOCK = 0  # origin of the row of KnownEpoch that is for no list: writers of history lock it


class SqlEpoch:
    """The newest epochs that SQL knows of some partitions, for the time of one flush."""

    def __init__(self, share: str = "") -> None:
        """Takes all partitions, or a share: "2/8" is every eighth from the second one on."""
        first = 1
        step = 1
        if share:
            first, step = map(int, share.split("/"))
        self.tags = keys.tags()[first - 1 :: step]
        # Of several flushes of shares, the one with the first partition does what concerns all of
        # them.
        self.has_first = first == 1
        self.silent: dict[str, Exception] = {}  # partitions that are left out, and why
        # The newest epoch by tag, as far as this flush has read or stored it.
        self._current: dict[str, int] = {}

    def leave_out(self, silent: Mapping[str, Exception]) -> None:
        """Leaves out partitions whose server does not answer, which are given with the error."""
        self.silent |= silent
        self.tags = [tag for tag in self.tags if tag not in silent]

    def known(self, epochs: Iterable[Epoch]) -> dict[str, Epoch]:
        """Returns the newest epoch that SQL knows of the list of each of these epochs, by the tag
        of its partition.

        A list that SQL does not know is left out.
        """
        # The origin is 0 for a list that is empty, or whose epoch is lost.
        origins = {epoch.tag: epoch.origin for epoch in epochs}
        stored: dict[str, Epoch] = {}
        if any(origins.values()):
            stored.update(self._of_lists(origins))
        if not all(origins.values()):
            stored.update(self._of_lost_lists(origins))
        self._current.update((tag, epoch.current) for tag, epoch in stored.items())
        return stored

    def _of_lists(self, origins: dict[str, int]) -> dict[str, Epoch]:
        """Returns the newest epochs of the lists that have an origin, by tag."""
        rows = databases.rows(KnownEpoch).filter(origin__in=[*filter(None, origins.values())])
        return {
            tag: Epoch(origin, epoch, until=until, tag=tag)
            for tag, origin, epoch, until in rows.values_list("tag", "origin", "epoch", "until")
            if origins.get(tag) == origin
        }

    def _of_lost_lists(self, origins: dict[str, int]) -> dict[str, Epoch]:
        """Returns epochs for the lists without an origin, by tag.

        The counters on such a list may be as old as any counter that was ever settled in that
        partition. So `current` is -1, which is no epoch of Redis, and `until` is the highest of all
        lists of the partition.
        """
        rows = databases.rows(KnownEpoch).values_list("tag").annotate(newest=Max("until"))
        return {
            tag: Epoch(current=-1, until=until, tag=tag)
            for tag, until in rows
            if origins.get(tag) == 0 and until
        }

    def advance(self, epochs: Iterable[Epoch]) -> bool:
        """Stores the present epochs of Redis, before counts are stored that were read in them.

        Returns False if Redis has to be settled first, because an epoch is neither SQL's newest one
        nor the one after it.
        """
        is_settled = True
        for epoch in epochs:
            if epoch.current == self._current.get(epoch.tag, -1):
                continue
            if databases.retried(databases.of(KnownEpoch), partial(_store, epoch)):
                self._current[epoch.tag] = epoch.current
            else:
                is_settled = False
        return is_settled


def _store(epoch: Epoch) -> bool:
    """Stores one epoch of Redis. Returns False if it does not follow the epoch that SQL stores."""
    rows = databases.rows(KnownEpoch)
    stored = rows.filter(tag=epoch.tag, origin=epoch.origin)
    if not epoch.current:  # nothing was settled in this list yet
        return bool(epoch.origin) and not stored.exists()
    values = {"epoch": epoch.current, "until": epoch.until}
    row = stored.first()
    if row is None:
        # Asked before the transaction, so that no other flush waits in SQL while this one waits for
        # Redis.
        redis_time = server_time(patient=True)
        with databases.own_transaction(databases.of(KnownEpoch)):
            row, is_new = stored.get_or_create(tag=epoch.tag, origin=epoch.origin, defaults=values)
            if is_new:
                _close_others(epoch, redis_time)
    if row.epoch == epoch.current:
        return True
    # In one statement with the condition, because another flush may store its epoch meanwhile.
    changed_rows = stored.filter(epoch=epoch.previous).update(**values)
    return bool(changed_rows)


def _close_others(epoch: Epoch, redis_time: int) -> None:
    """Gives the other lists of the partition an epoch that no Redis has, because the list of this
    epoch has replaced them.

    If one of them comes back, Redis was restored, and this epoch tells so. It does even if this
    database was restored, too, and has lost the last settling of that list. `redis_time` (µs) is
    the present: all counters of the other lists began before it.
    """
    lists_of_partition = databases.rows(KnownEpoch).filter(tag=epoch.tag)
    other_lists = lists_of_partition.exclude(origin__in=[LOCK, epoch.origin])
    if other_lists.exists():
        other_lists.update(epoch=randbits(62), until=Greatest("until", redis_time))
