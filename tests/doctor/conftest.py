"""What the doctor says."""

from readtrack.doctor.examination import examine
from readtrack.doctor.findings import Named


def found(name: str, *, sample: int = 100) -> list[Named]:
    """What one examination found, among all of them."""
    return [finding for finding in examine(sample=sample) if finding.name == name]


def levels(name: str) -> list[str]:
    return [finding.level for finding in found(name)]
