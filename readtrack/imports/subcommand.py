"""`manage.py readtrack import`."""

from argparse import ArgumentTypeError
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from readtrack.doctor.wording import counted
from readtrack.imports import entries, ledger, lines, reads, tables, totals, undo, weblog, workers
from readtrack.management.subcommands.base import Subcommand, progress_bar

REASONS = 20  # the most frequent reasons for lines that did not count, which are printed


def field(text: str) -> tuple[str, str]:
    """Returns the name and the path in `name=path`. Raises ArgumentTypeError for other texts."""
    name, _, path = text.partition("=")
    if name not in entries.FIELDS or not path:
        raise ArgumentTypeError(
            f"{text!r} is not one of {', '.join(entries.FIELDS)}, then = and its path in the JSON"
        )
    return name, path


def condition(text: str) -> tuple[str, str]:
    """Returns the path and the value in `path=value`. Raises ArgumentTypeError for other texts."""
    path, separator, value = text.partition("=")
    if not path or not separator:
        raise ArgumentTypeError(f"{text!r} is not a path in the JSON, then = and a value")
    return path, value


def time(text: str) -> datetime:
    """Returns the aware time in an argument, of TIME_ZONE if the text names no offset.

    Raises ArgumentTypeError for other texts.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(f"invalid 'time' value: {text!r}") from error
    return at if at.tzinfo else timezone.make_aware(at)


def jobs(text: str) -> int:
    """Returns the number of processes in an argument. Raises ArgumentTypeError for other texts."""
    if not text.isdecimal() or not 1 <= int(text) <= workers.MOST:
        raise ArgumentTypeError(f"{text!r} is no number of processes from 1 to {workers.MOST}")
    return int(text)


class Import(Subcommand):
    """Takes over views from logs and from other apps."""

    name = "import"
    help = """\
Takes over views from a web server's logs, from django-hitcount or from a list of totals, and what users have read
from any table.

  manage.py readtrack import access.log access.log.*.gz --dry-run  # says what would count, and why not
  manage.py readtrack import access.log access.log.*.gz --until 2026-11-01
  manage.py readtrack import --undo access.log --dry-run                # says what would be taken back
  manage.py readtrack import --from hitcount
  manage.py readtrack import --totals views.csv --dry-run
  manage.py readtrack import --reads forum.ReadMark --user user --category forum
  manage.py readtrack import --reads forum.TopicRead --category topic --read-until read_on --published last_post_on
  manage.py readtrack import --reads auth.User --user id --all forum.Topic --read-until date_joined

