"""A pytest plugin: starts the servers that the tests run on.

`READTRACK_TEST_REDIS_URL` and `DATABASE_URL` name servers of one's own. Each worker empties its
Redis before every test, so for several workers name several URLs, separated by blanks. Workers may
share a database server, because pytest-django gives each of them a database of its own.

`READTRACK_TEST_POSTGRES` names the folder of another PostgreSQL, with its programs in `bin`, which is
started in place of that of the wheel.

`READTRACK_TEST_CLUSTER=1` runs the tests on a cluster of three primaries and three replicas, with
16 partitions, and leaves out those that are about one server: marked `one_server`, or with a
fixture of one.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo_project.engines.postgres import Postgres
from demo_project.engines.valkey import Valkey
from tests.support.cluster import ValkeyCluster
from tests.support.postgres import OtherPostgres
from tests.support.workers import REDIS, number_of_workers

DATABASE = "DATABASE_URL"
POSTGRES = "READTRACK_TEST_POSTGRES"
CLUSTER = "READTRACK_TEST_CLUSTER"  # of a worker: the addresses of its cluster


# A wrapper, because pytest-django reads the settings in this hook, ahead of all others.
@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Starts what this process needs and the environment does not name. The servers end with this
    process.
    """
    if DATABASE not in os.environ:  # workers find the server of the process that started them
        os.environ[DATABASE] = _started(_postgres())
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")  # such as gw1
    if worker or not number_of_workers(early_config.known_args_namespace):
        urls = os.environ.get(REDIS, "").split() or [_started(Valkey())]
        os.environ[REDIS] = urls[int(worker[2:] or 0) % len(urls)]
        if CLUSTER in os.environ:
            os.environ["READTRACK_TEST_PARTITIONS"] = "16"
            cluster = ValkeyCluster()
            cluster.start()
            os.environ[CLUSTER] = " ".join(cluster.urls)
    yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what needs one server, where the tests run on a cluster."""
    if CLUSTER in os.environ:
        own = [
            item
            for item in items
            if item.get_closest_marker("one_server") or ONE_SERVER & fixtures_of(item)
        ]
        config.hook.pytest_deselected(items=own)
        items[:] = [item for item in items if item not in own]


def fixtures_of(item: pytest.Item) -> set[str]:
    return set(getattr(item, "fixturenames", ()))


# Fixtures of one server: a relay in front of it, its address, another one, processes that use it.
ONE_SERVER = {"wire", "redis_url", "start_redis", "forks"}


def _postgres() -> Postgres:
    if POSTGRES in os.environ:
        return OtherPostgres(Path(os.environ[POSTGRES]).absolute())
    return Postgres()


def _started(engine: Postgres | Valkey) -> str:
    engine.start()
    return engine.url
