"""`manage.py readtrack`: everything there is to do outside of a request. Each subcommand is a
function.
"""

import json
from argparse import SUPPRESS, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error
from django.utils import timezone

from readtrack import tracker
from readtrack.conf import conf
from readtrack.doctor.budget import KeyKind
from readtrack.doctor.budget import budget as measure
from readtrack.doctor.report import counted, examine, failure, size
from readtrack.flush import resets, run
from readtrack.imports import ledger, logs, weblog
from readtrack.imports.tables import take_hitcount, take_reads
from readtrack.models import History
from readtrack.sql import databases, sql_view
from readtrack.store import connection, flush_notes, repartitioning, uniques
from readtrack.subjects import (
    has_read_state,
    is_counted,
    model_with_label,
    owner,
    read_state_models,
)
from readtrack.unread import starting

TEXTS = Path(__file__).parents[1] / "subcommands"
NUMBERS = ("posts", "active", "visitors", "readers", "views", "categories")  # of a budget
# Of the doctor's findings by their level: the exit status, and the style.
LEVELS = {
    "ok": (0, "SUCCESS"),
    "note": (0, "NOTICE"),
    "warning": (1, "WARNING"),
    "error": (2, "ERROR"),
}


def _bar(**options: Any) -> Any:
    """Returns a progress bar. Only commands that take long import its library."""
    from tqdm import tqdm

    return tqdm(**options)


def flush(*, bar: Any, changed: bool, partition: str, **options: Any) -> str:
    if partition and int(partition.partition("/")[2]) > conf.PARTITIONS:
        raise CommandError(
            f"READTRACK['PARTITIONS'] is {conf.PARTITIONS}, so there is no part {partition}."
        )
    tracker.resend()
    with bar(desc="Flushing", unit=" totals") as shown:
        done = run.flush(only_changed=changed, part=partition, progress=shown.update)
    tracker.refresh_trending()
    names = ("read", "written", "settled", "lifted", "orphans", "locked")
    figures = [f"{name:8} {getattr(done, name):>12,}" for name in names]
    return "\n".join(
        [*figures, f"{'seconds':8} {done.took.total_seconds() if done.took else 0:>12.2f}"]
    )


def doctor(*, command: BaseCommand, as_json: bool, verbosity: int, **options: Any) -> None:
    """Prints the findings. Exits with their status, unless all is well."""
    found = list(examine())
    status = max(LEVELS[finding.level][0] for finding in found)
    if as_json:
        command.stdout.write(
            json.dumps({"status": status, "findings": [one._asdict() for one in found]}, indent=2)
        )
    for level, message, hint, name in found if not as_json else ():
        if verbosity or level in ("warning", "error"):
            styled = getattr(command.style, LEVELS[level][1])(f"{level:8}")
            command.stdout.write(
                f"{styled}{name:12} {message}" + (f"\n{'':20} {hint}" if hint else "")
            )
    if status:
        raise SystemExit(status)


def budget(*, as_json: bool, **options: Any) -> str:
    found = measure(**{name: options[name] for name in NUMBERS if options[name] is not None})
    if as_json:
        return json.dumps(asdict(found), indent=2)
    site = found.numbers
    advice = f"No advice, because {found.reason}. Give numbers, such as --posts 1000 --active 0.2 --visitors 300."
    if found.advised:
        advice = f"Advice: READTRACK['UNIQUE'] = '{found.advised}', because {found.reason}."
    lines = [
        "In Redis now:",
        *(_kinds(found.kinds) if found.kinds else ["  no keys"]),
        "",
        f"For {counted(site.posts, 'post')}, {100 * site.active:.1f} % of them viewed, by"
        f" {counted(site.visitors, 'visitor')} each, {counted(site.views, 'view')} a day; readers with numbers up to"
        f" {site.readers:,} of {counted(site.categories, 'object')} with dots:",
        *_kinds(found.projected),
        "",
        f"  {'ways to count visitors':26} {'a post':>9} {'all posts':>9}",
    ]
    for name, way in found.strategies.items():
        lines.append(
            f"  {name:26} {size(way.each):>9} {size(way.total):>9}  {uniques.STRATEGIES[name].answers}"
        )
    return "\n".join([*lines, "", advice])


