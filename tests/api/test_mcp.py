"""The server for assistants, as the official client of the protocol sees it."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from readtrack.api.questions import questions
from readtrack.subjects import subject_of
from tests.api.conftest import Site, assert_same, exported
from tests.api.test_answers import SAME, filled
from tests.api.test_authors import OF_AUTHORS
from tests.support import factories
from tests.support.addresses import database_url

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.one_server("starts a process with a single Redis"),
]

ROOT = Path(__file__).parents[2]


class Session:
    """An open session of a client with the server."""

    def __init__(self, portal: Any, client: Any) -> None:
        self._portal = portal
        self._client = client

    def tools(self) -> dict[str, Any]:
        """Returns the tools by name."""
        listed = self._portal.call(self._client.list_tools)
        return {tool.name: tool for tool in listed.tools}

    def call(self, name: str, **arguments: Any) -> Any:
        """Returns the result of a tool."""
        return self._portal.call(self._client.call_tool, name, arguments)

    def answer(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Returns the answer of a tool, which is the same as text and as structured content."""
        result = self.call(name, **arguments)
        assert not result.is_error, result.content
        [content] = result.content
        answer: dict[str, Any] = json.loads(content.text)
        assert answer == result.structured_content
        return answer

    def error(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Returns the error of a tool."""
        result = self.call(name, **arguments)
        assert result.is_error
        [content] = result.content
        error: dict[str, Any] = json.loads(content.text)["error"]
        return error


Start = Callable[[User], AbstractContextManager[Session]]


@pytest.fixture
def environment(redis_url: str) -> dict[str, str]:
    """Returns the environment of the server, which asks the servers of this test."""
    return {
        "DJANGO_SETTINGS_MODULE": "tests.api.server_settings",
        "DATABASE_URL": database_url(),
        "READTRACK_TEST_REDIS_URL": redis_url,
    }


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Start:
    """Returns a function that starts the server for a user, and opens a session with it.

    The client logs a warning for all that is in the server's output and not of the protocol.
    """

    @contextmanager
    def started(user: User) -> Iterator[Session]:
        words = ["-m", "django", "readtrack", "mcp", "--user", user.username]
        server = StdioServerParameters(
            command=sys.executable, args=words, env=environment, cwd=ROOT
        )
        with (
            (tmp_path / "errors").open("w+") as errors,
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(
                Client(stdio_client(server, errlog=errors))
            ) as client,
        ):
            yield Session(portal, client)
        assert caplog.messages == []
        assert "Initializing server" in (tmp_path / "errors").read_text()

    return started


def test_an_assistant_gets_the_numbers_of_the_dashboards_files(site: Site, start: Start) -> None:
    with start(site.editor) as session:
        tools = session.tools()
        assert tools.keys() == questions().keys()
        for tool in tools.values():
            assert tool.description
            assert tool.annotations.read_only_hint
            Draft202012Validator.check_schema(tool.input_schema)
            Draft202012Validator.check_schema(tool.output_schema)
        for question, given, table, page in SAME.values():
            answer = session.answer(question, **filled(given, site))
            assert_same(answer, exported(site.editor, table, **filled(page, site)))
            Draft202012Validator(tools[question].output_schema).validate(answer)


def test_an_author_gets_own_numbers_only(site: Site, start: Start) -> None:
    with start(site.author) as session:
        for question, given, table in OF_AUTHORS.values():
            answer = session.answer(question, **given)
            assert_same(answer, exported(site.author, table, "author/"))
            assert site.articles[2].title not in json.dumps(answer)
        assert session.error("unread")["code"] == "not_allowed"
        foreign = subject_of(site.articles[2])
        assert session.error("numbers", object=foreign)["code"] == "not_allowed"


def test_errors_say_what_is_wrong(site: Site, start: Start) -> None:
    with start(site.editor) as session:
        assert session.error("nothing")["code"] == "unknown_question"
        for given, name in (
            ({"period": "fortnight"}, "period"),
            ({"limit": 0}, "limit"),
            ({"limit": 10**30}, "limit"),
            ({"limit": True}, "limit"),
            ({"limit": 1.5}, "limit"),
            ({"limit": [1]}, "limit"),
            ({"model": {"label": "site.post"}}, "model"),
            ({"author": 7}, "author"),
            ({"author": "7\0"}, "author"),
            ({"page": "2"}, "page"),
        ):
            error = session.error("top", **given)
            assert (error["code"], error["parameter"]) == ("bad_parameter", name), given
        # What is null was not asked, and numbers may be numbers.
        rows = session.answer("top", limit=2, category=None)["rows"]
        assert len(rows) == 2


def test_a_permission_that_is_taken_away_is_gone_at_the_next_question(
    site: Site, start: Start
) -> None:
    with start(site.editor) as session:
        assert session.answer("unread")["rows"]
        site.editor.user_permissions.clear()
        assert session.error("unread")["code"] == "not_allowed"
        assert session.answer("top")["rows"] == []
        User.objects.filter(pk=site.editor.pk).update(is_active=False)
        assert session.error("top")["code"] == "not_allowed"
        site.editor.delete()
        assert session.error("top")["code"] == "not_allowed"


def test_a_database_that_drops_its_connections_breaks_nothing(site: Site, start: Start) -> None:
    with start(site.editor) as session:
        assert session.answer("top")["rows"]
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert session.answer("top")["rows"]


def test_an_unknown_user_is_refused_at_the_start(environment: dict[str, str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "django", "readtrack", "mcp", "--user", "anna"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert "'anna'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_inactive_user_and_a_name_that_no_user_can_have_are_refused() -> None:
    factories.user(username="anna", is_active=False)
    for name, words in (("anna", "'anna' is not active"), ("a\0b", "There is no user")):
        with pytest.raises(CommandError, match=words):
            call_command("readtrack", "mcp", "--user", name)


def test_without_the_package_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "readtrack.api.assistants", raising=False)
    with pytest.raises(CommandError, match=r'pip install "readtrack\[mcp\]"'):
        call_command("readtrack", "mcp", "--user", "anna")
