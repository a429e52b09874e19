"""Categories, and a reader of them."""

from typing import Any

import pytest

from readtrack import tracker
from tests.site.models import Category
from tests.support import factories


@pytest.fixture
def categories() -> list[Category]:
    return [factories.category() for _ in range(5)]


@pytest.fixture
def user(categories: list[Category]) -> Any:
    """Returns a reader who has read everything."""
    reader = factories.user()
    tracker.mark_read(reader, categories)
    return reader
