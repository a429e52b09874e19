"""The first screen of the dashboard, the whole page and the page of a story, over a million articles
with 90 days of history.
"""

from collections.abc import Mapping
from functools import partial

from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import override_settings

from readtrack.numbers import tables
from readtrack.numbers.loading import load
from readtrack.numbers.next_steps import next_steps
from readtrack.numbers.scope import Scope
from readtrack.numbers.verdict import verdict_of
from readtrack.numbers.words import lead
from tests.benchmarks import million
from tests.benchmarks.bench_dashboard import HEAD, OF_THE_ADMIN, cost, filled_site, page
from tests.benchmarks.measuring import table
from tests.support.costs import OF_THE_OVERVIEW
from tests.support.factories import BROWSER

FIRST = ("over-time", "most-viewed", "trending", "now")  # the tables of the first screen
PERIODS = ("today", "7", "week", "28", "90")
SCOPES: Mapping[str, Mapping[str, str]] = {
    "the site": {},
    "a model": {"model": million.LABEL},
    "a category": {"category": "site.category:2"},
    "a value": {million.DIMENSIONS[0]: "value 1"},
}
MOST_OF_FIRST = (5, 2)
STORIES = (1, 3_000, million.ARTICLES)


def main() -> None:
    """Prints a table for each scope, and one for the pages of stories."""
    with filled_site() as title, override_settings(READTRACK=million.SETTINGS):
        measure(title)


def measure(title: str) -> None:
    """Prints the tables."""
    User.objects.filter(pk=1).update(is_staff=True, is_superuser=True)
    client = Client(headers={"User-Agent": BROWSER})
    client.force_login(User.objects.get(pk=1))
    for name, chosen in SCOPES.items():
        rows = []
        for period in PERIODS:
            given = {**chosen, "period": period}
            first = cost(partial(_first_screen, given), 0, most=MOST_OF_FIRST)
            whole = cost(partial(page, client, "", given), OF_THE_ADMIN, most=OF_THE_OVERVIEW)
            rows += [(f"{period}: first screen", *first), (f"{period}: whole page", *whole)]
        table(f"The overview of {title}: {name}", [HEAD, *rows])
    rows = []
    for number in STORIES:
        path = f"object/{million.LABEL}:{number}/"
        found = cost(partial(page, client, path, {}), OF_THE_ADMIN, most=(7, 3))
        rows.append((f"article {number:,}", *found))
    table(f"The page of a story of {title}", [HEAD, *rows])


def _first_screen(given: Mapping[str, str]) -> None:
    """Makes what the first screen shows: the sentence, the numbers, the chart and top stories."""
    data = load(Scope.parse(given), FIRST, row_limit=tables.ROWS_ON_PAGE)
    assert lead(verdict_of(data)).sentences
    next_steps(data)
    for name in FIRST:
        tables.table_named(name, data)
