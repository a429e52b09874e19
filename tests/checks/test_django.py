"""Mistakes in CACHES and MIDDLEWARE are found."""

import re
from typing import Any

import pytest
from django.urls import path
from django.views.decorators.cache import cache_page
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from tests.checks.findings import found, the_message
from tests.site import views
from tests.support import factories
from tests.support.rows import each_row

OURS = "readtrack.middleware.ReadTrackMiddleware"
THEIRS = "django.contrib.auth.middleware.AuthenticationMiddleware"
GZIP = "django.middleware.gzip.GZipMiddleware"
CONDITIONAL = "django.middleware.http.ConditionalGetMiddleware"
UPDATE = "django.middleware.cache.UpdateCacheMiddleware"
FETCH = "django.middleware.cache.FetchFromCacheMiddleware"
DUMMY = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}


def at(**values: Any) -> dict[str, Any]:
    """Returns CACHES with a cache of django-redis."""
    return {"default": {"BACKEND": "django_redis.cache.RedisCache", **values}}


no_function = "public"


@pytest.mark.needs_parts("tenants")  # which another check tells to add
@pytest.mark.parametrize(
    "path", ["tests.checks.test_django.no_function", "nowhere.tenant", "tests.nothing"]
)
def test_a_prefix_that_names_no_function_is_found(settings: Settings, path: str) -> None:
    settings.READTRACK = {"PREFIX": path}
    settings.TENANT_MODEL = "customers.Client"
    assert found() == ["readtrack.E041"]
    assert "ends with a colon" in str(the_message("readtrack.E041").hint)


def test_the_hint_for_a_missing_cache_gives_readtrack_one_of_its_own(settings: Settings) -> None:
    settings.CACHES = DUMMY
    code = re.search(
        r"CACHES\['readtrack'\] = .+?\}(?=\. )", str(the_message("readtrack.E012").hint)
    )
    assert code
    site: dict[str, Any] = {"CACHES": dict(DUMMY)}
    exec(code[0].replace(" and ", "; "), site)
    settings.CACHES, settings.READTRACK = site["CACHES"], site["READTRACK"]
    assert found() == []


def test_a_file_of_settings_that_replaces_the_caches_is_named_in_one_sentence(
    settings: Settings,
) -> None:
    settings.CACHES = DUMMY
    settings.READTRACK = {"CACHE": "readtrack"}
    message = the_message("readtrack.E012")
    assert message.msg == "The cache 'readtrack' cannot be used: CACHES has no alias 'readtrack'."
    assert "local.py, has replaced the whole dict by CACHES = …" in str(message.hint)


class Factory:
    """A connection factory of a site's own, for locations that are no URLs."""

    def __init__(self, options: Any) -> None:
        pass

    def connect(self, url: str) -> Redis:
        return Redis()


