"""`manage.py readtrack doctor`"""

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand

from readtrack.doctor.findings import Finding
from readtrack.doctor.report import examine

STATUS = {"ok": 0, "note": 0, "warning": 1, "error": 2}
STYLES = {"ok": "SUCCESS", "note": "NOTICE", "warning": "WARNING", "error": "ERROR"}


def run(*, command: BaseCommand, as_json: bool, sample: int, verbosity: int, **options: Any) -> None:
    """Prints the findings. Exits with their status, unless all is well."""
    found = list(examine(sample=max(1, sample)))
    status = max(STATUS[finding.level] for finding in found)
    if as_json:
        answer = {"status": status, "findings": [finding._asdict() for finding in found]}
        command.stdout.write(json.dumps(answer, indent=2))
    else:
        for finding in found:
            if verbosity or finding.level in ("warning", "error"):
                command.stdout.write(_text(finding, command))
    if status:
        sys.exit(status)


def _text(finding: Finding, command: BaseCommand) -> str:
    level = getattr(command.style, STYLES[finding.level])(f"{finding.level:8}")
    hint = f"\n{'':20} {finding.hint}" if finding.hint else ""
    return f"{level}{finding.name:12} {finding.message}{hint}"
