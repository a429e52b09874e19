"""A post of a category of its own."""

import pytest

from tests.site.models import Category, Post
from tests.support import factories


@pytest.fixture
def category() -> Category:
    return factories.category()


@pytest.fixture
def post(category: Category) -> Post:
    return factories.post(category=category)
