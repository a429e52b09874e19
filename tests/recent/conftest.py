"""A site that keeps what its readers opened."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from readtrack.recent import openings
from tests.site.models import Post
from tests.support import factories

RECENT = {"models": ["site.Post"]}
Keep = Callable[..., None]


@pytest.fixture
def keep(settings: Settings) -> Keep:
    """Returns a function that sets RECENT with these options, and other settings."""
    settings.ROOT_URLCONF = "tests.recent.urls"

    def keep(others: dict[str, Any] | None = None, **options: Any) -> None:
        settings.READTRACK = {"RECENT": {**RECENT, **options}, **(others or {})}

    keep()
    return keep


def posts(number: int) -> list[Post]:
    return [factories.post(title=f"Post {name}") for name in range(1, number + 1)]


def opened(visitor_id: str) -> list[str]:
    """Returns the subjects in the list of the visitor, the last one first."""
    return [opening.subject for opening in openings.openings(visitor_id)]


def signed_in() -> tuple[User, Any]:
    """Returns a user, and a browser in which the user is signed in."""
    user = factories.user()
    return user, factories.browser(user)
