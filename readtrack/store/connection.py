"""The client of the site's Redis, with time-outs of our own."""

import sys
from collections.abc import Callable
from functools import cache, partial
from math import inf
from time import perf_counter
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.core.signals import setting_changed
from django.utils.module_loading import import_string
from django_redis.client import SentinelClient
from django_redis.pool import ConnectionFactory, SentinelConnectionFactory
from redis import ConnectionPool, Redis, exceptions
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError as AuthenticationError
from redis.exceptions import OutOfMemoryError as OutOfMemoryError
from redis.exceptions import RedisError as RedisError
from redis.exceptions import ResponseError as ResponseError  # a server's answer that it refuses
from redis.retry import Retry
from redis.sentinel import SentinelConnectionPool

from readtrack import parts
from readtrack.conf import conf
from readtrack.shipped import CLUSTER_FACTORY, NO_CLUSTER
from readtrack.store.caches import UnusableError as UnusableError
from readtrack.store.caches import by_django_redis, cluster_factory
from readtrack.store.circuit import circuit, kernel_limit, send_within_page, within_page
from readtrack.store.pools import close_idle
from readtrack.store.servers import ServersFactory, SeveralServers

PATIENCE = 60.0  # seconds that long work, such as a flush, waits for one answer
# What code raises that reads an answer of another type than it expects.
WRONG_TYPE = (AttributeError, LookupError, TypeError, ValueError)

_clients: dict[float, Redis] = {}  # by time-out (s)
closers: list[Callable[[], None]] = []  # each closes idle connections that scripts keep


class AnswerError(RedisError):
    """An answer is of another type than the command can have."""


class _Socket:
    """A socket whose time-out is the time that the page has left, for all bytes together."""

    limits_reading = True

    def __init__(self, sock: Any, timeout: float) -> None:
        # The attributes are copied, because `__getattr__` would cost each page more than the
        # time-outs do.
        for name in dir(sock):
            if not name.startswith("_") and name != "settimeout":
                self.__dict__[name] = getattr(sock, name)
        # Sockets of TLS and of gevent do not wait in the kernel.
        waits_in_kernel = type(sock).__module__ == "socket" and sys.platform in {"linux", "darwin"}
        if waits_in_kernel:
            self._python_timeout = None  # the socket blocks until the kernel ends the wait
            set_timeout: Any = partial(kernel_limit, sock)
        else:
            self._python_timeout = timeout
            set_timeout = sock.settimeout
        set_timeout(timeout)
        limited = partial(within_page, set_timeout, timeout)
        self._settimeout = sock.settimeout
        self._unlimited_reads = sock.recv, sock.recv_into
        self._limited_reads = partial(limited, sock.recv), partial(limited, sock.recv_into)
        self.sendall = partial(send_within_page, sock.sendall, partial(limited, sock.sendall))
        self.settimeout(timeout)

    def settimeout(self, seconds: float) -> None:
        """Sets how long reading waits, as redis-py asks for it.

        With 0, by which redis-py asks if there is anything to read, it does not wait. Any other
        number is left out, because the page decides how long reading waits.
        """
        if seconds:
            self._settimeout(self._python_timeout)
            self.recv, self.recv_into = self._limited_reads
        else:
            self._settimeout(0)
            self.recv, self.recv_into = self._unlimited_reads


class _LimitedConnection:
    """A base of connections that wait no longer than the page may, and that are never half made.

    redis-py closes a half made connection only after errors of Redis. After any other error it
    would take the answer to its HELLO for the answer to the next command.
    """

    _connecting_until = inf  # end of connecting, by `perf_counter`

    def __init__(self, *args: Any, socket_timeout: float, **kwargs: Any) -> None:
        self._timeout = socket_timeout  # seconds; PATIENCE for long work, which has no page
        super().__init__(*args, socket_timeout=socket_timeout, **kwargs)  # type: ignore[call-arg]

    def _seconds_left(self) -> float:
        """Returns the seconds that connecting may still take.

        redis-py asks for them before each address that it tries, and before the handshake of TLS.
        """
        return max(0.001, min(self._timeout, self._connecting_until - perf_counter()))

    def _ignore(self, value: Any) -> None:
        """Ignores the time-out that redis-py sets."""

    socket_timeout: Any = property(_seconds_left, _ignore)
    socket_connect_timeout = socket_timeout

    def on_connect_check_health(self, *args: Any, **kwargs: Any) -> None:
        """Closes the connection after any error of its first commands."""
        try:
            super().on_connect_check_health(*args, **kwargs)  # type: ignore[misc]
        except BaseException as error:  # such as Celery's time limit, which a signal raises
            self.disconnect()  # type: ignore[attr-defined]
            if isinstance(error, WRONG_TYPE):
                raise AnswerError(f"{type(error).__name__}: {error}") from error
            raise

    def _connect(self) -> Any:
        """Returns the connected socket."""
        if self._timeout == PATIENCE:
            return super()._connect()  # type: ignore[misc]
        self._limit_connecting(self._timeout)
        connect_socket = super()._connect  # type: ignore[misc]
        sock = within_page(self._limit_connecting, self._timeout, connect_socket)
        return _Socket(sock, self._timeout)

    def _limit_connecting(self, seconds: float) -> None:
        """Lets connecting take so many seconds from now on."""
        self._connecting_until = perf_counter() + seconds


