"""Which reports are answered before Django's stack, by WSGI and by ASGI."""

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import Error
from django.test import RequestFactory
from pytest_django import Settings
from redis import Redis

from readtrack.script import asgi, collector, views, wsgi
from readtrack.script.shown import token_of
from tests.site.models import Post
from tests.support import factories

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.site.urls")]

HEADERS = {"User-Agent": factories.BROWSER, "Sec-Fetch-Site": "same-origin"}
PATH = "/readtrack/page.js"


@pytest.fixture(autouse=True)
def _paths() -> Iterator[None]:
    collector._path.cache_clear()  # type: ignore[attr-defined]
    yield
    collector._path.cache_clear()  # type: ignore[attr-defined]


@pytest.fixture
def token(post: Post) -> str:
    return token_of(f"/posts/{post.pk}/|0|0|site.post:{post.pk}|", ())


def counted(redis: Redis, post: Post) -> int:
    return int(redis.get(f"views:total:site.post:{post.pk}") or 0)


class Answer:
    """What a WSGI application has answered."""

    def __init__(self, *cookies: str, **environ: Any) -> None:
        self.application = wsgi.with_reports(self._of_django, cookies=cookies)
        self.went_through_django = False
        self.environ = environ

    def _of_django(self, environ: Any, start_response: Any) -> list[bytes]:
        self.went_through_django = True
        start_response("200 OK", [])
        return [b"django"]

    def _start(self, status: str, headers: list[tuple[str, str]]) -> None:
        self.status = status
        self.headers = headers

    def to(self, body: str, *, method: str = "POST", path: str = PATH, **headers: str) -> "Answer":
        sent = {**HEADERS, **headers}
        request = RequestFactory().generic(method, path, body, "text/plain", headers=sent)
        environ = {**request.environ, **self.environ}
        self.body = b"".join(self.application(environ, self._start))
        return self


def test_a_report_is_answered_without_django(redis: Redis, post: Post, token: str) -> None:
    answer = Answer().to(token)
    assert not answer.went_through_django
    assert answer.status == "200 OK"
    assert json.loads(answer.body) == {"elements": {}, "page": "", "again": True}
    headers = dict(answer.headers)
    assert headers["Content-Type"] == "application/json"
    assert "no-store" in headers["Cache-Control"]
    assert headers["Set-Cookie"].startswith("anon_id=")
    assert counted(redis, post) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Cookie": "theme=dark; sessionid=abc"},
        {"Cookie": "jwt=abc"},
        {"Authorization": "Bearer abc"},
        {"Remote-User": "ann"},
    ],
    ids=str,
)
def test_whoever_may_be_signed_in_goes_through_django(headers: dict[str, str], token: str) -> None:
    assert Answer("jwt").to(token, **headers).went_through_django


def test_a_user_of_the_web_server_goes_through_django(token: str) -> None:
    assert Answer(REMOTE_USER="ann").to(token).went_through_django


def test_what_is_no_report_goes_through_django(token: str) -> None:
    assert Answer().to("", method="GET").went_through_django
    assert Answer().to(token, path="/posts/1/").went_through_django
    assert Answer().to(token, path=f"{PATH}/").went_through_django


@pytest.mark.parametrize(
    "setting",
    [
        {"PREFIX": "tests.script.test_collector.tenant"},
        {"COOKIE": {"consent": "tests.script.test_collector.consents"}},
        {"EXCLUDE": {"function": "tests.script.test_collector.consents"}},
        {"NUMBERS": {"dimensions": ["channel", "tests.script.test_collector.plan"]}},
    ],
    ids=str,
)
def test_where_a_function_of_the_site_looks_at_requests_all_go_through_django(
    settings: Settings, token: str, setting: dict[str, Any]
) -> None:
    settings.READTRACK = {**settings.READTRACK, **setting}
    assert Answer().to(token).went_through_django


def tenant() -> str:
    return "ann"


def consents(request: Any) -> bool:
    return True


def plan(request: Any) -> str:
    return "free"


def test_with_the_dimensions_of_readtrack_none_has_to(settings: Settings, token: str) -> None:
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {"dimensions": ["channel", "device"]}}
    assert not Answer().to(token).went_through_django


