"""The flush of posts that were really viewed, so that it meets all that a view leaves behind.

Views come through the middleware. Times are processor time of the flushing process, Redis and
PostgreSQL together.
"""

import os
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import count
from typing import Any

from django.apps import apps
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.http import HttpResponse
from django.test import RequestFactory, override_settings
from redis import Redis

from readtrack.conf import Conf
from readtrack.flush.run import flush
from readtrack.middleware import ReadTrackMiddleware
from readtrack.store.connection import connect
from tests.benchmarks.measuring import Spent, Work, spent, table
from tests.site.models import Post

POSTS = int(os.environ.get("READTRACK_BENCHMARK_POSTS", "20000"))
FEW = 100  # one post in so many is viewed where 1 % changed
QUIET_MINUTES = 20
QUIET_HOURS = 3
DIMENSIONS = ("channel", "referrer", "campaign")  # those of a site by default; tests have none
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
REFERRERS = 40  # other sites that link to the posts
OWN_TABLE = """
    CREATE TABLE IF NOT EXISTS benchmark_hours (
        subject varchar(255), hour int, views bigint, visitors bigint, PRIMARY KEY (subject, hour)
    )
"""
RAISE = """
    UPDATE site_post SET view_count = new.views
    FROM unnest(%s::bigint[], %s::bigint[]) AS new(id, views)
    WHERE site_post.id = new.id AND site_post.view_count < new.views
"""
STORE_HOURS = """
    INSERT INTO benchmark_hours
    SELECT * FROM unnest(%s::text[], %s::int[], %s::bigint[], %s::bigint[])
    ON CONFLICT (subject, hour) DO UPDATE SET views = EXCLUDED.views
"""

_requests = RequestFactory()
_visitors = count()


def main(posts: int = POSTS) -> None:
    """Prints what flushes take, and what takes the totals alone, or totals and hours, by hand."""
    sql("ALTER TABLE site_post SET (fillfactor = 80)")
    seed(posts)
    with override_settings(READTRACK=site_settings(), ALLOWED_HOSTS=["testserver"]):
        flush()
        every_post = range(1, posts + 1)
        flush_changed = partial(flush, only_changed=True)
        found: dict[str, Spent] = {}
        view(every_post)
        found["minute flush, all began anew"] = spent(flush_changed)
        view(every_post)
        found["minute flush, all changed"] = spent(flush_changed)
        view(every_post)
        found["full flush, all changed"] = spent(flush)
        view(every_post[::FEW])
        found["minute flush, 1 % changed"] = spent(flush_changed)
        view(every_post[::FEW])
        found["full flush, 1 % changed"] = spent(flush)
        found["minute flush, nothing changed"] = on_average(flush_changed, QUIET_MINUTES)
        found["full flush, nothing changed"] = on_average(flush, QUIET_HOURS)
        check_counts(posts)
        sql("UPDATE site_post SET view_count = 0")
        found["by hand, totals"] = spent(by_hand)
        sql("UPDATE site_post SET view_count = 0")
        found["by hand, totals and hours"] = spent(partial(by_hand, has_hours=True))
        check_counts(posts)
    print_table(posts, found)
    sql("DROP TABLE benchmark_hours")


def site_settings() -> dict[str, object]:
    """Returns the settings of a site, also for revisions in which DIMENSIONS is one of the core."""
    settings: dict[str, object] = {"TIMEOUT": 10.0}
    if hasattr(Conf, "DIMENSIONS"):
        settings["DIMENSIONS"] = DIMENSIONS
    elif apps.is_installed("readtrack.numbers"):
        settings["NUMBERS"] = {"dimensions": DIMENSIONS}
    return settings


def on_average(work: Work, times: int) -> Spent:
    """Returns what the work takes, on average over so many times."""
    sums = spent(lambda: [work() for _ in range(times)])
    return Spent(*(time / times for time in sums))


def print_table(posts: int, found: dict[str, Spent]) -> None:
    totals = found["by hand, totals"].total
    hours = found["by hand, totals and hours"].total
    rows = [
        (
            name,
            f"{times.total * 1000:.1f} ms",
            f"{times.process * 1000:.1f} ms",
            f"{times.redis * 1000:.1f} ms",
            f"{times.sql * 1000:.1f} ms",
            f"{times.total / totals:.2f} ×",
            f"{times.total / hours:.2f} ×",
        )
        for name, times in found.items()
    ]
    table(
        f"Flushes of {posts:,} posts that were viewed, processor time",
        [("", "all", "process", "Redis", "SQL", "÷ totals", "÷ totals and hours"), *rows],
    )


def seed(posts: int) -> None:
    """That many posts, without views, and an empty Redis."""
    redis().flushdb()
    sql(OWN_TABLE)
    sql(f"INSERT INTO site_post (title) SELECT repeat('x', 60) FROM generate_series(1, {posts})")
    sql("VACUUM ANALYZE site_post")


def view(ids: Iterable[int], *, visitors: Iterator[int] = _visitors) -> None:
    """Opens the page of each of these posts, once, as the next visitor: by default one whom nobody
    has seen before.
    """
    viewed: list[Post] = []

    def page(request: Any) -> HttpResponse:
        request.readtrack.view(viewed[-1])
        return HttpResponse(b"<!doctype html>")

    middleware = ReadTrackMiddleware(page)
    for pk in ids:
        viewed.append(Post(pk=pk))
        middleware(request_for(pk, visitor=next(visitors)))


def request_for(pk: int, *, visitor: int) -> Any:
    """Returns a request for the page of a post, without a cookie."""
    request: Any = _requests.get(
        f"/posts/{pk}/",
        HTTP_USER_AGENT=BROWSER,
        HTTP_REFERER=f"https://site{visitor % REFERRERS}.example/",
        REMOTE_ADDR=f"10.{visitor >> 16}.{visitor >> 8 & 255}.{visitor & 255}",
    )
    request.user = AnonymousUser()
    return request


def by_hand(*, has_hours: bool = False) -> None:
    """SCAN, MGET and UPDATE FROM unnest, and perhaps the rows of one hour: no more than that."""
    client: Any = redis()
    cursor = 0
    with connection.cursor() as database:
        while True:
            cursor, names = client.scan(cursor, match="views:total:*", count=5000)
            if names:
                rows = sorted(
                    (int(name[22:]), int(number))
                    for name, number in zip(names, client.mget(names), strict=True)
                )
                ids = [pk for pk, _ in rows]
                views = [number for _, number in rows]
                database.execute(RAISE, [ids, views])
                if has_hours:
                    subjects = [f"site.post:{pk}" for pk in ids]
                    hours = [1] * len(ids)
                    database.execute(STORE_HOURS, [subjects, hours, views, views])
            if not cursor:
                return


def check_counts(posts: int) -> None:
    """Raises AssertionError if SQL lacks views."""
    few = len(range(1, posts + 1, FEW))
    views = sum(Post.objects.values_list("view_count", flat=True))
    assert views == 3 * posts + 2 * few, views


def redis() -> Redis:
    return connect(patient=True)


def sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
