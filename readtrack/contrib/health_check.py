"""django-health-check: a check that readtrack does its work, as the doctor judges it."""

from dataclasses import dataclass

from django.db import close_old_connections
from health_check.base import HealthCheck
from health_check.exceptions import ServiceUnavailable, ServiceWarning

from readtrack.doctor.report import EXAMINATIONS, examine


@dataclass
class ReadTrack(HealthCheck):  # type: ignore[misc]  # the package has no types
    """Fails if Redis does not answer, if flushes are late or fail, or if publications wait for
    long. Warns if Redis is slow.

    `examinations` are names of what `manage.py readtrack doctor` looks at. Raises ValueError for a
    name that the doctor does not know.
    """

    examinations: tuple[str, ...] = ("connection", "flushes", "outbox")

    def __post_init__(self) -> None:
        known_names = [examination.name for examination in EXAMINATIONS]
        for name in self.examinations:
            if name not in known_names:
                raise ValueError(f"{name!r} is none of {', '.join(map(repr, known_names))}.")

    def run(self) -> None:
        # The library calls this in a thread of its own, and no request closes the connections that
        # the thread has to the database.
        close_old_connections()
        try:
            findings = list(examine(self.examinations))
        finally:
            close_old_connections()
        for error, level in ((ServiceUnavailable, "error"), (ServiceWarning, "warning")):
            names = dict.fromkeys(finding.name for finding in findings if finding.level == level)
            # The findings themselves may have addresses, and pages of this kind are often public.
            if names:
                raise error(f"{', '.join(names)}; manage.py readtrack doctor says more")
