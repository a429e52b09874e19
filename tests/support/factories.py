"""Rows, browsers and hits for tests."""

import re
import uuid
from collections.abc import Callable
from itertools import count, islice
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from readtrack import buckets
from readtrack.hits.hit import Hit
from readtrack.hits.visitors import Visitor
from readtrack.models import Tracked
from readtrack.store import keys
from tests.site.models import Category, Headline, Journal, Page, Post, Product, Profile, Review

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

_numbers = count(1)
_visitors = count(1)


def begin() -> None:
    """Gives a test the visitors that it has in each run. Of others, two may leave the same trace in
    a small sketch.
    """
    global _visitors
    _visitors = count(1)


def category(**values: Any) -> Category:
    return Category.objects.create(**{"name": f"Category {next(_numbers)}", **values})


def post(**values: Any) -> Post:
    return Post.objects.create(**{"title": f"Post {next(_numbers)}", **values})


def neighbours(number: int, **values: Any) -> list[Post]:
    """Returns new posts of one partition."""
    return [
        post(pk=int(subject.rpartition(":")[2]), **values)
        for subject in subjects("site.post", number)
    ]


def subjects(label: str, number: int) -> list[str]:
    """Returns names of subjects of one partition."""
    names = (f"{label}:{pk}" for pk in count(1_000_001))
    own = next(names)
    return [own, *islice((name for name in names if keys.tag(name) == keys.tag(own)), number - 1)]


def user(**values: Any) -> User:
    return User.objects.create_user(
        **{"username": f"user{next(_numbers)}", "password": "secret", **values}
    )


def browser(user: User | None = None, **values: Any) -> Client:
    """Returns a browser with a cookie jar of its own; signed in, if a user is given."""
    client = Client(**{"headers": {"User-Agent": BROWSER}, **values})
    if user:
        client.force_login(user)
    return client


def fetch_async(client: AsyncClient, url: str, **values: Any) -> Any:
    """Returns the page as ASGI serves it. Its synchronous parts share the test's thread and
    transaction.
    """
    return async_to_sync(client.get)(url, headers={"User-Agent": BROWSER}, **values)


def hit(*subjects: str, **values: Any) -> Hit:
    """Returns a view of the subjects by a new visitor."""
    fresh = {
        "visitor": Visitor(f"visitor{next(_visitors)}"),
        "at": buckets.now(),
        "views": subjects,
    }
    return Hit(**{**fresh, **values})


def honeypot() -> str:
    """Returns the address that the link to the honeypot has today."""

    from readtrack.script.honeypot import link

    [address] = re.findall('href="([^"]+)"', link())
    return str(address)


# A row of every kind of Tracked model
KINDS: dict[str, Callable[[], Tracked]] = {
    "whole number": post,
    "child of a tracked model": lambda: Review.objects.create(title="A"),
    "proxy": lambda: Headline.objects.create(title="A"),
    "UUID": lambda: Product.objects.create(id=uuid.uuid4()),
    "text": lambda: Page.objects.create(slug="a:b*/%?é"),
    "tracked child": lambda: Journal.objects.create(name="A"),
    "another's key, another column": lambda: Profile.objects.create(
        user=User.objects.create(username="a")
    ),
}
