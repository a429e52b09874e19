"""The newest epochs of Redis that SQL knows of, by which a restored Redis is known."""

from collections.abc import Iterable, Mapping

from django.db.models import F, Max

from readtrack.models import KnownEpoch
from readtrack.sql import databases
from readtrack.store import keys
from readtrack.store.counters import Epoch

LOCK = 0  # origin of the row of KnownEpoch that belongs to no list


class SqlEpoch:
    """The newest epochs of some partitions in SQL, as one flush knows them.

    SQL's numbers only move forward.
    """

    def __init__(self, part: str = "") -> None:
        """Takes the partitions of a part such as "2/8", every eighth from the second one on."""
        first, step = map(int, part.split("/")) if part else (1, 1)
        self.tags = keys.tags()[first - 1 :: step]
        # The flush of the first partition does what belongs to the whole site.
        self.has_first = first == 1
        self.silent: dict[str, Exception] = {}  # partitions that are left out, and why
        self._current: dict[str, int] = {}  # the newest epoch by tag

    def leave_out(self, silent: Mapping[str, Exception]) -> None:
        """Leaves out partitions whose server does not answer, which are given with the error."""
        self.silent |= silent
        self.tags = [tag for tag in self.tags if tag not in silent]

    def known(self, epochs: Iterable[Epoch]) -> dict[str, Epoch]:
        """Returns what SQL knows of the lists of these epochs, by the tags of their partitions."""
        origins = {epoch.tag: epoch.origin for epoch in epochs}
        stored: dict[str, Epoch] = {}
        if any(origins.values()):
            stored.update(self._of_lists(origins))
        if not all(origins.values()):
            stored.update(self._of_lost_lists(origins))
        self._current.update((tag, epoch.current) for tag, epoch in stored.items())
        return stored

    def _of_lists(self, origins: dict[str, int]) -> dict[str, Epoch]:
        """Returns the newest epochs of lists with an origin, by tag."""
        rows = databases.rows(KnownEpoch).filter(origin__in=[*filter(None, origins.values())])
        return {
            tag: Epoch(origin, epoch, until=until, tag=tag)
            for tag, origin, epoch, until in rows.values_list("tag", "origin", "epoch", "until")
            if origins.get(tag) == origin
        }

    def _of_lost_lists(self, origins: dict[str, int]) -> dict[str, Epoch]:
        """Returns epochs for lists that lost their own, by tag.

        What these lists hold may be as old as anything that was ever settled.
        """
        rows = databases.rows(KnownEpoch).values_list("tag").annotate(newest=Max("until"))
        return {
            tag: Epoch(current=-1, until=until, tag=tag)
            for tag, until in rows
            if origins.get(tag) == 0 and until
        }

    def advance(self, epochs: Iterable[Epoch]) -> bool:
        """Stores epochs that follow the newest ones in SQL.

        Returns False if Redis has to be settled first.
        """
        is_settled = True
        for epoch in epochs:
            if epoch.current == self._current.get(epoch.tag, -1):
                continue
            if _store(epoch):
                self._current[epoch.tag] = epoch.current
            else:
                is_settled = False
        return is_settled


def _store(epoch: Epoch) -> bool:
    """Stores one epoch. Returns False if it does not follow the one that SQL has stored."""
    rows = databases.rows(KnownEpoch)
    stored = rows.filter(tag=epoch.tag, origin=epoch.origin)
    if not epoch.current:  # nothing was settled in this list yet
        return bool(epoch.origin) and not stored.exists()
    values = {"epoch": epoch.current, "until": epoch.until}
    row, is_new = stored.get_or_create(tag=epoch.tag, origin=epoch.origin, defaults=values)
    if is_new or row.epoch == epoch.current:
        return True
    return bool(stored.filter(epoch=epoch.previous).update(**values))


def lock_epoch() -> None:
    """Locks a row until the transaction ends, so that other writers of history wait."""
    lock = databases.rows(KnownEpoch).filter(origin=LOCK)
    if not lock.update(epoch=F("epoch")):
        databases.rows(KnownEpoch).get_or_create(origin=LOCK)
        lock.update(epoch=F("epoch"))
