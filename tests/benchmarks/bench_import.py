"""Taking over a web server's log: lines per second beside merely unpacking it, peak memory, the
processor's time beside GoAccess's for the same log, and what further processes change.
"""

import gzip
import os
import random
import resource
import shutil
import subprocess
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from readtrack.flush.run import flush
from readtrack.imports.models import Import
from readtrack.imports.weblog import Importer
from readtrack.store.connection import connect
from tests.benchmarks.measuring import table
from tests.imports.weblogs import ROBOT
from tests.site.models import Post
from tests.support.factories import BROWSER

POSTS = 2_000
LINES = (100_000, 400_000)
PAIRS = 3
PAIR_LINES = 200_000
FILES = (2, 4)  # pieces of one log
JOBS = (1, 2)
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
    _beside_goaccess(first)
    _side_by_side(first)


def _beside_goaccess(first: int) -> None:
    """Prints the processor's time of both for the same logs, one after the other."""
    if not shutil.which("goaccess"):
        print("\nDebian's goaccess is not installed.")
        return
    rows: list[tuple[str, ...]] = [("", "GoAccess", "import", "ratio")]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(PAIRS):
            packed = Path(folder) / "packed.gz"
            _write(packed, lines=PAIR_LINES, first=first)
            path = Path(folder) / "access.log"
            # A line of its own, or the log would be known.
            path.write_bytes(gzip.decompress(packed.read_bytes()) + b"pair %d\n" % number)
            flush()  # as the site does each minute: it is not the import's work
            peer = _goaccess_seconds(path)
            own = _imported(path).processor
            rows.append(
                (f"pair {number + 1}", f"{peer:.2f} s", f"{own:.2f} s", f"{own / peer:.1f} ×")
            )
    table(f"Processor's time for {PAIR_LINES:,} lines (at most 3.5 ×)", rows)


def _side_by_side(first: int) -> None:
    """Prints the time on the clock and that of the processor for a log in pieces, whose lines are
    judged by this process or by others.
    """
    rows: list[tuple[str, ...]] = [("", "GoAccess", *(f"--jobs {jobs}" for jobs in JOBS))]
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "packed.gz"
        for count in FILES:
            _write(packed, lines=PAIR_LINES, first=first)
            texts = gzip.decompress(packed.read_bytes()).splitlines(keepends=True)
            size = len(texts) // count
            paths = [Path(folder) / f"access.log.{number}" for number in range(count)]
            for number, path in enumerate(paths):
                path.write_bytes(b"".join(texts[number * size : (number + 1) * size]))
            row = [f"{count} files"]
            if shutil.which("goaccess"):
                row.append(f"{_goaccess_seconds(*paths):.1f} s of the processor")
            else:
                row.append("not installed")
            for jobs in JOBS:
                Import.objects.all().delete()
                flush()
                spent = _imported(*paths, jobs=jobs)
                row.append(f"{spent.seconds:.1f} s, {spent.processor:.1f} s of the processor")
            rows.append(tuple(row))
    table(f"{PAIR_LINES:,} lines in files side by side, on {os.cpu_count()} processors", rows)


def _goaccess_seconds(*paths: Path) -> float:
    """Returns the seconds of the processor that GoAccess takes for a report of the log."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = paths[0].with_suffix(".json")
    subprocess.run(
        ["goaccess", *paths, "--log-format=COMBINED", "-o", report, "--no-global-config"],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Spent(NamedTuple):
    """What an import has taken."""

    seconds: float
    views: float
    memory: float  # by which the process grew (kB)
    processor: float  # seconds


def _row(path: Path, *, lines: int) -> tuple[str, ...]:
    bare = _unpacked(path)
    spent, counted, memory, _ = _imported(path)
    again = _imported(path).seconds
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


def _imported(*paths: Path, jobs: int = 1) -> Spent:
    """Imports the log in a fork. The processor's time includes that of its processes."""
    from django.db import connections

    connections.close_all()
    reader, writer = os.pipe()
    if not (fork := os.fork()):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = perf_counter()
        processor = process_time()
        report = Importer(jobs=jobs).run([*map(str, paths)])
        processor = process_time() - processor
        judges = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor += judges.ru_utime + judges.ru_stime
        spent = perf_counter() - start
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        os.write(writer, f"{spent} {report.counted} {grown} {processor}".encode())
        os._exit(0)
    os.waitpid(fork, 0)
    return Spent(*(float(word) for word in os.read(reader, 200).split()))


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
