"""`manage.py readtrack budget`"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from readtrack.doctor.budget import Budget, budget
from readtrack.doctor.findings import counted, size
from readtrack.store.server import KeyKind
from readtrack.store.uniques import STRATEGIES

NUMBERS = ("posts", "active", "visitors", "readers", "views", "categories")
ROW = "  {:36} {:>13} {:>9} {:>9}"
SHOWN = 0.01  # share of the memory from which on a kind of key has a line of its own


def run(*, as_json: bool, **options: Any) -> str:
    """Measures. Returns the tables."""
    found = budget(**{name: options[name] for name in NUMBERS if options[name] is not None})
    return json.dumps(asdict(found), indent=2) if as_json else "\n".join(_text(found))


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
