"""How many have read each category, by the hour. The number falls at each publication: the latest one counts."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from readtrack import buckets, categories, databases, subjects
from readtrack.models import Readership
from readtrack.store import reads
from readtrack.store.scripts import SLICE


def keep(*, at: datetime) -> int:
    """Stores, for the hour of `at`, the numbers that changed; gives how many. Raises redis.RedisError."""
    hour = buckets.hour_number(at)
    # By the site's own rows, not by SCAN: nobody has read a category whose key a publication took away.
    return sum(_keep(tokens, hour=hour) for model in categories.read_state_models() for tokens in _tokens(model))


def _tokens(model: Any) -> Iterator[list[str]]:
    rows = model._base_manager.using(databases.of(model).alias).order_by("pk").values_list("pk", flat=True)
    page = list(rows[:SLICE])
    while page:
        yield [subjects.token_of(model, pk) for pk in page]
        page = list(rows.filter(pk__gt=page[-1])[:SLICE])


def _keep(tokens: Sequence[str], *, hour: int) -> int:
    counts = reads.count_readers(tokens, patient=True)
    found = {subjects.column(token): count for token, count in counts.items()}
    stored = _last(list(found))
    changed = [
        Readership(subject=subject, hour=hour, readers=count)
        for subject, count in found.items()
        if count != stored.get(subject, 0)
    ]
    features = databases.of(Readership).features
    _rows().bulk_create(
        changed,
        update_conflicts=True,
        update_fields=["readers"],
        unique_fields=["subject", "hour"] if features.supports_update_conflicts_with_target else None,
    )
    return len(changed)


def _last(names: Sequence[str]) -> dict[str, int]:
    """The newest number of each subject that has one."""
    newest = Window(RowNumber(), partition_by="subject", order_by=F("hour").desc())
    rows = _rows().filter(subject__in=names).alias(place=newest).filter(place=1)
    return dict(rows.values_list("subject", "readers"))


def before(subject: str, *, hour: int) -> int:
    """The subject's newest number ahead of that hour; 0 where nothing was kept."""
    earlier = _rows().filter(subject=subject, hour__lt=hour).order_by("-hour")
    return earlier.values_list("readers", flat=True).first() or 0


def counts(subject: str, *, since: int, until: int) -> list[tuple[int, int]]:
    """The hours of a range in which the number changed, and the number at their end, oldest first."""
    rows = _rows().filter(subject=subject, hour__gte=since, hour__lt=until).order_by("hour")
    return list(rows.values_list("hour", "readers"))


def _rows() -> "QuerySet[Readership]":
    return Readership.objects.using(databases.of(Readership).alias)
