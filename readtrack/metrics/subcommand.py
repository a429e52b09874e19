"""`manage.py readtrack budget`."""

import json
from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from readtrack.doctor.wording import counted, size
from readtrack.management.subcommands.base import Subcommand
from readtrack.metrics.budget import Budget as Estimate
from readtrack.metrics.budget import budget
from readtrack.metrics.memory import KeyKind

NUMBERS = (
    "posts",
    "active",
    "visitors",
    "readers",
    "views",
    "categories",
    "threads",
)  # of a SiteSize
# What each strategy of unique visitors can tell, by its name.
ANSWERS = {
    "hll": "within 0.81 %, any posts together",
    "set": "exact, who has seen what",
    "daily": "exact for a day, who has seen what on it; two days at most",
    "bitmap": "exact, signed-in users only, who has seen what",
    "none": "nothing",
}
MOST = 10**12  # the highest number that can be given


def count(text: str) -> int:
    """Returns the whole number in an argument. Raises ArgumentTypeError for other texts."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number <= MOST:
        raise ArgumentTypeError(f"{text!r} is no number from 0 to {MOST:,}")
    return number


def share(text: str) -> float:
    """Returns the share (0 to 1) in an argument. Raises ArgumentTypeError for other texts."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"{text!r} is no number from 0 to 1")
    return number


class Budget(Subcommand):
    """Prints the memory that readtrack takes of Redis, and the rows of days that it adds to SQL."""

    name = "budget"
    help = """\
Prints the memory that readtrack takes of Redis now, and would take for a site of another size.

  manage.py readtrack budget
  manage.py readtrack budget --posts 100000 --active 0.2 --visitors 3000 --views 500000 --readers 1000000

Numbers that are not given are the site's own. The keys in Redis are weighed on a sample. For the other size, a key of
each kind that your settings use is written for a moment and weighed. Views are taken to fall on posts by chance, and
each to be of another visitor. On a site without views yet, its visitors are taken to come within a month.
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--posts", type=count, metavar="N", help="posts, viewed or not")
        parser.add_argument(
            "--active",
            type=share,
            metavar="SHARE",
            help="share of the posts that has views, 0 to 1",
        )
        parser.add_argument(
            "--visitors",
            type=count,
            metavar="N",
            help="different visitors of a post with views",
        )
        parser.add_argument("--views", type=count, metavar="N", help="views a day")
        parser.add_argument(
            "--categories", type=count, metavar="N", help="objects with read state by object"
        )
        parser.add_argument(
            "--threads",
            type=count,
            metavar="N",
            help="objects with read state by reader (positions) and something new in the days of THREADS",
        )
        parser.add_argument(
            "--readers", type=count, metavar="N", help="highest number of a reader (user id)"
        )
        parser.add_argument(
            "--json",
            action="store_true",
            dest="as_json",
            help="print one JSON object, sizes in bytes",
        )

    def handle(self, *, as_json: bool, **options: Any) -> str:
        given = {name: options[name] for name in NUMBERS if options[name] is not None}
        estimate = budget(**given)
        if as_json:
            return json.dumps(asdict(estimate), indent=2)
        lines = ["In Redis now:"]
        if estimate.kinds:
            lines += _table_of_kinds(estimate.kinds)
        else:
            lines.append("  no keys")
        lines += ["", _site(estimate), *_table_of_kinds(estimate.projected)]
        lines += ["", _day_rows(estimate)]
        lines += ["", *_table_of_strategies(estimate.strategies)]
        lines += ["", _advice(estimate)]
        return "\n".join(lines)


def _site(estimate: Estimate) -> str:
    """Returns the size of the site whose memory is estimated, as a heading."""
    site = estimate.numbers
    return (
        f"For {counted(site.posts, 'post')}, {100 * site.active:.1f} % of them viewed,"
        f" by {counted(site.visitors, 'visitor')} each, {counted(site.views, 'view')} a day;"
        f" readers with numbers up to {site.readers:,}"
        f" of {counted(site.categories + site.threads, 'object')} with dots:"
    )


def _day_rows(estimate: Estimate) -> str:
    """Returns a line about the rows in SQL of objects by day."""
    days = estimate.day_rows
    return (
        "In SQL, what each object gains by value and day:"
        f" {counted(days.rows, 'row')} a day, {size(days.total)}."
    )


def _table_of_kinds(kinds: Mapping[str, KeyKind]) -> list[str]:
    """Returns the lines of a table of kinds of keys by pattern, with the sum of their sizes."""
    rows = [("key", "keys", "each", "all")]
    for pattern, key_kind in kinds.items():
        rows.append((pattern, f"{key_kind.keys:,}", size(key_kind.each), size(key_kind.total)))
    total = sum(key_kind.total for key_kind in kinds.values())
    rows.append(("", "", "", size(total)))
    return ["  {:36} {:>13} {:>9} {:>9}".format(*row) for row in rows]


def _table_of_strategies(strategies: Mapping[str, KeyKind]) -> list[str]:
    """Returns the lines of a table of the strategies that count unique visitors, by name."""
    lines = [f"  {'ways to count visitors':26} {'a post':>9} {'all posts':>9}"]
    for name, key_kind in strategies.items():
        answers = ANSWERS[name]
        lines.append(f"  {name:26} {size(key_kind.each):>9} {size(key_kind.total):>9}  {answers}")
    return lines


def _advice(estimate: Estimate) -> str:
    """Returns the strategy to choose, or why none can be advised."""
    if estimate.advised:
        return f"Advice: READTRACK['UNIQUE'] = '{estimate.advised}', because {estimate.reason}."
    return (
        f"No advice, because {estimate.reason}."
        " Give numbers, such as --posts 1000 --active 0.2 --visitors 300."
    )
