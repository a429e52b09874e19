"""The visitor's cookie: whose it is where sites share a host, and when it is removed."""

from http.cookies import Morsel
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from pytest_django import Settings

from readtrack import reports
from readtrack.conf import conf
from readtrack.hits import visitors
from readtrack.middleware import ReadTrackMiddleware
from tests.support import factories
from tests.support.factories import BROWSER

pytestmark = pytest.mark.django_db

SHOP: Any = {"SCRIPT_NAME": "/shop"}
FORUM: Any = {"SCRIPT_NAME": "/forum"}


def has_consent(request: HttpRequest) -> bool:
    return request.COOKIES.get("consent") == "yes"


def page_of(client: Client, **values: Any) -> Any:
    """Returns the page of a new post."""
    return client.get(f"/posts/{factories.post().pk}/", **values)


def new_cookies(response: Any) -> dict[str, "Morsel[str]"]:
    return dict(response.cookies)


# Sites that share a host


@pytest.mark.parametrize("secrets", [("one", "one"), ("one", "other")], ids=str)
@pytest.mark.parametrize("sites", [(SHOP, FORUM), ({}, SHOP), (SHOP, {"SCRIPT_NAME": "/shop/old"})])
def test_sites_below_paths_of_a_host_keep_each_others_cookies(
    settings: Settings, secrets: tuple[str, str], sites: tuple[Any, Any]
) -> None:
    browser = factories.browser()
    posts = [factories.post(), factories.post()]
    sent = []
    for _ in range(3):
        for secret, site, post in zip(secrets, sites, posts, strict=True):
            settings.SECRET_KEY = secret
            response: Any = browser.get(f"/posts/{post.pk}/", **site)
            sent += response.cookies
    assert len(sent) == 2
    assert len(set(sent)) == 2


def test_the_script_name_may_come_from_the_settings_or_the_server(settings: Settings) -> None:
    settings.FORCE_SCRIPT_NAME = "/my shop/ü/"
    assert list(new_cookies(page_of(factories.browser()))) == ["anon_id_my_shop__"]
    settings.FORCE_SCRIPT_NAME = None
    response = factories.fetch_async(AsyncClient(), f"/posts/{factories.post().pk}/")
    assert list(response.cookies) == ["anon_id"]


def test_path_and_domain_of_the_cookie_are_the_sites_to_choose(settings: Settings) -> None:
    settings.READTRACK = {"COOKIE": {"path": "/posts/", "domain": "shop.example"}}
    cookie = new_cookies(page_of(factories.browser()))["anon_id"]
    assert cookie["path"] == "/posts/"
    assert cookie["domain"] == "shop.example"
    assert "Domain=shop.example; HttpOnly; Max-Age=31536000; Path=/posts/;" in cookie.OutputString()


@pytest.mark.parametrize("is_first", [True, False])
def test_of_several_cookies_of_one_name_the_sites_own_is_found(*, is_first: bool) -> None:
    value = new_cookies(page_of(factories.browser()))["anon_id"].value
    cookies = [f"anon_id={value}", "anon_id=of another site:1abc:signature", "anon_id="]
    if not is_first:
        cookies.reverse()
    header = "; ".join(["a=1", *cookies, "anon_id_old=2"])
    response = page_of(Client(headers={"User-Agent": BROWSER, "Cookie": header}))
    assert not new_cookies(response)


def test_only_a_few_cookies_of_one_name_are_tried(rf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def opened(cookie: str) -> str:
        tried.append(cookie)
        return ""

    monkeypatch.setattr(visitors, "_opened", opened)
    request = rf.get("/", headers={"Cookie": "anon_id=x;" * 6_000})
    assert visitors.visitor(request, None).new_cookie
    assert len(tried) == 1 + visitors.MOST_COOKIES


# Removal


@pytest.mark.parametrize(
    ("options", "headers"),
    [
        ({"COOKIE": {"consent": f"{__name__}.has_consent"}}, {}),
        ({}, {"Sec-GPC": "1"}),
        ({}, {"DNT": "1"}),
        ({"ANONYMOUS": "hash"}, {}),
        ({"COOKIE": {"path": "/posts", "domain": "shop.example"}}, {"Sec-GPC": "1"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_signed_in", [False, True], ids=["", "signed in"])
def test_a_cookie_that_is_no_longer_wanted_is_removed(
    settings: Settings, options: dict[str, object], headers: dict[str, str], *, is_signed_in: bool
) -> None:
    browser = factories.browser()
    page_of(browser)
    if is_signed_in:
        browser.force_login(factories.user())
    settings.READTRACK = options
    response = page_of(browser, headers=headers)
    cookie = new_cookies(response)["anon_id"]
    assert cookie.value == ""
    assert cookie["max-age"] == 0
    assert (cookie["path"], cookie["domain"]) == (conf.COOKIE.path, conf.COOKIE.domain)
    assert "private" in response["Cache-Control"]
    del browser.cookies["anon_id"]
    assert not new_cookies(page_of(browser, headers=headers))


def test_a_view_without_the_cookie_that_was_removed_counts_as_before(settings: Settings) -> None:
    browser, post = factories.browser(), factories.post()
    page_of(browser)
    browser.get(f"/posts/{post.pk}/", headers={"Sec-GPC": "1"})
    assert reports.views([post]) == {post: 1}


@pytest.mark.parametrize("value", ["of another site", "a:1:b", ""])
def test_a_cookie_that_is_not_ours_is_not_removed(value: str) -> None:
    headers = {"User-Agent": BROWSER, "Cookie": f"anon_id={value}", "Sec-GPC": "1"}
    assert not new_cookies(page_of(Client(headers=headers)))


def test_a_response_that_shared_caches_may_keep_removes_no_cookie_of_others(rf: Any) -> None:
    cookie = new_cookies(page_of(factories.browser()))["anon_id"].value
    post = factories.post()

    def page(request: Any) -> HttpResponse:
        request.readtrack.view(post)
        return HttpResponse(headers={"Cache-Control": "public, max-age=60"})

    headers = {"User-Agent": BROWSER, "Cookie": f"anon_id={cookie}", "Sec-GPC": "1"}
    response: Any = ReadTrackMiddleware(page)(rf.get("/", headers=headers))
    assert not response.cookies
    assert response["Cache-Control"] == "public, max-age=60"
