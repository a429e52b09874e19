"""How far SQL has followed Redis: what tells a Redis that was restored from an old snapshot.

Each settling starts a new epoch in Redis, which keeps its number and the one before. SQL keeps the newest number
that it was told of, and is told before it is written a total that was settled. So a Redis that knows neither as
its last nor as its last but one what SQL has was restored, and its marks may be of views that SQL holds already.
"""

from django.db import router
from django.db.models import F, QuerySet

from readtrack.models import KnownEpoch

ONLY = 1  # primary key of the one row


def known() -> int:
    """The newest epoch that SQL knows of; 0 for none."""
    return KnownEpoch.objects.using(router.db_for_write(KnownEpoch)).get_or_create(pk=ONLY)[0].epoch


def advance(epoch: int, *, previous: int) -> bool:
    """Tells SQL of an epoch that follows the newest it knows of; gives whether it is the newest now."""
    return known() == epoch or bool(_only().filter(epoch=previous).update(epoch=epoch))


def lock() -> None:
    """Keeps whoever holds it, too, and the next epoch waiting until this transaction ends."""
    _only().update(epoch=F("epoch"))


def _only() -> QuerySet[KnownEpoch]:
    return KnownEpoch.objects.using(router.db_for_write(KnownEpoch)).filter(pk=ONLY)
