"""`manage.py readtrack budget`"""

import json
from argparse import ArgumentTypeError
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.template.defaultfilters import filesizeformat
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext

from readtrack.doctor.budget import Budget, Numbers, budget
from readtrack.management.errors import redis_failed
from readtrack.numerals import exact
from readtrack.store.connection import RedisError

help = "print what readtrack takes of Redis's memory, or would take"  # noqa: A001
description = """Prints what readtrack takes of Redis's memory, or would take.

What is there is weighed by MEMORY USAGE on a bounded sample. The four ways to count unique visitors are weighed
on small keys written for that and removed at once, beside the textbook's figures: 50 B a visitor in a set, 12 kB
a sketch, an eighth of a byte a reader number. Numbers that are not given are the site's own."""


def add_arguments(parser: CommandParser) -> None:
    """A site to reckon with."""
    parser.add_argument("--posts", type=_count, metavar="N", help="posts, viewed or not")
    parser.add_argument("--active", type=_share, metavar="SHARE", help="share of them that has views, 0 to 1")
    parser.add_argument("--visitors", type=_count, metavar="N", help="different visitors of a post with views")
    parser.add_argument("--readers", type=_count, metavar="N", help="highest number of a reader")
    parser.add_argument("--json", action="store_true", dest="as_json", help="for programs; sizes in bytes")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) > 10**12:
        raise ArgumentTypeError(f"{text!r} is no whole number from 0 to a million million")
    return int(text)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ArgumentTypeError(f"{text!r} is no share from 0 to 1, such as 0.05")
    return share


def run(command: BaseCommand, *, as_json: bool, **options: Any) -> None:
    """Measures and prints."""
    try:
        found = budget(**{name: options[name] for name in ("posts", "active", "visitors", "readers")})
    except RedisError as error:
        raise redis_failed(error) from error
    command.stdout.write(_json(found) if as_json else "\n".join(_text(found)))
    if not as_json:
        for warning in found.warnings:
            command.stdout.write(command.style.WARNING(warning))


def _json(found: Budget) -> str:
    parts = found._asdict()
    parts["numbers"] = found.numbers._asdict()
    parts["strategies"] = [strategy._asdict() for strategy in found.strategies]
    parts["families"] = {
        name: {"keys": family.keys, "each": round(family.each, 1), "all": family.bytes}
        for name, family in found.families.items()
    }
    return json.dumps(parts, indent=2)


def _text(found: Budget) -> list[str]:
    families = sorted(found.families.items(), key=lambda item: item[1].bytes, reverse=True)
    rows = [(name, exact(kind.keys), f"{exact(round(kind.each))} B", _size(kind.bytes)) for name, kind in families]
    total = ("", "", "", _size(sum(kind.bytes for _, kind in families)))
    ways = [(way.name, _size(way.each), _size(way.textbook), _size(way.all), way.answers) for way in found.strategies]
    besides = [(name, _size(size)) for name, size in found.projected.items()]
    a_post, all_posts = gettext("a post"), gettext("all posts")
    return [
        gettext("In Redis now"),
        *_table([(gettext("key"), gettext("keys"), gettext("each"), gettext("all")), *rows, total]),
        "",
        _site(found.numbers),
        *_table([(gettext("unique visitors"), a_post, gettext("textbook"), all_posts, ""), *ways]),
        "",
        *_table([(gettext("besides"), all_posts), *besides]),
        "",
        _advice(found),
    ]


def _advice(found: Budget) -> str:
    if found.advised:
        return gettext("Advised: %(strategy)s, for %(reason)s.") % {"strategy": found.advised, "reason": found.reason}
    hint = gettext("Give numbers to reckon with, such as --posts 1000 --active 0.2 --visitors 300.")
    return f"{gettext('Nothing is advised, for %(reason)s.') % {'reason': found.reason}} {hint}"


def _site(numbers: Numbers) -> str:
    posts = ngettext("%(count)s post", "%(count)s posts", numbers.posts) % {"count": exact(numbers.posts)}
    viewed = gettext("%(share)s %% viewed") % {"share": number_format(100 * numbers.active, 1)}
    visitors = ngettext("%(count)s visitor each", "%(count)s visitors each", numbers.visitors)
    readers = gettext("readers up to %(number)s") % {"number": exact(numbers.readers)}
    return ", ".join([posts, viewed, visitors % {"count": exact(numbers.visitors)}, readers])


def _size(number: int) -> str:
    return str(filesizeformat(number)).replace("\xa0", " ")


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The rows, the first one as the head; all columns but the first and a last one in words to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:4], widths[1:4], strict=False)]
        lines.append("  ".join(["  " + row[0].ljust(widths[0]), *cells, *row[4:]]).rstrip())
    return lines
