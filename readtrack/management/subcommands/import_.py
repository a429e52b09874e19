"""`manage.py readtrack import`"""

from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from readtrack.imports import hitcount, reads, weblog
from readtrack.imports.ledger import ImportRefusedError
from readtrack.imports.lines import FIELDS

SHOWN = 20  # reasons for skips, and patterns of paths that did not resolve

after_failure = "Import again: it goes on where it ended."


def _field(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if name not in FIELDS or not path:
        raise ArgumentTypeError(f"{text!r} is not one of {', '.join(FIELDS)}, then = and its path in the JSON")
    return name, path


def time(text: str) -> datetime:
    """Returns the aware time. Raises ValueError, of which argparse makes "invalid time value"."""
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else timezone.make_aware(at)


FIELD = f"for JSON: the dotted path of one of {', '.join(FIELDS)}"
arguments = {
    "files": {"nargs": "*", "metavar": "FILE", "help": "plain or gzip"},
    "--from": {"dest": "app", "choices": ["hitcount"], "help": "take over an app's tables instead"},
    "--reads": {"metavar": "APP.MODEL", "help": "take over a table of what users have read instead"},
    "--user": {"dest": "user_field", "default": "user", "metavar": "KEY", "help": "its key to the user"},
    "--category": {"dest": "category_field", "default": "category", "metavar": "KEY", "help": "its key to categories"},
    "--format": {"dest": "form", "choices": ["combined", "common", "json"], "default": "combined"},
    "--field": {"action": "append", "type": _field, "default": [], "metavar": "NAME=PATH", "help": FIELD},
    "--since": {"type": time, "metavar": "TIME", "help": "pass over what is earlier, such as 2026-11-01T12:30+01:00"},
    "--until": {"type": time, "metavar": "TIME", "help": "pass over what is not earlier"},
    "--database": {"default": "default", "metavar": "ALIAS", "help": "where the app's tables are"},
    "--count-robots": {"action": "store_true", "help": "count lines of a log without user agents, robots included"},
    "--dry-run": {"action": "store_true", "help": "only report"},
}


def run(command: BaseCommand, *, bar: Callable[..., Any], verbosity: int, **options: Any) -> None:
    """Imports, and prints the report."""
    if [bool(options[name]) for name in ("app", "files", "reads")].count(True) != 1:
        raise CommandError("Name log files, or --from hitcount, or a table by --reads.")
    try:
        report = _report(bar, options)
    except ImportRefusedError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{error.filename or 'A log'} cannot be read: {error.strerror or error}") from error
    if not verbosity:
        return
    if options["dry_run"]:
        command.stdout.write("Nothing was written. An import would say:")
    for name, count in _figures(report):
        command.stdout.write(f"{count:>12,}  {name}")
    for note in report.notes:
        command.stdout.write(command.style.WARNING(note))


def _report(bar: Callable[..., Any], options: dict[str, Any]) -> hitcount.Report | reads.Report | weblog.Report:
    size = sum(Path(file).stat().st_size for file in options["files"])
    unit = {"unit": "B", "total": size, "unit_scale": True} if options["files"] else {"unit": " rows"}
    dry_run = options["dry_run"]
    with bar(desc="Importing", **unit) as shown:
        if options["app"]:
            return hitcount.run(using=options["database"], dry_run=dry_run, progress=shown.update)
        if options["reads"]:
            keys = {"user": options["user_field"], "category": options["category_field"]}
            return reads.run(options["reads"], **keys, dry_run=dry_run, progress=shown.update)
        names = ("form", "since", "until", "count_robots", "dry_run")
        wanted = {name: options[name] for name in names}
        importer = weblog.Importer(**wanted, fields=dict(options["field"]), progress=shown.update)
        return importer.run(options["files"])


def _figures(report: hitcount.Report | reads.Report | weblog.Report) -> Iterator[tuple[str, int]]:
    """Yields the names and numbers of the report; below a sum its largest parts."""
    for one in fields(report):
        name, value = one.name.replace("_", " "), getattr(report, one.name)
        if isinstance(value, int):
            yield name, value
        if isinstance(value, Counter):
            yield name, value.total()
            of = getattr(report, "lines", 0)
            for part, count in value.most_common(SHOWN):
                if count:
                    yield f"  {part} ({count / of:.0%} of the lines)" if of else f"  {part}", count