def test_below_a_script_name_the_path_is_the_one_behind_it(token: str) -> None:
    answer = Answer(SCRIPT_NAME="/shop", PATH_INFO=PATH).to(token)
    assert not answer.went_through_django
    assert dict(answer.headers)["Set-Cookie"].startswith("anon_id_shop=")


@pytest.mark.urls("tests.site.no_urls")
def test_a_site_without_the_urls_answers_all_by_itself(token: str) -> None:
    assert Answer().to(token).went_through_django


def test_an_error_is_logged_and_answered_as_django_does(
    token: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: Any) -> None:
        raise Error("SQL is down")

    monkeypatch.setattr(views, "_report_of", fail)
    with caplog.at_level(logging.ERROR, logger="django.request"):
        answer = Answer().to(token)
    assert answer.status == "500 Internal Server Error"
    assert "SQL is down" in caplog.text


class Connection:
    """A client of an ASGI application."""

    def __init__(self, *chunks: bytes, is_gone: bool = False) -> None:
        self.application = asgi.with_reports(self._of_django)
        self.went_through_django = False
        self.sent: list[Any] = []
        self._messages: list[Any] = [
            {"type": "http.request", "body": chunk, "more_body": number < len(chunks)}
            for number, chunk in enumerate(chunks, start=1)
        ]
        if is_gone:
            self._messages = [{"type": "http.disconnect"}]

    async def _of_django(self, scope: Any, receive: Any, send: Any) -> None:
        self.went_through_django = True

    async def _receive(self) -> Any:
        return self._messages.pop(0)

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    def ask(self, **scope: Any) -> "Connection":
        headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
        headers += scope.pop("headers", [])
        asked = {
            "type": "http",
            "method": "POST",
            "path": PATH,
            "root_path": "",
            "query_string": b"",
            "headers": headers,
            "client": ("203.0.113.7", 1),
            **scope,
        }
        asyncio.run(self.application(asked, self._receive, self._send))  # type: ignore[arg-type]
        return self


@pytest.mark.django_db(transaction=True)
def test_asgi_answers_a_report_that_comes_in_pieces(redis: Redis, post: Post, token: str) -> None:
    connection = Connection(token[:10].encode(), token[10:].encode()).ask()
    start, body = connection.sent
    assert start["status"] == 200
    assert dict(start["headers"])[b"content-type"] == b"application/json"
    assert any(name == b"set-cookie" for name, _ in start["headers"])
    assert json.loads(body["body"])["again"]
    assert counted(redis, post) == 1


@pytest.mark.django_db(transaction=True)
def test_asgi_answers_a_report_with_counts(post: Post) -> None:
    Post.objects.update(view_count=7)
    element = ["count", f"site.post:{post.pk}", None, ""]
    token = token_of(f"/posts/{post.pk}/|0|0|site.post:{post.pk}|", [element])
    _, body = Connection(token.encode()).ask().sent
    assert "8" in "".join(json.loads(body["body"])["elements"].values())


@pytest.mark.django_db(transaction=True)
def test_asgi_refuses_a_body_that_is_too_long(redis: Redis, post: Post, token: str) -> None:
    body = f"{token}\n".encode() + b"x" * views.LONGEST_BODY
    start, _ = Connection(body, b"more").ask().sent
    assert start["status"] == 403
    assert counted(redis, post) == 0


def test_asgi_answers_nobody_who_is_gone() -> None:
    assert Connection(is_gone=True).ask().sent == []


@pytest.mark.parametrize(
    "scope",
    [
        {"type": "lifespan"},
        {"type": "websocket"},
        {"method": "GET"},
        {"path": "/posts/1/"},
        {"headers": [(b"cookie", b"theme=dark"), (b"cookie", b"sessionid=abc")]},
        {"headers": [(b"authorization", b"Bearer abc")]},
    ],
    ids=str,
)
def test_asgi_leaves_all_else_to_django(scope: dict[str, Any]) -> None:
    assert Connection().ask(**scope).went_through_django


@pytest.mark.django_db(transaction=True)
def test_asgi_knows_the_path_behind_that_of_the_site(token: str) -> None:
    connection = Connection(token.encode()).ask(path=f"/shop{PATH}", root_path="/shop")
    assert not connection.went_through_django
