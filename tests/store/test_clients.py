"""readtrack counts with every configuration of django-redis, or says why it cannot."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import django_redis
import pytest
from django.core.cache.backends.base import BaseCache
from django_redis.pool import ConnectionFactory
from pytest_django import Settings
from redis import VERSION, ConnectionPool, Redis, RedisCluster

from readtrack import reports, tracker
from readtrack.checks.setup import check_setup
from readtrack.doctor.report import examine
from readtrack.flush.run import flush
from readtrack.store.circuit import circuit
from readtrack.store.connection import connect
from tests.conftest import Start
from tests.support import factories
from tests.support.depth import some

pytestmark = pytest.mark.django_db

# Before, there is no USERNAME, and a cache with wrong options cannot be closed, so it would stay.
SINCE_7 = pytest.mark.skipif(django_redis.VERSION < (7,), reason="django-redis 7 or newer")
NOBODY = "redis://127.0.0.1:1/0"
THEIRS = "django_redis.client"


def own_key(key: str, prefix: str, version: int) -> str:
    return f"{version}/{prefix}/{key}"


class OwnFactory:
    """A connection factory of the site's own, such as one for a cluster."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options

    def connect(self, url: str) -> Any:
        return Redis(connection_pool=ConnectionPool.from_url(url))

    def disconnect(self, connection: Redis) -> None:
        connection.close()


class OwnPools(ConnectionFactory):  # type: ignore[misc]
    """A factory that makes slightly different connections."""

    def get_connection_pool(self, params: dict[str, Any]) -> Any:
        return super().get_connection_pool({**params, "client_name": "ours"})


class Cluster(OwnFactory):
    """A connection factory for a cluster."""

    def connect(self, url: str) -> Any:
        return RedisCluster.from_url(url)


class Missing(Cluster):
    """A connection factory for a cluster that does not answer."""

    def connect(self, url: str) -> Any:
        return super().connect(NOBODY)


def use(settings: Settings, location: Any, **cache: Any) -> None:
    settings.CACHES = {
        "default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": location, **cache}
    }


def assert_it_counts() -> None:
    """Views a page and reads a category. Checks what is shown, flushed and reported."""
    assert [message for message in check_setup(None) if message.id != "readtrack.W013"] == []
    category = factories.category()
    post, browser = factories.post(category=category), factories.browser(factories.user())
    tracker.mark_unread([category])
    assert "readtrack-dot" in browser.get("/list/").text
    browser.get(f"/categories/{category.pk}/")
    assert "readtrack-dot" not in browser.get("/list/").text
    assert ">1<" in browser.get(f"/posts/{post.pk}/").text
    assert ">1<" in browser.get(f"/posts/{post.pk}/").text
    assert flush().written == 1
    post.refresh_from_db()
    assert post.view_count == 1
    tracker.refresh_trending()
    assert [entry.views for entry in reports.trending()] == [1]
    assert {finding.message for finding in examine() if finding.level == "error"} == set()
    assert circuit.lets_pass()


def options(**values: Any) -> dict[str, Any]:
    return {"OPTIONS": values}


def pools(**values: Any) -> dict[str, Any]:
    return options(CONNECTION_POOL_KWARGS=values)


WAYS: dict[str, tuple[Callable[[str], Any], dict[str, Any]]] = {
    "a primary and replicas": (lambda url: [url, NOBODY, NOBODY], {}),
    "a primary and replicas in one string": (lambda url: f"{url},{NOBODY}", {}),
    "another database": (lambda url: url.removesuffix("0") + "3", {}),
    "shards": (lambda url: [url, NOBODY], options(CLIENT_CLASS=f"{THEIRS}.ShardClient")),
    "herd": (str, options(CLIENT_CLASS=f"{THEIRS}.HerdClient")),
    "serializer": (str, options(SERIALIZER="django_redis.serializers.json.JSONSerializer")),
    "compressor": (str, options(COMPRESSOR="django_redis.compressors.zlib.ZlibCompressor")),
    "keys of one's own": (
        str,
        {"KEY_FUNCTION": f"{__name__}.own_key", "KEY_PREFIX": "site", "VERSION": 7},
    ),
    "blocking pool": (str, options(CONNECTION_POOL_CLASS="redis.BlockingConnectionPool")),
    "pools of one's own": (str, options(CONNECTION_FACTORY=f"{__name__}.OwnPools")),
    "a factory of one's own": (str, options(CONNECTION_FACTORY=f"{__name__}.OwnFactory")),
    "a client class": (str, options(REDIS_CLIENT_CLASS="redis.client.StrictRedis")),
    "hiredis": (str, options(PARSER_CLASS="redis.connection._HiredisParser")),
    "no hiredis": (str, options(PARSER_CLASS="redis.connection._RESP2Parser")),
    "no hiredis, RESP2": (
        str,
        {
            **options(
                PARSER_CLASS="redis.connection._RESP2Parser", CONNECTION_POOL_KWARGS={"protocol": 2}
            )
        },
    ),
    "RESP2 in the URL": ("{}?protocol=2".format, {}),
    "RESP3 in the URL": ("{}?protocol=3".format, {}),
    "RESP2": (str, pools(protocol=2)),
    "RESP3": (str, pools(protocol=3)),
    "decoded answers": (str, pools(decode_responses=True)),
    "retries": (str, pools(retry_on_timeout=True, health_check_interval=1, max_connections=2)),
    "errors ignored": (str, options(IGNORE_EXCEPTIONS=True)),
}


