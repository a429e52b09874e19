"""What benchmarks fill in is what views leave."""

from collections import Counter
from datetime import datetime, timezone
from itertools import repeat
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings
from redis import Redis

from readtrack.flush.run import flush
from readtrack.store import keys
from tests.benchmarks import bench_flush
from tests.benchmarks.bench_memory import tables_of_readtrack
from tests.benchmarks.copied import copy_views
from tests.site.models import Post
from tests.support.frozen import freeze_time

POSTS = 50
VISITORS = 3
OF_FLUSHES = {"readtrack_flushrun", "readtrack_knownepoch"}  # tables with times and random numbers


@pytest.mark.one_server("a script copies keys of one partition")
@pytest.mark.django_db(transaction=True)
def test_copied_views_leave_what_views_leave(redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {**bench_flush.site_settings(), "RATE": (0, 10)}
    Post.objects.bulk_create(Post(pk=pk) for pk in range(1, POSTS + 1))
    found = []
    with freeze_time(datetime.now(timezone.utc).replace(tzinfo=None).isoformat()):
        for viewed in (POSTS, 1):
            begin_anew(redis)
            for visitor in range(VISITORS):
                bench_flush.view(range(1, viewed + 1), visitors=repeat(visitor))
            if viewed < POSTS:
                copy_views(1, first=viewed + 1, last=POSTS)
            before = in_redis(redis)
            assert flush().written == POSTS
            found.append((before, in_redis(redis), in_sql()))
    for viewed_all, copied in zip(*found, strict=True):
        assert (viewed_all - copied, copied - viewed_all) == (Counter(), Counter())
    assert flush().written == 0


def begin_anew(redis: Redis) -> None:
    """Empties Redis and the tables, but for the posts, and lets Redis begin."""
    redis.flushdb()
    Post.objects.update(view_count=0, visitor_count=0)
    with connection.cursor() as cursor:
        for table in tables_of_readtrack():
            cursor.execute(f"DELETE FROM {table}")
    flush()


def in_redis(redis: Redis) -> Counter[Any]:
    """Returns the keys that flushes read, with what they hold, without times and the hashes of
    visitors.
    """
    found: Counter[Any] = Counter()
    for name in redis.scan_iter():
        row, pieces = keys.parse(name)
        assert row is not None, name
        if row in (keys.rate, keys.minute_visitors):
            continue  # each page without a cookie names another visitor, and no flush reads these
        pieces["visitor"] = ""
        lifetime = round(int(redis.ttl(name)), -2)
        found[row.pattern, tuple(pieces.items()), lifetime, content(redis, name, row)] += 1
    return found


def content(redis: Any, name: str, row: keys.Key) -> Any:
    """Returns what a key holds, in a form that two runs have in common."""
    if row.pattern.startswith(("flush:last", "flush:full", "reads:began")):
        return ""
    if row.pattern == keys.unsettled.pattern:
        return frozenset(member.partition(" ")[0] for member in redis.zrange(name, 0, -1))
    if row.type == "sorted set":
        return frozenset(redis.zrange(name, 0, -1, withscores=True))
    if row.type == "hash":
        return frozenset(redis.hgetall(name).items())
    if row.type == "HyperLogLog":
        return redis.pfcount(name)
    return redis.get(name)


def in_sql() -> Counter[Any]:
    """Returns the rows of the posts, and of the tables of readtrack, without what is of each flush and
    without the sketches.
    """
    found: Counter[Any] = Counter(Post.objects.values_list("pk", "view_count", "visitor_count"))
    with connection.cursor() as cursor:
        for table in {*tables_of_readtrack()} - OF_FLUSHES:
            cursor.execute(f"SELECT * FROM {table}")
            for row in cursor.fetchall():
                is_of_a_post = str(row[0]).startswith("site.post:") and row[0][-1].isdigit()
                # A post has as many visitors in both runs; all posts together have more of them
                # where each page names another visitor. A mark of a flush is a random number.
                if is_of_a_post or not (table.endswith("visitors") or "mark" in row):
                    cells = [cell for cell in row if not isinstance(cell, memoryview | bytes)]
                    found[(table, *cells)] += 1
    return found
