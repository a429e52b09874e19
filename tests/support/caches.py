"""The cache of the tests' site, of the library that `READTRACK_TEST_CACHE` names.

It is `django-redis` by default, or `django`, `django-valkey` or `django-cachex`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_django import Settings

LIBRARY = os.environ.get("READTRACK_TEST_CACHE", "django-redis")
SINGLE = {
    "django-redis": "django_redis.cache.RedisCache",
    "django": "django.core.cache.backends.redis.RedisCache",
    "django-valkey": "django_valkey.cache.ValkeyCache",
    "django-cachex": "django_cachex.cache.ValkeyCache",
}
IS_OF_VALKEY = LIBRARY in {"django-valkey", "django-cachex"}


def single(url: str) -> dict[str, Any]:
    """Returns the cache of CACHES for one server."""
    return {"BACKEND": SINGLE[LIBRARY], "LOCATION": _location(url)}


def sentinel(
    service: str, sentinels: Sequence[tuple[str, int]], *, password: str, sentinel_password: str
) -> dict[str, Any]:
    """Returns the cache of CACHES for the primary that the Sentinels know.

    Skips the test with a library that knows no Sentinel.
    """
    location = _location(f"redis://{service}/0")
    sentinel_kwargs = {"password": sentinel_password}
    if LIBRARY == "django":
        import pytest  # only here, because the settings import this module

        pytest.skip("Django's RedisCache knows no Sentinel")
    if LIBRARY == "django-cachex":
        return {
            "BACKEND": "django_cachex.cache.ValkeySentinelCache",
            "LOCATION": location,
            "OPTIONS": {
                "sentinels": sentinels,
                "sentinel_kwargs": sentinel_kwargs,
                "password": password,
            },
        }
    package = LIBRARY.replace("-", "_")
    return {
        "BACKEND": SINGLE[LIBRARY],
        "LOCATION": location,
        "OPTIONS": {
            "CLIENT_CLASS": f"{package}.client.SentinelClient",
            "CONNECTION_FACTORY": f"{package}.pool.SentinelConnectionFactory",
            "SENTINELS": sentinels,
            "SENTINEL_KWARGS": sentinel_kwargs,
            "PASSWORD": password,
        },
    }


def cluster(urls: Sequence[str]) -> dict[str, Any]:
    """Returns the cache of CACHES for a cluster. Django's RedisCache knows none."""
    locations = [_location(url) for url in urls]
    if LIBRARY == "django-valkey":
        backend = "django_valkey.cluster_cache.cache.ClusterValkeyCache"
        return {"BACKEND": backend, "LOCATION": locations}
    if LIBRARY == "django-cachex":
        return {"BACKEND": "django_cachex.cache.ValkeyClusterCache", "LOCATION": locations}
    return {
        "BACKEND": SINGLE["django-redis"],
        "LOCATION": list(urls),
        "OPTIONS": {"CONNECTION_FACTORY": "readtrack.cluster.connection.ClusterFactory"},
    }


def use_pool(settings: Settings, *, pool_class: str = "ConnectionPool", **kwargs: Any) -> None:
    """Gives the cache a pool of this class of redis-py or valkey-py, with these arguments."""
    cache = settings.CACHES["default"]
    path = f"{'valkey' if IS_OF_VALKEY else 'redis'}.{pool_class}"
    if LIBRARY in {"django", "django-cachex"}:
        options = {"pool_class": path, **kwargs}
    elif "Cluster" in cache["BACKEND"]:
        options = {"BASE_CLIENT_KWARGS": kwargs}
    else:
        options = {"CONNECTION_POOL_CLASS": path, "CONNECTION_POOL_KWARGS": kwargs}
    settings.CACHES = {"default": {**cache, "OPTIONS": {**cache.get("OPTIONS", {}), **options}}}


def redis_url(location: object) -> str:
    """Returns the URL of a location as redis-py understands it."""
    return str(location).replace("valkey://", "redis://")


def _location(url: str) -> str:
    """Returns the URL with the scheme of valkey-py, if the library's client is of it."""
    return url.replace("redis://", "valkey://") if IS_OF_VALKEY else url
