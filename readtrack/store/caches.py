"""The caches of other libraries than django-redis.

readtrack makes connections of its own by django-redis, because a page may wait no longer than
TIMEOUT. For a cache of another library, this module makes the django-redis cache that leads to the
same servers. No library is imported here: Django has imported that of the site's cache.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from django.core.cache.backends.base import BaseCache
from django_redis.cache import RedisCache
from redis.exceptions import RedisError

from readtrack import parts
from readtrack.shipped import NO_CLUSTER

# Of a URL of valkey-py, and of redis-py.
SCHEMES = {"valkey": "redis", "valkeys": "rediss"}
# Options of connections that valkey-py and redis-py have in common, and that readtrack does not set
# itself. Those that begin with `ssl_` are added.
SHARED_OPTIONS = frozenset(
    {
        "client_name",
        "credential_provider",
        "db",
        "health_check_interval",
        "max_connections",
        "password",
        "protocol",
        "socket_keepalive",
        "socket_keepalive_options",
        "ssl",
        "username",
    }
)
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


class UnusableError(RedisError):
    """The configured cache has no client that readtrack can use."""


class Entry(NamedTuple):
    """What CACHES would say of a cache of django-redis."""

    urls: Sequence[str]
    options: Mapping[str, Any]


def by_django_redis(cache: BaseCache, configured: Mapping[str, Any]) -> Any:
    """Returns the cache of django-redis that leads to the servers of this cache.

    `configured` is the cache's entry in CACHES. A cache of django-redis is returned as it is, and
    so is one that this module does not know. Raises UnusableError for a cache whose servers only
    its own library can reach, and what that library raises.
    """
    adapter = _adapter_of(type(cache))
    if adapter is None:
        return cache
    entry = adapter(cache, configured)
    return RedisCache(list(entry.urls), {"OPTIONS": dict(entry.options)})


def options_of_redis_py(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns those options of another library's connections that redis-py takes, too."""
    if not options:
        return {}
    return {
        name: value
        for name, value in options.items()
        if name in SHARED_OPTIONS or name.startswith("ssl_")
    }


def _adapter_of(cache_class: type) -> "Adapter | None":
    """Returns what adapts a cache of this class; None for a class of no library in ADAPTERS."""
    for base in cache_class.__mro__:
        for package, adapter in ADAPTERS.items():
            if f"{base.__module__}.".startswith(f"{package}."):
                return adapter
    return None


def _of_django(cache: BaseCache, configured: Mapping[str, Any]) -> Entry:
    """Returns the entry for Django's own RedisCache, whose options are those of redis-py."""
    options = dict(configured.get("OPTIONS", NO_OPTIONS))
    if "sentinel_manager" in options:
        raise UnusableError(
            "its option sentinel_manager waits as long as it likes; for Sentinel readtrack needs a"
            " cache of django-redis, django-valkey or django-cachex"
        )
    options.pop("serializer", None)
    adapted: dict[str, Any] = {"CONNECTION_FACTORY": "django_redis.pool.ConnectionFactory"}
    pool_class = options.pop("pool_class", None)
    if pool_class:
        adapted["CONNECTION_POOL_CLASS"] = _path_of(pool_class)
    parser_class = options.pop("parser_class", None)
    if parser_class:
        adapted["PARSER_CLASS"] = _path_of(parser_class)
    return Entry(_urls(configured), {**adapted, "CONNECTION_POOL_KWARGS": options})


def _of_django_valkey(cache: Any, configured: Mapping[str, Any]) -> Entry:
    """Returns the entry for a cache of django-valkey."""
    factory = cache.client.connection_factory
    factory_class = type(factory)
    if not factory_class.__module__.startswith("django_valkey."):
        raise UnusableError(
            f"its CONNECTION_FACTORY is {_path_of(factory_class)}, and readtrack can only use one"
            " of django-valkey"
        )
    urls = _urls(configured)
    options = factory.options
    if "Cluster" in factory_class.__name__:
        return _cluster(urls, options.get("BASE_CLIENT_KWARGS"))
    pool_options = options_of_redis_py(options.get("CONNECTION_POOL_KWARGS"))
    if options.get("PASSWORD"):
        pool_options.setdefault("password", options["PASSWORD"])
    if "Sentinel" in factory_class.__name__:
        sentinels = options["SENTINELS"]
        return _sentinel(urls, pool_options, sentinels, options.get("SENTINEL_KWARGS"))
    return _single(urls, pool_options)