@cache
def _limited_class(base: type) -> type:
    """Returns a class of connections with our limits before it."""
    return type(f"Limited{base.__name__}", (_LimitedConnection, base), {})


def make(timeout: float) -> Redis:
    """Returns a client of the cache's write server.

    It waits for a connection or an answer `timeout` seconds at most. Raises UnusableError for a
    cache that readtrack cannot use.
    """
    try:
        return _made(_cache(), timeout)
    except RedisError:
        raise
    except Exception as error:  # of Django, or of any library
        raise UnusableError(f"{type(error).__name__}: {error}") from error


def _cache() -> Any:
    """Returns the cache that CACHE names, or the django-redis cache that leads to its servers.

    Raises UnusableError if CACHES lacks it or readtrack cannot use it.
    """
    if conf.CACHE not in settings.CACHES:
        raise UnusableError(f"CACHES has no alias '{conf.CACHE}'")
    return by_django_redis(caches[conf.CACHE], settings.CACHES[conf.CACHE])


def _made(cache: Any, timeout: float) -> Redis:
    """Returns a client of the cache's write server. Raises what Django or a library raises."""
    factory = _factory_of(cache)
    if isinstance(factory, ServersFactory):
        return factory.servers_of(cache.client._server, timeout)
    if isinstance(factory, ConnectionFactory):
        return _own_client(cache, factory, timeout)
    client = getattr(cache, "client", cache).get_client(write=True)
    if hasattr(client, "nodes_manager"):  # the cluster client of redis-py or of valkey-py
        factory_class: type[ServersFactory] = import_string(cluster_factory())
        return factory_class.servers_like(client, timeout)
    _check_client_class(type(client))
    return client  # type: ignore[no-any-return]


def _factory_of(cache: Any) -> Any:
    """Returns what makes the connections of a django-redis cache; None for another cache."""
    return getattr(getattr(cache, "client", None), "connection_factory", None)


def _own_client(cache: Any, factory: Any, timeout: float) -> Redis:
    """Returns a client of a django-redis cache, with a pool of our own."""
    client_class = factory.redis_client_cls
    _check_client_class(client_class)
    # The first server takes the writes. If the servers are shards, it has all our keys.
    pool = limited_pool(factory, cache.client._server[0], timeout)
    if isinstance(cache.client, SentinelClient) and not isinstance(pool, SentinelConnectionPool):
        raise UnusableError(
            "SentinelClient needs CONNECTION_FACTORY ="
            " 'django_redis.pool.SentinelConnectionFactory'"
        )
    # A connection that is made, but not connected, finds options of the wrong type.
    pool.connection_class(**pool.connection_kwargs)
    client: Redis = client_class(connection_pool=pool, **factory.redis_client_cls_kwargs)
    return client


def _check_client_class(client_class: type) -> None:
    """Raises UnusableError for a class that is not derived from redis.Redis."""
    if issubclass(client_class, Redis):
        return
    need = f"a redis.Redis, or for a cluster CONNECTION_FACTORY = '{CLUSTER_FACTORY}'"
    raise UnusableError(f"it gives a {client_class.__name__}, and readtrack needs {need}")


