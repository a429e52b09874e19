"""A site with numbers of every kind, and what its dashboard's files have of them."""

import json
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from readtrack import buckets, tracker
from readtrack.api.models import make_token
from readtrack.flush.run import flush
from readtrack.numbers import loading
from readtrack.numbers.models import Note
from readtrack.store import skips
from readtrack.store.skips import skip_buffer
from readtrack.subjects import subject_of
from tests.dashboard.test_page import add_views
from tests.site.models import Article, Category, Post
from tests.support import counts, factories

API = "/readtrack/api/"
DASHBOARD = "/admin/readtrack/dashboard/"
DIMENSIONS = (("referrer", "example.com"), ("device", "phone"))


class Site(NamedTuple):
    """The rows of the site."""

    editor: User  # sees all numbers
    author: User  # sees those of own articles
    other: User  # likewise
    news: Category
    articles: list[Article]  # the first two by the author, the third by the other one
    post: Post


def editor(**values: Any) -> User:
    """Returns a user who may see all numbers."""
    user = factories.user(is_staff=True, **values)
    user.user_permissions.add(Permission.objects.get(codename="view_numbers"))
    return user


@pytest.fixture
def site(settings: Settings) -> Site:
    """Returns a site with history, with live views, and with refused hits."""
    settings.READTRACK = {
        "NUMBERS": {"dimensions": ["referrer", "device"], "funnels": True},
        "TIMEOUT": 10.0,
    }
    loading._accounts.cache_clear()
    author = factories.user(is_staff=True, first_name="Anna")
    other = factories.user(is_staff=True, first_name="Bea")
    news = factories.category(name="News")
    now = timezone.now()
    articles = [
        Article.objects.create(
            title=f"Article {number}",
            author=other if number == 2 else author,
            category=news if number else None,
            published_at=now - timedelta(days=(2, 40, 300)[number]),
        )
        for number in range(3)
    ]
    post = factories.post(title="=1+1", category=news)
    for number, article in enumerate(articles):
        add_views(article, 10, 5 + number, visitors=3, reads=2)
        add_views(article, 2, 20 * (number + 1), visitors=5 + number, reads=4)
    add_views(post, 3, 7, visitors=2)
    for number, obj in enumerate((*articles, post)):
        for _ in range(number + 1):
            hit = factories.hit(subject_of(obj), dimensions=DIMENSIONS)
            assert tracker.record(hit).counted
    Note.objects.create(day=timezone.localdate(), text="newsletter")
    skip_buffer.add(skips.key_of(buckets.now()), ["bot", "bot", "repeat", "bot:Googlebot"])
    skip_buffer.send_rest()
    flush()
    counts.view(articles[0], post, post)
    return Site(editor(), author, other, news, articles, post)


def token_of(user: User) -> dict[str, str]:
    """Returns the header with a new token of the user."""
    return {"Authorization": f"Bearer {make_token(user, 'a test').text}"}


def asked(user: User, question: str, **given: Any) -> Any:
    """Returns the response of the API to the user."""
    return Client().get(f"{API}{question}", given, headers=token_of(user))


def answered(user: User, question: str, **given: Any) -> dict[str, Any]:
    """Returns the answer of the API to the user."""
    response = asked(user, question, **given)
    assert response.status_code == 200, response.text
    content: dict[str, Any] = response.json()
    return content


def exported(user: User, table: str, path: str = "", **given: str) -> dict[str, Any]:
    """Returns a file of the dashboard in JSON; `path` is that of the page below the dashboard's."""
    client = Client()
    client.force_login(user)
    parameters = {"table": table, "format": "json", "period": "7", **given}
    response: Any = client.get(f"{DASHBOARD}{path}", parameters)
    assert response.status_code == 200
    content: dict[str, Any] = json.loads(b"".join(response.streaming_content))
    return content


def assert_same(answer: dict[str, Any], file: dict[str, Any]) -> None:
    """Asserts that each number of the answer is that of the file, and that none is missing."""
    assert answer["row_count"] == len(file["rows"])
    assert answer["is_complete"] == file["is_complete"]
    for row, of_file in zip(answer["rows"], file["rows"], strict=False):
        numbers = dict(zip(file["columns"][1:], of_file[1:], strict=True))
        values = {**row}
        del values["filters"]
        first, *others = values
        assert values[first] == of_file[0]
        for name in others:
            assert values[name] == numbers.get(name), name
        assert {*numbers} - {*others} <= {"trend"}
