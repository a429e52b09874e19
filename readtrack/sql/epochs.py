"""How far SQL has followed Redis: what tells a Redis that was restored from an old snapshot.

Each settling starts a new epoch in Redis, which keeps its number and the one before. SQL keeps the newest number
that it was told of, and is told before it is written a total that was settled. So a Redis that knows neither as
its last nor as its last but one what SQL has was restored, and its marks may be of views that SQL holds already.
"""

from django.db import router
from django.db.models import F, QuerySet

from readtrack.models import Lineage

ONLY = 1  # primary key of the one row


def head() -> int:
    """The newest epoch that SQL knows of; 0 for none."""
    return Lineage.objects.using(router.db_for_write(Lineage)).get_or_create(pk=ONLY)[0].epoch


def follow(epoch: int, *, previous: int) -> bool:
    """Tells SQL of an epoch that follows the newest it knows of; gives whether it is the newest now."""
    return head() == epoch or bool(_only().filter(epoch=previous).update(epoch=epoch))


def hold() -> None:
    """Keeps whoever holds it, too, and the next epoch waiting until this transaction ends."""
    _only().update(epoch=F("epoch"))


def _only() -> QuerySet[Lineage]:
    return Lineage.objects.using(router.db_for_write(Lineage)).filter(pk=ONLY)
