"""What every test starts from: empty servers, a closed circuit."""

from collections.abc import Iterator
from datetime import datetime, timezone

import pytest
from django.conf import settings
from redis import Redis

from readtrack.store.connection import circuit


@pytest.fixture(scope="session")
def redis_url() -> str:
    """The URL of the Redis that the suite runs on."""
    return str(settings.CACHES["default"]["LOCATION"])


@pytest.fixture(scope="session")
def _client(redis_url: str) -> Iterator[Redis]:
    with Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


@pytest.fixture(autouse=True)
def redis(_client: Redis) -> Redis:
    """A plain client on an empty Redis, beside readtrack's own."""
    _client.flushdb()
    circuit.reset()
    return _client


@pytest.fixture
def noon() -> datetime:
    """A time to give to whatever takes one."""
    return datetime(2026, 11, 20, 12, 0, 30, tzinfo=timezone.utc)