Hits in a log count by the rules of live hits: robots, rate, reloads within the window, by the times of the log.
The URLconf and its DetailViews tell which object a path shows; READTRACK["IMPORTS"] adds other views. A log
without user agents (--format common) counts only with --count-robots, because robots cannot be told from people.
The content of a log identifies it: to import one again, renamed, rotated, compressed or grown, or to go on after
a kill, counts every line once. A log of which nothing counted, or lines of which --since or --until left out, may
simply be imported again. --again judges all lines again after other settings were changed. It takes no views back.
If too much counted, --undo takes what a file or a list of totals has added out of counts and charts, once, also if it
is killed and repeated; views that came after it stay. Then import it again, with the right options. Unique visitors
stay as they are.
Standard input is not read. Give --until the moment when readtrack went live, because what came after it is counted
already. JSON of nginx, Caddy, Traefik, CloudFront, Akamai, Cloudflare, Azure, Google Cloud and Vercel is read by itself,
other JSON with --field. --dry-run also shows how some lines were understood. --jobs 2 lets two more processes judge the
lines of large logs, and counts the same.
A list of totals is a CSV file with a column `views`, and a column `path` (an address) or `object` (such as
news.post:1), or an export of GoatCounter. Each list counts once. If a row of it has no number of views, nothing is imported.
A table of reads with times (--read-until) is for models with positions. --category may then be a generic foreign key;
a row without an object stands for everything of its model. Each import of a table may be repeated.
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="*", metavar="FILE", help="plain or gzip")
        parser.add_argument(
            "--from", dest="app", choices=["hitcount"], help="take over an app's tables instead"
        )
        parser.add_argument(
            "--totals", metavar="CSV", help="take over a list of old totals instead"
        )
        parser.add_argument(
            "--reads",
            metavar="APP.MODEL",
            help="take over a table of what users have read instead",
        )
        parser.add_argument(
            "--user",
            dest="user_field",
            default="user",
            metavar="KEY",
            help="its key to the user",
        )
        parser.add_argument(
            "--category",
            dest="category_field",
            default="category",
            metavar="KEY",
            help="its key to categories, which may be a generic one if there are times",
        )
        parser.add_argument(
            "--all",
            dest="all_of",
            default="",
            metavar="APP.MODEL",
            help="each of its rows stands for everything of this model, not for a category",
        )
        parser.add_argument(
            "--read-until",
            dest="read_until",
            default="",
            metavar="FIELD",
            help="its time up to which the category is read, for positions",
        )
        parser.add_argument(
            "--published",
            action="append",
            default=[],
            metavar="FIELD",
            help="a category's time of its last post, for positions; if repeated, the first that has a value",
        )
        parser.add_argument(
            "--format",
            dest="form",
            choices=["auto", *lines.FORMATS],
            default="auto",
            help="the format of all lines; by default each line shows its own",
        )
        parser.add_argument(
            "--field",
            action="append",
            type=field,
            default=[],
            metavar="NAME=PATH",
            help="for JSON: where the log keeps a field, such as address=client.ip or time=date,time",
        )
        parser.add_argument(
            "--where",
            action="append",
            type=condition,
            default=[],
            metavar="PATH=VALUE",
            help="for JSON: only entries with this value are visits, such as source=static",
        )
        parser.add_argument(
            "--decoded",
            action="store_true",
            help="paths have neither escapes nor parameters, as nginx's $uri",
        )
        parser.add_argument(
            "--host",
            action="append",
            default=[],
            metavar="NAME",
            help=(
                "a host of the site, for a log that names hosts, in place of ALLOWED_HOSTS and the"
                " 'own_hosts' of NUMBERS"
            ),
        )
        parser.add_argument(
            "--since",
            type=time,
            metavar="TIME",
            help="pass over what is earlier, such as 2026-11-01T12:30+01:00",
        )
        parser.add_argument(
            "--until", type=time, metavar="TIME", help="pass over what is not earlier"
        )
        parser.add_argument(
            "--database", default="default", metavar="ALIAS", help="where the app's tables are"
        )
        parser.add_argument(
            "--count-robots",
            action="store_true",
            help="count lines of a log without user agents, robots included",
        )
        parser.add_argument(
            "--again",
            action="store_true",
            help="judge all lines of logs that were imported before; count those that did not count;"
            " takes no views back",
        )
        parser.add_argument(
            "--undo",
            action="store_true",
            help="take back what the import of a file has added, so that it may be imported again",
        )
        parser.add_argument(
            "--jobs",
            type=jobs,
            default=1,
            metavar="N",
            help="processes that judge the lines of logs side by side; 1, by default, is this one alone",
        )
        parser.add_argument("--dry-run", action="store_true", help="only report")

    def handle(self, *, command: BaseCommand, dry_run: bool, verbosity: int, **options: Any) -> str:
        if options["undo"]:
            return _undone(command, dry_run=dry_run, verbosity=verbosity, options=options)
        sources = [options["app"], options["files"], options["totals"], options["reads"]]
        given_sources = [source for source in sources if source]
        if len(given_sources) != 1:
            raise CommandError(
                "Name log files, or --from hitcount, or a list by --totals, or a table by --reads."
            )
        try:
            report = _report(dry_run=dry_run, verbosity=verbosity, options=options)
        except ledger.ImportRefusedError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            log = error.filename or "A file"
            reason = error.strerror or error
            raise CommandError(f"{log} cannot be read: {reason}") from error
        notes = [command.style.WARNING(note) for note in report.notes]
        return "\n".join([*_text(report, dry_run=dry_run), *notes])