# Those left to a deep run are one parameter of redis-py away from these.
ORDINARY = [
    "a primary and replicas",
    "another database",
    "shards",
    "herd",
    "compressor",
    "keys of one's own",
    "blocking pool",
    "a factory of one's own",
    "no hiredis, RESP2",
    "RESP3 in the URL",
    "decoded answers",
    "retries",
]


def is_known(way: str) -> bool:
    """Returns True if this version of redis-py has what the way needs."""
    return VERSION >= (5,) or "RESP" not in way


@pytest.mark.parametrize("way", [way for way in some(ORDINARY, deep=WAYS) if is_known(way)])
def test_a_cache_of_django_redis_counts_however_it_is_configured(
    settings: Settings, redis_url: str, way: str
) -> None:
    location, cache = WAYS[way]
    use(settings, location(redis_url), **cache)
    connect().flushdb()
    assert_it_counts()
    connect().flushdb()


def test_a_unix_socket_counts(settings: Settings, start_redis: Start) -> None:
    valkey = start_redis()
    use(settings, f"unix://:{valkey.password}@{valkey.socket}?db=1")
    assert_it_counts()


@pytest.mark.parametrize("place", ["url", pytest.param("options", marks=SINCE_7)])
def test_a_user_with_a_password_counts(settings: Settings, start_redis: Start, place: str) -> None:
    valkey = start_redis()
    with Redis.from_url(valkey.url) as client:
        client.execute_command("ACL", "SETUSER", "site", "on", ">s/cret", "~*", "+@all")
        client.execute_command("ACL", "SETUSER", "default", "off")
    if place == "url":
        use(settings, valkey.url_of("site", "s%2Fcret"))
    else:
        address = f"redis://127.0.0.1:{valkey.port}/0"
        use(settings, address, **options(USERNAME="site", PASSWORD="s/cret"))
    assert_it_counts()


def test_tls_with_a_certificate_that_is_known_counts(
    settings: Settings, tls: tuple[str, Path]
) -> None:
    use(settings, tls[0], **pools(ssl_ca_certs=str(tls[1])))
    assert_it_counts()


def test_tls_with_a_certificate_that_is_not_checked_counts(
    settings: Settings, tls: tuple[str, Path]
) -> None:
    use(settings, f"{tls[0]}?ssl_cert_reqs=none")
    assert_it_counts()