@each_row(
    ("name", "value", "ids"),
    [
        ("READTRACK", {"CACHE": "missing"}, ["readtrack.E012"]),
        ("CACHES", DUMMY, ["readtrack.E012"]),
        ("CACHES", at(), ["readtrack.E012"]),
        ("CACHES", at(LOCATION=""), ["readtrack.E012"]),
        ("CACHES", at(LOCATION="127.0.0.1:6379"), ["readtrack.E012"]),
        ("CACHES", at(LOCATION="http://127.0.0.1:1/0"), ["readtrack.E012"]),
        ("CACHES", at(LOCATION=["one:6379", "redis://two/0"]), ["readtrack.E012"]),
        ("CACHES", at(LOCATION="redis://one/0,rediss://two/0,unix:///run/redis.sock"), []),
        (
            "CACHES",
            {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache"}},
            ["readtrack.E012"],
        ),
        ("MIDDLEWARE", [THEIRS], ["readtrack.W006"]),
        ("MIDDLEWARE", [OURS, THEIRS], ["readtrack.E007"]),
        ("MIDDLEWARE", [OURS], []),
        ("MIDDLEWARE", [OURS, GZIP], ["readtrack.E016"]),
        (
            "MIDDLEWARE",
            [OURS, "compression_middleware.middleware.CompressionMiddleware"],
            ["readtrack.E016"],
        ),
        ("MIDDLEWARE", [GZIP, CONDITIONAL, OURS, FETCH], []),
        ("MIDDLEWARE", [OURS, CONDITIONAL], ["readtrack.W018"]),
        ("MIDDLEWARE", [UPDATE, THEIRS, OURS, FETCH], ["readtrack.W017"]),
        ("MIDDLEWARE", [GZIP, UPDATE], ["readtrack.W006"]),
        ("MIDDLEWARE", (THEIRS, OURS), []),
    ],
)
def test_a_wrong_setting_is_found(
    settings: Settings, name: str, value: Any, ids: list[str]
) -> None:
    setattr(settings, name, value)
    assert found() == ids


def test_a_factory_of_ones_own_may_understand_other_locations(settings: Settings) -> None:
    settings.CACHES = at(
        LOCATION="mine:6379", OPTIONS={"CONNECTION_FACTORY": "tests.checks.test_django.Factory"}
    )
    assert found() == []
    settings.CACHES = at(OPTIONS={"CONNECTION_FACTORY": "tests.checks.test_django.Factory"})
    assert found() == ["readtrack.E012"]
    settings.CACHES, settings.DJANGO_REDIS_CONNECTION_FACTORY = (
        at(LOCATION="mine:6379"),
        "tests.checks.test_django.Factory",
    )
    assert found() == []


def test_a_message_about_a_location_never_shows_its_password(settings: Settings) -> None:
    settings.CACHES = at(LOCATION="redis//:secret@host:6379")
    message = the_message("readtrack.E012")
    assert "Redis URL must specify one of the following schemes" in message.msg
    assert "secret" not in message.msg
    assert "redis://127.0.0.1:6379/0" in str(message.hint)


def test_a_prefix_that_only_the_cache_has_is_found(settings: Settings) -> None:
    settings.CACHES = at(LOCATION="redis://one/0", KEY_PREFIX="staging")
    message = the_message("readtrack.W013")
    assert message.msg.startswith("The cache 'default' has the KEY_PREFIX 'staging', which")
    assert str(message.hint).startswith("Set READTRACK['PREFIX'] = 'staging:'.")
    settings.READTRACK = {"PREFIX": "staging:"}
    assert found() == []


def test_hints_name_the_line_to_move(settings: Settings) -> None:
    settings.MIDDLEWARE = [OURS, GZIP]
    assert the_message("readtrack.E016").hint == f"Move '{GZIP}' above '{OURS}' in MIDDLEWARE."
    settings.MIDDLEWARE = [UPDATE, OURS, FETCH]
    assert "cache_page" in str(the_message("readtrack.W017").hint)


FLAT_PAGES = "django.contrib.flatpages.middleware.FlatpageFallbackMiddleware"


@pytest.mark.parametrize("theirs", [FLAT_PAGES, "pages.middleware.PageFallbackMiddleware"])
def test_a_middleware_that_makes_pages_around_ours_is_found(
    settings: Settings, theirs: str
) -> None:
    order = list(settings.MIDDLEWARE)
    settings.MIDDLEWARE = [*order[:-1], theirs, OURS]
    message = the_message("readtrack.W050")
    assert message.hint == f"Move '{OURS}' above '{theirs}' in MIDDLEWARE."
    settings.MIDDLEWARE = [*order, theirs]
    assert found() == []
    redirects = "django.contrib.redirects.middleware.RedirectFallbackMiddleware"
    settings.MIDDLEWARE = [redirects, *order]
    assert found() == []


@pytest.mark.django_db
@pytest.mark.parametrize("is_site_wide", [True, False])
def test_the_hint_about_the_cache_is_right(settings: Settings, *, is_site_wide: bool) -> None:
    order = list(settings.MIDDLEWARE)
    settings.ROOT_URLCONF = __name__
    url, post = "/kept/", factories.post()
    if is_site_wide:
        settings.MIDDLEWARE, url = [UPDATE, *order, FETCH], "/plain/"
    shown = []
    for _ in range(3):
        shown.append(factories.browser().get(url).text.count('title="0"'))
        tracker.record(factories.hit(f"site.post:{post.pk}"))
    assert shown == ([1, 1, 1] if is_site_wide else [1, 0, 0])


urlpatterns = [path("kept/", cache_page(60)(views.listing)), path("plain/", views.listing)]
