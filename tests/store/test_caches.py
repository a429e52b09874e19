"""readtrack counts with the caches of other libraries than django-redis, or says why it cannot."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.redis import RedisCache
from pytest_django import Settings
from redis import BlockingConnectionPool, Redis

from demo_project.engines.valkey import Valkey
from readtrack.checks.setup import check_setup
from readtrack.store import connection
from readtrack.store.caches import by_django_redis
from readtrack.store.circuit import Circuit
from readtrack.store.connection import address, connect
from tests.conftest import Start
from tests.store.test_clients import NOBODY, assert_it_counts
from tests.store.test_waiting import SLACK, TIMEOUT, connect_anew, slow, waited
from tests.support import factories
from tests.support.forks import Forks
from tests.support.waiting import is_ever_below
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

DJANGO = "django.core.cache.backends.redis.RedisCache"
VALKEY = "django_valkey.cache.ValkeyCache"
CACHEX = "django_cachex.cache.ValkeyCache"
CACHEX_BY_REDIS = "django_cachex.cache.RedisCache"
BACKENDS = [DJANGO, VALKEY, CACHEX, CACHEX_BY_REDIS]
CLIENTS = "django_valkey.client"
NOWHERE = "valkey://127.0.0.1:1/0"


class OwnCache(RedisCache):
    """A cache that a site derives from Django's."""


