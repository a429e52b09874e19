"""What the doctor says, and what it looks at."""

from datetime import timedelta
from typing import Any

from readtrack import buckets
from readtrack.doctor.findings import Named
from readtrack.doctor.report import examine
from readtrack.models import FlushRun

SECOND = timedelta(seconds=1)


def found(name: str, *, sample: int = 100) -> list[Named]:
    """What one examination found, among all of them."""
    return [finding for finding in examine(sample=sample) if finding.name == name]


def levels(name: str) -> list[str]:
    return [finding.level for finding in found(name)]


def run(*, ago: int, took: int | None = 1, **values: Any) -> FlushRun:
    """A flush that began so many seconds ago."""
    started = buckets.now() - ago * SECOND
    return FlushRun.objects.create(started=started, ended=None if took is None else started + took * SECOND, **values)
