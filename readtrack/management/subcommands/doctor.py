"""`manage.py readtrack doctor`"""

import json
import sys
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils.translation import gettext

from readtrack.doctor.findings import Level, Named, status
from readtrack.doctor.report import examine
from readtrack.management.progress import bar

SAMPLE = 1000

help = "examine the living system: Redis, flushes, and whether SQL agrees"  # noqa: A001
description = """Examines the living system: Redis, flushes, and whether SQL agrees. It changes nothing.

Each finding that is not ok says what to do. Exit status: 0 all well (notes included), 1 warnings, 2 errors.
Where Redis's user may not run INFO, CONFIG or the like, that is a note."""


def add_arguments(parser: CommandParser) -> None:
    """How much to look at, and how to say it."""
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for machines")
    parser.add_argument(
        "--sample",
        type=int,
        default=SAMPLE,
        metavar="N",
        help=f"keys to measure and totals to compare with SQL, at most ({SAMPLE} by default)",
    )


def run(command: BaseCommand, *, as_json: bool, sample: int, verbosity: int, **options: Any) -> None:
    """Prints the findings, and exits with their status unless all is well."""
    with bar(gettext("Measuring"), gettext(" keys"), verbosity=0 if as_json else verbosity) as shown:
        found = list(examine(sample=max(1, sample), progress=shown.update))
    command.stdout.write(_json(found) if as_json else _text(found, command, verbosity=verbosity))
    if code := status(found):
        sys.exit(code)


def _json(found: list[Named]) -> str:
    return json.dumps({"status": status(found), "findings": [finding._asdict() for finding in found]}, indent=2)


def _text(found: list[Named], command: BaseCommand, *, verbosity: int) -> str:
    """A line for each finding, and one for what to do; with verbosity 0 only of what is wrong."""
    styles: dict[Level, Callable[[str], str]] = {
        "ok": command.style.SUCCESS,
        "note": command.style.NOTICE,
        "warning": command.style.WARNING,
        "error": command.style.ERROR,
    }
    lines = []
    for name, level, message, hint in found:
        if verbosity or level in ("warning", "error"):
            lines.append(f"{styles[level](f'{level:8}')}{name:12} {message}")
            lines += [f"{'':20} {hint}"] if hint else []
    return "\n".join(lines)