class OwnFactory:
    """A connection factory of a site's own, for django-valkey."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options


class Credentials:
    """Gives user and password, such as those of a cloud that change."""

    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey

    def get_credentials(self) -> tuple[str, str]:
        return "default", self.valkey.password


def use(settings: Settings, backend: str, location: Any, **options: Any) -> None:
    """Makes the cache one of this backend. Skips the test where its library is not installed."""
    package = backend.partition(".")[0]
    if not find_spec(package):
        pytest.skip(f"{package} is not installed")
    settings.CACHES = {
        "default": {"BACKEND": backend, "LOCATION": location, "OPTIONS": options},
    }


def by_valkey(url: str) -> str:
    return url.replace("redis://", "valkey://")


def one_of_replicas(url: str) -> list[str]:
    return [by_valkey(url), NOWHERE, NOWHERE]


def one_of_two(url: str) -> str:
    return f"{url};{NOBODY}"


def by_database(url: str) -> str:
    return url.removesuffix("/0")


WAYS: dict[str, tuple[str, Callable[[str], Any], dict[str, Any]]] = {
    "Django": (DJANGO, str, {}),
    "Django, replicas in one string": (DJANGO, one_of_two, {}),
    "Django, a database": (DJANGO, by_database, {"db": "3"}),
    "Django, a pool": (DJANGO, str, {"pool_class": BlockingConnectionPool, "max_connections": 3}),
    "Django, a pool by its path": (DJANGO, str, {"pool_class": "redis.BlockingConnectionPool"}),
    "Django, a parser": (DJANGO, str, {"parser_class": "redis.connection.DefaultParser"}),
    "Django, a serializer": (DJANGO, str, {"serializer": "json.JSONEncoder"}),
    "Django, decoded answers": (DJANGO, str, {"decode_responses": True, "socket_timeout": 3}),
    "a cache derived from Django's": (f"{__name__}.OwnCache", str, {}),
    "django-valkey": (VALKEY, by_valkey, {}),
    "django-valkey, a URL of Redis": (VALKEY, str, {}),
    "django-valkey, replicas": (VALKEY, one_of_replicas, {}),
    "django-valkey, shards": (VALKEY, one_of_replicas, {"CLIENT_CLASS": f"{CLIENTS}.ShardClient"}),
    "django-valkey, herd": (VALKEY, by_valkey, {"CLIENT_CLASS": f"{CLIENTS}.HerdClient"}),
    "django-valkey, a pool": (
        VALKEY,
        by_valkey,
        {
            "CONNECTION_POOL_CLASS": "valkey.BlockingConnectionPool",
            "CONNECTION_POOL_KWARGS": {
                "max_connections": 3,
                "timeout": 5,
                "retry_on_timeout": True,
            },
        },
    ),
    "django-valkey, a serializer": (
        VALKEY,
        by_valkey,
        {"SERIALIZER": "django_valkey.serializers.json.JSONSerializer", "SOCKET_TIMEOUT": 3},
    ),
    "django-cachex": (CACHEX, by_valkey, {}),
    "django-cachex, redis-py": (CACHEX_BY_REDIS, str, {}),
    "django-cachex, replicas": (CACHEX, one_of_replicas, {}),
    "django-cachex, a pool": (
        CACHEX,
        by_valkey,
        {"pool_class": "valkey.BlockingConnectionPool", "max_connections": 3},
    ),
    "django-cachex, a compressor": (
        CACHEX,
        by_valkey,
        {"compressor": "django_cachex.compressors.zlib.ZlibCompressor"},
    ),
}


@pytest.mark.one_server("names one server")
@pytest.mark.parametrize("way", WAYS)
def test_a_cache_counts_however_it_is_configured(
    settings: Settings, redis_url: str, way: str
) -> None:
    backend, location_of, options = WAYS[way]
    use(settings, backend, location_of(redis_url), **options)
    connect().flushdb()
    assert_it_counts()
    connect().flushdb()


def test_a_unix_socket_counts(settings: Settings, start_redis: Start) -> None:
    valkey = start_redis()
    use(settings, VALKEY, f"unix://:{valkey.password}@{valkey.socket}?db=1")
    assert_it_counts()


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        (DJANGO, {"username": "default", "password": "{}"}),
        (VALKEY, {"PASSWORD": "{}"}),
        (VALKEY, {"CONNECTION_POOL_KWARGS": {"password": "{}"}}),
        (CACHEX, {"username": "default", "password": "{}"}),
    ],
)
def test_a_password_in_the_options_counts(
    settings: Settings, start_redis: Start, backend: str, options: dict[str, Any]
) -> None:
    valkey = start_redis()
    filled = {
        name: value.format(valkey.password)
        if isinstance(value, str)
        else {"password": valkey.password}
        for name, value in options.items()
    }
    use(settings, backend, f"redis://127.0.0.1:{valkey.port}/0", **filled)
    assert_it_counts()


@pytest.mark.parametrize("backend", [VALKEY, CACHEX])
def test_a_provider_of_credentials_is_asked(
    settings: Settings, start_redis: Start, backend: str
) -> None:
    valkey = start_redis()
    credentials = {"credential_provider": Credentials(valkey)}
    options = {"CONNECTION_POOL_KWARGS": credentials} if backend == VALKEY else credentials
    use(settings, backend, f"valkey://127.0.0.1:{valkey.port}/0", **options)
    assert_it_counts()


@pytest.mark.parametrize("backend", BACKENDS)
def test_tls_counts_with_a_certificate_that_is_known(
    settings: Settings, tls: tuple[str, Path], backend: str
) -> None:
    url, certificate = tls
    if backend in {VALKEY, CACHEX}:
        url = url.replace("rediss://", "valkeys://")
    options: dict[str, Any] = {"ssl_ca_certs": str(certificate)}
    use(
        settings,
        backend,
        url,
        **({"CONNECTION_POOL_KWARGS": options} if backend == VALKEY else options),
    )
    assert_it_counts()


@pytest.mark.parametrize("backend", BACKENDS)
def test_tls_with_a_certificate_that_is_unknown_costs_no_page(
    settings: Settings, tls: tuple[str, Path], backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    use(settings, backend, tls[0])
    assert ">7<" in factories.browser().get(f"/posts/{factories.post(view_count=7).pk}/").text
    assert "CERTIFICATE_VERIFY_FAILED" in caplog.text


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_page_waits_no_longer_than_the_time_out(
    settings: Settings, wire: Wire, backend: str
) -> None:
    use(settings, backend, wire.url)
    settings.READTRACK = {"TIMEOUT": TIMEOUT}
    Circuit.longest_pause = 60.0
    post, browser = factories.post(view_count=7), factories.browser()

    def look_at_the_page() -> float:
        connect_anew(wire)
        slow(wire, TIMEOUT * 0.6)
        with waited() as seconds:
            assert ">7<" in browser.get(f"/posts/{post.pk}/").text
        return seconds[0]

    assert is_ever_below(TIMEOUT + SLACK, look_at_the_page)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_sites_own_cache_goes_on_as_it_is_configured(
    settings: Settings, redis_url: str, backend: str
) -> None:
    use(settings, backend, f"{redis_url.removesuffix('/0')}/2")
    assert connect().connection_pool.connection_kwargs["db"] == 2
    site_cache = caches["default"]
    site_cache.set("site", [1])
    assert site_cache.get("site") == [1]
    assert type(site_cache).__module__.partition(".")[0] == backend.partition(".")[0]
    connect().flushdb()


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "Django, Sentinel": (
        DJANGO,
        {
            "pool_class": "redis.sentinel.SentinelConnectionPool",
            "service_name": "mymaster",
            "sentinel_manager": None,
        },
        "its option sentinel_manager",
    ),
    "Django, an option that nothing takes": (DJANGO, {"max_conections": 5}, "TypeError: "),
    "Django, no such pool": (DJANGO, {"pool_class": "nothing.Pool"}, "ModuleNotFoundError: "),
    "django-valkey, connections of one's own": (
        VALKEY,
        {"CONNECTION_FACTORY": f"{__name__}.OwnFactory"},
        f"its CONNECTION_FACTORY is {__name__}.OwnFactory",
    ),
    "django-valkey, no such client": (VALKEY, {"CLIENT_CLASS": "nothing.Client"}, "nothing"),
    "django-cachex in memory": (
        "django_cachex.cache.LocMemCache",
        {},
        "made of redis-py or valkey-py",
    ),
}


@pytest.mark.parametrize("way", REFUSED)
def test_a_cache_that_cannot_be_used_is_refused_and_costs_no_page(
    settings: Settings, way: str
) -> None:
    backend, options, words = REFUSED[way]
    use(settings, backend, NOBODY, **options)
    if not hasattr(sys.modules.get("django_cachex.cache"), "LocMemCache") and "memory" in way:
        pytest.skip("this version of django-cachex has none")
    [message] = [message for message in check_setup(None) if message.id == "readtrack.E012"]
    assert words in message.msg
    assert ">7<" in factories.browser().get(f"/posts/{factories.post(view_count=7).pk}/").text


def test_a_cluster_without_partitions_is_refused_without_asking_a_server(
    settings: Settings,
) -> None:
    use(settings, "django_valkey.cluster_cache.cache.ClusterValkeyCache", NOWHERE)
    settings.READTRACK = {"CLUSTER": {"partitions": 1}}
    [message] = [message for message in check_setup(None) if message.id == "readtrack.E012"]
    assert "READTRACK['CLUSTER']" in message.msg


@pytest.mark.needs_parts("cluster")
def test_a_cluster_by_tls_is_asked_by_tls(settings: Settings) -> None:
    use(
        settings,
        "django_valkey.cluster_cache.cache.ClusterValkeyCache",
        "valkey://one:7000,valkey://two:7001",
        BASE_CLIENT_KWARGS={"ssl": True, "ssl_ca_certs": "ca.pem", "read_from_replicas": True},
    )
    adapted = by_django_redis(caches["default"], settings.CACHES["default"])
    assert adapted.client._server == ["rediss://one:7000", "rediss://two:7001"]
    assert adapted.client.connection_factory.pool_cls_kwargs == {"ssl_ca_certs": "ca.pem"}


class Unknown(BaseCache):
    """A cache of a library that readtrack does not know, which has a client of redis-py."""

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)
        self.location = location

    def get_client(self, *, write: bool) -> Any:
        return Redis.from_url(self.location)


@pytest.mark.one_server("names one server")
def test_the_client_of_an_unknown_library_is_used_as_it_is(
    settings: Settings, redis_url: str
) -> None:
    use(settings, f"{__name__}.Unknown", redis_url)
    assert connection.misconfiguration() == ""
    assert address() in redis_url
    connect().connection_pool.disconnect()


LOADED = """
import sys
import django

django.setup()
from readtrack.store.connection import connect

connect()
print(sorted({"valkey", "django_valkey", "django_cachex"} & {*sys.modules}))
"""


def test_no_other_library_is_imported_for_a_cache_of_django_redis(forks: Forks) -> None:
    if "valkey" in caches.settings["default"]["BACKEND"].lower():
        pytest.skip("the tests' cache is one of valkey-py")
    assert forks.run(LOADED).output.strip() == "[]"
