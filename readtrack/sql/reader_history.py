"""How many have read each category, by the hour, as SQL stores it."""

from collections.abc import Sequence

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from readtrack.models import ReaderHistory
from readtrack.sql import databases


def newest(names: Sequence[str]) -> dict[str, int]:
    """The newest number of each subject that has one."""
    newest = Window(RowNumber(), partition_by="subject", order_by=F("hour").desc())
    rows = stored_rows().filter(subject__in=names).alias(place=newest).filter(place=1)
    return dict(rows.values_list("subject", "readers"))


def before(subject: str, *, hour: int) -> int:
    """The subject's newest number ahead of that hour; 0 where nothing was kept."""
    earlier = stored_rows().filter(subject=subject, hour__lt=hour).order_by("-hour")
    return earlier.values_list("readers", flat=True).first() or 0


def counts(subject: str, *, since: int, until: int) -> list[tuple[int, int]]:
    """The hours of a range in which the number changed, and the number at their end, oldest first."""
    rows = stored_rows().filter(subject=subject, hour__gte=since, hour__lt=until).order_by("hour")
    return list(rows.values_list("hour", "readers"))


def stored_rows() -> "QuerySet[ReaderHistory]":
    return ReaderHistory.objects.using(databases.of(ReaderHistory).alias)