def test_tls_with_a_certificate_that_is_unknown_costs_no_page(
    settings: Settings, tls: tuple[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    use(settings, tls[0])
    assert ">7<" in factories.browser().get(f"/posts/{factories.post(view_count=7).pk}/").text
    assert "CERTIFICATE_VERIFY_FAILED" in caplog.text


SENTINEL = {
    "CLIENT_CLASS": f"{THEIRS}.SentinelClient",
    "CONNECTION_FACTORY": "django_redis.pool.SentinelConnectionFactory",
    "SENTINELS": [("127.0.0.1", 1)],
}


@SINCE_7
@pytest.mark.parametrize(
    ("location", "own", "words"),
    [
        (
            "redis://service/0",
            {"CLIENT_CLASS": f"{THEIRS}.SentinelClient"},
            "SentinelClient needs CONNECTION_FACTORY",
        ),
        (
            "redis://service/0",
            {**SENTINEL, "SENTINELS": None},
            "ImproperlyConfigured: SENTINELS must be provided",
        ),
        ("redis://service/0", {**SENTINEL, "SENTINELS": ["127.0.0.1:1"]}, "ValueError: "),
        ("redis://service/0", SENTINEL, None),
        (NOBODY, {}, None),
        (NOBODY, {"CONNECTION_POOL_KWARGS": {"max_conections": 5}}, "TypeError: "),
        (NOBODY, {"CLIENT_CLASS": "django_redis.client.Nothing"}, "ImportError: "),
        (NOBODY, {"CONNECTION_POOL_CLASS": "nothing.Pool"}, "ModuleNotFoundError: "),
        (NOBODY, {"REDIS_CLIENT_CLASS": "redis.RedisCluster"}, "it gives a RedisCluster"),
        (
            NOBODY,
            {"CONNECTION_FACTORY": f"{__name__}.Cluster"},
            None,
        ),  # whoever makes one would have to ask it
    ],
)
def test_a_cache_that_cannot_be_used_is_refused_without_asking_a_server(
    settings: Settings, location: str, own: dict[str, Any], words: str | None
) -> None:
    use(settings, location, OPTIONS=own)
    found = [message for message in check_setup(None) if message.id == "readtrack.E012"]
    assert len(found) == (words is not None)
    if words:
        assert words in found[0].msg


class ClusterCache(BaseCache):
    """A cache of another library, which names those for a cluster so."""

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    get_client = None  # a check asks no server


def test_a_cluster_of_another_library_without_partitions_is_refused(settings: Settings) -> None:
    settings.CACHES = {"default": {"BACKEND": f"{__name__}.ClusterCache"}}
    settings.READTRACK = {"CLUSTER": {"partitions": 1}}
    [message] = [message for message in check_setup(None) if message.id == "readtrack.E012"]
    assert "READTRACK['CLUSTER']" in message.msg


def test_no_reason_is_looked_for_in_a_cache_that_is_not_ours(settings: Settings) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    assert [message.id for message in check_setup(None)] == ["readtrack.E012"]


def test_a_prefix_of_the_caches_own_is_pointed_out(settings: Settings, redis_url: str) -> None:
    use(settings, redis_url, KEY_PREFIX="staging")
    [message] = check_setup(None)
    assert message.id == "readtrack.W013"
    assert "READTRACK['PREFIX'] = 'staging:'" in str(message.hint)
    settings.READTRACK = {"PREFIX": "staging:"}
    assert check_setup(None) == []


@pytest.fixture
def cluster(start_redis: Start) -> str:
    """Returns the URL of a cluster of one server."""
    valkey = start_redis(cluster_enabled="yes")
    with Redis.from_url(valkey.url) as client:
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    return valkey.url


@pytest.mark.parametrize("factory", [None, f"{__name__}.Cluster", f"{__name__}.Missing"])
def test_a_cluster_costs_no_page_and_the_doctor_names_it(
    settings: Settings, cluster: str, factory: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    use(settings, cluster, **(options(CONNECTION_FACTORY=factory) if factory else {}))
    post = factories.post(view_count=7)
    assert ">7<" in factories.browser().get(f"/posts/{post.pk}/").text
    assert "pages go on without it" in caplog.text
    assert any(
        "cluster" in finding.message.lower() for finding in examine() if finding.level == "error"
    )


UNUSABLE: dict[str, dict[str, Any]] = {
    "no such alias": {},
    "no such backend": {"readtrack": {"BACKEND": "nothing.Cache"}},
    "another backend": {"readtrack": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}},
    "no such client": {"readtrack": {"OPTIONS": {"CLIENT_CLASS": "nothing.Client"}}},
    "no Sentinels": {"readtrack": {"OPTIONS": {**SENTINEL, "SENTINELS": None}}},
    "no such option": {"readtrack": {"OPTIONS": {"CONNECTION_POOL_KWARGS": {"max_conections": 5}}}},
    "no such scheme": {"readtrack": {"LOCATION": "http://127.0.0.1/0"}},
}


@SINCE_7
@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_cache_that_cannot_be_used_costs_no_page_and_is_named(
    settings: Settings, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    redis = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": NOBODY}
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"},
        **{alias: {**redis, **cache} for alias, cache in UNUSABLE[kind].items()},
    }
    settings.READTRACK = {"CACHE": "readtrack"}
    post = factories.post(view_count=7)
    browser = factories.browser(factories.user())
    assert ">7<" in browser.get(f"/posts/{post.pk}/").text
    assert browser.get("/list/").status_code == 200
    [message] = [message for message in check_setup(None) if message.id == "readtrack.E012"]
    assert message.msg.endswith(".")
    assert not message.msg.endswith("..")
    [finding] = [finding for finding in examine() if finding.name == "connection"]
    assert finding.level == "error"
    assert "names no Redis" in finding.message
    if kind == "no such alias":
        assert "cannot be used: CACHES has no alias 'readtrack'." in message.msg


def test_time_outs_that_the_site_repeats_are_not_repeated_by_us(
    settings: Settings, redis_url: str
) -> None:
    use(settings, redis_url, **pools(retry_on_timeout=True, retry_on_error=[TimeoutError]))
    connection: Any = connect().connection_pool.make_connection()
    assert TimeoutError not in connection.retry._supported_errors
