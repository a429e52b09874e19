"""`manage.py readtrack import`"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from readtrack.imports import hitcount, reads, weblog
from readtrack.imports.ledger import ImportRefusedError, Report

SHOWN = 20  # reasons for skips, and patterns of paths that did not resolve


def run(*, command: BaseCommand, bar: Any, **options: Any) -> str:
    """Imports. Returns the report."""
    if [bool(options[name]) for name in ("app", "files", "reads")].count(True) != 1:
        raise CommandError("Name log files, or --from hitcount, or a table by --reads.")
    try:
        report = _report(bar, options)
    except ImportRefusedError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{error.filename or 'A log'} cannot be read: {error.strerror or error}") from error
    start = ["Nothing was written. An import would say:"] if options["dry_run"] else []
    figures = (f"{count:>12,}  {name}" for name, count in _figures(report))
    return "\n".join([*start, *figures, *map(command.style.WARNING, report.notes)])


def _report(bar: Any, options: dict[str, Any]) -> Report:
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


def _figures(report: Report) -> Iterator[tuple[str, int]]:
    """Yields the names and numbers of the report; below a sum its largest parts."""
    yield from (("read", report.read), ("counted", report.counted))
    for name, parts in (("skipped", report.skipped), ("not resolved", report.not_resolved)):
        yield name, parts.total()
        for part, count in (+parts).most_common(SHOWN):
            yield f"  {part} ({count / report.read:.0%})", count
