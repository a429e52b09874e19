"""What one tenant signed is worth nothing at another tenant, whose rows have the same ids."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.template import Context, Template
from django.test import AsyncClient, RequestFactory
from django.urls import include, path
from pytest_django import Settings
from redis import Redis

from readtrack.page.placeholders import Placeholder, placeholders_in
from readtrack.script import shown
from readtrack.script.outbound import outbound_url
from readtrack.store import keys
from tests.site.models import Post
from tests.support import factories

pytestmark = pytest.mark.django_db

present = threading.local()  # like the schema of django-tenants


def tenant() -> str:
    return getattr(present, "name", "public")


def fragment(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.GET["content"])


def parts(request: HttpRequest) -> StreamingHttpResponse:
    post = Post.objects.get()
    text = str(Placeholder.of("exact", post))

    async def stream() -> AsyncIterator[str]:
        for start in (text, f"|{text[:20]}", text[20:]):
            yield start

    return StreamingHttpResponse(stream(), content_type="text/html")


urlpatterns = [
    path("fragment/", fragment),
    path("parts/", parts),
    path("readtrack/", include("readtrack.urls")),
]


class TenantMiddleware:
    """Chooses the tenant by the host's name, as django-tenants does."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        present.name = request.get_host().partition(".")[0]
        return self.get_response(request)


@pytest.fixture(autouse=True)
def _tenants(settings: Settings) -> Iterator[None]:
    settings.READTRACK = {"PREFIX": f"{__name__}.tenant"}
    settings.MIDDLEWARE = [f"{__name__}.TenantMiddleware", *settings.MIDDLEWARE]
    settings.ROOT_URLCONF = __name__
    settings.ALLOWED_HOSTS = ["*"]
    present.name = "red"
    yield
    del present.name


def link() -> str:
    return outbound_url(factories.post(), "https://example.com/")


def test_a_link_that_one_tenant_signed_leads_nowhere_at_another_tenant(redis: Redis) -> None:
    own = link()
    assert factories.browser().get(own, headers={"Host": "blue.example"}).status_code == 404
    assert redis.keys("*funnel:*") == []
    assert factories.browser().get(own, headers={"Host": "red.example"}).status_code == 302


def test_a_placeholder_of_one_tenant_shows_nothing_at_another_tenant() -> None:
    post = factories.post()
    text = str(Placeholder.of("exact", post))
    shown_by = {
        name: factories.browser()
        .get("/fragment/", {"content": text}, headers={"Host": f"{name}.example"})
        .text
        for name in ("red", "blue")
    }
    assert shown_by == {"red": "0", "blue": ""}


def test_a_page_token_of_one_tenant_tells_another_tenant_nothing(rf: RequestFactory) -> None:
    token = shown.page_token(rf.get("/"), views=[factories.post()])
    assert shown.page_of(token) is not None
    present.name = "blue"
    assert shown.page_of(token) is None


def test_each_purpose_and_each_tenant_has_a_salt_of_its_own() -> None:
    salts = set()
    for name in ("red", "blue", "red:blue", ""):
        present.name = name
        salts |= {keys.salt(purpose) for purpose in ("page", "outbound", "placeholder", "honeypot")}
    assert len(salts) == 16


def test_a_site_without_tenants_has_a_salt_by_its_prefix(settings: Settings) -> None:
    salts = []
    for prefix in ("", "shop.v1:", "wiki:"):
        settings.READTRACK = {"PREFIX": prefix}
        salts.append(keys.salt("page"))
    assert salts == ["page:", "page:shop.v1:", "page:wiki:"]


def test_an_asynchronous_stream_is_filled_in_for_its_tenant(redis: Redis) -> None:
    factories.post()
    client: Any = AsyncClient(headers={"User-Agent": factories.BROWSER})
    response = factories.fetch_async(client, "/parts/")

    async def whole() -> bytes:
        return b"".join([part async for part in response.streaming_content])

    assert async_to_sync(whole)() == b"0|0"


def test_a_tag_signs_for_the_tenant_of_its_moment() -> None:
    post = factories.post()
    page = Template('{% load readtrack %}{% outbound_url post "https://example.com/" %}')
    one = page.render(Context({"post": post}))
    present.name = "blue"
    assert page.render(Context({"post": post})) != one
    assert placeholders_in(str(Placeholder("count", "site.post:1", 3)).encode())
