"""`manage.py readtrack doctor`."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from readtrack.doctor.findings import Finding
from readtrack.doctor.report import examine
from readtrack.management.subcommands.base import Subcommand

# By the level of a finding.
EXIT_STATUS = {"ok": 0, "note": 0, "warning": 1, "error": 2}
STYLES = {"ok": "SUCCESS", "note": "NOTICE", "warning": "WARNING", "error": "ERROR"}


class Doctor(Subcommand):
    """Examines the running system."""

    name = "doctor"
    help = """\
Examines the running system: Redis, flushes, and whether SQL agrees with Redis. It changes nothing.

  manage.py readtrack doctor            # one line for each finding, and one with what to do
  manage.py readtrack doctor -v 0       # warnings and errors only
  manage.py readtrack doctor --json     # for monitoring

Exit status: 0 all well (notes included), 1 warnings, 2 errors. A note tells what you may have
chosen, or what the doctor cannot see, because the Redis user may not run INFO, CONFIG or the like.
"""
    needs_redis = False  # it reports an unusable cache among its findings

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="print one JSON object"
        )

    def handle(
        self, *, command: BaseCommand, as_json: bool, verbosity: int, **options: Any
    ) -> None:
        """Prints the findings. Exits with the status of the worst finding, unless all is well."""
        findings = list(examine())
        status = max(EXIT_STATUS[finding.level] for finding in findings)
        if as_json:
            answer = {"status": status, "findings": [finding._asdict() for finding in findings]}
            command.stdout.write(json.dumps(answer, indent=2))
        else:
            for finding in findings:
                if verbosity or finding.level in ("warning", "error"):
                    command.stdout.write(_lines(finding, command))
        if status:
            raise SystemExit(status)


def _lines(finding: Finding, command: BaseCommand) -> str:
    """Returns a finding as a line, and its hint, if it has one, as another."""
    style = getattr(command.style, STYLES[finding.level])
    line = f"{style(f'{finding.level:8}')}{finding.name:12} {finding.message}"
    if not finding.hint:
        return line
    return f"{line}\n{'':20} {finding.hint}"