def _kinds(found: Mapping[str, KeyKind]) -> list[str]:
    """Returns a table of kinds of keys."""
    rows = [
        (name, f"{kind.keys:,}", size(kind.each), size(kind.total)) for name, kind in found.items()
    ]
    total = size(sum(kind.total for kind in found.values()))
    table = [("key", "keys", "each", "all"), *rows, ("", "", "", total)]
    return ["  {:36} {:>13} {:>9} {:>9}".format(*row) for row in table]


def import_(*, command: BaseCommand, bar: Any, dry_run: bool, **options: Any) -> str:
    app, paths, table = options["app"], options["files"], options["reads"]
    if [bool(one) for one in (app, paths, table)].count(True) != 1:
        raise CommandError("Name log files, or --from hitcount, or a table by --reads.")
    try:
        length = sum(Path(path).stat().st_size for path in paths)
        unit = {"unit": "B", "total": length, "unit_scale": True} if paths else {"unit": " rows"}
        with bar(desc="Importing", **unit) as shown:
            common = {"dry_run": dry_run, "progress": shown.update}
            if app:
                report = take_hitcount(using=options["database"], **common)
            elif table:
                report = take_reads(
                    table, user=options["user_field"], category=options["category_field"], **common
                )
            else:
                wanted = {
                    name: options[name] for name in ("form", "since", "until", "count_robots")
                }
                report = weblog.Importer(**wanted, fields=dict(options["field"]), **common).run(
                    paths
                )
    except ledger.ImportRefusedError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(
            f"{error.filename or 'A log'} cannot be read: {error.strerror or error}"
        ) from error
    figures = [("read", report.read), ("counted", report.counted)]
    for name, parts in (("skipped", report.skipped), ("not resolved", report.not_resolved)):
        largest = (+parts).most_common(20)
        figures += [
            (name, parts.total()),
            *((f"  {part} ({n / report.read:.0%})", n) for part, n in largest),
        ]
    start = ["Nothing was written. An import would say:"] if dry_run else []
    rows = (f"{count:>12,}  {name}" for name, count in figures)
    return "\n".join([*start, *rows, *map(command.style.WARNING, report.notes)])


def reset(*, bar: Any, model: str, **options: Any) -> str:
    found = model_with_label(model)
    if found is None or not (is_counted(found) or has_read_state(found)):
        raise CommandError(
            f"{model!r} is no model with counts or read state. Name it as app_label.ModelName."
        )
    with bar(desc="Resetting", unit=" objects") as shown:
        done = resets.reset_model(found, progress=shown.update)
    return f"Reset {counted(done, 'object')} of {found._meta.label}."


def repartition(*, bar: Any, **options: Any) -> str:
    before, after = flush_notes.known_layout() or conf.PARTITIONS, conf.PARTITIONS
    if after % before:
        raise CommandError(
            f"Redis has {before} partitions. Set READTRACK['PARTITIONS'] to a multiple of that."
        )
    if before != after:
        with repartitioning.layout(before):
            done = run.flush()
        if (
            done.locked
        ):  # their views would be lost where a process of the new number has begun the total anew
            raise CommandError(
                f"{counted(done.locked, 'row')} locked by another transaction. Start again."
            )
    with bar(desc="Moving", unit=" keys") as shown:
        copied = repartitioning.move(before, progress=shown.update)
    return f"Moved {counted(copied, 'key')} from {before} to {counted(after, 'partition')}."


def start_as_read(*, bar: Any, dry_run: bool, model: list[str] | None, **options: Any) -> str:
    models = []
    for label in model or ():
        found = model_with_label(label)
        if found is None or not has_read_state(found):
            known = ", ".join(one._meta.label for one in read_state_models())
            raise CommandError(
                f"{label!r} is no model with read state. This site has: {known or 'none'}."
            )
        models.append(owner(found))
    models = models or read_state_models()
    rows = sum(databases.rows(one).count() for one in models)
    each = starting.size_of(starting.highest_position())
    if not dry_run:
        with bar(desc="Marking", unit=" objects", total=rows) as shown:
            rows = sum(starting.start_as_read(one, progress=shown.update) for one in models)
    verb = "It would mark" if dry_run else "Marked"
    return f"{verb} {counted(rows, 'object')} read, {size(each)} each, {size(each * rows)} in all."


