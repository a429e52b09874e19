"""The memory that views take in Redis, by kind of key, and the bytes that flushes store of them in SQL.

Views come through the middleware. In the first tables nobody comes twice; in the others each
visitor reads five posts, and brings the cookie of the first page along. The keys `rate:…` live ten
seconds, so a slow machine has fewer of them.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any

from django.db import connection
from django.http import HttpResponse
from django.test import override_settings

from readtrack.conf import conf
from readtrack.flush.run import flush
from readtrack.middleware import ReadTrackMiddleware
from readtrack.models import FlushRun
from readtrack.store import keys
from tests.benchmarks.bench_flush import redis, request_for, seed, site_settings, sql
from tests.benchmarks.measuring import table
from tests.site.models import Post

POSTS = int(os.environ.get("READTRACK_BENCHMARK_POSTS", "20000"))
VIEWS = 3  # of each post
OF_A_VISIT = 5  # posts that a visitor reads in a visit; RATE counts no more
COOKIE = "anon_id"
AT_ONCE = 5_000
ALL = "all keys"
SERVER = "used_memory of the server"
PREFIXES = ("readtrack_numbers_", "readtrack_")  # of tables; a revision has one or both

Bytes = Mapping[str, float]  # by kind of key, or by table

_visitors = count()


def main(posts: int = POSTS) -> None:
    """Prints two tables for each kind of visit."""
    with override_settings(READTRACK=site_settings(), ALLOWED_HOSTS=["testserver"]):
        for name, views_of_visitor in (("one view a visitor", 1), ("five a visitor", OF_A_VISIT)):
            measure(posts, name, views_of_visitor=views_of_visitor)


def measure(posts: int, name: str, *, views_of_visitor: int) -> None:
    """Prints the bytes a view in Redis and in SQL, if each visitor views so many posts."""
    client: Any = redis()
    client.execute_command("FLUSHALL", "SYNC")  # or it is still freeing memory while views come
    empty_tables()
    seed(posts)
    flush()
    views = posts * VIEWS
    server_before = server_memory()
    tables_before = tables()
    view(posts, views_of_visitor=views_of_visitor)
    stages = {"after the views": memory(server_before)}
    flush(only_changed=True)
    stages["after a flush"] = memory(server_before)
    let_windows_end()
    stages["after the windows"] = memory(server_before)
    print_redis(f"Redis, bytes a view of {views:,} views, {name}", stages, views=views)
    flush()
    hours = growth(tables_before)
    FlushRun.objects.update(flushed_until=1)  # so that the day's archive is due
    flush()
    archived = growth(tables_before)
    print_sql(f"SQL, bytes a view of {views:,} views, {name}", hours, archived, views=views)


def empty_tables() -> None:
    """Empties the posts and all tables of readtrack."""
    names = ", ".join(f'"{name}"' for name in [*tables_of_readtrack(), "site_post"])
    sql(f"TRUNCATE {names} RESTART IDENTITY CASCADE")


def view(posts: int, *, views_of_visitor: int) -> None:
    """Opens the page of each post VIEWS times, as visitors who come for the first time."""
    pages = [pk for _ in range(VIEWS) for pk in range(1, posts + 1)]
    for start in range(0, len(pages), views_of_visitor):
        visit(pages[start : start + views_of_visitor])


def visit(ids: list[int]) -> None:
    """Opens these posts one after the other, as one new visitor."""
    visitor = next(_visitors)
    cookies: dict[str, str] = {}
    for pk in ids:
        request = request_for(pk, visitor=visitor)
        request.COOKIES.update(cookies)
        response: Any = ReadTrackMiddleware(partial(page, post=Post(pk=pk)))(request)
        if COOKIE in response.cookies:
            cookies[COOKIE] = response.cookies[COOKIE].value


def page(request: Any, *, post: Post) -> HttpResponse:
    request.readtrack.view(post)
    return HttpResponse(b"<!doctype html>")


def let_windows_end() -> None:
    """Removes the keys that have expired when the windows have ended."""
    client: Any = redis()
    for names in all_keys():
        with client.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.ttl(name)
            lifetimes = pipeline.execute()
        ended = [
            name
            for name, lifetime in zip(names, lifetimes, strict=True)
            if 0 <= lifetime <= conf.WINDOW
        ]
        if ended:
            client.delete(*ended)


def memory(server_before: int) -> Bytes:
    """Returns the bytes in Redis by pattern of the keys, and those of all keys and of the server."""
    client: Any = redis()
    found: defaultdict[str, float] = defaultdict(float)
    for names in all_keys():
        with client.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.memory_usage(name, samples=0)
            sizes = pipeline.execute()
        for name, size in zip(names, sizes, strict=True):
            row, _ = keys.parse(name.decode())
            found[row.pattern if row else "other"] += size or 0
            found[ALL] += size or 0
    found[SERVER] = server_memory() - server_before
    return found


def all_keys() -> Iterator[list[bytes]]:
    """Yields the names of all keys, in portions."""
    names = [*redis().scan_iter(count=AT_ONCE)]
    for start in range(0, len(names), AT_ONCE):
        yield names[start : start + AT_ONCE]


def server_memory() -> int:
    found: Any = redis().info("memory")
    return int(found["used_memory"])


def tables_of_readtrack() -> list[str]:
    names = connection.introspection.table_names()
    return [name for name in names if name.startswith(PREFIXES)]


def tables() -> Bytes:
    """Returns the bytes of each table of readtrack, and of each of its indexes."""
    found = {}
    with connection.cursor() as cursor:
        for name in tables_of_readtrack():
            short = short_name(name)
            sql(f'VACUUM FULL "{name}"')  # so that what counts is what stays
            cursor.execute("SELECT pg_table_size(%s::regclass)", [name])
            found[short] = float(cursor.fetchone()[0])
            cursor.execute(
                "SELECT split_part(pg_get_indexdef(indexrelid), ' USING btree ', 2),"
                " pg_relation_size(indexrelid) FROM pg_index WHERE indrelid = %s::regclass",
                [name],
            )
            for columns, size in cursor.fetchall():
                found[f"{short} {columns}"] = float(size)
    return found


def short_name(name: str) -> str:
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    return name


def growth(before: Bytes) -> Bytes:
    """Returns the bytes that came to each table, and to all of them."""
    found = {name: size - before[name] for name, size in tables().items()}
    return {**found, "all tables": sum(found.values())}


def print_redis(title: str, stages: Mapping[str, Bytes], *, views: int) -> None:
    patterns = {pattern for found in stages.values() for pattern in found}
    largest_first = sorted(patterns, key=lambda name: -next(iter(stages.values())).get(name, 0))
    rows = [
        (pattern, *(f"{found.get(pattern, 0) / views:.1f} B" for found in stages.values()))
        for pattern in largest_first
        if any(found.get(pattern, 0) >= views / 10 for found in stages.values())
    ]
    table(title, [("", *stages), *rows])


def print_sql(title: str, hours: Bytes, archived: Bytes, *, views: int) -> None:
    largest_first = sorted(archived, key=lambda name: -archived[name])
    rows = [
        (name, f"{hours[name] / views:.1f} B", f"{archived[name] / views:.1f} B")
        for name in largest_first
        if archived[name] >= views / 10
    ]
    table(title, [("", "after a full flush", "after the day's archive"), *rows])
