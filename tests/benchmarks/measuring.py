"""How a benchmark measures: alternatives in turn, round after round, so that a noisy machine is
noisy for all.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple

Work = Callable[[], object]

ROUNDS = 9
# Names of environment variables.
SERVERS = "READTRACK_BENCHMARK_SERVERS"  # process ids of Redis and of PostgreSQL
ROWS = "READTRACK_BENCHMARK_ROWS"  # file that tables are added to as JSON, see against.py


class Spent(NamedTuple):
    """Processor time (s) by who spent it."""

    process: float
    redis: float
    sql: float

    @property
    def total(self) -> float:
        """Returns the time of all three."""
        return sum(self)


def spent(work: Work) -> Spent:
    """Returns the processor time that the work takes here, in Redis and in PostgreSQL. Linux only."""
    before = processor_times()
    work()
    after = processor_times()
    return Spent(*(end - start for start, end in zip(before, after, strict=True)))


def processor_times() -> Spent:
    """Returns the processor time of this process, of Redis and of PostgreSQL until now. Linux only."""
    redis, sql = map(int, os.environ[SERVERS].split())
    return Spent(process_time(), time_of_family(redis), time_of_family(sql))


def time_of_family(pid: int) -> float:
    """Returns the processor time of a process, its children, and its children that have ended."""
    ticks_of_ended = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15]
    time = sum(map(int, ticks_of_ended)) / os.sysconf("SC_CLK_TCK")
    for process in (pid, *_children(pid)):
        for thread in Path(f"/proc/{process}/task").glob("*/schedstat"):
            nanoseconds, *_ = thread.read_text().split()
            time += int(nanoseconds) / 1e9
    return time


def _children(pid: int) -> Iterator[int]:
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        yield from map(int, children.read_text().split())


def compare(
    works: Mapping[str, Work], *, each: int, rounds: int = ROUNDS
) -> dict[str, tuple[float, float]]:
    """Microseconds for one of `each` things that a work does, and its ratio to the first work.

    Both are medians over the rounds; the ratio is taken within a round. The first round only warms
    up.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            start = perf_counter()
            work()
            times[name].append((perf_counter() - start) / each * 1_000_000)
    base = next(iter(times.values()))[1:]
    return {
        name: (
            median(spent[1:]),
            median(one / other for one, other in zip(spent[1:], base, strict=True)),
        )
        for name, spent in times.items()
    }


def table(title: str, rows: Sequence[tuple[str, ...]]) -> None:
    """Prints the rows under the title, the first row as the head, numbers to the right."""
    if ROWS in os.environ:
        with Path(os.environ[ROWS]).open("a", encoding="utf-8") as file:
            file.write(json.dumps([title, rows]) + "\n")
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    print(f"\n{title}")
    for row in rows:
        print(
            "  " + row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            sep="  ",
        )
