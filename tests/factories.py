"""Things to test with."""

from itertools import count
from typing import Any

from django.contrib.auth.models import User

from readtrack import buckets
from readtrack.hits import Hit
from readtrack.visitors import Visitor
from tests.site.models import Category, Post

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

_numbers = count(1)


def category(**values: Any) -> Category:
    return Category.objects.create(**{"name": f"Category {next(_numbers)}", **values})


def post(**values: Any) -> Post:
    return Post.objects.create(**{"title": f"Post {next(_numbers)}", **values})


def user(**values: Any) -> User:
    return User.objects.create_user(**{"username": f"user{next(_numbers)}", "password": "secret", **values})


def hit(*tokens: str, **values: Any) -> Hit:
    """A view of the tokens by a visitor nobody has seen before."""
    fresh = {"visitor": Visitor(f"visitor{next(_numbers)}"), "at": buckets.now(), "views": tokens}
    return Hit(**{**fresh, **values})
