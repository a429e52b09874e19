"""Tenants in schemas of their own: PREFIX names a function, so that rows with the same id have
other keys.
"""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, reports, tracker
from readtrack.flush.run import flush
from readtrack.store import keys
from readtrack.store.keys import TAG
from readtrack.store.skips import key_of, skip_buffer
from tests.support import factories
from tests.support.partitions import servers

pytestmark = pytest.mark.django_db

present = (
    threading.local()
)  # like the schema of django-tenants, which belongs to a thread's connection


def tenant() -> Any:
    return getattr(present, "name", "public")


class TenantMiddleware:
    """Chooses the tenant for a request, as django-tenants does by the host."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        present.name = request.GET["tenant"]
        try:
            return self.get_response(request)
        finally:
            del present.name


@pytest.fixture(autouse=True)
def _tenants(settings: Settings) -> None:
    settings.READTRACK = {"PREFIX": f"{__name__}.tenant"}
    settings.MIDDLEWARE = [f"{__name__}.TenantMiddleware", *settings.MIDDLEWARE]


@pytest.fixture
def enter(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Returns a function that enters a tenant until the test ends."""
    return lambda name: monkeypatch.setattr(present, "name", name, raising=False)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.usefixtures("new_redis")
def test_a_page_counts_for_its_tenant(redis: Redis, *, is_async: bool) -> None:
    post = factories.post()
    for name in ("red", "blue"):  # the same visitor, who is new to each
        url = f"{post.get_absolute_url()}?tenant={name}"
        page = (
            factories.fetch_async(AsyncClient(), url) if is_async else factories.browser().get(url)
        )
        assert page.status_code == 200
    found = {
        TAG.sub("", str(key)): client.get(key)
        for client in servers(redis)
        for key in client.keys("*views:total:*")
    }
    assert found == {
        f"red:views:total:site.post:{post.pk}": "1",
        f"blue:views:total:site.post:{post.pk}": "1",
    }
    assert {str(key).partition(":")[0] for key in redis.keys("*")} == {"red", "blue"}


def test_a_tenant_sees_and_flushes_its_own_counts(enter: Callable[[Any], None]) -> None:
    post = factories.post()
    subject = f"site.post:{post.pk}"
    enter("red")
    tracker.record(factories.hit(subject))
    enter("blue")
    tracker.record(factories.hit(subject))
    tracker.record(factories.hit(subject))
    assert reports.views([post]) == {post: 2}
    assert flush().read == 1
    post.refresh_from_db()
    assert post.view_count == 2
    enter("red")
    assert TAG.sub("", keys.total(subject)) == f"red:views:total:{subject}"


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("blue", "blue:"),
        ("", ":"),
        (None, "None:"),
        ("a:b*/ü", "a%3Ab%2A%2F%C3%BC:"),
        ("\ud800", "%3F:"),
        ("views", "views:"),
    ],
)
def test_a_tenants_name_cannot_break_a_key(
    name: Any, prefix: str, enter: Callable[[Any], None]
) -> None:
    enter(name)
    assert keys.prefix() == prefix


def test_a_long_name_becomes_a_hash(enter: Callable[[Any], None]) -> None:
    found = set()
    for end in "ab":
        enter("x" * 10_000 + end)
        found.add(keys.prefix())
    assert len(found) == 2
    assert max(map(len, found)) < 40


def test_skips_are_those_of_the_tenant_that_had_them(
    enter: Callable[[Any], None], redis: Redis
) -> None:
    enter("red")
    tracker.record(factories.hit("site.post:1"))
    tracker.skip(["site.post:1"], "bot", is_alone=False)
    enter("blue")
    skip_buffer.send()
    assert reports.skips()["bot"] == 0
    enter("red")
    assert reports.skips()["bot"] == 1


def test_a_prefix_that_looks_like_no_path_stays_as_it_is(
    settings: Settings, client: Client
) -> None:
    for prefix in ("example.com:", "v1.0", ".", "shop:"):
        settings.READTRACK = {"PREFIX": prefix}
        assert keys.prefix() == prefix


@pytest.mark.needs_parts("metrics")
def test_a_scrape_tells_the_numbers_of_the_tenant_that_it_asks(
    settings: Settings, redis: Redis, enter: Callable[[Any], None]
) -> None:
    settings.READTRACK = {**settings.READTRACK, "METRICS": {"networks": ["127.0.0.1"]}}
    now = buckets.now()
    for name, number in (("red", 3), ("blue", 5)):
        enter(name)
        redis.hincrby(key_of(now), "bot", number)
    for name, number in (("red", 3), ("blue", 5), ("green", 0)):
        answer = Client().get("/readtrack/metrics", {"tenant": name})
        assert f'readtrack_skips_total{{reason="bot"}} {number}.0' in answer.text
