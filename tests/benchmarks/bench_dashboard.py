"""The dashboard's tabs over a million articles with 90 days of history: time, queries, round trips,
processor time.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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

from readtrack import buckets
from readtrack.numbers import panel
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.sql import history_months, popular, usual_renewal
from readtrack.sql.faults import Faults
from tests.benchmarks import million
from tests.benchmarks.bench_page import round_trips
from tests.benchmarks.measuring import table
from tests.site.models import Article
from tests.support.costs import OF_THE_OVERVIEW, OF_THE_STORIES
from tests.support.divided import unite
from tests.support.factories import BROWSER

DASHBOARD = "/admin/readtrack/dashboard/"
OF_THE_ADMIN = 2  # queries: the session and its user
PERIODS = ("today", "7", "28", "90", "year", "all")
TABS = (
    "numbers",
    "stories",
    "growth",
    "sources",
    "reading",
    "groups",
    "age",
    "sections",
    "refused",
)
OF_SOME = TABS[:7]  # that a filter leaves
CATEGORY = {"category": "site.category:2"}
VALUE = {million.DIMENSIONS[0]: "value 1"}
SCOPES: Mapping[str, tuple[str, Mapping[str, str], Sequence[str]]] = {
    "the site": ("", {}, TABS),
    "a model": ("", {"model": million.LABEL}, TABS),
    "a category": ("", CATEGORY, OF_SOME),
    "a category's articles": ("", {**CATEGORY, "model": million.LABEL}, OF_SOME),
    "an author": ("", {"author": "2"}, OF_SOME),
    "one's own report": ("author/", {}, OF_SOME),
    "a value": ("", VALUE, TABS),
    "a value in a category": ("", {**CATEGORY, **VALUE}, OF_SOME),
    "the first article": (f"object/{million.LABEL}:1/", {}, ("",)),
    "an article of one view": (f"object/{million.LABEL}:{million.ARTICLES}/", {}, ("",)),
}
NOW = {"table": "now", "format": "json"}  # is asked for again and again
MOST_MS, MOST_QUERIES, MOST_TRIPS = 300, 5, 2
#: The most queries and round trips of the overview, and of the list of stories.
MORE = {"numbers": OF_THE_OVERVIEW, "stories": OF_THE_STORIES}
HEAD = ("", "first byte", "worst", "processor", "Django's", "SQL's", "queries", "round trips")
ROUNDS = int(os.environ.get("READTRACK_BENCHMARK_ROUNDS", "5"))


def main() -> None:
    """Prints a table of the pages of each scope, and one of the panel and of rankings."""
    with filled_site() as title, override_settings(READTRACK=million.SETTINGS):
        measure(title)


@contextmanager
def filled_site() -> Iterator[str]:
    """Makes the articles and their history, and takes them away at the end. Gives a title."""
    now = buckets.now()
    million.empty()
    history_months.divide(connection, at=now - timedelta(days=million.DAYS + 90))
    history_months.add_months(at=now)
    rows = million.fill(at=now)
    with override_settings(READTRACK=million.SETTINGS):
        popular.renew(at=now, faults=Faults())
        began = perf_counter()
        usual_renewal.renew(at=now, faults=Faults())
        print(f"What is usual, computed once an hour: {perf_counter() - began:.1f} s")
    yield f"{million.ARTICLES:,} articles, {rows:,} rows of history"
    unite(connection)
    million.empty()


def measure(title: str) -> None:
    """Prints a table of the tabs for each scope and one of what a site's own pages show, and pages
    over the limits.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SET max_parallel_workers_per_gather = 0"
        )  # whose processor time is not known
    User.objects.filter(pk=1).update(is_staff=True, is_superuser=True)
    client = Client(headers={"User-Agent": BROWSER})
    client.force_login(User.objects.get(pk=1))
    over: list[str] = []
    for name, (path, chosen, tabs) in SCOPES.items():
        pages = [
            (tab, period)
            for tab in tabs
            for period in PERIODS
            if (tab, period) != ("growth", "all")
        ]
        asked = [(tab, period, {**chosen, "tab": tab, "period": period}) for tab, period in pages]
        found = [
            (
                f"{tab} {period}".strip(),
                *cost(partial(page, client, path, given), OF_THE_ADMIN, most=MORE.get(tab)),
            )
            for tab, period, given in asked
        ]
        over += (f"{name}, {row[0]}" for row in found if any(cell.endswith(" !") for cell in row))
        table(f"The dashboard of {title}: {name}", [HEAD, *found])
    of_category = Article.objects.filter(category=2)
    works: dict[str, Callable[[], Any]] = {
        f"top 10 of {days} days{name}": partial(_top, of, days)
        for days in (7, 30)
        for name, of in {"": Article, ", a category": of_category}.items()
    }
    article = Article(pk=1)
    works["numbers of the panel"] = lambda: panel.numbers(f"{million.LABEL}:1", article)
    found = [("people now", *cost(partial(page, client, "", NOW), OF_THE_ADMIN))]
    table(
        "People now, rankings and the panel",
        [HEAD, *found, *((name, *cost(work, 0)) for name, work in works.items())],
    )
    limits = f"{MOST_MS} ms to the first byte, {MOST_QUERIES} queries, {MOST_TRIPS} round trips"
    print(f"\nPages over the limits ({limits}): {'; '.join(over) or 'none'}")


def _top(of: Any, days: int) -> None:
    assert numbers_reports.most_viewed(of, 10, days=days)


def page(client: Client, path: str, given: Mapping[str, str]) -> None:
    """Asks for a page, up to its first byte."""
    answer = client.get(DASHBOARD + path, given)
    assert answer.status_code == 200
    next(iter(answer))


def cost(
    work: Callable[[], Any], of_the_admin: int, *, most: tuple[int, int] | None = None
) -> tuple[str, ...]:
    """Returns milliseconds to the first byte, the worst, and of the processor: of both processes,
    and of each.

    Then the queries, and the round trips to Redis. What is over a limit has a mark. `most` are the
    limits of queries and of round trips, where they are others.
    """
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
    both = [sum(pair) for pair in zip(used, in_sql, strict=True)]
    times = [f"{median(some):.0f} ms" for some in (took, both, used, in_sql)]
    number = len(queries) - of_the_admin
    most_queries, most_trips = most or (MOST_QUERIES, MOST_TRIPS)
    is_over = median(took) > MOST_MS, number > most_queries, trips > most_trips
    first, *counts = [
        f"{text} !" if is_one and of_the_admin else text  # the limits are those of a page
        for text, is_one in zip((times[0], str(number), str(trips)), is_over, strict=True)
    ]
    return first, f"{max(took):.0f} ms", *times[1:], *counts


def _sql_time() -> float:
    """Returns the processor time (ms) of the server's process for our connection, where the system
    tells it.
    """
    connection.ensure_connection()
    try:
        return (
            int(
                Path(f"/proc/{connection.connection.info.backend_pid}/schedstat")
                .read_text()
                .split()[0]
            )
            / 1e6
        )
    except OSError:
        return 0.0
