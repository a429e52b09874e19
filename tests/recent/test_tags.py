"""Pages show what their reader opened, and no cache gives it to anybody else."""

from typing import Any

import pytest
from django.template import engines
from django.test import AsyncClient

from tests.recent.conftest import Keep, posts, signed_in
from tests.recent.urls import DJANGO
from tests.support import factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("ending", ["", "function/"])
@pytest.mark.usefixtures("keep")
def test_a_page_shows_what_was_opened_before_but_not_itself(ending: str) -> None:
    _, browser = signed_in()
    texts = [browser.get(f"/posts/{post.pk}/{ending}").text for post in posts(5)]
    assert texts == [
        "",
        "Post 1,",
        "Post 2,Post 1,",
        "Post 3,Post 2,Post 1,",
        "Post 4,Post 3,Post 2,",
    ]


@pytest.mark.parametrize("address", ["/list/", "/list/jinja/"])
@pytest.mark.usefixtures("keep")
def test_a_page_with_the_list_takes_one_round_trip_and_one_query_more(
    wire: Wire, address: str, django_assert_num_queries: Any
) -> None:
    _, browser = signed_in()
    for post in posts(2):
        browser.get(f"/posts/{post.pk}/plain/")
    browser.get(address)
    with wire.counted() as trips, django_assert_num_queries(3):  # the session, the user, the posts
        assert browser.get(address).text == "Post 2,Post 1,"
    assert trips == [1]


@pytest.mark.usefixtures("keep")
def test_a_page_that_is_the_same_for_everybody_shows_none() -> None:
    _, browser = signed_in()
    [post] = posts(1)
    browser.get(f"/posts/{post.pk}/plain/")
    assert browser.get("/list/shared/").text == ""


@pytest.mark.django_db(transaction=True)  # the tag asks in another thread
@pytest.mark.usefixtures("keep")
def test_an_async_page_shows_it() -> None:
    user, browser = signed_in()
    [post] = posts(1)
    browser.get(f"/posts/{post.pk}/plain/")
    client = AsyncClient()
    client.force_login(user)
    assert factories.fetch_async(client, "/list/async/").text == "Post 1,"


@pytest.mark.usefixtures("keep")
def test_caches_keep_no_page_with_it() -> None:
    _, browser = signed_in()
    response = browser.get("/list/")
    assert "private" in response["Cache-Control"]
    assert "Cookie" in response["Vary"]
    anonymous = factories.browser().get("/list/")
    assert "Cookie" in anonymous["Vary"]
    assert not anonymous.has_header("Cache-Control")


def test_the_page_of_a_visitor_with_a_list_is_private(keep: Keep) -> None:
    keep(visitors=True)
    browser = factories.browser()
    [post] = posts(1)
    browser.get(f"/posts/{post.pk}/plain/")
    assert "private" in browser.get("/list/")["Cache-Control"]


def test_without_a_setting_and_without_a_request_it_is_empty(keep: Keep, wire: Wire) -> None:
    template = engines["django"].from_string(DJANGO)
    assert template.render({}) == ""
    keep(models=[])
    _, browser = signed_in()
    with wire.counted() as trips:
        response = browser.get("/list/")
    assert (response.text, trips) == ("", [0])
    assert not response.has_header("Cache-Control")
