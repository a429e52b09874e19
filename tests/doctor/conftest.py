"""Findings of the doctor, and records of flushes for it to find."""

from datetime import timedelta
from typing import Any

from readtrack import buckets
from readtrack.doctor.findings import Finding
from readtrack.doctor.report import examine
from readtrack.models import FlushRun

SECOND = timedelta(seconds=1)


def found(name: str) -> list[Finding]:
    """Returns the findings of one examination, among all of them."""
    return [finding for finding in examine() if finding.name == name]


def levels(name: str) -> list[str]:
    return [finding.level for finding in found(name)]


def run(*, ago: int, took: int | None = 1, **values: Any) -> FlushRun:
    """Creates the record of a flush that began `ago` seconds ago."""
    started = buckets.now() - ago * SECOND
    return FlushRun.objects.create(
        started=started, ended=None if took is None else started + took * SECOND, **values
    )
