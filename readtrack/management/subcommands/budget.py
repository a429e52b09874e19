"""`manage.py readtrack budget`"""

import json
from argparse import ArgumentTypeError
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand

from readtrack.doctor.budget import Budget, budget
from readtrack.doctor.findings import counted, size
from readtrack.store.server import KeyKind
from readtrack.store.uniques import STRATEGIES

NUMBERS = ("posts", "active", "visitors", "readers", "views", "categories")
ROW = "  {:36} {:>13} {:>9} {:>9}"
SHOWN = 0.01  # share of the memory from which on a kind of key has a line of its own


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
    "--views": {"type": _count, "metavar": "N", "help": "views a day"},
    "--categories": {"type": _count, "metavar": "N", "help": "objects with read state"},
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


def _text(found: Budget) -> list[str]:
    ways = [
        f"  {name:26} {size(way.each):>9} {size(way.total):>9}  {STRATEGIES[name].answers}"
        for name, way in found.strategies.items()
    ]
    site = found.numbers
    advice = f"No advice, because {found.reason}. Give numbers, such as --posts 1000 --active 0.2 --visitors 300."
    if found.advised:
        advice = f"Advice: READTRACK['UNIQUE'] = '{found.advised}', because {found.reason}."
    return [
        "In Redis now:",
        *(_kinds(found.kinds) if found.kinds else ["  no keys"]),
        "",
        f"For {counted(site.posts, 'post')}, {100 * site.active:.1f} % of them viewed, by"
        f" {counted(site.visitors, 'visitor')} each, {counted(site.views, 'view')} a day; readers with numbers up to"
        f" {site.readers:,} of {counted(site.categories, 'object')} with dots:",
        *_kinds(found.projected),
        "",
        f"  {'ways to count visitors':26} {'a post':>9} {'all posts':>9}",
        *ways,
        "",
        advice,
    ]


def _kinds(found: Mapping[str, KeyKind]) -> Iterator[str]:
    """Yields a table of kinds of keys; small ones share a line."""
    total, small = sum(kind.total for kind in found.values()), []
    yield ROW.format("key", "keys", "each", "all")
    for name, kind in found.items():
        if kind.total >= SHOWN * total:
            yield ROW.format(name, f"{kind.keys:,}", size(kind.each), size(kind.total))
        else:
            small.append(kind.total)
    if small:
        yield ROW.format(counted(len(small), "smaller kind"), "", "", size(sum(small)))
    yield ROW.format("", "", "", size(total))