def erase(*, bar: Any, user: str, by: str, **options: Any) -> str:
    model = get_user_model()
    try:
        pk = (
            model._meta.pk.to_python(user)
            if by == "id"
            else model._default_manager.get_by_natural_key(user).pk
        )
    except ValidationError as error:
        raise CommandError(f"{user!r} is not the id of a user.") from error
    except model.DoesNotExist as error:
        raise CommandError(
            f"There is no user {user!r}. To name one by id, deleted or not, add --by id."
        ) from error
    with bar(desc="Erasing", unit=" keys") as shown:
        erased = tracker.erase(pk, progress=shown.update)
    members, bits = counted(erased.members, "member"), counted(erased.bits, "bit")
    remains = TEXTS.joinpath("help", "erased.txt").read_text(encoding="utf-8")
    return (
        f"Erased {counted(erased.keys, 'key')}, {members} of sets and {bits} of bitmaps.\n{remains}"
    )


def daily_view(*, drop: bool, **options: Any) -> str:
    (sql_view.drop_view if drop else sql_view.create_view)(databases.of(History))
    return f"{'Dropped' if drop else 'Created'} the view {sql_view.VIEW}."


SUBCOMMANDS: Mapping[str, Callable[..., str | None]] = {
    work.__name__.strip("_").replace("_", "-"): work
    for work in (
        flush,
        doctor,
        budget,
        import_,
        reset,
        repartition,
        start_as_read,
        erase,
        daily_view,
    )
}


def _number(text: str, *, kind: type[float], highest: int) -> float:
    with suppress(ValueError):
        if 0 <= (number := kind(text)) <= highest:
            return number
    raise ArgumentTypeError(f"{text!r} is no number from 0 to {highest:,}")


def _field(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if name not in logs.FIELDS or not path:
        raise ArgumentTypeError(
            f"{text!r} is not one of {', '.join(logs.FIELDS)}, then = and its path in the JSON"
        )
    return name, path


def _part(text: str) -> str:
    number, parts = map(int, text.split("/"))
    if not 1 <= number <= parts:
        raise ValueError(text)
    return f"{number}/{parts}" if parts > 1 else ""


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else timezone.make_aware(at)


TYPES: Mapping[str, Callable[[str], Any]] = {  # of the arguments in arguments.json
    "count": partial(_number, kind=int, highest=10**12),
    "share": partial(_number, kind=float, highest=1),
    "field": _field,
    "part": _part,
    "time": _time,
}


class Command(BaseCommand):
    """One subcommand for each thing to do, with a --help of its own."""

    help = "Flush, examine, import, reset, erase or show counts and read state. `readtrack COMMAND --help` tells more."

    def add_arguments(self, parser: CommandParser) -> None:
        common = [copy(action) for action in parser._actions if action.dest != "help"]
        for action in common:
            action.default, action.help = (
                SUPPRESS,
                SUPPRESS,
            )  # a default would undo an option before the subcommand
        subparsers = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")
        arguments = json.loads(TEXTS.joinpath("arguments.json").read_text(encoding="utf-8"))
        for name in SUBCOMMANDS:
            text = TEXTS.joinpath("help", f"{name}.txt").read_text(encoding="utf-8")
            subparser = subparsers.add_parser(name, help=text.partition(".")[0], description=text)
            subparser.formatter_class = RawDescriptionHelpFormatter
            for kind, parse in TYPES.items():
                subparser.register("type", kind, parse)
            for argument, meaning in arguments[name].items():
                subparser.add_argument(argument, **meaning)
            for action in common:
                subparser._add_action(action)

    def handle(self, *args: Any, subcommand: str, verbosity: int, **options: Any) -> str | None:
        # Hidden for the first second, with verbosity 0, and where the output is no terminal.
        bar = partial(_bar, delay=1, leave=False, disable=None if verbosity else True)
        try:
            # The doctor reports that among its findings.
            if subcommand != "doctor" and (problem := connection.misconfiguration()):
                raise connection.UnusableError(problem)
            said = SUBCOMMANDS[subcommand](command=self, bar=bar, verbosity=verbosity, **options)
        except (connection.RedisError, Error) as error:
            finding = failure(error)
            raise CommandError(
                f"{finding.message}\n{finding.hint}\nWhat was done stays. Run it again."
            ) from error
        return said if verbosity or options.get("as_json") else None
