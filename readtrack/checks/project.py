"""Checks of CACHES and MIDDLEWARE."""

import re
from typing import Any

from django.conf import settings
from django.urls import NoReverseMatch, reverse

from readtrack.checks import Check, problem_if
from readtrack.conf import conf
from readtrack.store import connection, keys
from readtrack.subjects import read_state_models, tracked_models

MIDDLEWARE = "readtrack.middleware.ReadTrackMiddleware"
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"
UPDATE_CACHE = "django.middleware.cache.UpdateCacheMiddleware"
CONDITIONAL = "django.middleware.http.ConditionalGetMiddleware"
COMPRESSOR = re.compile("gzip|brotli|compress|zstd", re.IGNORECASE)


def unusable_cache() -> list[tuple[Any, ...]]:
    backend = settings.CACHES.get(conf.CACHE, {}).get("BACKEND")
    if conf.CACHE not in settings.CACHES:
        problem = "CACHES has no such alias"
    elif backend is not None and not connection.has_clients(backend):
        problem = f"it is a {backend}, and readtrack needs django-redis"
    else:
        problem = connection.misconfiguration()
    return problem_if(problem, conf.CACHE, problem)


def unprefixed_keys() -> list[tuple[Any, ...]]:
    prefix = settings.CACHES.get(conf.CACHE, {}).get("KEY_PREFIX")
    return problem_if(prefix and not conf.PREFIX, conf.CACHE, prefix)


def shared_tenants() -> list[tuple[Any, ...]]:
    """Schema tenants, of django-tenants or django-tenant-schemas, whose rows have the same ids."""
    if not hasattr(settings, "TENANT_MODEL"):
        return []
    own = {str(app).partition(".apps.")[0] for app in getattr(settings, "TENANT_APPS", ())}
    counted = {model._meta.app_config.name for model in (*tracked_models(), *read_state_models())}
    if not counted & own:
        return []
    problem = "readtrack is not in TENANT_APPS" if "readtrack" not in own else ""
    is_path = keys.PATH.fullmatch(conf.PREFIX)
    return problem_if(problem or not is_path, problem or "READTRACK['PREFIX'] names no function")


def _precedes(first: str, second: str) -> bool:
    """Returns True if both are in MIDDLEWARE, in that order. The second sees each response first."""
    order = settings.MIDDLEWARE
    return first in order and second in order[order.index(first) + 1 :]


def missing_urls() -> list[tuple[Any, ...]]:
    name = "SHARED_PATHS" if conf.SHARED_PATHS else "COUNT_BY"
    try:
        reverse("readtrack:page")
    except NoReverseMatch:
        return problem_if(conf.SHARED_PATHS or conf.COUNT_BY == "script", name)
    return []


CHECKS = {
    "readtrack.E012": Check(
        unusable_cache,
        "The cache '{0}' cannot be used: {1}.",
        hint="Give readtrack an alias of its own: CACHES['readtrack'] = {{'BACKEND': 'django_redis.cache.RedisCache', "
        "'LOCATION': 'redis://127.0.0.1:6379/1'}} and READTRACK = {{'CACHE': 'readtrack'}}. LOCATION is a URL such as "
        "'redis://127.0.0.1:6379/0', 'rediss://…' with TLS, or 'unix:///run/redis.sock'. One server, replicas beside "
        "it and Sentinel can be used, Redis Cluster cannot.",
    ),
    "readtrack.W013": Check(
        unprefixed_keys,
        "The cache '{0}' has the KEY_PREFIX {1!r}, which readtrack's keys do not get.",
        hint="Set READTRACK['PREFIX'] = '{1}:'. Otherwise two sites on one Redis count into the same keys.",
    ),
    "readtrack.E024": Check(
        shared_tenants,
        "Tenants share their counts, because {0}.",
        hint="Set READTRACK['PREFIX'] to the path of a function that returns django.db.connection.schema_name, and "
        "put 'readtrack' into TENANT_APPS. Flush each: manage.py all_tenants_command --no-public readtrack flush",
    ),
    "readtrack.W006": Check(
        lambda: problem_if(MIDDLEWARE not in settings.MIDDLEWARE),
        "ReadTrackMiddleware is not in MIDDLEWARE, so no view is counted.",
        hint=f"Add '{MIDDLEWARE}' after '{AUTHENTICATION}'.",
    ),
    "readtrack.E007": Check(
        lambda: problem_if(_precedes(MIDDLEWARE, AUTHENTICATION)),
        "ReadTrackMiddleware comes before AuthenticationMiddleware, so every visitor counts as signed out.",
        hint=f"Move '{MIDDLEWARE}' below '{AUTHENTICATION}'.",
    ),
    "readtrack.E016": Check(
        lambda: [(path,) for path in settings.MIDDLEWARE if _precedes(MIDDLEWARE, path) and COMPRESSOR.search(path)],
        "'{0}' comes after ReadTrackMiddleware and compresses pages before counts and dots are filled in.",
        hint=f"Move '{{0}}' above '{MIDDLEWARE}' in MIDDLEWARE.",
    ),
    "readtrack.W017": Check(
        lambda: problem_if(_precedes(UPDATE_CACHE, MIDDLEWARE)),
        "UpdateCacheMiddleware comes before ReadTrackMiddleware: a page that it answers shows the counts of the moment "
        "when it was stored, and counts no view.",
        hint="Remove it and FetchFromCacheMiddleware, and cache views with cache_page: it stores pages before counts "
        "and dots are filled in. Or make the pages shared, and let their script count: readtrack.request.shared_page.",
    ),
    "readtrack.W028": Check(
        missing_urls,
        "READTRACK['{0}'] leaves pages to the script, but the URLconf has no address for it, so they are not counted.",
        hint="Add path('live/', include('readtrack.urls')), and {{% readtrack_script %}} at the end of <body>.",
    ),
    "readtrack.W018": Check(
        lambda: problem_if(_precedes(MIDDLEWARE, CONDITIONAL)),
        "ConditionalGetMiddleware comes after ReadTrackMiddleware, so browsers are told that a page is unchanged when "
        "its counts have changed.",
        hint=f"Move '{CONDITIONAL}' above '{MIDDLEWARE}' in MIDDLEWARE.",
    ),
}
