"""What readtrack asks of the project's own settings: a cache that is Redis, and a middleware in its place."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import WARNING

from readtrack.checks.check import Check
from readtrack.conf import conf
from readtrack.store import clients

MIDDLEWARE = "readtrack.middleware.ReadTrackMiddleware"
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"
OUTER = ("django.middleware.gzip.GZipMiddleware", "django.middleware.http.ConditionalGetMiddleware")
USE_DJANGO_REDIS = "set its BACKEND to django_redis.cache.RedisCache, or name another alias in READTRACK['CACHE']."


def missing_cache() -> Iterator[tuple[Any]]:
    if conf.CACHE not in settings.CACHES:
        yield (conf.CACHE,)


def wrong_cache() -> Iterator[tuple[Any, str]]:
    backend = settings.CACHES.get(conf.CACHE, {}).get("BACKEND")
    if backend is not None and not clients.is_django_redis(backend):
        yield conf.CACHE, backend


def unusable_cache() -> Iterator[tuple[Any, str]]:
    if not [*missing_cache(), *wrong_cache()] and (problem := clients.problem(conf.CACHE)):
        yield conf.CACHE, problem


def unprefixed_keys() -> Iterator[tuple[Any, str]]:
    prefix = settings.CACHES.get(conf.CACHE, {}).get("KEY_PREFIX")
    if prefix and not conf.PREFIX:
        yield conf.CACHE, prefix


def missing_middleware() -> Iterator[tuple[()]]:
    if MIDDLEWARE not in settings.MIDDLEWARE:
        yield ()


def early_middleware() -> Iterator[tuple[()]]:
    order = list(settings.MIDDLEWARE)
    if MIDDLEWARE in order and AUTHENTICATION in order[order.index(MIDDLEWARE) :]:
        yield ()


def late_middleware() -> Iterator[tuple[str]]:
    order = list(settings.MIDDLEWARE)
    if MIDDLEWARE in order:
        yield from ((name,) for name in order[order.index(MIDDLEWARE) :] if name in OUTER)


CHECKS = (
    Check(
        "readtrack.E004",
        missing_cache,
        "CACHES has no alias '{0}', where readtrack looks for Redis.",
        hint=f"Add it, and {USE_DJANGO_REDIS}",
    ),
    Check(
        "readtrack.E005",
        wrong_cache,
        "The cache '{0}' is a {1}, and readtrack needs django-redis.",
        hint=f"Better {USE_DJANGO_REDIS}",
    ),
    Check(
        "readtrack.E012",
        unusable_cache,
        "The cache '{0}' cannot be used: {1}.",
        hint="Correct it in CACHES; readtrack/docs/counting.md has the ways of django-redis that are supported.",
    ),
    Check(
        "readtrack.W013",
        unprefixed_keys,
        "The cache '{0}' has the KEY_PREFIX {1!r}, which readtrack's keys do not take.",
        hint="Set READTRACK['PREFIX'] = '{1}:', or two sites on one Redis add their views up.",
        level=WARNING,
    ),
    Check(
        "readtrack.W006",
        missing_middleware,
        "ReadTrackMiddleware is not in MIDDLEWARE, so no view is counted.",
        hint=f"Add '{MIDDLEWARE}' after '{AUTHENTICATION}'.",
        level=WARNING,
    ),
    Check(
        "readtrack.E007",
        early_middleware,
        "ReadTrackMiddleware comes before AuthenticationMiddleware, so nobody is ever signed in.",
        hint=f"Move '{MIDDLEWARE}' below '{AUTHENTICATION}'.",
    ),
    Check(
        "readtrack.W012",
        late_middleware,
        "'{0}' comes after ReadTrackMiddleware, so it gets pages without their counts and dots.",
        hint=f"Move it above '{MIDDLEWARE}'.",
        level=WARNING,
    ),
)
