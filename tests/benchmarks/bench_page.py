"""A page with 50 counts and 50 dots: how often it goes to Redis and to SQL."""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from redis.connection import AbstractConnection

from readtrack.store.connection import connect
from tests.benchmarks.measuring import compare, table
from tests.site.models import Category, Post
from tests.support.factories import BROWSER

OBJECTS = 50
PAGES = 20


def main() -> None:
    """Prints what the page costs, beside the same page without a tag."""
    client = _visitor()
    paths = {"without tags": "/bare/", "with tags": "/list/"}
    found = compare(
        {name: partial(_pages, client, path) for name, path in paths.items()}, each=PAGES
    )
    rows = [("", "queries", "round trips", "median", "ratio")]
    for name, path in paths.items():
        spent, ratio = found[name]
        rows.append((name, *_cost(client, path), f"{spent:.0f} µs", f"{ratio:.2f} ×"))
    table(
        f"A page of {OBJECTS} counts and {OBJECTS} dots (at most 2 round trips, and no query more)",
        rows,
    )


def _cost(client: Client, path: str) -> tuple[str, str]:
    """Queries and round trips of one page."""
    with CaptureQueriesContext(connection) as queries:
        trips = round_trips(lambda: _get(client, path))
        return str(len(queries)), str(trips)


def _visitor() -> Client:
    connect().flushdb()
    Category.objects.bulk_create(Category(name=f"Category {number}") for number in range(OBJECTS))
    Post.objects.bulk_create(Post(title=f"Post {number}") for number in range(OBJECTS))
    client = Client(headers={"User-Agent": BROWSER})
    client.force_login(User.objects.create_user("reader"))
    _get(client, "/list/")
    return client


def _get(client: Client, path: str) -> None:
    if client.get(path).status_code != 200:
        raise RuntimeError(f"{path} does not work.")


def _pages(client: Client, path: str) -> None:
    for _ in range(PAGES):
        _get(client, path)


def round_trips(work: Callable[[], object]) -> int:
    """How often the work sends something to Redis: a command, or several together."""
    sent: list[Any] = []
    send: Any = AbstractConnection.send_packed_command

    def counted(*args: Any, **kwargs: Any) -> None:
        sent.append(args)
        send(*args, **kwargs)

    with patch.object(AbstractConnection, "send_packed_command", counted):
        work()
    return len(sent)
