"""The different visitors of 90 days: of the whole site and of its ten most viewed articles."""

from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

from django.test.utils import override_settings

from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import DayVisitors
from tests.benchmarks import million, people
from tests.benchmarks.measuring import table
from tests.site.models import Article

DAYS = 90
TOP = 10
MOST_MS = 50
ROUNDS = 9


def main() -> None:
    """Prints how long the numbers take."""
    million.empty()
    articles = Article.objects.bulk_create(
        Article(title=f"Article {number}", text="", is_published=True)
        for number in range(1, TOP + 1)
    )
    names = ["site.article", *(f"site.article:{article.pk}" for article in articles)]
    rows = people.fill(names, days=DAYS + 64)  # some more, because a block begins before the period
    works: dict[str, Callable[[], Any]] = {
        "the site": partial(numbers_reports.visitors_together, days=DAYS),
        "the top ten": partial(numbers_reports.visitors, articles, days=DAYS),
    }
    with override_settings(READTRACK={"TIMEOUT": 10.0}):
        measured = [(name, f"{_time(work):.0f} ms") for name, work in works.items()]
    size = sum(map(len, DayVisitors.objects.values_list("sketch", flat=True)))
    title = (
        f"Visitors of {DAYS} days ({rows} sketches of {size:,} bytes; both at most {MOST_MS} ms)"
    )
    table(title, [("", "median"), *measured])
    million.empty()


def _time(work: Callable[[], Any]) -> float:
    """Returns the median time (ms)."""
    work()
    times = []
    for _ in range(ROUNDS):
        began = perf_counter()
        work()
        times.append((perf_counter() - began) * 1000)
    return median(times)
