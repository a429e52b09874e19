"""The different visitors of 90 days: of the whole site and of its ten most viewed articles."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from django.db import connection
from django.test.utils import override_settings

from readtrack import buckets, reports
from readtrack.flush import day_visitors
from readtrack.models import DayVisitors
from readtrack.store.connection import connect
from tests.benchmarks import million
from tests.benchmarks.measuring import table
from tests.site.models import Article

DAYS = 90
TOP = 10
MOST_MS = 50
ROUNDS = 9
PER_DAY = 12_000  # visitors of a day of the site; the article n has PER_DAY / n of them


def main() -> None:
    """Prints how long the numbers take."""
    million.empty()
    articles = Article.objects.bulk_create(
        Article(title=f"Article {number}", text="", is_published=True)
        for number in range(1, TOP + 1)
    )
    rows = fill(articles)
    works: dict[str, Callable[[], Any]] = {
        "the site": partial(reports.visitors_together, days=DAYS),
        "the top ten": partial(reports.visitors, articles, days=DAYS),
    }
    with override_settings(READTRACK={"TIMEOUT": 10.0}):
        measured = [(name, f"{_time(work):.0f} ms") for name, work in works.items()]
    size = sum(map(len, DayVisitors.objects.values_list("sketch", flat=True)))
    title = (
        f"Visitors of {DAYS} days ({rows} sketches of {size:,} bytes; both at most {MOST_MS} ms)"
    )
    table(title, [("", "median"), *measured])
    million.empty()


def fill(articles: list[Article]) -> int:
    """Stores the sketches of each day. Returns how many they are."""
    chance = Random(1)
    redis: Any = connect()
    rows = []
    today = buckets.local_day(buckets.hour_index(buckets.now()))
    for age in range(DAYS + 64):
        day = today - timedelta(days=age)
        for number, name in enumerate(
            ["site.article", *(f"site.article:{row.pk}" for row in articles)]
        ):
            people = [
                f"visitor{chance.randrange(300_000)}" for _ in range(PER_DAY // max(1, number))
            ]
            redis.delete("sketch")
            redis.pfadd("sketch", *people)
            visitors = redis.pfcount("sketch")
            sketch = redis.get("sketch")
            rows.append(DayVisitors(subject=name, day=day, visitors=visitors, sketch=sketch))
    DayVisitors.objects.bulk_create(rows)
    now = buckets.now()
    for age in reversed(range(DAYS + 64)):  # as the archive of each day has
        day_visitors.roll_up(at=now - timedelta(days=age))
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE readtrack_dayvisitors")
    return len(rows)


def _time(work: Callable[[], Any]) -> float:
    """Returns the median time (ms)."""
    work()
    times = []
    for _ in range(ROUNDS):
        began = perf_counter()
        work()
        times.append((perf_counter() - began) * 1000)
    return median(times)
