"""How a benchmark measures: alternatives in turn, round after round, so that a noisy machine is
noisy for all.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter

Work = Callable[[], object]

ROUNDS = 9


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
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    print(f"\n{title}")
    for row in rows:
        print(
            "  " + row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            sep="  ",
        )
