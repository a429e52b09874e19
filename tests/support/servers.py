"""A pytest plugin: the real servers the suite runs on. A URL in the environment points at one's own instead."""

import os
from collections.abc import Iterator

import pytest

from demo_project.engines.postgres import Postgres
from demo_project.engines.valkey import Valkey

REDIS = "READTRACK_TEST_REDIS_URL"
DATABASE = "DATABASE_URL"


# A wrapper, since pytest-django reads the settings in this hook, ahead of all others.
@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests() -> Iterator[None]:
    """Starts what the environment does not name; they end with this process."""
    for name, engine in ((REDIS, Valkey), (DATABASE, Postgres)):
        if name not in os.environ:
            server = engine()
            server.start()
            os.environ[name] = server.url
    yield
