"""History of 20 million rows, divided by month: charts of a year, thinning, retention, and who
waits for them.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import count
from statistics import median
from time import perf_counter
from typing import Any

from django.db import connection, connections

from readtrack import buckets
from readtrack.numbers.reports import series
from readtrack.numbers.sql import history, history_months, thinning
from readtrack.sql.row_counts import RowCounts
from tests.benchmarks.measuring import table
from tests.site.models import Post

MILLIONS = int(os.environ.get("READTRACK_BENCHMARK_HISTORY", "20"))  # rows
SHARE = MILLIONS / 20
DAILY, HOURLY = int(20_000 * SHARE), int(6_500 * SHARE)  # posts viewed every day, and every hour
DAYS, HOURLY_DAYS = 400, 90
ROUNDS = 9
LABELS = ["site.post", "site.page", "site.product"]


def main() -> None:
    """Prints a table. The rows are made by SQL, as flushes would have left them."""
    now = buckets.now()
    history_months.divide(
        connection, at=now - timedelta(days=DAYS + 90)
    )  # so that every row is in the part of a month
    history_months.add_months(at=now)
    post = Post.objects.create(title="of a long history")
    rows = _fill(buckets.hour_index(now), first=post.pk)
    charts: dict[str, Any] = {"a post": post, "a model": Post, "the site": None}
    since = now - timedelta(days=365)
    found = [
        (f"a year of {name}", _median(partial(series, of, since=since, by="day")), "50 ms")
        for name, of in charts.items()
    ]
    writes, reads = list[float](), list[float]()
    with _meanwhile(_write, writes), _meanwhile(partial(series, post, hours=48), reads):
        thinned, took = _timed(lambda: thinning.thin(at=now))
        found.append((f"thinning a day ({thinned:,} rows)", took, "1,000 ms"))
        _, took = _timed(lambda: thinning.thin(at=now))
        found.append(("finding that all days are thinned", took, "-"))
        year_ago = buckets.hour_index(now - timedelta(days=365.25))
        old = history_months.old_months(before=year_ago)
        dropped = sum(map(_rows_of, old))
        _, took = _timed(lambda: thinning._forget(before=year_ago))
        found.append(
            (f"retention, whole months dropped: {len(old)} ({dropped:,} rows)", took, "1,000 ms")
        )
    assert history_months.old_months(before=old[-1].until) == []
    for name, longest in (("writes", writes), ("charts", reads)):
        found.append((f"the slowest of {len(longest):,} {name} meanwhile", max(longest), "-"))
    table(
        f"History of {rows:,} rows",
        [("", "took", "at most"), *((name, f"{took:.1f} ms", most) for name, took, most in found)],
    )


def _fill(present: int, *, first: int) -> int:
    """Fills history: by the hour since the `days` of NUMBERS and a day, and by the day before. Returns the
    number of rows.
    """
    oldest, young = (present // 24 - DAYS) * 24, (present // 24 - HOURLY_DAYS - 1) * 24
    posts = f"SELECT 'site.post:' || number AS subject FROM generate_series({first}, {first} + %s) number"
    models = "SELECT unnest(%s::text[]) AS subject"
    with connection.cursor() as cursor:
        for subjects, argument in ((posts, DAILY), (models, LABELS)):
            _insert(
                cursor, subjects, argument, f"generate_series({oldest + 23}, {young}, 24)", oldest
            )
        for subjects, argument in ((posts, HOURLY), (models, LABELS)):
            _insert(cursor, subjects, argument, f"generate_series({young}, {present})", oldest)
        cursor.execute("ANALYZE readtrack_numbers_history")
        cursor.execute("SELECT count(*) FROM readtrack_numbers_history")
        return int(cursor.fetchone()[0])


def _insert(cursor: Any, subjects: str, argument: Any, hours: str, oldest: int) -> None:
    """Inserts rows that gain a view an hour, in the order of time."""
    cursor.execute(
        f"INSERT INTO readtrack_numbers_history SELECT subject, hour, hour - {oldest} + 10, 0"
        f" FROM {hours} hour, ({subjects}) AS subjects ORDER BY hour ON CONFLICT DO NOTHING",
        [argument],
    )


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = perf_counter()
    return work(), (perf_counter() - began) * 1000


def _median(work: Callable[[], Any]) -> float:
    return median(_timed(work)[1] for _ in range(ROUNDS))


def _rows_of(month: history_months.Month) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {month.name}")
        return int(cursor.fetchone()[0])


def _write() -> None:
    """Writes a row of the present hour, as a flush does."""
    history.store(
        {"site.post:0": RowCounts(next(_numbers), 0)}, hour=buckets.hour_index(buckets.now())
    )


_numbers = count(1)


@contextmanager
def _meanwhile(work: Callable[[], object], longest: list[float]) -> Iterator[None]:
    """Does the work all the time in another thread, and notes how long it took each time (ms)."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.wait(0.002):
            longest.append(_timed(work)[1])
        connections.close_all()

    thread = threading.Thread(target=repeat)
    thread.start()
    yield
    is_over.set()
    thread.join()
