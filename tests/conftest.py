"""What every test starts from: empty servers, a closed circuit.

A test of an async page is a plain function that calls `factories.fetch_async`, as Django's own
TestCase does it: a test that is a coroutine would make its queries in a second thread, outside its
transaction, on a connection that nobody closes.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime, timezone
from functools import cache
from time import time_ns

import pytest
from django.conf import settings
from pytest_django import Settings
from redis import VERSION, Redis
from redis import utils as redis_utils

from demo_project.engines.valkey import Valkey
from readtrack.conf import Conf
from readtrack.hits.addresses import Watch, watch
from readtrack.numbers import kept
from readtrack.shipped import CLUSTER_FACTORY
from readtrack.store import clock, connection, keys, read_state
from readtrack.store.circuit import Circuit, circuit
from readtrack.store.skips import skip_buffer
from tests.support import caches, factories
from tests.support import depth as depth  # loads hypothesis's profile
from tests.support import emptying as emptying  # empties the databases after tests that commit
from tests.support.asking import ask_again
from tests.support.bounds import MOST_BITS, set_most_bits
from tests.support.forks import SETTINGS, Forks
from tests.support.partitions import COUNT, PlainNames
from tests.support.partitions import validator as validator
from tests.support.pseudo import pseudo as pseudo
from tests.support.scripts import load_scripts
from tests.support.wire import Wire

# Each new connection tells it to the server, and redis-py reads it from a file each time: 2 ms.
if VERSION >= (5,):
    redis_utils.get_lib_version = cache(redis_utils.get_lib_version)
prefix_of_a_sites_tests = keys.test_prefix
keys.test_prefix = lambda: ""  # the tests look for keys by their plain names
Conf.TIMEOUT = 10.0  # a busy machine may be slow; tests of time-outs set their own
LONGEST_PAUSE = Circuit.longest_pause

Start = Callable[..., Valkey]
# Of tests that are about django-redis itself.
DJANGO_REDIS = pytest.mark.skipif(caches.LIBRARY != "django-redis", reason="is about django-redis")


@pytest.fixture(scope="session")
def redis_url() -> str:
    """Returns the URL of the Redis that the tests use."""
    return caches.redis_url(settings.CACHES["default"]["LOCATION"])


@pytest.fixture(scope="session")
def _client() -> Iterator[Redis]:
    # Without the fixture `redis_url`, whose tests a cluster leaves out.
    locations = settings.CACHES["default"]["LOCATION"]
    if isinstance(locations, list):
        from tests.support.plain_cluster import PlainNamesInCluster  # of a part

        urls = [caches.redis_url(location) for location in locations]
        with ExitStack() as stack:
            yield PlainNamesInCluster.of(urls, stack)
        return
    client_class = Redis if COUNT == 1 else PlainNames
    with client_class.from_url(caches.redis_url(locations), decode_responses=True) as client:
        yield client


@pytest.fixture(autouse=True)
def redis(_client: Redis) -> Redis:
    """Empties Redis, and lets it know all publications, as one in use does. Returns a plain client,
    apart from readtrack's own.
    """
    _client.flushdb()
    Circuit.longest_pause = LONGEST_PAUSE
    set_most_bits(MOST_BITS)
    circuit.close()
    skip_buffer.clear()
    kept.forget()
    vars(watch).update(vars(Watch()))
    clock.learn(
        time_ns() // 1_000
    )  # Redis's clock is this machine's; an answer may be late, and dots would stay
    factories.begin()
    read_state.begin(0)
    ask_again()
    return _client


@pytest.fixture
def new_redis(redis: Redis) -> None:
    """Empties Redis, which then does not know since when there are publications."""
    redis.flushdb()


@pytest.fixture
def test_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets keys begin as they do in a site's own tests."""
    monkeypatch.setattr(keys, "test_prefix", prefix_of_a_sites_tests)


@pytest.fixture
def noon() -> datetime:
    """Returns a fixed time."""
    return datetime(2026, 11, 20, 12, 0, 30, tzinfo=timezone.utc)


@pytest.fixture
def afternoon(settings: Settings) -> None:
    """Lets TIME_ZONE be one in which it is between one and two in the afternoon. In the first hour of
    a day nothing of it is compared, and a test that begins before midnight may end after it.
    """
    hours_ahead = 13 - datetime.now(timezone.utc).hour
    settings.TIME_ZONE = f"Etc/GMT{-hours_ahead:+}"  # what is ahead of UTC has a minus there


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Returns what runs code in processes of their own, which have the tests' settings."""
    with Forks(os.environ) as process:
        yield process


@pytest.fixture(scope="session")
def bare_forks() -> Iterator[Forks]:
    """Returns what runs code in processes of their own, which know no settings, no database and no
    worker of pytest.
    """
    own = {SETTINGS, "DATABASE_URL", "PYTEST_XDIST_WORKER"}
    with Forks({name: value for name, value in os.environ.items() if name not in own}) as process:
        yield process


@pytest.fixture
def wire(redis_url: str, settings: Settings) -> Iterator[Wire]:
    """Puts a relay between readtrack and Redis, with connections open and scripts loaded."""
    relay = Wire(redis_url)
    use_redis(settings, relay.url)
    for is_patient in (False, True):
        connection.connect(patient=is_patient).ping()
    with connection.connect().pipeline(transaction=False) as pipeline:
        load_scripts(pipeline)
        pipeline.execute()
    clock.ask()
    yield relay
    relay.close()


@pytest.fixture
def start_redis(settings: Settings) -> Iterator[Start]:
    """Returns a function that starts another Redis with these directives (`_` for `-`), which
    readtrack then uses.
    """
    password = secrets.token_urlsafe(24)  # of all, so that one can become another's replica
    with ExitStack() as stack:

        def start(**config: str) -> Valkey:
            directives = {name.replace("_", "-"): value for name, value in config.items()}
            valkey = stack.enter_context(Valkey(config=directives, password=password))
            use_redis(settings, valkey.url)
            return valkey

        yield start


def use_redis(settings: Settings, url: str) -> None:
    """Points readtrack at another Redis, which is no cluster."""
    cache = settings.CACHES["default"]
    options = {
        name: value for name, value in cache.get("OPTIONS", {}).items() if value != CLUSTER_FACTORY
    }
    settings.CACHES = {"default": {**cache, **caches.single(url), "OPTIONS": options}}


@pytest.fixture(params=["default", "lite"])
def database(request: pytest.FixtureRequest, settings: Settings) -> str:
    """Runs the test with each database in turn as the one of all models. Returns its alias."""
    if request.param == "lite":
        settings.DATABASE_ROUTERS = ["tests.support.routers.Lite"]
    return str(request.param)
