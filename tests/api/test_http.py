"""The API over HTTP: who gets an answer, and what everybody else gets."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings as django_settings
from django.db import OperationalError, connection
from django.test import AsyncClient, Client
from pytest_django import Settings
from redis import Redis

from readtrack.api.models import ApiToken, make_token
from readtrack.store.skips import skip_buffer
from readtrack.subjects import subject_of
from tests.api.conftest import API, Site, answered, asked, editor, token_of
from tests.conftest import Start
from tests.support import factories
from tests.support.rows import each_row

pytestmark = pytest.mark.django_db


def code_of(response: Any) -> str:
    """Returns the code of an error, which is JSON that no cache may keep."""
    assert response["Content-Type"] == "application/json"
    assert response["Cache-Control"] == "private, no-store"
    error = response.json()["error"]
    assert error["message"]
    return str(error["code"])


@each_row(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer rt_",
        "Bearer rt_0000000000000000000000000000000000000000000",
        "Bearer {text}x",
        "Bearer {digest}",
        "Basic {text}",
        "Token {text}",
        "{text}",
        "Bearer é\udcff",
        "Bearer x,{text}",
    ],
)
@each_row("path", ["", "openapi.json", "top", "nothing"])
def test_without_a_valid_token_there_is_no_answer(path: str, header: str) -> None:
    text, row = make_token(editor(), "mine")
    value = header.format(text=text, digest=row.digest)
    response = Client().get(API + path, headers={"Authorization": value})
    assert response.status_code == 401
    assert code_of(response) == "bad_token"
    assert response["WWW-Authenticate"] == "Bearer"


def test_neither_a_session_nor_an_address_takes_the_place_of_the_header() -> None:
    user = factories.user(is_staff=True, is_superuser=True)
    text = make_token(user, "mine").text
    client = factories.browser(user)
    for name in ("token", "access_token", "Authorization"):
        assert client.get(f"{API}top", {name: text}).status_code == 401
    assert client.post(f"{API}top", {"token": text}).status_code == 405


def test_the_scheme_of_the_header_has_any_case() -> None:
    text = make_token(editor(), "mine").text
    response = Client().get(API, headers={"Authorization": f"bearer {text}"})
    assert response.status_code == 200


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete", "options"])
def test_only_get_is_answered(method: str) -> None:
    client = Client(enforce_csrf_checks=True)
    response = getattr(client, method)(f"{API}top", headers=token_of(editor()))
    assert response.status_code == 405
    assert code_of(response) == "bad_method"
    assert response["Allow"] == "GET, HEAD"


def test_an_answer_has_no_cookie_and_no_header_for_other_sites(site: Site) -> None:
    headers = {**token_of(site.editor), "Origin": "https://evil.example"}
    response = factories.browser(site.editor).get(f"{API}top", headers=headers)
    assert response.status_code == 200
    assert not response.cookies
    assert response["Cache-Control"] == "private, no-store"
    assert response["Vary"] == "Authorization"
    assert not [name for name in response.headers if name.startswith("Access-Control")]


def test_a_request_is_no_view_and_no_skip(site: Site, redis: Redis) -> None:
    skip_buffer.clear()
    headers = token_of(site.editor)
    before = kept_in(redis)
    subject = subject_of(site.articles[0])
    for path in ("", "openapi.json", "top", "nothing", f"numbers?object={subject}"):
        client = factories.browser(headers={"User-Agent": "curl/8"})
        client.get(API + path, headers=headers)
    skip_buffer.send_rest()
    assert kept_in(redis) == before


def kept_in(redis: Any) -> dict[str, Any]:
    """Returns what Redis has, without the lists that questions about the last hour make."""
    keys = [key for key in redis.scan_iter() if not key.startswith("trending:")]
    return {key: redis.dump(key) for key in keys}


def test_all_pages_behind_a_sign_in_leave_the_api_to_its_tokens(settings: Settings) -> None:
    middleware = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    settings.MIDDLEWARE = [*django_settings.MIDDLEWARE, middleware]
    assert Client().get(API, headers=token_of(editor())).status_code == 200
    assert Client().get(API).status_code == 401


def test_asgi_gives_the_same_answer(site: Site) -> None:
    headers = token_of(site.editor)
    content = async_to_sync(AsyncClient().get)(f"{API}top", headers=headers).json()
    assert content["rows"] == answered(site.editor, "top")["rows"]


def test_the_index_has_the_questions_of_the_site(site: Site, settings: Settings) -> None:
    client = Client(headers=token_of(site.editor))
    names = [question["name"] for question in client.get(API).json()["questions"]]
    assert {"numbers", "top", "breakdown", "funnel", "groups"} <= {*names}
    for question in client.get(API).json()["questions"]:
        assert client.get(question["url"]).status_code in (200, 400)
    settings.READTRACK = {"NUMBERS": {"funnel": (), "history": False}}
    names = [question["name"] for question in client.get(API).json()["questions"]]
    assert not {"breakdown", "funnel", "groups", "still_read"} & {*names}
    assert client.get(f"{API}funnel").status_code == 404


def test_an_unknown_question_is_answered_with_those_that_there_are() -> None:
    response = asked(editor(), "everything")
    assert response.status_code == 404
    assert code_of(response) == "unknown_question"
    assert "top" in response.json()["error"]["allowed"]


def test_without_redis_the_answer_says_that_it_is_incomplete(
    site: Site, start_redis: Start
) -> None:
    assert answered(site.editor, "top")["is_complete"]
    start_redis().stop()
    answer = answered(site.editor, "top")
    assert not answer["is_complete"]
    assert answer["rows"]
    assert answered(site.editor, "now")["rows"] == [{"now": None, "filters": {}}]


#: Parameters that do not go, and the parameter that the error names.
WRONG: list[tuple[str, str, str]] = [
    ("top", "page=2", "page"),
    ("top", "token=rt_x", "token"),
    ("top", "object=site.post:1", "object"),
    ("top", "limit=0", "limit"),
    ("top", "limit=1001", "limit"),
    ("top", "limit=-1", "limit"),
    ("top", "limit=1e2", "limit"),
    ("top", "limit=%D9%A3", "limit"),
    ("top", "limit=", "limit"),
    ("top", "limit=5&limit=6", "limit"),
    ("top", "period=fortnight", "period"),
    ("top", "period=%D9%A7", "period"),
    ("top", "period=7%00", "period"),
    ("top", "period=published", "period"),
    ("top", "period=7&from=2026-01-01&to=2026-01-02", "period"),
    ("top", "from=2026-01-01", "from"),
    ("top", "to=2026-01-01", "from"),
    ("top", "from=2026-01-02&to=2026-01-01", "from"),
    ("top", "from=2026-02-30&to=2026-03-01", "from"),
    ("top", "from=20260101&to=2026-01-02", "from"),
    ("top", "from=2026-W01-1&to=2026-01-02", "from"),
    ("top", "from=%D9%A2%D9%A0%D9%A2%D9%A6-01-01&to=2026-01-02", "from"),
    ("top", "from=9999-12-31&to=9999-12-31", "from"),
    ("top", "from=0000-00-00&to=9999-12-31", "from"),
    ("top", "compare=everything", "compare"),
    ("top", "compare=week&period=90", "compare"),
    ("top", "compare=before&period=all", "compare"),
    ("numbers", "interval=minute", "interval"),
    ("numbers", "interval=hour&period=year", "interval"),
    ("numbers", "interval=month&period=today", "interval"),
    ("top", "model=auth.user", "model"),
    ("top", "model=site.category", "model"),
    ("top", "model=SITE.POST", "model"),
    ("top", "model=nothing", "model"),
    ("top", "category=site.post:1", "category"),
    ("top", "category=1", "category"),
    ("top", "category=site.category:", "category"),
    ("top", "category=site.category:%D9%A3", "category"),
    ("top", "category=site.category:01", "category"),
    ("top", "category=site.category:%2531", "category"),
    ("top", "author=me", "author"),
    ("top", "author=9223372036854775808", "author"),
    ("top", "author=1%00", "author"),
    ("top", "value=DE", "dimension"),
    ("top", "dimension=referrer&value=", "value"),
    ("top", "dimension=referrer", "value"),
    ("top", "dimension=referrer&value=x&dimension=device", "dimension"),
    ("numbers", "object=site.post:1&model=site.post", "model"),
    ("top", "dimension=weather&value=rain", "dimension"),
    ("breakdown", "", "dimension"),
    ("breakdown", "dimension=weather", "dimension"),
    ("groups", "", "group"),
    ("groups", "group=section", "group"),
    ("refused", "group=referrer", "group"),
    ("numbers", "object=auth.user:1", "object"),
    ("numbers", "object=site.post:abc", "object"),
    ("numbers", "object=site.post:9223372036854775808", "object"),
    ("numbers", "object=site.post:99999999999999999999999999", "object"),
    ("numbers", "object=site.post:1%2500", "object"),
    ("numbers", "object=site.post:1%0a", "object"),
    ("numbers", "object=site.product:x", "object"),
    ("numbers", "object=" + "x" * 5_000, "object"),
    ("numbers", "object=site.post:1' OR 1=1--", "object"),
]


@each_row(("question", "query", "name"), WRONG)
def test_a_wrong_parameter_is_named(
    question: str, query: str, name: str, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer"]}}
    user = editor()
    response = Client().get(f"{API}{question}?{query}", headers=token_of(user))
    assert response.status_code == 400, response.text
    assert code_of(response) == "bad_parameter"
    assert response.json()["error"]["parameter"] == name


def test_thousands_of_parameters_are_one_error() -> None:
    query = "&".join(f"p{number}=1" for number in range(2_000))
    response = Client().get(f"{API}top?{query}", headers=token_of(editor()))
    assert response.status_code == 400
    assert code_of(response) == "bad_parameter"


@pytest.mark.parametrize(
    ("question", "name", "value"),
    [
        ("numbers", "object", "site.post:9223372036854775807"),
        ("numbers", "object", "site.post:-1"),
        ("numbers", "object", "site.product:00000000-0000-0000-0000-000000000000"),
        ("numbers", "object", "site.page:nothing"),
        ("numbers", "object", "site.gadget:00000000-0000-0000-0000-000000000000"),
        ("top", "category", "site.category:9223372036854775807"),
        ("top", "author", "9223372036854775807"),
        ("top", "author", "0"),
    ],
)
def test_what_does_not_exist_is_not_found(
    question: str, name: str, value: str, settings: Settings
) -> None:
    settings.READTRACK = {"MODELS": {"site.Gadget": {"counted": True}}}
    response = asked(editor(), question, **{name: value})
    assert response.status_code == 404, response.text
    assert code_of(response) == "not_found"
    assert response.json()["error"]["parameter"] == name


def test_numbers_that_a_period_cannot_have_are_not_known(site: Site) -> None:
    for question, given in (
        ("grew", {"period": "all"}),
        ("grew", {"compare": "none"}),
        ("groups", {"group": "author", "author": str(site.author.pk)}),
        ("still_read", {"period": "all"}),
    ):
        response = asked(site.editor, question, **given)
        assert (response.status_code, code_of(response)) == (400, "not_known"), question


def test_a_filter_by_value_says_what_is_not_known(site: Site) -> None:
    given = {"dimension": "referrer", "value": "example.com"}
    totals = answered(site.editor, "numbers", **given)["totals"]
    assert totals["views"]["count"] == 10
    assert totals["visitors"]["count"] is None


@pytest.mark.parametrize("key", factories.KINDS)
def test_an_object_with_any_kind_of_key_has_its_numbers(key: str) -> None:
    obj = factories.KINDS[key]()
    answer = answered(editor(), "numbers", object=subject_of(obj))
    assert answer["totals"]["views"]["count"] == 0


def test_rows_lead_to_further_questions(site: Site) -> None:
    for question, given in (
        ("top", {}),
        ("breakdown", {"dimension": "referrer"}),
        ("groups", {"group": "category"}),
        ("groups", {"group": "author"}),
        ("unread", {}),
    ):
        rows = answered(site.editor, question, **given)["rows"]
        filters = [row["filters"] for row in rows if row["filters"]]
        assert filters, question
        for parameters in filters:
            answered(site.editor, "numbers", **parameters)


def test_answers_have_at_most_as_many_rows_as_asked(site: Site) -> None:
    answer = answered(site.editor, "top", limit=2)
    assert len(answer["rows"]) == 2
    assert answer["row_count"] == 4
    for _ in range(12):
        factories.post()
    assert len(answered(site.editor, "unread")["rows"]) <= 10


def test_there_is_one_query_for_a_token_that_is_unknown(django_assert_num_queries: Any) -> None:
    make_token(editor(), "mine")
    with django_assert_num_queries(1):
        Client().get(f"{API}top", headers={"Authorization": "Bearer rt_x"})
    assert ApiToken.objects.get().last_used is None


def test_a_database_that_is_down_is_an_answer_of_json(caplog: pytest.LogCaptureFixture) -> None:
    headers = token_of(editor())
    with connection.execute_wrapper(_no_connection):
        response = Client().get(f"{API}top", headers=headers)
    assert (response.status_code, code_of(response)) == (503, "unavailable")
    assert "does not answer" in caplog.text


def _no_connection(*statement: Any) -> None:
    raise OperationalError("the server is gone")
