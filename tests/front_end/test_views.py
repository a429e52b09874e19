"""The JSON views: apps and front ends ask for unread categories, and mark them read."""

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from readtrack import reports, tracker
from readtrack.front_end import views
from readtrack.subjects import model_with_label, subject_of
from tests.conftest import use_redis
from tests.site.models import Category, Product, Shelf
from tests.support import factories
from tests.support.rows import each_row

pytestmark = [pytest.mark.django_db]

UNREAD, READ = "/readtrack/unread/", "/readtrack/read/"


@pytest.fixture
def user() -> User:
    return factories.user()


@pytest.fixture
def client(user: User) -> Client:
    client = Client(headers={"User-Agent": factories.BROWSER})
    client.force_login(user)
    return client


def own(request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
    """Returns the rows that a site might allow: those named like the user."""
    return queryset.filter(name=request.user.get_username())


def post(client: Client, body: Any) -> Any:
    return client.post(READ, json.dumps(body), content_type="application/json")


def name(obj: Any) -> str:
    return subject_of(obj)


def test_it_tells_what_is_unread_and_marks_it_read(client: Client) -> None:
    one, two = name(factories.category()), name(factories.category())
    answer = client.get(UNREAD, {"category": [one, two]}).json()
    assert answer["categories"] == {
        one: {"unread": True, "count": 1},
        two: {"unread": True, "count": 1},
    }
    assert post(client, {"categories": [one]}).json() == {"read": [one], "unread": []}
    answer = client.get(UNREAD, {"category": [one, two]}).json()
    assert {key: value["unread"] for key, value in answer["categories"].items()} == {
        one: False,
        two: True,
    }


def test_keys_are_enough_where_only_one_model_has_read_state(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.front_end.views.read_state_models", lambda: [Category])
    category = factories.category()
    assert post(client, {"categories": [category.pk]}).json() == {
        "read": [str(category.pk)],
        "unread": [],
    }
    assert client.get(UNREAD, {"category": category.pk}).json()["categories"] == {
        str(category.pk): {"unread": False, "count": 0}
    }


def test_a_form_marks_read_too(client: Client) -> None:
    one, two = name(factories.category()), name(factories.category())
    assert client.post(READ, {"category": [one, two]}).json() == {"read": [one, two], "unread": []}


def test_news_published_after_the_content_was_fetched_stays_unread(client: Client) -> None:
    quiet, busy = factories.category(), factories.category()
    as_of = client.get(UNREAD, {"category": name(quiet)}).json()["as_of"]
    tracker.mark_unread([busy])
    body = {"categories": [name(quiet), name(busy)], "as_of": as_of}
    assert post(client, body).json() == {"read": [name(quiet)], "unread": [name(busy)]}
    assert client.post(READ, {"category": name(busy), "as_of": as_of}).json() == {
        "read": [],
        "unread": [name(busy)],
    }


def test_keys_of_any_kind_name_a_category(client: Client, settings: Any, redis: Redis) -> None:
    settings.READTRACK = {
        "MODELS": {"site.Product": {"read_state": True}, "site.Page": {"read_state": True}}
    }
    product = Product.objects.create(id=uuid.UUID(int=5))
    page = factories_page("a:b /é")
    names = [f"site.product:{product.pk}", name(page)]
    assert post(client, {"categories": names}).json() == {"read": names, "unread": []}
    assert len(redis.keys("category:site.p*:read")) == 2


def factories_page(slug: str) -> Any:
    from tests.site.models import Page

    return Page.objects.create(slug=slug)


def test_an_object_that_does_not_exist_gets_no_keys(client: Client, redis: Redis) -> None:
    missing = "site.category:999999"
    assert post(client, {"categories": [missing]}).json() == {"read": [], "unread": [missing]}
    assert client.get(UNREAD, {"category": missing}).json()["categories"][missing]["unread"] is True
    assert redis.keys("category:*") == []


def test_a_site_says_what_a_user_may_see(client: Client, user: User, settings: Any) -> None:
    settings.READTRACK = {"FRONT_END": {"queryset": "tests.front_end.test_views.own"}}
    mine, other = factories.category(name=user.get_username()), factories.category()
    both = [name(mine), name(other)]
    answer = client.get(UNREAD, {"category": [*both, "site.category:999999"]})
    assert list(answer.json()["categories"]) == [name(mine)]
    assert post(client, {"categories": both}).json() == {
        "read": [name(mine)],
        "unread": [name(other)],
    }
    assert reports.unread(user, [mine, other]) == {other}


@each_row(
    ("names", "code"),
    [
        ([], "no_category"),
        (["1"], "unknown_category"),
        (["x"], "unknown_category"),
        (["site.category:x"], "unknown_category"),
        (["site.category:"], "unknown_category"),
        (["site.category:1e9"], "unknown_category"),
        (["site.category:" + "9" * 30], "unknown_category"),
        (["site.category:" + "9" * 5000], "unknown_category"),
        (["site.category:-9223372036854775809"], "unknown_category"),
        (["site.post:1"], "unknown_category"),
        (["auth.user:1"], "unknown_category"),
        (["site.nothing:1"], "unknown_category"),
        (["site.manual:\0"], "unknown_category"),
        (["site.shelf:%00"], "unknown_category"),
        (["site.category:1"] * (views.MOST + 1), "too_many"),
    ],
)
def test_a_category_that_cannot_be_is_a_clear_error(
    names: list[str], code: str, client: Client, redis: Redis
) -> None:
    for answer in (client.get(UNREAD, {"category": names}), post(client, {"categories": names})):
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == code
        assert answer.json()["error"]["message"]
    assert redis.keys("category:*") == []


def test_too_many_categories_are_told_how_many_may_be_named(client: Client) -> None:
    answer = client.get(UNREAD, {"category": ["site.category:1"] * (views.MOST + 1)})
    assert answer.json()["error"]["message"] == "Name at most 200 categories."


@pytest.mark.parametrize("text", ["a\0b", "x" * 1000, "%00"])
def test_a_textual_key_that_no_row_can_have_is_a_clear_error(
    text: str, client: Client, settings: Any
) -> None:
    settings.READTRACK = {"MODELS": {"site.Page": {"read_state": True}}}
    answer = post(client, {"categories": [f"site.page:{text}"]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unknown_category")


@pytest.mark.parametrize(
    "text",
    ["site.page:\ud800", "\udfff", "\ud800:1", "x" * 100_000 + ":1", "site.page:" + "x" * 100_000],
)
def test_a_path_that_can_name_no_object_is_not_remembered(
    text: str, client: Client, settings: Any
) -> None:
    settings.READTRACK = {"MODELS": {"site.Page": {"read_state": True}}}
    model_with_label.cache_clear()
    model_with_label("site.page")  # which MODELS names: parts may look up the models of the site
    answer = post(client, {"categories": [text]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unknown_category")
    assert model_with_label.cache_info().currsize == 1


@pytest.mark.parametrize(
    "body",
    [
        "[",
        "[]",
        "1",
        "null",
        '"categories"',
        "{}",
        '{"categories": 1}',
        '{"categories": null}',
        "[" * 100_000,
        b"\xff\xfe\xfd",
    ],
    ids=str,
)
def test_a_body_that_is_none_is_a_clear_error(body: Any, client: Client) -> None:
    answer = client.post(READ, body, content_type="application/json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_json")


@pytest.mark.parametrize("as_of", ["x", -1, 1.5, True, "²", "9" * 17, [], {}])
def test_a_moment_that_is_none_is_a_clear_error(as_of: Any, client: Client) -> None:
    answer = post(client, {"categories": [name(factories.category())], "as_of": as_of})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_as_of")


def test_names_that_are_neither_text_nor_number_are_passed_over(client: Client) -> None:
    category = name(factories.category())
    assert post(client, {"categories": [category, None, [1], {"a": 1}]}).json() == {
        "read": [category],
        "unread": [],
    }


def test_anonymous_visitors_get_a_401(client: Client) -> None:
    category = name(factories.category())
    client.logout()
    for answer in (
        client.get(UNREAD, {"category": category}),
        post(client, {"categories": [category]}),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "not_signed_in")


def test_marking_read_needs_the_csrf_token_that_asking_gives(user: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    category = name(factories.category())
    body = json.dumps({"categories": [category]})
    assert client.post(READ, body, content_type="application/json").status_code == 403
    client.get(UNREAD, {"category": category})
    token = client.cookies["csrftoken"].value
    answer = client.post(
        READ, body, content_type="application/json", headers={"X-CSRFToken": token}
    )
    assert answer.json() == {"read": [category], "unread": []}


class TokenMiddleware:
    """Signs in by a token in a header, as API packages do: it sets `request.user`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        token = request.headers.get("Authorization", "")
        request.user = (
            User.objects.filter(username=token.removeprefix("Token ")).first() or request.user
        )
        return self.get_response(request)


@pytest.fixture
def _tokens(settings: Any) -> None:
    order = list(settings.MIDDLEWARE)
    order.insert(-1, f"{__name__}.TokenMiddleware")
    settings.MIDDLEWARE = ["django.middleware.csrf.CsrfViewMiddleware", *order]


def app(user: User) -> Client:
    """Returns a client that sends a token, and no cookie, and whose requests are checked as on a
    live site.
    """
    return Client(
        enforce_csrf_checks=True, headers={"Authorization": f"Token {user.get_username()}"}
    )


@pytest.mark.usefixtures("_tokens")
def test_a_token_of_the_sites_own_signs_in_and_needs_no_csrf_token(user: User) -> None:
    category = name(factories.category())
    assert (
        app(user).get(UNREAD, {"category": category}).json()["categories"][category]["unread"]
        is True
    )
    assert post(app(user), {"categories": [category]}).json() == {"read": [category], "unread": []}
    assert (
        app(user).get(UNREAD, {"category": category}).json()["categories"][category]["unread"]
        is False
    )


@pytest.mark.usefixtures("_tokens")
def test_a_wrong_token_is_answered_in_json(user: User) -> None:
    user.username = "nobody"
    answer = post(app(user), {"categories": ["1"]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "not_signed_in")


@pytest.mark.usefixtures("_tokens")
def test_a_session_needs_the_csrf_token_whatever_else_the_request_brings(user: User) -> None:
    client = app(factories.user())
    client.force_login(user)
    assert post(client, {"categories": [name(factories.category())]}).status_code == 403


def test_an_anonymous_reader_needs_the_csrf_token(settings: Any) -> None:
    settings.READTRACK = {
        **settings.READTRACK,
        "DOTS": {**settings.READTRACK.get("DOTS", {}), "anonymous": 1_000_000},
    }
    category = factories.category()
    client = Client(enforce_csrf_checks=True, headers={"User-Agent": factories.BROWSER})
    client.get(f"/categories/{category.pk}/")
    assert post(client, {"categories": [name(category)]}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null", "Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_a_page_of_another_site_gets_a_plain_403(
    client: Client, headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    body = json.dumps({"categories": [name(factories.category())]})
    answer = client.post(READ, body, content_type="application/json", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "foreign")
    assert [record.exc_info for record in caplog.records] == [None]
    assert caplog.text.count("\n") == 1


def test_a_sites_own_view_may_sign_in_and_call_ours(user: User) -> None:
    category = factories.category()
    request = RequestFactory(enforce_csrf_checks=True).post(READ, {"category": name(category)})
    request.user = user  # as a view of an API package has done when it calls ours
    assert json.loads(views.read(request).content) == {"read": [name(category)], "unread": []}


def test_each_way_has_its_method_and_nothing_is_cached(client: Client) -> None:
    assert client.post(UNREAD).status_code == client.get(READ).status_code == 405
    assert (
        "no-store" in client.get(UNREAD, {"category": name(factories.category())})["Cache-Control"]
    )


def test_asking_costs_no_query_but_for_the_user(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    shelf = Shelf.objects.create(code="A")
    names = [name(factories.category()), name(shelf)]
    with django_assert_num_queries(2):  # session and user
        client.get(UNREAD, {"category": names})
    with django_assert_num_queries(4):  # and what exists, for each model
        post(client, {"categories": names})


def test_without_redis_it_says_so(client: Client, settings: Any) -> None:
    category = name(factories.category())
    use_redis(settings, "redis://127.0.0.1:1/0")
    for answer in (
        client.get(UNREAD, {"category": category}),
        post(client, {"categories": [category]}),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
        assert answer["Retry-After"] == "5"
