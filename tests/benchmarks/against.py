"""Runs benchmarks on two revisions in turns, on the same servers, and prints ratios.

The other revision is checked out into a temporary folder, and gets the benchmarks of this one. So a
benchmark has to work with both: what only one of them has is looked up, not imported. Each turn is
a process of its own, with the revision's own migrations on an empty database.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psycopg
from redis import Redis

from tests.benchmarks import measuring

ROOT = Path(__file__).parents[2]
FOLDER = Path("tests", "benchmarks")
RUN = "import sys; from tests.benchmarks.__main__ import run; run(sys.argv[1:])"
# A number with its unit, such as "1,234 µs"; a cell may have more behind it.
CELL = re.compile(r"(?P<number>\d[\d,]*(?:\.\d+)?) ?(?P<unit>[^\d\s(]*)")
RATIO = "×"  # to another row of the same table: the ratio of two ratios would say nothing new
SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}


class Cell(NamedTuple):
    """A place in the tables of benchmarks."""

    table: str
    row: str
    column: int


class Measured(NamedTuple):
    """A number in a cell. Times are in seconds."""

    number: float
    unit: str


def compare_revisions(names: Sequence[str], revision: str, *, rounds: int) -> None:
    """Runs the benchmarks on both revisions, round after round, and prints the medians of both and
    of the ratios within each round.
    """
    measured: dict[str, defaultdict[Cell, list[Measured]]] = {
        revision: defaultdict(list),
        "this": defaultdict(list),
    }
    with _checked_out(revision) as folder:
        turns = [(revision, folder), ("this", ROOT)]
        for number in range(rounds):
            # The first turn of each round changes, because the second one finds warmer caches.
            for name, place in turns if number % 2 == 0 else reversed(turns):
                for cell, value in _turn(names, place).items():
                    measured[name][cell].append(value)
    _print(revision, measured[revision], measured["this"])


@contextmanager
def _checked_out(revision: str) -> Iterator[Path]:
    """Gives a folder with the revision, and with the benchmarks of this one."""
    with TemporaryDirectory(prefix="readtrack-against-") as parent:
        folder = Path(parent, "revision")
        _git("worktree", "add", "--quiet", "--detach", str(folder), revision)
        try:
            shutil.rmtree(folder / FOLDER)
            shutil.copytree(ROOT / FOLDER, folder / FOLDER)
            yield folder
        finally:
            _git("worktree", "remove", "--force", str(folder))


def _git(*words: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *words], check=True)


def _turn(names: Sequence[str], folder: Path) -> dict[Cell, Measured]:
    """Runs the benchmarks once in that folder, on empty servers. Returns what they print."""
    with Redis.from_url(os.environ["READTRACK_TEST_REDIS_URL"]) as redis:
        redis.flushall()
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    with TemporaryDirectory(prefix="readtrack-rows-") as parent:
        rows = Path(parent, "rows.jsonl")
        subprocess.run(
            [sys.executable, "-c", RUN, *names],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder), measuring.ROWS: str(rows)},
            check=True,
        )
        return dict(_cells(rows))


def _cells(rows: Path) -> Iterator[tuple[Cell, Measured]]:
    """Yields each cell with a number that the benchmarks printed."""
    for line in rows.read_text(encoding="utf-8").splitlines():
        title, table = json.loads(line)
        for row in table[1:]:
            for column, text in enumerate(row[1:], start=1):
                found = CELL.match(text)
                if found and found["unit"] != RATIO:
                    number = float(found["number"].replace(",", ""))
                    unit = found["unit"]
                    if unit in SECONDS:
                        number *= SECONDS[unit]
                        unit = "s"
                    yield (
                        Cell(title, f"{row[0]} ({table[0][column]})", column),
                        Measured(number, unit),
                    )


def _print(
    revision: str,
    before: defaultdict[Cell, list[Measured]],
    after: defaultdict[Cell, list[Measured]],
) -> None:
    """Prints the cells that both revisions have, a table for each table."""
    tables: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for cell in [cell for cell in before if cell in after]:
        pairs = [*zip_longest(before[cell], after[cell])]
        if any(one is None or other is None or one.unit != other.unit for one, other in pairs):
            continue
        ratios = [other.number / one.number for one, other in pairs if one.number]
        if not ratios:
            continue
        unit = pairs[0][0].unit
        tables[cell.table].append(
            (
                cell.row,
                f"{median(one.number for one, _ in pairs):.4g} {unit}",
                f"{median(other.number for _, other in pairs):.4g} {unit}",
                f"{median(ratios):.2f}",
                " ".join(f"{ratio:.2f}" for ratio in ratios),
            )
        )
    for title, rows in tables.items():
        measuring.table(title, [("", revision, "this", "ratio", "in each round"), *rows])
