"""The flush of totals alone, as they grow, beside the same done by hand, and what it leaves alone."""

import os
import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from time import perf_counter, process_time
from typing import Any

from django.db import connection
from redis import Redis

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.models import FlushRun
from readtrack.numbers.models import History
from readtrack.numbers.reports import series
from readtrack.store import counters, keys
from tests.benchmarks.bench_flush import by_hand, redis, sql
from tests.benchmarks.measuring import Work, table
from tests.site.models import Post

POSTS = int(os.environ.get("READTRACK_BENCHMARK_POSTS", "200000"))
CHANGED = 1000
BATCH = 10_000

PEAK = """
import django, re
django.setup()
from readtrack.flush.run import flush
def peak():  # ru_maxrss would include what started this process
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024
base = peak()
run = flush()
print(run.written, base, peak())
"""


def main(posts: int = POSTS) -> None:
    """Prints seven tables; the ratios of the budget are meant for a million posts
    (READTRACK_BENCHMARK_POSTS).
    """
    sql("ALTER TABLE site_post SET (fillfactor = 80)")
    full(posts)
    changed(posts)
    visitors(min(posts, 20_000))
    writers(min(posts, 20_000))
    indexed(min(posts, 50_000))
    growth([size for size in (10_000, 100_000, 1_000_000) if size <= posts])
    charts(posts)
    idle(min(posts, 100_000))


def full(posts: int) -> None:
    """A full flush of everything changed, and of nothing changed."""
    seed(posts)
    spent: dict[str, list[float]] = {"by hand": [], "full flush": []}
    for _ in range(3):
        for name, work in (("by hand", by_hand), ("full flush", flush)):
            raise_totals(posts)
            spent[name].append(timed(work))
            sql("VACUUM site_post")
    unchanged = timed(flush)
    unwritten = FlushRun.objects.latest().written
    raise_totals(posts)
    written, base, peak = in_a_process()
    rows = [
        *(
            (name, f"{min(times):.2f} s", f"{min(times) / min(spent['by hand']):.2f} ×")
            for name, times in spent.items()
        ),
        ("nothing changed", f"{unchanged:.2f} s", f"{unwritten} rows written"),
        (
            f"peak memory of a process, {written:,} rows",
            f"{peak} MB",
            f"{peak - base} MB by the flush",
        ),
    ]
    table(
        f"Full flush of {posts:,} changed posts (at most 1.3 × by hand, 150 MB)",
        [("", "best of 3", ""), *rows],
    )


