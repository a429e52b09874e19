"""Taking over a web server's log: lines per second beside merely unpacking it, and peak memory."""

import gzip
import os
import random
import resource
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path
from time import perf_counter

from readtrack.imports.models import Import
from readtrack.imports.weblog import Importer
from readtrack.store.connection import connect
from tests.benchmarks.measuring import table
from tests.imports.weblogs import ROBOT
from tests.site.models import Post
from tests.support.factories import BROWSER

POSTS = 2_000
LINES = (100_000, 400_000)
START = datetime(2026, 3, 1, tzinfo=timezone.utc)


def main() -> None:
    """Prints a row for each size of log; each is imported in a fork, so that its memory is its own."""
    connect().flushdb()
    Post.objects.bulk_create(Post(title=f"Imported {number}") for number in range(POSTS))
    first = Post.objects.order_by("-pk")[POSTS - 1].pk
    rows: list[tuple[str, ...]] = [
        ("", "gzip alone", "lines/s", "ratio", "views/s", "memory", "again")
    ]
    with tempfile.TemporaryDirectory() as folder:
        for lines in LINES:
            path = Path(folder) / f"{lines}.log.gz"
            _write(path, lines=lines, first=first)
            rows.append((f"{lines:,} lines", *_row(path, lines=lines)))
    table(
        "Importing a gzip log of a month (half of its lines are views, the rest files, robots, errors)",
        rows,
    )


def _row(path: Path, *, lines: int) -> tuple[str, ...]:
    bare = _unpacked(path)
    spent, counted, memory = _imported(path)
    again, _, _ = _imported(path)
    return (
        f"{lines / bare:,.0f}/s",
        f"{lines / spent:,.0f}",
        f"{spent / bare:.0f} ×",
        f"{counted / spent:,.0f}",
        f"+{memory / 1024:.0f} MB",
        f"{again:.2f} s",
    )


def _unpacked(path: Path) -> float:
    start = perf_counter()
    with gzip.open(path) as file:
        for _ in file:
            pass
    return perf_counter() - start


def _imported(path: Path) -> tuple[float, float, float]:
    """Seconds, views, and how many kB the process grew."""
    from django.db import connections

    connections.close_all()
    reader, writer = os.pipe()
    if not (fork := os.fork()):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = perf_counter()
        report = Importer().run([str(path)])
        spent = perf_counter() - start
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        os.write(writer, f"{spent} {report.counted} {grown}".encode())
        os._exit(0)
    os.waitpid(fork, 0)
    found = [float(word) for word in os.read(reader, 100).split()]
    return found[0], found[1], found[2]


def _write(path: Path, *, lines: int, first: int) -> None:
    rng = random.Random(lines)
    step = 30 * 86400 / lines
    with gzip.open(path, "wt", compresslevel=1) as file:
        for number in range(lines):
            at = START + timedelta(seconds=number * step)
            shown = first + int(POSTS * rng.random() ** 3)
            asked = (
                f"/posts/{shown}/" if rng.random() < 0.6 else f"/static/{int(rng.random() * 50)}.js"
            )
            agent = ROBOT if rng.random() < 0.1 else f"{BROWSER} {int(rng.random() * 300)}"
            address = f"10.{rng.randrange(4)}.{rng.randrange(256)}.{rng.randrange(256)}"
            status = 404 if rng.random() < 0.05 else 200
            file.write(
                f'{address} - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "GET {asked} HTTP/1.1" {status} 5120 "-" "{agent}"\n'
            )
    Import.objects.all().delete()
