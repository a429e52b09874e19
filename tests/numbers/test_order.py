"""Equal ones have one order in every list, wherever SQL happens to find their rows."""

from collections import Counter
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.numbers.loading import load
from readtrack.numbers.order import most_first, place_among_equals
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql import history, popular
from readtrack.numbers.tables import table_named
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import subject_of
from tests.dashboard.test_page import add_views
from tests.site.models import Category, Post
from tests.support import counts, factories
from tests.support.past import begin_history
from tests.support.rows import each_row

pytestmark = [pytest.mark.django_db, pytest.mark.needs_parts("dashboard", "numbers")]

OF_PHONES = (("device", "phone"),)

#: What makes PostgreSQL find rows in another order: it runs the second one by itself, at any time.
BETWEEN = ("UPDATE site_post SET title = 'moved' WHERE id <> 10", "ANALYZE site_post")

#: The filters of lists of equal objects, by the table that is asked with them.
LISTS: dict[str, tuple[str, dict[str, str]]] = {
    "most viewed": ("most-viewed", {}),
    "of a category": ("most-viewed", {"category": "NEWS"}),
    "of all time": ("most-viewed", {"period": "all"}),
    "of a source": ("most-viewed", {"device": "phone"}),
    "of a source, of all time": ("most-viewed", {"device": "phone", "period": "all"}),
    "grew most": ("grew-most", {}),
    "really read": ("really-read", {}),
    "really read of a category": ("really-read", {"category": "NEWS"}),
}


@pytest.fixture
def posts(settings: Settings) -> list[Post]:
    """Returns posts of a category with the same numbers, the oldest first."""
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"]}}
    begin_history(Post)
    news = factories.category(name="News")
    # Of 9 and 10, the text "9" is higher.
    posts = [factories.post(pk=pk, category=news) for pk in (9, 10, 11)]
    for post in posts:
        add_views(post, 20, 3)
        add_views(post, 3, 20, reads=2)
        counts.view_times(post, dimensions=OF_PHONES)
    flush()
    return posts


@each_row("name", LISTS)
def test_the_newest_of_equal_objects_comes_first(name: str, posts: list[Post]) -> None:
    table, given = LISTS[name]
    keys = {"NEWS": subject_of(Category.objects.get())}
    filters = {key: keys.get(value, value) for key, value in given.items()}
    newest_first = [11, 10, 9]
    for statement in BETWEEN:
        with connection.cursor() as cursor:
            cursor.execute(statement)
        assert shown_in(table, {"period": "7", **filters}) == newest_first


def shown_in(table: str, given: dict[str, str]) -> list[Any]:
    """Returns the primary keys of the objects in a table, as a file has them."""
    data = load(Scope.parse(given), [table])
    return [row.values[0].pk for row in table_named(table, data).rows]


def test_equal_values_are_in_the_order_of_their_names(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"]}}
    post = factories.post()
    for device in ("tablet", "phone", "desktop"):
        counts.view_times(post, dimensions=(("device", device),))
    flush()
    for given in ({}, {"object": subject_of(post)}):
        data = load(Scope.parse(given), ["by-device"])
        table = table_named("by-device", data)
        assert table.values("device") == ["desktop", "phone", "tablet"]
    assert most_first(Counter(b=1, c=2, a=1)) == [("c", 2), ("a", 1), ("b", 1)]


def test_models_with_equal_keys_have_an_order_too() -> None:
    subjects = ["site.post:9", "site.post:10", "site.article:10", "site.page:a%2Fb"]
    ordered = sorted(subjects, key=place_among_equals, reverse=True)
    assert ordered == ["site.page:a%2Fb", "site.post:10", "site.article:10", "site.post:9"]


def test_of_equal_subjects_the_newest_are_in_a_list_that_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(popular, "LISTED", 2)
    hour = buckets.hour_index(buckets.now())
    views_by_key = {1: 9, 9: 5, 10: 5, 11: 5, 12: 1, 2: 5}
    for key, views in views_by_key.items():
        history.store({f"site.post:{key}": RowCounts(views, 0)}, hour=hour)
    found = popular.most(["site.post"], since=hour, until=hour + 1)
    assert dict(found) == {"site.post:1": 9, "site.post:11": 5}