def changed(posts: int) -> None:
    """A thousand posts changed among all, beside three times as many other keys."""
    client = redis()
    for start in range(0, 3 * posts, BATCH):
        client.mset(
            {f"viewed:{number:016x}:site.post:1": 1 for number in range(start, start + BATCH)}
        )
    whole = 0.0
    for _ in range(2):
        raise_totals(posts)
        whole = timed(flush)
    spent = []
    for _ in range(3):
        ids = range(1, posts + 1, max(1, posts // CHANGED))
        subjects = [f"site.post:{number}" for number in ids]
        with client.pipeline(transaction=False) as pipeline:
            for subject in subjects:
                pipeline.incr(keys.total(subject))
            pipeline.execute()
        counters.mark_changed(subjects)
        add_visitors(ids)
        client.config_resetstat()
        spent.append(timed(partial(flush, only_changed=True)))
    run = FlushRun.objects.latest()
    assert run.written == len(subjects), run.written
    commands: Any = client.info("commandstats")
    rows = [
        (f"full flush, {posts:,} changed", f"{whole:.3f} s", ""),
        (
            f"changed flush, {run.written:,} changed",
            f"{min(spent):.3f} s",
            f"1/{whole / min(spent):.0f}",
        ),
        ("SCAN commands of it", str(commands.get("cmdstat_scan", {}).get("calls", 0)), ""),
    ]
    table(
        f"Changed flush beside {3 * posts:,} other keys (at most 1/20 of the full one)",
        [("", "", ""), *rows],
    )
    client.flushdb()


def visitors(posts: int) -> None:
    """What the visitors of the day add to a flush, if each changed post has new ones."""
    seed(posts)
    raise_totals(posts)
    flush()
    rows = []
    for name, has_visitors in (
        ("counts alone", False),
        ("with the first visitors of the day", True),
        ("with further visitors", True),
    ):
        raise_totals(posts)
        ids = range(1, posts + 1)
        counters.mark_changed(f"site.post:{number}" for number in ids)
        if has_visitors:
            add_visitors(ids)
        began = process_time()
        spent = timed(partial(flush, only_changed=True))
        processor = process_time() - began
        assert FlushRun.objects.latest().written == posts
        rows.append((name, f"{spent / posts * 1e6:.0f} µs", f"{processor / posts * 1e6:.0f} µs"))
    table(
        f"Changed flush of {posts:,} posts, for each post",
        [("", "time", "processor of the flush"), *rows],
    )


def writers(posts: int) -> None:
    """The same rows by what Django and the driver have for it."""
    works: dict[str, Work] = {
        "full flush": flush,
        "executemany": partial(executemany, posts),
        "bulk_update": partial(bulk_update, posts),
    }
    seed(posts)
    found = {}
    for name, work in works.items():
        raise_totals(posts)
        found[name] = timed(work)
        sql("VACUUM site_post")
    rows = [
        (name, f"{spent:.2f} s", f"{spent / found['full flush']:.1f} ×")
        for name, spent in found.items()
    ]
    table(f"{posts:,} rows by other means (reading Redis included)", [("", "", ""), *rows])


def indexed(posts: int) -> None:
    """What room in the pages and an index on the count do to an UPDATE."""
    rows = []
    for name, percent, index in (
        ("fillfactor 80", 80, False),
        ("as PostgreSQL has it", 100, False),
        ("an index", 80, True),
    ):
        sql("DROP INDEX IF EXISTS benchmark_views")
        sql(f"ALTER TABLE site_post SET (fillfactor = {percent})")
        seed(posts)
        if index:
            sql("CREATE INDEX benchmark_views ON site_post (view_count)")
        sql("SELECT pg_stat_reset_single_table_counters('site_post'::regclass)")
        spent = []
        for _ in range(2):
            raise_totals(posts)
            spent.append(timed(flush))
            sql("VACUUM site_post")
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_force_next_flush()")
            cursor.execute(
                "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'site_post'"
            )
            updated, hot = cursor.fetchone()
        rows.append((name, f"{min(spent):.2f} s", f"{100 * hot / max(1, updated):.0f} % in place"))
    sql("DROP INDEX benchmark_views")
    sql("ALTER TABLE site_post SET (fillfactor = 80)")
    start = perf_counter()
    found = list(Post.objects.most_viewed()[:10])
    rows.append(
        (f"ORDER BY views LIMIT {len(found)}, no index", f"{perf_counter() - start:.3f} s", "")
    )
    table(f"{posts:,} rows and the table's pages", [("", "flush", "updates"), *rows])


def growth(sizes: Iterable[int]) -> None:
    rows = []
    for size in sizes:
        seed(size)
        spent = []
        for _ in range(2):
            raise_totals(size)
            spent.append(timed(flush))
            sql("VACUUM site_post")
        rows.append((f"{size:,}", f"{min(spent):.2f} s", f"{min(spent) / size * 1e6:.1f} µs"))
    table("How a full flush grows", [("posts", "flush", "a post"), *rows])


def charts(rows: int) -> None:
    """A year of one post, and of the site, among as many rows of history."""
    seed(1)
    sql("TRUNCATE readtrack_numbers_history")
    now = buckets.hour_index(buckets.now())
    sql(
        f"INSERT INTO readtrack_numbers_history (subject, hour, views, visitors) SELECT 'site.post:' || p, h, h, 0"
        f" FROM generate_series({now} - 8759, {now}, 12) h, generate_series(1, {max(1, rows // 730)}) p"
    )
    sql(
        f"INSERT INTO readtrack_numbers_history (subject, hour, views, visitors) SELECT 'site.post', h, h, 0"
        f" FROM generate_series({now} - 8759, {now}) h"
    )
    sql("ANALYZE readtrack_numbers_history")
    since = buckets.hour_start(now - 8759)
    post = Post.objects.get()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_total_relation_size('readtrack_numbers_history') / count(*) FROM readtrack_numbers_history"
        )
        size = cursor.fetchone()[0]
    found = [
        (f"{name} by the {by}", f"{timed(partial(series, of, since=since, by=by)) * 1000:.1f} ms")
        for name, of in (("a year of one post", post), ("a year of the site", None))
        for by in ("hour", "day")
    ]
    count = History.objects.count()
    table(
        f"Charts among {count:,} rows of history ({size} B a row, index included)",
        [("", ""), *found],
    )
    sql("TRUNCATE readtrack_numbers_history")


def idle(posts: int) -> None:
    """Redis's memory where one post in a hundred is active."""
    seed(posts)
    client = redis()
    for start in range(1, posts + 1, BATCH):
        with client.pipeline(transaction=False) as pipeline:
            for number in range(start, min(posts + 1, start + BATCH)):
                pipeline.set(f"views:total:site.post:{number}", 3)
                pipeline.pfadd(f"views:hll:site.post:{number}", *range(number, number + 3))
            pipeline.execute()
    before = memory(client)
    flush()
    archive()
    sql(f"UPDATE readtrack_archive SET hour = 1 WHERE substr(subject, 11)::int > {posts // 100}")
    archive()
    after = memory(client)
    rows = [
        ("before", f"{before / 1e6:.1f} MB", f"{before / posts:.0f} B a post"),
        ("after", f"{after / 1e6:.1f} MB", ""),
    ]
    table(
        f"Redis with {posts:,} posts and their sketches, 1 % of them active", [("", "", ""), *rows]
    )


def archive() -> None:
    FlushRun.objects.update(flushed_until=1)
    flush()


def memory(client: Redis) -> int:
    found: Any = client.info("memory")
    return int(found["used_memory_dataset"])


def seed(posts: int) -> None:
    """That many rows, fresh, and an empty Redis."""
    redis().flushdb()
    sql(
        "TRUNCATE site_post, site_review, readtrack_flushrun, readtrack_archive, readtrack_knownepoch, readtrack_numbers_dayvisitors RESTART IDENTITY"
    )
    sql(f"INSERT INTO site_post (title) SELECT repeat('x', 60) FROM generate_series(1, {posts})")
    sql("VACUUM ANALYZE site_post")


_views = iter(range(10, 10**9, 10))


def raise_totals(posts: int) -> None:
    """Ten more views of each post."""
    views, client = next(_views), redis()
    for start in range(1, posts + 1, BATCH):
        numbers = range(start, min(posts + 1, start + BATCH))
        client.mset({f"views:total:site.post:{number}": views for number in numbers})


def add_visitors(ids: Iterable[int]) -> None:
    """Three more visitors today of each post."""
    day = buckets.day_bucket(buckets.local_day(buckets.hour_index(buckets.now())))
    first = next(_views)
    with redis().pipeline(transaction=False) as pipeline:
        for number in ids:
            visitors = [f"{number}:{first + visitor}" for visitor in range(3)]
            pipeline.pfadd(keys.day_visitors(day, f"site.post:{number}"), *visitors)
        pipeline.execute()


def executemany(posts: int) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            "UPDATE site_post SET view_count = %s WHERE id = %s",
            [(n, pk) for pk, n in totals(posts)],
        )


def bulk_update(posts: int) -> None:
    rows = [Post(pk=pk, view_count=count) for pk, count in totals(posts)]
    Post.objects.bulk_update(rows, ["view_count"], batch_size=1000)


def totals(posts: int) -> list[tuple[int, int]]:
    found: Any = redis().mget([f"views:total:site.post:{number}" for number in range(1, posts + 1)])
    return list(enumerate(map(int, found), start=1))


def in_a_process() -> list[int]:
    """Rows written, megabytes before the flush, megabytes at its peak."""
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    return list(map(int, done.stdout.split()))


def timed(work: Work) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
