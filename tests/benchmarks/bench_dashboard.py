"""The dashboard's tabs over a million articles with 90 days of history: time, queries, round trips, processor time."""

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings

from readtrack import buckets, reports
from readtrack.hits.dimensions import BUILT_IN
from readtrack.page import panel
from readtrack.sql import partitions, popular
from tests.benchmarks import million
from tests.benchmarks.bench_page import round_trips
from tests.benchmarks.measuring import table
from tests.site.models import Article
from tests.support.factories import BROWSER

DASHBOARD = "/admin/readtrack/dashboard/"
OF_THE_ADMIN = 2  # queries: the session and its user
PERIODS = ("today", "7", "28", "90", "year", "all")
TABS = ("numbers", "sources", "reading", "sections", "refused")
FILTERS: Mapping[str, Mapping[str, str]] = {
    "a category": {"category": "site.category:2"},
    "an author": {"author": "2"},
}
ROUNDS = int(os.environ.get("READTRACK_BENCHMARK_ROUNDS", "5"))


def main() -> None:
    """Prints a table of the tabs in each period, and one of pages with filters and of the panel."""
    now = buckets.now()
    million.empty()
    partitions.divide(connection, at=now - timedelta(days=million.DAYS + 90))
    partitions.add_months(at=now)
    rows = million.fill(at=now)
    with override_settings(READTRACK={"DIMENSIONS": [*BUILT_IN][:3], "TIMEOUT": 10.0}):
        popular.renew(at=now)
        measure(f"{million.ARTICLES:,} articles, {rows:,} rows of history")
    partitions.unite(connection)
    million.empty()


def measure(title: str) -> None:
    """Prints tables of the tabs, of pages with filters, and of what a site's own pages show."""
    with connection.cursor() as cursor:
        cursor.execute("SET max_parallel_workers_per_gather = 0")  # whose processor time is not known
    User.objects.filter(pk=1).update(is_staff=True, is_superuser=True)
    client = Client(headers={"User-Agent": BROWSER})
    client.force_login(User.objects.get(pk=1))
    head = ("", "first byte", "worst", "processor", "SQL's", "queries", "round trips")
    tabs = [(f"{tab}, {period}", {"tab": tab, "period": period}) for tab in TABS for period in PERIODS]
    found = [(name, *_cost(partial(_page, client, "", given), OF_THE_ADMIN)) for name, given in tabs]
    table(f"The dashboard of {title}", [head, *found])
    found = [
        (f"{tab} of {name}, {period}", *_cost(partial(_page, client, "", given), OF_THE_ADMIN))
        for name, chosen in FILTERS.items()
        for tab in TABS[:3]
        for period in PERIODS
        for given in [{**chosen, "tab": tab, "period": period, "model": million.LABEL}]
    ]
    table("With filters", [head, *found])
    of_category = Article.objects.filter(category=2)
    works: dict[str, Callable[[], Any]] = {
        f"top 10 of {days} days{name}": partial(_top, of, days)
        for days in (7, 30)
        for name, of in {"": Article, ", a category": of_category}.items()
    }
    works["numbers of the panel"] = lambda: panel._numbers(f"{million.LABEL}:1")
    articles = {"first article": 1, "article of one view": million.ARTICLES}
    pages = {
        f"page of the {name}, {period}": (f"object/{million.LABEL}:{pk}/", period)
        for name, pk in articles.items()
        for period in PERIODS
    }
    pages |= {f"report of an author, {period}": ("author/", period) for period in PERIODS}
    found = [(name, *_cost(work, 0)) for name, work in works.items()]
    found += [
        (name, *_cost(partial(_page, client, path, {"period": period}), OF_THE_ADMIN))
        for name, (path, period) in pages.items()
    ]
    table("Rankings, the panel, pages of objects and authors", [head, *found])


def _top(of: Any, days: int) -> None:
    assert reports.most_viewed(of, 10, days=days)


def _page(client: Client, path: str, given: Mapping[str, str]) -> None:
    """Asks for a page, up to its first byte."""
    answer = client.get(DASHBOARD + path, given)
    assert answer.status_code == 200
    next(iter(answer))


def _cost(work: Callable[[], Any], of_the_admin: int) -> tuple[str, ...]:
    """Returns milliseconds, the worst, those of this process and of SQL's; queries, and round trips to Redis."""
    work()  # warms up
    took, used, in_sql = [], [], []
    for _ in range(ROUNDS):
        began, worked, sql = perf_counter(), process_time(), _sql_time()
        work()
        took.append((perf_counter() - began) * 1000)
        used.append((process_time() - worked) * 1000)
        in_sql.append(_sql_time() - sql)
    with CaptureQueriesContext(connection) as queries:
        trips = round_trips(work)
    times = (f"{number:.0f} ms" for number in (median(took), max(took), median(used), median(in_sql)))
    return *times, str(len(queries) - of_the_admin), str(trips)


def _sql_time() -> float:
    """Returns the processor time (ms) of the server's process for our connection, where the system tells it."""
    connection.ensure_connection()
    try:
        return int(Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text().split()[0]) / 1e6
    except OSError:
        return 0.0
