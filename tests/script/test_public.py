"""A response that shared caches may keep has no cookie, whichever middleware sets one."""

from collections.abc import Callable
from http.cookies import SimpleCookie
from typing import Any

import pytest
from django.http import HttpResponse
from django.middleware.csrf import get_token
from django.test import Client
from pytest_django import Settings

from readtrack.script import shown
from tests.live.test_news import address
from tests.support import factories

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.live.test_news")]

Middleware = Callable[[Any], HttpResponse]


def sets_cookie(get_response: Middleware) -> Middleware:
    """A site's own middleware, which knows each browser."""

    def middleware(request: Any) -> HttpResponse:
        response = get_response(request)
        response.set_cookie("device", "d1", httponly=True)
        return response

    return middleware


def sets_header(get_response: Middleware) -> Middleware:
    def middleware(request: Any) -> HttpResponse:
        response = get_response(request)
        response["Set-Cookie"] = "device=d1"
        return response

    return middleware


def merges_cookies(get_response: Middleware) -> Middleware:
    def middleware(request: Any) -> HttpResponse:
        response = get_response(request)
        response.cookies.update(SimpleCookie("device=d1"))
        return response

    return middleware


def asks_for_token(get_response: Middleware) -> Middleware:
    """Has CsrfViewMiddleware set its cookie on every response, for a front end without forms."""

    def middleware(request: Any) -> HttpResponse:
        get_token(request)
        return get_response(request)

    return middleware


def public_addresses() -> list[str]:
    factories.post(category=factories.category())
    html = factories.browser().get("/live/").text
    script = next(iter(shown.scripts()))
    return [address(html), f"/readtrack/page.js?{script}"]


OWN = [f"{__name__}.{name}" for name in ("sets_cookie", "sets_header", "merges_cookies")]
CSRF = ["django.middleware.csrf.CsrfViewMiddleware", f"{__name__}.asks_for_token"]


@pytest.mark.parametrize("added", [*([path] for path in OWN), CSRF], ids=str)
def test_no_cookie_of_a_middleware_leaves_with_public(settings: Settings, added: list[str]) -> None:
    addresses = public_addresses()
    for url in addresses:
        assert Client().get(url)["Cache-Control"].startswith("public, max-age=")
    settings.MIDDLEWARE = [*added, *settings.MIDDLEWARE]
    for url in addresses:
        response = Client().get(url)
        assert response.status_code == 200
        sent = dict(response.items())  # as servers get it
        assert response.cookies or "Set-Cookie" in sent
        assert sent["Cache-Control"].startswith("private, max-age="), url
        assert response.headers["Cache-Control"] == sent["Cache-Control"]


def test_no_session_leaves_with_public(settings: Settings) -> None:
    addresses = public_addresses()
    settings.SESSION_SAVE_EVERY_REQUEST = True
    client = Client()
    client.force_login(factories.user())
    for url in addresses:
        response = client.get(url)
        assert "sessionid" in response.cookies
        assert response["Cache-Control"].startswith("private, max-age="), url
        assert Client().get(url)["Cache-Control"].startswith("public, max-age=")
