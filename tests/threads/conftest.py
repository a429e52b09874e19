"""The forum in which read state by reader is tested, and two of its users."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from tests.support import factories, forum


@pytest.fixture(
    params=[{}, {"DOTS": {"readers": "ordinal"}, "CLUSTER": {"partitions": 16}}],
    ids=["1 partition", "16 partitions"],
)
def a_forum(request: pytest.FixtureRequest, settings: Settings) -> Iterator[None]:
    with forum.forum(settings, **request.param):
        yield


@pytest.fixture
def ann() -> User:
    return factories.user()


@pytest.fixture
def bob() -> User:
    return factories.user()
