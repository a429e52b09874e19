"""Whether a flush of a minute depends on what changed alone: as many changed posts among ever more.

One post is viewed, Redis copies its views to all others, and a full flush stores them. What changed
is then viewed through the middleware.
"""

import os
from collections.abc import Sequence
from functools import partial
from statistics import median
from time import perf_counter

from django.test import override_settings

from readtrack.flush.run import flush
from readtrack.models import FlushRun
from tests.benchmarks.bench_flush import seed, site_settings, sql, view
from tests.benchmarks.bench_memory import empty_tables, server_memory
from tests.benchmarks.copied import copy_views
from tests.benchmarks.measuring import Spent, spent, table

POSTS = int(os.environ.get("READTRACK_BENCHMARK_POSTS", "1000000"))
SIZES = (10_000, 100_000, 1_000_000)
CHANGED = {100: 15, 1_000: 9, 10_000: 5}  # posts that change, and rounds of each
VIEWS = 3  # of each post


def main(posts: int = POSTS) -> None:
    """Prints two tables; as many changed posts may take a tenth more or less among more."""
    filled: list[tuple[str, ...]] = []
    found: dict[tuple[int, int], Spent] = {}
    with override_settings(READTRACK=site_settings(), ALLOWED_HOSTS=["testserver"]):
        for size in SIZES:
            if size <= posts:
                filled.append(fill(size))
                for changed, rounds in CHANGED.items():
                    found[changed, size] = minutes_among(size, changed=changed, rounds=rounds)
    head = (
        "posts",
        "copied in",
        "a full flush of all",
        "process",
        "Redis",
        "SQL",
        "a post",
        "Redis",
    )
    table(f"Posts that were viewed {VIEWS} times, processor time", [head, *filled])
    print_minutes(found)


def print_minutes(found: dict[tuple[int, int], Spent]) -> None:
    """Prints the flushes by the number of changed posts, and of all."""
    rows = []
    first: dict[int, float] = {}
    for (changed, size), times in sorted(found.items()):
        first.setdefault(changed, times.total)
        rows.append(
            (
                f"{changed:,}",
                f"{size:,}",
                *_milliseconds(times),
                f"{times.total / changed * 1e6:.0f} µs",
                f"{times.total / first[changed]:.2f} ×",
            )
        )
    head = ("changed", "among", "all", "process", "Redis", "SQL", "a changed post", "÷ first")
    table("Flush of a minute, processor time", [head, *rows])


def _milliseconds(times: Spent) -> list[str]:
    """Returns the time of all, and of each of the three."""
    return [f"{time * 1000:.1f} ms" for time in (times.total, *times)]


def minutes_among(posts: int, *, changed: int, rounds: int) -> Spent:
    """Returns what a flush of a minute takes with so many changed posts among so many (median).

    The same posts change in each round, so they are viewed as often among few as among many.
    """
    flushes: list[Spent] = []
    # The first round does what a site does once.
    for _ in range(rounds + 1):
        view(range(1, posts + 1, posts // changed))
        flushes.append(spent(partial(flush, only_changed=True)))
        assert FlushRun.objects.latest().written >= changed
    return median_of(flushes[1:])


def median_of(flushes: Sequence[Spent]) -> Spent:
    """Returns the flush in the middle by the time of all processes."""
    middle = median(sorted(times.total for times in flushes))
    return next(times for times in flushes if times.total == middle)


def fill(posts: int) -> tuple[str, ...]:
    """Makes the posts with the keys and the rows of their views. Returns what that took."""
    empty_tables()
    seed(posts)
    flush()
    for _ in range(VIEWS):
        view([1])
    began = perf_counter()
    copy_views(1, first=2, last=posts)
    copied_in = perf_counter() - began
    times = spent(flush)
    run = FlushRun.objects.latest()
    assert (run.written, run.failed, run.faults) == (posts, 0, ""), run.faults
    sql("VACUUM ANALYZE")
    return (
        f"{posts:,}",
        f"{copied_in:.1f} s",
        *_milliseconds(times),
        f"{times.total / posts * 1e6:.0f} µs",
        f"{server_memory() / 1e6:.0f} MB",
    )
