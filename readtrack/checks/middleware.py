"""Checks of `MIDDLEWARE`: ReadTrackMiddleware is there, and in the right place."""

import re

from django.conf import settings
from django.core import checks

MIDDLEWARE = "readtrack.middleware.ReadTrackMiddleware"
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"
UPDATE_CACHE = "django.middleware.cache.UpdateCacheMiddleware"
CONDITIONAL_GET = "django.middleware.http.ConditionalGetMiddleware"
# They make a page once the middlewares behind them are done.
PAGE_MAKER = re.compile(r"(?<!Redirect)FallbackMiddleware$")
COMPRESSOR = re.compile("gzip|brotli|compress|zstd", re.IGNORECASE)  # in the name of a middleware


def precedes(first: str, second: str) -> bool:
    """Returns True if both are in MIDDLEWARE, in that order.

    Then the first sees a request before the second, and a response after it.
    """
    order = settings.MIDDLEWARE
    if first not in order:
        return False
    return second in order[order.index(first) + 1 :]


def check_presence() -> list[checks.CheckMessage]:
    """Checks that ReadTrackMiddleware is in MIDDLEWARE."""
    if MIDDLEWARE in settings.MIDDLEWARE:
        return []
    return [
        checks.Warning(
            "ReadTrackMiddleware is not in MIDDLEWARE, so no view is counted.",
            hint=(
                "Add 'readtrack.middleware.ReadTrackMiddleware' after"
                " 'django.contrib.auth.middleware.AuthenticationMiddleware'."
            ),
            id="readtrack.W006",
        )
    ]


def check_authentication() -> list[checks.CheckMessage]:
    """Checks that AuthenticationMiddleware comes first, because it sets the visitor's user."""
    if not precedes(MIDDLEWARE, AUTHENTICATION):
        return []
    return [
        checks.Error(
            "ReadTrackMiddleware comes before AuthenticationMiddleware,"
            " so every visitor counts as signed out.",
            hint=(
                "Move 'readtrack.middleware.ReadTrackMiddleware' below"
                " 'django.contrib.auth.middleware.AuthenticationMiddleware'."
            ),
            id="readtrack.E007",
        )
    ]


def check_compression() -> list[checks.CheckMessage]:
    """Checks that no middleware compresses pages before counts and dots are filled in."""
    return [
        checks.Error(
            f"'{path}' comes after ReadTrackMiddleware"
            " and compresses pages before counts and dots are filled in.",
            hint=f"Move '{path}' above 'readtrack.middleware.ReadTrackMiddleware' in MIDDLEWARE.",
            id="readtrack.E016",
        )
        for path in settings.MIDDLEWARE
        if COMPRESSOR.search(path) and precedes(MIDDLEWARE, path)
    ]


def check_site_cache() -> list[checks.CheckMessage]:
    """Checks that no cache of the whole site answers in place of ReadTrackMiddleware."""
    if not precedes(UPDATE_CACHE, MIDDLEWARE):
        return []
    return [
        checks.Warning(
            "UpdateCacheMiddleware comes before ReadTrackMiddleware: a page that it answers"
            " shows the counts of the moment when it was stored, and counts no view.",
            hint=(
                "There are three ways. Remove it and FetchFromCacheMiddleware, and cache views with"
                " cache_page: counts and dots are live, and each page runs the middlewares."
                " Or make the pages the same for everybody: they stay as fast as they are, and a"
                " script counts them and fills them in by a request of its own."
                " Or keep it as it is, if counts as old as the cache will do."
            ),
            id="readtrack.W017",
        )
    ]


def check_conditional_get() -> list[checks.CheckMessage]:
    """Checks that ConditionalGetMiddleware sees pages once their counts are filled in."""
    if not precedes(MIDDLEWARE, CONDITIONAL_GET):
        return []
    return [
        checks.Warning(
            "ConditionalGetMiddleware comes after ReadTrackMiddleware,"
            " so browsers are told that a page is unchanged when its counts have changed.",
            hint=(
                "Move 'django.middleware.http.ConditionalGetMiddleware'"
                " above 'readtrack.middleware.ReadTrackMiddleware' in MIDDLEWARE."
            ),
            id="readtrack.W018",
        )
    ]


def check_page_makers() -> list[checks.CheckMessage]:
    """Checks that no middleware makes pages once ReadTrackMiddleware is done."""
    return [
        checks.Warning(
            f"'{path}' comes before ReadTrackMiddleware, so the pages that it makes count no view,"
            " and each of their counts and dots takes a round trip of its own.",
            hint=f"Move 'readtrack.middleware.ReadTrackMiddleware' above '{path}' in MIDDLEWARE.",
            id="readtrack.W050",
        )
        for path in settings.MIDDLEWARE
        if PAGE_MAKER.search(path) and precedes(path, MIDDLEWARE)
    ]
