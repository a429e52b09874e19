"""The client of the site's Redis, with time-outs of our own."""

import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from math import inf
from time import perf_counter
from typing import Any

import redis.cluster
from django.conf import settings
from django.core.cache import caches
from django.core.signals import setting_changed
from django_redis.client import SentinelClient
from django_redis.pool import ConnectionFactory, SentinelConnectionFactory
from redis import ConnectionPool, Redis, RedisCluster, exceptions
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.exceptions import AuthenticationError as AuthenticationError
from redis.exceptions import RedisError as RedisError
from redis.exceptions import ResponseError as ResponseError  # a server's answer that it refuses
from redis.retry import Retry
from redis.sentinel import SentinelConnectionPool

from readtrack.conf import conf
from readtrack.store.circuit import circuit, kernel_limit, within_page
from readtrack.store.cluster import Address, Cluster
from readtrack.store.pools import close_idle

PATIENCE = 60.0  # seconds that long work, such as a flush, waits for one answer
WRONG_TYPE = (
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)  # raised by code that reads an answer of another type
# Knows MOVED and ASK; in later versions of redis-py every parser does.
CLUSTER_PARSER = getattr(redis.cluster, "ClusterParser", None)
CLUSTER_FACTORY = f"{__name__}.ClusterFactory"
ONE_PARTITION = "a cluster needs READTRACK['PARTITIONS'], such as 64"

_clients: dict[float, Redis] = {}  # by time-out
_caches: dict[str, RedisCluster] = {}  # of caches on a cluster, by URL and options
closers: list[Callable[[], None]] = []  # close idle connections that scripts keep


class UnusableError(RedisError):
    """The configured cache has no client that readtrack can use."""


class AnswerError(RedisError):
    """An answer is of another type than the answers to the command are."""


class _Socket:
    """A socket whose time-out is that of the page, for all bytes together."""

    def __init__(self, sock: Any, most: float) -> None:
        # Copied, because to delegate by `__getattr__` would cost each page more than the time-outs
        # do.
        names = (name for name in dir(sock) if not name.startswith("_") and name != "settimeout")
        self.__dict__.update((name, getattr(sock, name)) for name in names)
        # Neither of TLS nor of gevent, which do not wait in the kernel.
        is_plain = type(sock).__module__ == "socket" and sys.platform in {"linux", "darwin"}
        self._until = None if is_plain else most
        limit: Any = partial(kernel_limit, sock) if is_plain else sock.settimeout
        limit(most)
        limited = partial(within_page, limit, most)
        self._plain = sock.settimeout, sock.recv, sock.recv_into
        self._limited = partial(limited, sock.recv), partial(limited, sock.recv_into)
        self.sendall = partial(limited, sock.sendall)
        self.settimeout(most)

    def settimeout(self, seconds: float) -> None:
        """Takes 0, by which redis-py asks if there is anything to read. All else is up to the page."""
        settimeout, self.recv, self.recv_into = self._plain
        settimeout(self._until if seconds else 0)
        if seconds:
            self.recv, self.recv_into = self._limited


