"""The most viewed of 7 and of 30 days among a million posts with 90 days of history, and the lists
behind them.
"""

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

from django.db import connection

from readtrack import buckets, tracker
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import Popular
from readtrack.numbers.sql import history_months, popular
from readtrack.sql.faults import Faults
from readtrack.subjects import subject_of
from tests.benchmarks.measuring import table
from tests.site.models import Category, Post
from tests.support import factories
from tests.support.divided import unite

POSTS = int(os.environ.get("READTRACK_BENCHMARK_POPULAR", "1000000"))
DAYS = 90
HOURLY, DAILY = POSTS // 250, POSTS // 25  # posts viewed every hour, and every day; the others once
CATEGORIES = 20
ROUNDS = 9


def main() -> None:
    """Prints a table of history divided by month, and one of the lists' cost with history in one
    table.
    """
    now = buckets.now()
    history_months.divide(connection, at=now - timedelta(days=DAYS + 90))
    history_months.add_months(at=now)
    rows = _fill(buckets.hour_index(now))
    _measured(f"{POSTS:,} posts, {rows:,} rows of history, divided by month", now)
    unite(connection)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE readtrack_numbers_history")
    table("History in one table", [("", "took", "at most"), *_renewed(now)])


def _renewed(now: datetime) -> list[tuple[str, str, str]]:
    Popular.objects.all().delete()
    works = {
        "the first full flush makes all lists": lambda: popular.renew(
            at=now - timedelta(hours=5), faults=Faults()
        ),
        "one an hour later renews that of 1 day": lambda: popular.renew(
            at=now - timedelta(hours=4), faults=Faults()
        ),
        "one 5 hours later does, too": lambda: popular.renew(at=now, faults=Faults()),
    }
    return [(name, f"{_once(work):,.0f} ms", "-") for name, work in works.items()]


def _measured(title: str, now: datetime) -> None:
    lists = _renewed(now)
    took: list[tuple[str, float, str]] = []
    for post in Post.objects.order_by("pk")[:500]:
        tracker.record(factories.hit(subject_of(post)))
    tracker.refresh_trending()
    category = Category.objects.order_by("-pk")[0]
    for days in (7, 30):
        for name, of in {
            "all posts": Post,
            "a category": Post.objects.filter(category=category),
        }.items():
            took.append(
                (f"top 10 of {days} days, {name}", _median(partial(_top, of, days=days)), "20 ms")
            )
    took.append(
        (
            "top 10 of 7 days by visitors",
            _median(partial(_top, Post, days=7, by="visitors")),
            "20 ms",
        )
    )
    post = Post.objects.order_by("pk")[0]
    took.append(
        (
            "views of one post in 7 days",
            _median(lambda: numbers_reports.views_in([post], days=7)),
            "-",
        )
    )
    since = now - timedelta(days=10)
    took.append(
        ("top 10 of 10 days, which has no list", _once(lambda: _top(Post, since=since)), "-")
    )
    table(
        title,
        [
            ("", "took", "at most"),
            *lists,
            *((name, f"{ms:.1f} ms", most) for name, ms, most in took),
        ],
    )


def _top(of: Any, **period: Any) -> None:
    assert len(numbers_reports.most_viewed(of, 10, **period)) == 10


def _fill(present: int) -> int:
    """Makes the posts and their history by SQL, in the order of time, as flushes would have left
    it.
    """
    oldest = present - DAYS * 24
    gain = "(hour - {oldest}) * (1 + 100000 / (number + 100))"
    with connection.cursor() as cursor:
        Category.objects.bulk_create(Category(name=str(number)) for number in range(CATEGORIES))
        first = Category.objects.order_by("pk")[0].pk
        cursor.execute(
            "INSERT INTO site_post (id, title, category_id, view_count, visitor_count)"
            f" SELECT number, 'Post', {first} + number % {CATEGORIES}, 0, 0 FROM generate_series(1, {POSTS}) number"
        )
        cursor.execute(
            "INSERT INTO readtrack_numbers_history SELECT 'site.post:' || number, hour, views, views / 2 FROM (SELECT number,"
            f" hour, {gain.format(oldest=oldest)} AS views FROM generate_series({oldest + 1}, {present}) hour,"
            f" LATERAL (SELECT number FROM generate_series(1, {HOURLY}) number"
            f" UNION ALL SELECT number FROM generate_series({HOURLY} + 1, {DAILY}) number WHERE number % 24 = hour % 24"
            f" UNION ALL SELECT number FROM generate_series({DAILY} + 1, {POSTS}) number"
            f" WHERE number % {DAYS * 24} = hour % {DAYS * 24}) AS viewed) AS rows"
        )
        cursor.execute(
            "UPDATE site_post SET view_count = last.views, visitor_count = last.visitors FROM (SELECT subject,"
            " max(views) AS views, max(visitors) AS visitors FROM readtrack_numbers_history GROUP BY subject) AS last"
            " WHERE last.subject = 'site.post:' || id"
        )
        cursor.execute("VACUUM ANALYZE readtrack_numbers_history")
        cursor.execute("VACUUM ANALYZE site_post")
        cursor.execute("SELECT count(*) FROM readtrack_numbers_history")
        return int(cursor.fetchone()[0])


def _once(work: Callable[[], Any]) -> float:
    began = perf_counter()
    work()
    return (perf_counter() - began) * 1000


def _median(work: Callable[[], Any]) -> float:
    return median(_once(work) for _ in range(ROUNDS))
