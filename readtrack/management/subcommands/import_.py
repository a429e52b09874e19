"""`manage.py readtrack import`"""

from argparse import ArgumentTypeError
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext

from readtrack.imports import hitcount, weblog
from readtrack.imports.ledger import ImportConflictError
from readtrack.imports.lines import FIELDS
from readtrack.management.progress import bar
from readtrack.numerals import exact

SHOWN = 10  # patterns of paths that did not resolve

help = "take over views from a web server's logs, or from django-hitcount"  # noqa: A001
description = f"""Takes over views from a web server's logs, or from django-hitcount.

  manage.py readtrack import access.log access.log.*.gz --dry-run
  zcat old/*.gz | manage.py readtrack import - --until 2026-11-01
  manage.py readtrack import --from hitcount

A log is judged as live hits are: robots, rate, reloads within the window, by the times of the log. Which
object a path shows is told by the URLconf and its DetailViews; READTRACK["IMPORT_VIEWS"] adds function views.
Logs are known by their content: importing one again, renamed, rotated, compressed or grown, or going on after
a kill, counts every line once. Give --until the moment when readtrack went live, for what came after is counted.

JSON: the usual names of nginx, Caddy and Traefik are known; --field names others, for
{", ".join(FIELDS)}."""

after_failure = "Import again: it goes on where it ended."


def add_arguments(parser: CommandParser) -> None:
    """Files and how to read them."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="plain or gzip; - for standard input")
    parser.add_argument("--from", dest="app", choices=["hitcount"], help="take over an app's tables instead")
    parser.add_argument("--format", dest="form", choices=["combined", "common", "json"], default="combined")
    parser.add_argument("--field", action="append", type=_field, default=[], metavar="NAME=PATH", help="for JSON")
    parser.add_argument("--log", default="", metavar="NAME", help="the files are pieces of this log and may overlap")
    parser.add_argument("--since", type=_time, metavar="TIME", help="pass over what is earlier")
    parser.add_argument("--until", type=_time, metavar="TIME", help="pass over what is not earlier")
    parser.add_argument("--database", default="default", metavar="ALIAS", help="where the app's tables are")
    parser.add_argument("--dry-run", action="store_true", help="only report")


def _field(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if name not in FIELDS or not path:
        raise ArgumentTypeError(f"{text!r} is not one of {', '.join(FIELDS)}, then = and where it is")
    return name, path


def _time(text: str) -> datetime:
    try:
        at = parse_datetime(text) or parse_datetime(f"{text}T00:00")
    except ValueError:
        at = None
    if at is None:
        raise ArgumentTypeError(f"{text!r} is no time such as 2026-11-01 or 2026-11-01T12:30:00+01:00")
    return at if at.tzinfo else timezone.make_aware(at)


def run(command: BaseCommand, *, app: str | None, files: list[str], **options: Any) -> None:
    """Imports and prints the report."""
    if bool(app) == bool(files):
        raise CommandError(gettext("Name log files, or --from hitcount."))
    try:
        (_hitcount if app else _logs)(command, files=files, **options)
    except hitcount.MissingTablesError as error:
        message = gettext("The database has no table %(table)s, so there is nothing of django-hitcount.")
        raise CommandError(message % {"table": error}) from error
    except ImportConflictError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        words = {"file": error.filename or gettext("A log"), "error": error.strerror or error}
        raise CommandError(gettext("%(file)s cannot be read: %(error)s") % words) from error


def _logs(
    command: BaseCommand, *, files: list[str], verbosity: int, field: list[tuple[str, str]], **given: Any
) -> None:
    names = ("form", "log", "since", "until", "dry_run")
    options = weblog.Options(fields=dict(field), **{name: given[name] for name in names})
    size = None if "-" in files else sum(Path(file).stat().st_size for file in files)
    with bar(gettext("Importing"), "B", total=size, verbosity=verbosity, unit_scale=True) as shown:
        report = weblog.Importer(options, progress=shown.update).run(files)
    if not verbosity:
        return
    lines = {
        gettext("lines"): report.lines,
        gettext("counted"): report.counted,
        **{gettext("skipped: %(reason)s") % {"reason": name}: count for name, count in report.skipped.most_common()},
        gettext("imported before"): report.known,
        gettext("outside the times"): report.outside,
        gettext("no such object"): report.gone,
        gettext("not resolved"): report.unresolved.total(),
        gettext("malformed"): report.malformed,
    }
    _print(command, lines, dry_run=options.dry_run)
    for pattern, count in report.unresolved.most_common(SHOWN):
        command.stdout.write(f"  {exact(count):>12}  {pattern}")
    for note in report.notes:
        command.stdout.write(command.style.WARNING(note))


def _hitcount(command: BaseCommand, *, verbosity: int, database: str, dry_run: bool, **given: Any) -> None:
    with bar(gettext("Importing"), gettext(" rows"), verbosity=verbosity) as shown:
        report = hitcount.run(using=database, dry_run=dry_run, progress=shown.update)
    if not verbosity:
        return
    lines = {
        gettext("rows"): report.rows,
        gettext("subjects"): report.subjects,
        gettext("views"): report.views,
        gettext("hits with a visitor"): report.hits,
        gettext("imported before"): report.known,
        gettext("no such object"): report.gone,
        **{
            gettext("not tracked: %(model)s") % {"model": name}: count for name, count in report.untracked.most_common()
        },
    }
    _print(command, lines, dry_run=dry_run)
    if report.lost:
        note = gettext("Redis lost its data during an earlier import; some rows are passed over.")
        command.stdout.write(command.style.WARNING(note))


def _print(command: BaseCommand, lines: dict[str, int], *, dry_run: bool) -> None:
    if dry_run:
        command.stdout.write(gettext("Nothing was written. An import would say:"))
    width = max(map(len, lines))
    for name, count in lines.items():
        command.stdout.write(f"{name:{width}} {exact(count):>12}")
