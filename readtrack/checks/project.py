"""Checks of CACHES and MIDDLEWARE."""

import re
from typing import Any

from django.conf import settings
from django.urls import NoReverseMatch, reverse

from readtrack.checks import Problems, problem_if
from readtrack.conf import conf
from readtrack.store import connection, keys
from readtrack.subjects import read_state_models, tracked_models

MIDDLEWARE = "readtrack.middleware.ReadTrackMiddleware"
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"
UPDATE_CACHE = "django.middleware.cache.UpdateCacheMiddleware"
CONDITIONAL = "django.middleware.http.ConditionalGetMiddleware"
COMPRESSOR = re.compile("gzip|brotli|compress|zstd", re.IGNORECASE)


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


CHECKS: dict[str, Problems] = {
    "readtrack.E012": lambda: problem_if(error := connection.misconfiguration(), conf.CACHE, error),
    "readtrack.W013": unprefixed_keys,
    "readtrack.E024": shared_tenants,
    "readtrack.W006": lambda: problem_if(MIDDLEWARE not in settings.MIDDLEWARE),
    "readtrack.E007": lambda: problem_if(_precedes(MIDDLEWARE, AUTHENTICATION)),
    "readtrack.E016": lambda: [
        (path,) for path in settings.MIDDLEWARE if _precedes(MIDDLEWARE, path) and COMPRESSOR.search(path)
    ],
    "readtrack.W017": lambda: problem_if(_precedes(UPDATE_CACHE, MIDDLEWARE)),
    "readtrack.W028": missing_urls,
    "readtrack.W018": lambda: problem_if(_precedes(MIDDLEWARE, CONDITIONAL)),
}