def _undone(command: BaseCommand, *, dry_run: bool, verbosity: int, options: dict[str, Any]) -> str:
    """Takes the files back, and returns what was taken back. Raises CommandError."""
    paths = [*options["files"], *filter(None, [options["totals"]])]
    if not paths:
        raise CommandError("Name the files to take back: import --undo access.log")
    text = ["Nothing was written. An undo would say:"] if dry_run else []
    for path in paths:
        try:
            with progress_bar("Taking back", verbosity=verbosity, unit=" views") as bar:
                undone = undo.undo(path, dry_run=dry_run, progress=bar.update)
        except (ledger.ImportRefusedError, OSError) as error:
            raise CommandError("\n".join([*text, str(error)])) from error
        lines_of_text, notes = undo.text_of(undone, dry_run=dry_run)
        text += [*lines_of_text, *(command.style.WARNING(note) for note in notes)]
    return "\n".join(text)


def _text(report: ledger.Report, *, dry_run: bool) -> list[str]:
    """Returns a report as lines of text, without its notes."""
    text = []
    if dry_run:
        text.append("Nothing was written. An import would say:")
    if report.finished:
        text.append(
            f"{counted(report.finished, 'log')} imported before, with nothing new. --again counts"
            " lines that did not count then. --undo takes back what a log has added."
        )
    if report.examples:
        text += ["Some lines, as they were understood:", *report.examples, ""]
    return text + _figures(report)


def _report(*, dry_run: bool, verbosity: int, options: dict[str, Any]) -> ledger.Report:
    """Imports what the options name, and returns a report.

    Raises ImportRefusedError, and OSError for a log that cannot be read.
    """
    paths = options["files"]
    bar_options: dict[str, Any] = {"unit": " rows"}
    if paths:
        size = sum(Path(path).stat().st_size for path in paths)
        bar_options = {"unit": "B", "unit_scale": True, "total": size}
    with progress_bar("Importing", verbosity=verbosity, **bar_options) as bar:
        if options["app"]:
            return tables.take_hitcount(
                using=options["database"], dry_run=dry_run, progress=bar.update
            )
        if options["totals"]:
            return totals.take_totals(options["totals"], dry_run=dry_run, progress=bar.update)
        if options["reads"]:
            return reads.take_reads(
                options["reads"],
                user=options["user_field"],
                category=options["category_field"],
                all_of=options["all_of"],
                read_until=options["read_until"],
                published=options["published"],
                dry_run=dry_run,
                progress=bar.update,
            )
        importer = weblog.Importer(
            form=options["form"],
            fields=dict(options["field"]),
            where=options["where"],
            is_decoded=options["decoded"],
            hosts=options["host"],
            since=options["since"],
            until=options["until"],
            count_robots=options["count_robots"],
            again=options["again"],
            dry_run=dry_run,
            jobs=options["jobs"],
            progress=bar.update,
        )
        return importer.run(paths)


def _figures(report: ledger.Report) -> list[str]:
    """Returns the numbers of a report as lines of text."""
    figures = [("read", report.read), ("counted", report.counted)]
    figures += _with_reasons("skipped", report.skipped, of=report.read)
    figures += _with_reasons("not resolved", report.not_resolved, of=report.read)
    return [f"{count:>12,}  {name}" for name, count in figures]


def _with_reasons(name: str, reasons: Counter[str], *, of: int) -> list[tuple[str, int]]:
    """Returns a named sum of lines, and below it the lines of the most frequent reasons.

    `of` is the number of all lines, of which each reason has its share in per cent.
    """
    figures = [(name, reasons.total())]
    without_zeros = +reasons
    for reason, count in without_zeros.most_common(REASONS):
        figures.append((f"  {reason} ({count / of:.0%})", count))
    return figures