def misconfiguration() -> str:
    """Returns why CACHES cannot be used; "" if it can. Asks no server."""
    try:
        cache = _cache()
        if not (hasattr(cache, "client") or hasattr(cache, "get_client")):
            return f"it is a {type(cache).__module__}.{type(cache).__name__}, which is not in Redis"
        if isinstance(_factory_of(cache), ConnectionFactory):
            make(1)
        # A client of another library is not made here, because it would ask the servers.
        elif "Cluster" in type(cache).__name__ and parts.division().partitions == 1:
            return NO_CLUSTER
    except UnusableError as error:
        return str(error)
    except Exception as error:  # as in `make`
        return f"{type(error).__name__}: {error}"
    return ""


def limited_pool(factory: Any, url: str, timeout: float) -> ConnectionPool:
    """Returns a pool of connections with our time-out (s).

    Unless the time-out is PATIENCE, they wait no longer than the page may. The pool is our own,
    because django-redis shares one pool, with its time-outs, between all aliases of a URL. The
    site's factory makes it, so that credentials, TLS and Sentinel stay as configured.
    """
    # One retry, and only after a broken connection. By default, redis-py would repeat ten times
    # what timed out.
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
    limited_pools = [pool]
    if timeout != PATIENCE and isinstance(pool, SentinelConnectionPool):
        limited_pools += [sentinel.connection_pool for sentinel in pool.sentinel_manager.sentinels]
    for limited in limited_pools:
        limited.connection_class = _limited_class(limited.connection_class)
    if hasattr(pool, "queue_class"):  # a BlockingConnectionPool, which waits for a connection
        pool.timeout = 0  # because `Connections` waits in its place
        if timeout == PATIENCE:
            pool.timeout = timeout
    return pool  # type: ignore[no-any-return]


def _with_limited_sentinels(factory: Any, timeout: float, retry: Retry) -> Any:
    """Returns a factory like this one whose Sentinels together take `timeout` seconds at most."""
    seconds_each = timeout / len(factory.options["SENTINELS"])
    sentinel_options = {
        **(factory.options.get("SENTINEL_KWARGS") or {}),
        "socket_timeout": seconds_each,
        "socket_connect_timeout": seconds_each,
        "retry": retry,
    }
    return type(factory)({**factory.options, "SENTINEL_KWARGS": sentinel_options})


def connect(*, patient: bool = False) -> Redis:
    """Returns the client of the configured cache's write server, the same one for each call.

    A patient client is for long work, such as a flush; the other one is for pages.
    """
    timeout = timeout_of(patient=patient)
    return _clients.get(timeout) or _clients.setdefault(timeout, make(timeout))


def timeout_of(*, patient: bool) -> float:
    """Returns how long a client, patient or not, waits for one answer (seconds)."""
    if patient:
        return PATIENCE
    return conf.TIMEOUT


def servers(*, patient: bool = False) -> list[Redis]:
    """Returns a client of each server that holds keys: one, or the primaries of a cluster."""
    client = connect(patient=patient)
    if isinstance(client, SeveralServers):
        return client.clients()
    return [client]


def server_time(*, patient: bool = False) -> int:
    """Returns Redis's time (µs), in one round trip. Raises redis.RedisError."""
    try:
        seconds, microseconds = connect(patient=patient).time()
        return seconds * 1_000_000 + microseconds
    except WRONG_TYPE as error:
        raise AnswerError(f"{type(error).__name__}: {error}") from error


def address(client: Redis | None = None) -> str:
    """Returns the address of a server without user and password: `redis.example:6379`, or a path.

    By default it is the server in CACHES.
    """
    pool = (client or connect()).connection_pool
    parameters = pool.connection_kwargs
    path_or_service = parameters.get("path") or getattr(pool, "service_name", "")
    if path_or_service:
        return str(path_or_service)
    return f"{parameters.get('host', 'localhost')}:{parameters.get('port', 6379)}"


def _close(*, setting: str, **kwargs: Any) -> None:
    """Forgets all clients after a change of their settings, and closes the circuit.

    Django's signal `setting_changed` calls it, which tests send. Idle connections are closed, those
    that `scripts` keeps by `closers`. Connections in use are left to the threads that use them.
    """
    if setting not in {"CACHES", "READTRACK", "INSTALLED_APPS"}:
        return
    while closers:
        close = closers.pop()
        close()
    while _clients:
        _, client = _clients.popitem()
        if isinstance(client, SeveralServers):
            client.disconnect()
        else:
            close_idle(client.connection_pool)
    circuit.close()


setting_changed.connect(_close)
