"""Checks of CACHES and MIDDLEWARE."""

import re
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.middleware.gzip import GZipMiddleware
from django.utils.module_loading import import_string

from readtrack.checks.check import Check
from readtrack.conf import conf
from readtrack.store import connection

MIDDLEWARE = "readtrack.middleware.ReadTrackMiddleware"
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"
UPDATE_CACHE = "django.middleware.cache.UpdateCacheMiddleware"
CONDITIONAL = "django.middleware.http.ConditionalGetMiddleware"
COMPRESSOR = re.compile("gzip|brotli|compress|zstd", re.IGNORECASE)
URL = re.compile(r"(redis|rediss|unix)://.")
USE_DJANGO_REDIS = "set its BACKEND to django_redis.cache.RedisCache, or name another alias in READTRACK['CACHE']."


def missing_cache() -> Iterator[tuple[Any]]:
    if conf.CACHE not in settings.CACHES:
        yield (conf.CACHE,)


def wrong_cache() -> Iterator[tuple[Any, str]]:
    backend = settings.CACHES.get(conf.CACHE, {}).get("BACKEND")
    if backend is not None and not connection.is_django_redis(backend):
        yield conf.CACHE, backend


def bad_location() -> Iterator[tuple[Any, str]]:
    if [*missing_cache(), *wrong_cache()]:
        return
    cache = settings.CACHES[conf.CACHE]
    location = cache.get("LOCATION")
    if not location:
        yield conf.CACHE, "no LOCATION"
    elif not ("CONNECTION_FACTORY" in cache.get("OPTIONS", {}) or hasattr(settings, "DJANGO_REDIS_CONNECTION_FACTORY")):
        for url in location.split(",") if isinstance(location, str) else location:
            if not URL.match(str(url)):
                # Without anything before the host, because it may be a password.
                yield conf.CACHE, f"the LOCATION {str(url).rpartition('@')[2]!r}, which is no URL of a Redis"


def unusable_cache() -> Iterator[tuple[Any, str]]:
    if not [*missing_cache(), *wrong_cache(), *bad_location()] and (problem := connection.problem(conf.CACHE)):
        yield conf.CACHE, problem


def unprefixed_keys() -> Iterator[tuple[Any, str]]:
    prefix = settings.CACHES.get(conf.CACHE, {}).get("KEY_PREFIX")
    if prefix and not conf.PREFIX:
        yield conf.CACHE, prefix


def missing_middleware() -> Iterator[tuple[()]]:
    if MIDDLEWARE not in settings.MIDDLEWARE:
        yield ()


def early_middleware() -> Iterator[tuple[()]]:
    if AUTHENTICATION in _inside():
        yield ()


def compressing_middleware() -> Iterator[tuple[str]]:
    for path in _inside():
        if COMPRESSOR.search(path) or _is_gzip(path):
            yield (path,)


def comparing_middleware() -> Iterator[tuple[()]]:
    if CONDITIONAL in _inside():
        yield ()


def caching_middleware() -> Iterator[tuple[()]]:
    order = list(settings.MIDDLEWARE)
    if MIDDLEWARE in order and UPDATE_CACHE in order[: order.index(MIDDLEWARE)]:
        yield ()


def _inside() -> list[str]:
    """Returns the middleware that sees a response before ReadTrackMiddleware does."""
    order = list(settings.MIDDLEWARE)
    return order[order.index(MIDDLEWARE) + 1 :] if MIDDLEWARE in order else []


def _is_gzip(path: str) -> bool:
    try:
        found = import_string(path)
    except ImportError:  # Django says so by itself
        return False
    return isinstance(found, type) and issubclass(found, GZipMiddleware)


CHECKS = (
    Check(
        "readtrack.E004",
        missing_cache,
        "CACHES has no alias '{0}', which readtrack uses.",
        hint=f"Add it with the LOCATION of your Redis, and {USE_DJANGO_REDIS}",
    ),
    Check(
        "readtrack.E005",
        wrong_cache,
        "The cache '{0}' is a {1}, and readtrack needs django-redis.",
        hint=f"Give it the LOCATION of your Redis, and {USE_DJANGO_REDIS}",
    ),
    Check(
        "readtrack.E015",
        bad_location,
        "The cache '{0}' has {1}.",
        hint="Give it a URL such as 'redis://127.0.0.1:6379/0', 'rediss://…' with TLS, or 'unix:///run/redis.sock'.",
    ),
    Check(
        "readtrack.E012",
        unusable_cache,
        "The cache '{0}' cannot be used: {1}.",
        hint="Correct it in CACHES. The documentation, 'Use Sentinel, TLS or replicas', lists what is supported.",
    ),
    Check(
        "readtrack.W013",
        unprefixed_keys,
        "The cache '{0}' has the KEY_PREFIX {1!r}, which readtrack's keys do not get.",
        hint="Set READTRACK['PREFIX'] = '{1}:'. Otherwise two sites on one Redis count into the same keys.",
    ),
    Check(
        "readtrack.W006",
        missing_middleware,
        "ReadTrackMiddleware is not in MIDDLEWARE, so no view is counted.",
        hint=f"Add '{MIDDLEWARE}' after '{AUTHENTICATION}'.",
    ),
    Check(
        "readtrack.E007",
        early_middleware,
        "ReadTrackMiddleware comes before AuthenticationMiddleware, so every visitor counts as signed out.",
        hint=f"Move '{MIDDLEWARE}' below '{AUTHENTICATION}'.",
    ),
    Check(
        "readtrack.E016",
        compressing_middleware,
        "'{0}' comes after ReadTrackMiddleware and compresses pages before counts and dots are filled in.",
        hint=f"Move '{{0}}' above '{MIDDLEWARE}' in MIDDLEWARE.",
    ),
    Check(
        "readtrack.W017",
        caching_middleware,
        "UpdateCacheMiddleware comes before ReadTrackMiddleware: it stores a page with the counts and dots of one "
        "visitor, and all others are shown those.",
        hint="Remove it and FetchFromCacheMiddleware, and cache views with cache_page: it stores pages before counts "
        "and dots are filled in, so they stay live.",
    ),
    Check(
        "readtrack.W018",
        comparing_middleware,
        "ConditionalGetMiddleware comes after ReadTrackMiddleware, so browsers are told that a page is unchanged when "
        "its counts have changed.",
        hint=f"Move '{CONDITIONAL}' above '{MIDDLEWARE}' in MIDDLEWARE.",
    ),
)