def _of_django_cachex(cache: BaseCache, configured: Mapping[str, Any]) -> Entry:
    """Returns the entry for a cache of django-cachex."""
    names = [
        base.__name__
        for base in type(cache).__mro__
        if base.__module__.startswith("django_cachex.")
    ]
    # The bases of the caches in Redis, in django-cachex 0.14 and in 0.3.
    is_in_redis = "RespCache" in names or "KeyValueCache" in names
    all_names = " ".join(names)
    if not is_in_redis or "Glide" in all_names:
        raise UnusableError(
            f"it is a {_path_of(type(cache))}, and readtrack can only use the caches of"
            " django-cachex that are made of redis-py or valkey-py"
        )
    urls = _urls(configured)
    options = configured.get("OPTIONS", NO_OPTIONS)
    if "ClusterCache" in all_names:
        return _cluster(urls, options)
    pool_options = options_of_redis_py(options)
    if "SentinelCache" in all_names:
        sentinels = options.get("sentinels") or ()
        return _sentinel(urls, pool_options, sentinels, options.get("sentinel_kwargs"))
    return _single(urls, pool_options)


def _single(urls: Sequence[str], pool_options: Mapping[str, Any]) -> Entry:
    """Returns the entry for one server, the first one, which takes the writes."""
    return Entry(
        urls,
        {
            "CONNECTION_FACTORY": "django_redis.pool.ConnectionFactory",
            "CONNECTION_POOL_KWARGS": pool_options,
        },
    )


def _sentinel(
    urls: Sequence[str],
    pool_options: Mapping[str, Any],
    sentinels: Sequence[tuple[str, int]],
    sentinel_options: Mapping[str, Any] | None,
) -> Entry:
    """Returns the entry for the primary that these Sentinels know."""
    return Entry(
        urls,
        {
            "CLIENT_CLASS": "django_redis.client.SentinelClient",
            "CONNECTION_FACTORY": "django_redis.pool.SentinelConnectionFactory",
            "CONNECTION_POOL_KWARGS": pool_options,
            "SENTINELS": sentinels,
            "SENTINEL_KWARGS": options_of_redis_py(sentinel_options),
        },
    )


def cluster_factory() -> str:
    """Returns the path of what makes clients of clusters. Raises UnusableError if no part does."""
    factory = parts.division().factory
    if not factory:
        raise UnusableError(NO_CLUSTER)
    return factory


def _cluster(urls: Sequence[str], client_options: Mapping[str, Any] | None) -> Entry:
    """Returns the entry for the cluster that has these servers."""
    factory = cluster_factory()
    options = options_of_redis_py(client_options)
    if options.pop("ssl", False):  # of a cluster's client; a pool knows TLS by its URL
        urls = [re.sub("^redis:", "rediss:", url) for url in urls]
    return Entry(urls, {"CONNECTION_FACTORY": factory, "CONNECTION_POOL_KWARGS": options})


def _urls(configured: Mapping[str, Any]) -> list[str]:
    """Returns the URLs of the servers in LOCATION, as redis-py understands them."""
    locations = configured.get("LOCATION", "")
    if isinstance(locations, str):
        locations = re.split("[;,]", locations)
    urls = []
    for url in locations:
        scheme, separator, rest = url.strip().partition("://")
        urls.append(f"{SCHEMES.get(scheme.lower(), scheme)}{separator}{rest}")
    return urls


def _path_of(class_or_path: str | type) -> str:
    """Returns the dotted path of a class, which options may give by its path already."""
    if isinstance(class_or_path, str):
        return class_or_path
    return f"{class_or_path.__module__}.{class_or_path.__qualname__}"


# Returns the entry of django-redis for a cache, given it and its own entry in CACHES.
Adapter = Callable[[Any, Mapping[str, Any]], Entry]
# By the package that the cache's class, or one of its bases, is in.
ADAPTERS: Mapping[str, Adapter] = {
    "django.core.cache.backends.redis": _of_django,
    "django_valkey": _of_django_valkey,
    "django_cachex": _of_django_cachex,
}
