"""`manage.py readtrack budget`"""

import json
from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand

from readtrack.doctor.budget import Budget, budget
from readtrack.doctor.findings import counted, size

description = """Prints the memory that readtrack takes of Redis now, and would take for a site of another size.

  manage.py readtrack budget
  manage.py readtrack budget --posts 100000 --active 0.2 --visitors 3000 --readers 1000000

Numbers that are not given are the site's own. The keys in Redis are weighed by MEMORY USAGE on a sample. The four
ways to count unique visitors are weighed on keys that are written for a moment. The textbook's figures stand beside
them: 50 B for a visitor in a set, 12 KB for a HyperLogLog, a bit for each number of a reader."""

NUMBERS = ("posts", "active", "visitors", "readers")


def _number(text: str, *, kind: type[float], highest: int) -> float:
    try:
        number = kind(text)
    except ValueError:
        number = -1
    if not 0 <= number <= highest:
        raise ArgumentTypeError(f"{text!r} is no number from 0 to {highest:,}")
    return number


_count = partial(_number, kind=int, highest=10**12)
_share = partial(_number, kind=float, highest=1)
arguments = {
    "--posts": {"type": _count, "metavar": "N", "help": "posts, viewed or not"},
    "--active": {"type": _share, "metavar": "SHARE", "help": "share of the posts that has views, 0 to 1"},
    "--visitors": {"type": _count, "metavar": "N", "help": "different visitors of a post with views"},
    "--readers": {"type": _count, "metavar": "N", "help": "highest number of a reader (user id)"},
    "--json": {"action": "store_true", "dest": "as_json", "help": "print one JSON object, sizes in bytes"},
}


def run(command: BaseCommand, *, as_json: bool, **options: Any) -> None:
    """Measures and prints."""
    found = budget(**{name: options[name] for name in NUMBERS if options[name] is not None})
    if as_json:
        command.stdout.write(json.dumps(asdict(found), indent=2))
        return
    command.stdout.write("\n".join(_text(found)))
    for warning in found.warnings:
        command.stdout.write(command.style.WARNING(warning))


def _text(found: Budget) -> list[str]:
    kinds = [(name, f"{kind.keys:,}", size(kind.each), size(kind.total)) for name, kind in found.kinds.items()]
    total = ("", "", "", size(sum(kind.total for kind in found.kinds.values())))
    ways = [(way.name, size(way.each), size(way.textbook), size(way.total), way.answers) for way in found.strategies]
    others = [(name, size(count)) for name, count in found.projected.items()]
    site = found.numbers
    advice = (
        f"No advice, because {found.reason}. Give numbers of a site, such as --posts 1000 --active 0.2 --visitors 300."
    )
    if found.advised:
        advice = f"Advice: READTRACK['UNIQUE'] = '{found.advised}', because {found.reason}."
    return [
        "In Redis now:",
        *(_table([("key", "keys", "each", "all"), *kinds, total]) if kinds else ["  no keys"]),
        "",
        f"For {counted(site.posts, 'post')}, {100 * site.active:.1f} % of them viewed, by"
        f" {counted(site.visitors, 'visitor')} each, and readers with numbers up to {site.readers:,}:",
        *_table([("unique visitors", "a post", "textbook", "all posts", ""), *ways]),
        "",
        *_table([("other keys", "all posts"), *others]),
        "",
        advice,
    ]


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Returns the rows as lines, the first one as the head. Columns 2 to 4 are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others[:3], widths[1:4], strict=True)]
        lines.append("  ".join(["  " + first.ljust(widths[0]), *cells, *others[3:]]).rstrip())
    return lines