class _Limited:
    """A connection that waits no longer than its page may, unless for long work, and that is never
    half made.

    redis-py closes a half made one for errors of Redis alone, and would take the answer to its
    HELLO for that to the next command.
    """

    _until = inf  # end of connecting, by `perf_counter`

    def __init__(self, *args: Any, socket_timeout: float, **kwargs: Any) -> None:
        self._most = socket_timeout
        super().__init__(*args, socket_timeout=socket_timeout, **kwargs)  # type: ignore[call-arg]

    # redis-py asks for it before each address that it tries, and before the handshake of TLS.
    socket_timeout: Any = property(
        lambda self: max(0.001, min(self._most, self._until - perf_counter())),
        lambda self, value: None,
    )
    socket_connect_timeout = socket_timeout

    def on_connect_check_health(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().on_connect_check_health(*args, **kwargs)  # type: ignore[misc]
        except BaseException as error:  # such as Celery's time limit, which a signal raises
            self.disconnect()  # type: ignore[attr-defined]
            if isinstance(error, WRONG_TYPE):
                raise AnswerError(f"{type(error).__name__}: {error}") from error
            raise

    def _connect(self) -> Any:
        if self._most == PATIENCE:
            return super()._connect()  # type: ignore[misc]
        self._limit(self._most)
        return _Socket(within_page(self._limit, self._most, super()._connect), self._most)  # type: ignore[misc]

    def _limit(self, seconds: float) -> None:
        self._until = perf_counter() + seconds


@cache
def _limited(kind: type) -> type:
    return type(f"Limited{kind.__name__}", (_Limited, kind), {})


def make(timeout: float) -> Redis:
    """Returns a client of the cache's write server that waits at most `timeout` s for a connection
    or an answer. Raises UnusableError for a cache that cannot be used.
    """
    try:
        return _made(_cache(), timeout)
    except RedisError:
        raise
    except Exception as error:  # of Django, or of any library
        raise UnusableError(f"{type(error).__name__}: {error}") from error


def _cache() -> Any:
    """Returns the cache that CACHE names. Raises UnusableError if CACHES lacks it."""
    if conf.CACHE not in settings.CACHES:
        raise UnusableError(f"CACHES has no alias '{conf.CACHE}'")
    return caches[conf.CACHE]


def _made(cache: Any, timeout: float) -> Redis:
    factory = _factory_of(cache)
    if isinstance(factory, ClusterFactory):
        return _cluster_of(cache, factory, timeout)
    if isinstance(factory, ConnectionFactory):
        return _own_client(cache, factory, timeout)
    client = getattr(cache, "client", cache).get_client(write=True)
    if hasattr(client, "nodes_manager"):  # the cluster client of redis-py or of valkey-py
        return _like(client, timeout)
    _check_client_class(type(client))
    return client  # type: ignore[no-any-return]


def _factory_of(cache: Any) -> Any:
    """Returns what makes the connections of a django-redis cache; None for another cache."""
    return getattr(getattr(cache, "client", None), "connection_factory", None)


def _cluster_of(cache: Any, factory: "ClusterFactory", timeout: float) -> Cluster:
    """Returns a client of the cluster whose servers the cache names."""
    urls = cache.client._server
    seeds = []
    for url in urls:
        parsed: Any = parse_url(url)  # type: ignore[no-untyped-call]
        seeds.append((parsed.get("host", "localhost"), parsed.get("port", 6379)))
    return factory.cluster(urls[0], seeds, timeout)


def _own_client(cache: Any, factory: Any, timeout: float) -> Redis:
    """Returns a client of a django-redis cache, with a pool of our own."""
    client_class = factory.redis_client_cls
    _check_client_class(client_class)
    # The first server takes the writes. Of several shards it has all our keys.
    pool = _pool(factory, cache.client._server[0], timeout)
    if isinstance(cache.client, SentinelClient) and not isinstance(pool, SentinelConnectionPool):
        raise UnusableError(
            "SentinelClient needs CONNECTION_FACTORY = 'django_redis.pool.SentinelConnectionFactory'"
        )
    pool.connection_class(**pool.connection_kwargs)  # so that a wrong option is found here
    return client_class(connection_pool=pool, **factory.redis_client_cls_kwargs)  # type: ignore[no-any-return]


def _check_client_class(client_class: type) -> None:
    """Raises UnusableError for a class that is no client of redis-py."""
    if issubclass(client_class, Redis):
        return
    need = f"a redis.Redis, or for a cluster CONNECTION_FACTORY = '{CLUSTER_FACTORY}'"
    raise UnusableError(f"it gives a {client_class.__name__}, and readtrack needs {need}")


class ClusterFactory(ConnectionFactory):  # type: ignore[misc]
    """`CONNECTION_FACTORY` of a django-redis cache whose LOCATION names servers of a cluster."""

    def connect(self, url: str) -> RedisCluster:
        """Returns the client that the cache itself uses, one for all because Django makes a cache
        for each request.
        """
        name = f"{url} {self.options}"
        if name not in _caches:
            parameters = {**self.make_connection_params(url), **self.pool_cls_kwargs}
            _caches[name] = RedisCluster.from_url(**parameters, require_full_coverage=False)
        return _caches[name]

    def disconnect(self, connection: RedisCluster) -> None:
        # `close` would leave a client that raises AttributeError.
        connection.disconnect_connection_pools()  # type: ignore[no-untyped-call]

    def cluster(self, url: str, seeds: Sequence[Address], timeout: float) -> Cluster:
        """Returns a client of the cluster with these servers, which are asked as the server of the
        URL would be.
        """
        if conf.PARTITIONS == 1:
            raise UnusableError(ONE_PARTITION)

        def client_of(address: Address) -> Redis:
            host, port = address
            pool = _pool(self, url, timeout)
            pool.connection_kwargs.update(host=host, port=port)
            if CLUSTER_PARSER:
                pool.connection_kwargs["parser_class"] = CLUSTER_PARSER
            pool.connection_class(**pool.connection_kwargs)  # as in `_own_client`
            return Redis(connection_pool=pool)

        return Cluster(seeds, client_of, is_patient=timeout == PATIENCE)


def _like(found: Any, timeout: float) -> Cluster:
    """Returns a client of the cluster that another library's client found, with its credentials and
    TLS.
    """
    given = found.nodes_manager.connection_kwargs
    credentials = {"username", "password", "credential_provider"}
    kept = {
        name: value
        for name, value in given.items()
        if name in credentials or name.startswith("ssl_")
    }
    is_tls = given.get("ssl") or "SSL" in getattr(given.get("connection_class"), "__name__", "")
    seeds = [(str(node.host), int(node.port)) for node in found.get_nodes()]
    factory = ClusterFactory({"CONNECTION_POOL_KWARGS": kept})
    return factory.cluster("rediss://" if is_tls else "redis://", seeds, timeout)


def misconfiguration() -> str:
    """Returns why CACHES cannot be used; "" if it can. Asks no server."""
    try:
        cache = _cache()
        if not (hasattr(cache, "client") or hasattr(cache, "get_client")):
            return f"it is a {type(cache).__module__}.{type(cache).__name__}, and readtrack needs django-redis"
        if isinstance(_factory_of(cache), ConnectionFactory):
            make(1)
        # Clients of other libraries would ask the servers.
        elif "Cluster" in type(cache).__name__ and conf.PARTITIONS == 1:
            return ONE_PARTITION
    except UnusableError as error:
        return str(error)
    except Exception as error:  # as in `make`
        return f"{type(error).__name__}: {error}"
    return ""


def _pool(factory: Any, url: str, timeout: float) -> ConnectionPool:
    """Returns a pool with our time-outs; without patience, for a page that may have less time left.

    It is our own, because django-redis shares one, time-outs included, between all aliases of a
    URL. The site's factory makes it, so that credentials, TLS and Sentinel stay as configured.
    """
    # One retry, and only of a broken connection, because redis-py repeats time-outs ten times by
    # default.
    retry = Retry(NoBackoff(), 1, supported_errors=(exceptions.ConnectionError,))
    if isinstance(factory, SentinelConnectionFactory):
        # No retry, because a client that finds no primary has asked every Sentinel already.
        retry = Retry(NoBackoff(), 0)
        factory = _with_limited_sentinels(factory, timeout, retry)
    pool: Any = factory.get_connection_pool(factory.make_connection_params(url))
    pool.connection_kwargs.update(
        socket_timeout=timeout, socket_connect_timeout=timeout, retry=retry
    )
    pool.connection_kwargs.update(retry_on_timeout=False, retry_on_error=(), decode_responses=False)
    limited = [pool]
    if timeout != PATIENCE and isinstance(pool, SentinelConnectionPool):
        limited += [sentinel.connection_pool for sentinel in pool.sentinel_manager.sentinels]
    for limited_pool in limited:
        limited_pool.connection_class = _limited(limited_pool.connection_class)
    if hasattr(pool, "queue_class"):
        # By default it waits 20 s for a connection. For a page `Connections` waits in its place.
        pool.timeout = timeout if timeout == PATIENCE else 0
    return pool  # type: ignore[no-any-return]


def _with_limited_sentinels(factory: Any, timeout: float, retry: Retry) -> Any:
    """Returns the factory, whose Sentinels all together take no longer than one answer of Redis."""
    share = timeout / len(factory.options["SENTINELS"])
    kwargs = {
        **(factory.options.get("SENTINEL_KWARGS") or {}),
        "socket_timeout": share,
        "socket_connect_timeout": share,
        "retry": retry,
    }
    return type(factory)({**factory.options, "SENTINEL_KWARGS": kwargs})


def connect(*, patient: bool = False) -> Redis:
    """Returns the client of the configured cache's write server."""
    timeout = PATIENCE if patient else conf.TIMEOUT
    return _clients.get(timeout) or _clients.setdefault(timeout, make(timeout))


def servers(*, patient: bool = False) -> list[Redis]:
    """Returns a client of each server that holds keys: of one, or of the primaries of a cluster."""
    client = connect(patient=patient)
    return client.clients() if isinstance(client, Cluster) else [client]


def server_time(*, patient: bool = False) -> int:
    """Returns Redis's time (µs), in one round trip. Raises redis.RedisError."""
    try:
        seconds, microseconds = connect(patient=patient).time()
        return seconds * 1_000_000 + microseconds
    except WRONG_TYPE as error:
        raise AnswerError(f"{type(error).__name__}: {error}") from error


def address(client: Redis | None = None) -> str:
    """Returns the address of a server, by default of the one in CACHES, without user and password."""
    pool = (client or connect()).connection_pool
    parameters = pool.connection_kwargs
    name = parameters.get("path") or getattr(pool, "service_name", "")
    if name:
        return str(name)
    return f"{parameters.get('host', 'localhost')}:{parameters.get('port', 6379)}"


def _close(*, setting: str, **kwargs: Any) -> None:
    """Closes idle connections of clients whose settings changed, and the circuit."""
    if setting in {"CACHES", "READTRACK"}:
        while closers:
            closers.pop()()
        _caches.clear()
        while _clients:
            client = _clients.popitem()[1]
            if isinstance(client, Cluster):
                client.disconnect()
            else:
                close_idle(client.connection_pool)
        circuit.close()


setting_changed.connect(_close)
