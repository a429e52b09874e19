"""Two versions of the app meet on one Redis and SQL: neighbours work side by side, and an older one
refuses what it does not know, without losing anything.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any
from uuid import uuid4

import pytest
from django.core import signing
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import connection, models
from django.db.migrations import operations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.fields import NOT_PROVIDED
from django.db.utils import OperationalError
from pytest_django import Settings
from redis import Redis

from readtrack import __version__, layouts, migrated, tasks
from readtrack.flush.run import flush
from readtrack.hits import visitors
from readtrack.models import FlushRun
from readtrack.page import placeholders
from readtrack.page.filling import filled
from readtrack.page.placeholders import COUNT, Placeholder, placeholders_in
from readtrack.store import keys
from readtrack.store.connection import connect
from readtrack.store.flush_notes import LayoutError, NewerLayoutError
from tests.doctor.conftest import found
from tests.site.models import Post
from tests.support import factories

pytestmark = pytest.mark.django_db

SENTENCE = f"layout 2, which a newer version of readtrack wrote. This is readtrack {__version__}"
BREAKING = "0099_layout2_drop_hours"


@pytest.fixture
def post() -> Post:
    return factories.post()


def stored(post: Post) -> int:
    views: int = Post.objects.values_list("view_count", flat=True).get(pk=post.pk)
    return views


def seen_page(post: Post) -> str:
    """Opens the post's page as a new visitor. Returns what the app says about it."""
    agent = f"{factories.BROWSER} {uuid4().int}"
    response = factories.browser(headers={"user-agent": agent}).get(f"/posts/{post.pk}/")
    assert response.status_code == 200
    return str(response.headers.get("X-Readtrack", ""))


def note_newer_keys() -> None:
    """Lets Redis have keys as the next version writes them."""
    connect().hset(keys.flush_layout(""), "layout", 2)


def migrate_to(name: str) -> None:
    """Lets SQL have had a migration of a newer version."""
    MigrationRecorder.Migration.objects.create(app="readtrack", name=name)


def note_newer_tables() -> None:
    migrate_to(BREAKING)


NEWER = pytest.mark.parametrize("make_newer", [note_newer_keys, note_newer_tables])


@pytest.fixture
def explained(settings: Settings) -> None:
    settings.READTRACK = {"DEBUG_HEADER": True}


@NEWER
@pytest.mark.usefixtures("explained")
def test_a_flush_of_an_older_version_refuses_and_no_view_is_lost(
    post: Post, make_newer: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen_page(post)
    flush()
    make_newer()
    assert seen_page(post).startswith("counted")
    for only_changed in (True, False):
        with pytest.raises(NewerLayoutError, match=SENTENCE):
            flush(only_changed=only_changed)
    assert stored(post) == 1
    monkeypatch.setattr(layouts, "KNOWN", 2)  # as after the upgrade
    assert seen_page(post).startswith("counted")
    flush(only_changed=True)
    assert stored(post) == 3


def test_the_record_of_a_refused_flush_has_the_sentence() -> None:
    note_newer_keys()
    with pytest.raises(NewerLayoutError):
        flush()
    assert SENTENCE in FlushRun.objects.get().error


def test_no_record_is_written_into_tables_that_are_not_known() -> None:
    note_newer_tables()
    with pytest.raises(NewerLayoutError, match="SQL has tables"):
        flush()
    assert not FlushRun.objects.exists()


@NEWER
@pytest.mark.parametrize(
    "words",
    [
        ["flush"],
        ["flush", "--changed"],
        pytest.param(["repartition"], marks=pytest.mark.needs_parts("cluster")),
        ["erase", "somebody"],
        ["reset", "--model", "site.Post", "--no-input"],
        ["start-as-read", "--model", "site.Category"],
        pytest.param(["daily-view"], marks=pytest.mark.needs_parts("numbers")),
        pytest.param(["import", "log", "/dev/null"], marks=pytest.mark.needs_parts("imports")),
    ],
    ids=" ".join,
)
def test_subcommands_refuse_with_the_sentence_and_what_to_do(
    make_newer: Callable[[], None], words: list[str]
) -> None:
    make_newer()
    with pytest.raises(CommandError, match=SENTENCE) as refusal:
        call_command("readtrack", *words, verbosity=0)
    assert "Upgrade readtrack here." in str(refusal.value)
    assert "Run it again" not in str(refusal.value)


@NEWER
def test_what_only_shows_numbers_still_does(post: Post, make_newer: Callable[[], None]) -> None:
    make_newer()
    call_command("readtrack", "show", f"site.post:{post.pk}", verbosity=0)


@pytest.mark.parametrize(
    ("make_newer", "name"), [(note_newer_keys, "keys"), (note_newer_tables, "tables")]
)
def test_the_doctor_says_so(make_newer: Callable[[], None], name: str) -> None:
    make_newer()
    [finding] = found(name)
    assert finding.level == "error"
    assert SENTENCE in finding.message
    assert finding.hint == layouts.HINT


def test_migrate_and_the_check_of_the_database_warn_of_tables_of_a_newer_layout() -> None:
    assert run_checks(tags=["database"], databases=["default"]) == []
    note_newer_tables()
    [message] = run_checks(tags=["database"], databases=["default"])
    assert message.id == "readtrack.W080"
    assert "SQL has tables of layout 2" in message.msg
    assert run_checks(tags=["database"], databases=["lite"]) == []
    call_command("check")  # touches no database


def test_a_database_that_is_gone_is_no_finding_of_the_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(alias: str) -> list[str]:
        raise OperationalError("gone")

    monkeypatch.setattr(migrated, "applied", fails)
    assert run_checks(tags=["database"], databases=["default"]) == []


# Neighbours


def test_a_migration_that_only_adds_something_stops_nothing(post: Post) -> None:
    seen_page(post)
    migrate_to("0099_add_a_table")
    flush()
    assert stored(post) == 1
    [finding] = found("tables")
    assert finding.level == "note"
    assert "0099_add_a_table of a newer version" in finding.message
    assert run_checks(tags=["database"], databases=["default"]) == []


def test_a_missing_migration_is_an_error_of_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [finding.level for finding in found("tables")] == ["ok"]
    monkeypatch.setattr(migrated, "own", lambda: ["0001_initial", "0099_more"])
    [finding] = found("tables")
    assert finding.level == "error"
    assert "lacks the migration 0099_more" in finding.message
    assert "migrate" in finding.hint


def test_a_version_works_beside_one_that_writes_the_layout_it_knows(
    redis: Redis, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush()
    assert redis.hget("flush:layout", "layout") == "1"
    monkeypatch.setattr(layouts, "KNOWN", 2)
    with monkeypatch.context() as newer:
        newer.setattr(layouts, "WRITTEN", 2)
        flush()
    for _ in range(2):  # of the version that still writes layout 1
        seen_page(post)
        flush()
    assert stored(post) == 2
    assert redis.hget("flush:layout", "layout") == "2"
    monkeypatch.setattr(layouts, "KNOWN", 1)
    with pytest.raises(NewerLayoutError, match=SENTENCE):
        flush()


def test_a_redis_that_lost_the_note_gets_it_from_the_next_flush(redis: Redis) -> None:
    flush()
    redis.delete("flush:layout")
    [finding] = found("keys")
    assert finding.message == "No flush has noted the layout of the keys yet."
    flush()
    assert redis.hgetall("flush:layout") == {"partitions": str(len(keys.tags())), "layout": "1"}


def test_the_note_of_partitions_is_kept_apart(redis: Redis, settings: Settings) -> None:
    flush()
    redis.hset("flush:layout", "partitions", 999)
    with pytest.raises(LayoutError, match="partitions in Redis is 999"):
        flush()


def test_a_site_that_records_no_migrations_flushes_as_well(
    post: Post, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MIGRATION_MODULES = {"readtrack": None}
    monkeypatch.setattr(connection.introspection, "table_names", lambda: ["site_post"])
    seen_page(post)
    flush()
    assert stored(post) == 1
    assert migrated.own() == []
    settings.MIGRATION_MODULES = {}


@pytest.mark.parametrize(
    ("names", "layout"),
    [
        ([], 1),
        (["0001_initial", "0002_layouts", "0003_more_layout2_"], 1),
        (["0001_initial", "0009_layout2_drop_hours", "0011_layout12_x", "0010_y"], 12),
    ],
)
def test_the_name_of_a_migration_has_the_layout(names: list[str], layout: int) -> None:
    assert migrated.layout_of(names) == layout


def test_this_version_knows_what_it_writes() -> None:
    assert layouts.WRITTEN <= layouts.KNOWN
    assert migrated.layout_of(migrated.own()) <= layouts.KNOWN
    assert migrated.newest(migrated.own()) >= "0001_initial"


OLDER_CANNOT = (
    operations.RemoveField,
    operations.RenameField,
    operations.DeleteModel,
    operations.RenameModel,
    operations.AlterModelTable,
)


def breaks_older_versions(operation: Any) -> bool:
    """Returns True for a change of the tables with which an older version cannot work.

    It does not fill a new column, so that has to do without, or by the database.
    """
    if isinstance(operation, operations.AddField):
        field = operation.field
        return not (field.null or field.many_to_many or field.db_default is not NOT_PROVIDED)
    return isinstance(operation, OLDER_CANNOT)


def test_no_migration_breaks_older_versions_unless_its_name_has_a_layout() -> None:
    loader = MigrationLoader(None)
    for (app, name), migration in loader.disk_migrations.items():
        if app == "readtrack" and not migrated.LAYOUT.match(name):
            assert not [one for one in migration.operations if breaks_older_versions(one)], name


@pytest.mark.parametrize(
    ("operation", "breaks"),
    [
        (operations.AddField("note", "colour", models.TextField()), True),
        (operations.AddField("note", "colour", models.TextField(default="red")), True),
        (operations.AddField("note", "colour", models.TextField(null=True)), False),
        (operations.AddField("note", "colour", models.TextField(db_default="red")), False),
        (operations.RemoveField("note", "text"), True),
        (operations.RenameField("note", "text", "words"), True),
        (operations.CreateModel("Colour", []), False),
        (operations.DeleteModel("Note"), True),
    ],
    ids=str,
)
def test_what_breaks_older_versions_is_known(operation: Any, *, breaks: bool) -> None:
    assert breaks_older_versions(operation) == breaks


def test_tasks_keep_their_names_and_arguments() -> None:
    """A worker of the other version may get the task of this one."""
    arguments: dict[Any, list[str]] = {
        tasks.flush_share: ["share", "only_changed"],
        tasks.run_job: ["name"],
    }
    for task, names in arguments.items():
        assert task.name == f"readtrack.{task.__name__}"
        assert [*signature(task.run).parameters] == names


# Tokens


@pytest.fixture
def newer_tokens(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Any]:
    """Returns a function that calls another one as a newer version would."""
    from readtrack.script import tokens

    tokens._warn_of_layout.cache_clear()  # type: ignore[attr-defined]

    def call(make: Callable[[], Any]) -> Any:
        with monkeypatch.context() as newer:
            newer.setattr(layouts, "SIGNED", 2)
            return make()

    return call


def one_warning(caplog: pytest.LogCaptureFixture) -> str:
    [record] = [record for record in caplog.records if record.name == "readtrack"]
    return str(record.getMessage())


@pytest.mark.needs_parts("script")
def test_the_token_of_a_newer_page_counts_nothing_and_is_logged_once(
    post: Post,
    redis: Redis,
    newer_tokens: Callable[[Any], str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    from readtrack.script import shown

    name = f"/|0|0|site.post:{post.pk}|"
    own = shown.token_of(name, ())
    newer = newer_tokens(lambda: shown.token_of(name, ()))

    def tell(token: str) -> int:
        answer = factories.browser().post(
            "/readtrack/page.js",
            token,
            content_type="text/plain",
            headers={"Sec-Fetch-Site": "same-origin"},
        )
        return answer.status_code

    assert [tell(newer), tell(newer)] == [403, 403]
    assert not redis.exists(f"views:total:site.post:{post.pk}")
    assert "The token of a page of layout 2 is refused" in one_warning(caplog)
    assert tell(own) == 200
    other = shown.token_of(f"/other{name}", ())
    assert newer_tokens(lambda: shown.page_of(other)) is None


@pytest.mark.needs_parts("live")
def test_a_newer_name_of_live_dots_is_refused(
    newer_tokens: Callable[[Any], str], caplog: pytest.LogCaptureFixture
) -> None:
    from readtrack.live import dots as live_dots

    dots = live_dots.dots_of([Placeholder("dot", "site.category:1")])
    name = newer_tokens(lambda: live_dots.name_of(dots))
    assert live_dots.parse(name) is None
    assert "A name of live dots of layout 2" in one_warning(caplog)
    assert live_dots.parse(live_dots.name_of(dots)) == dots


@pytest.mark.needs_parts("script")
def test_a_newer_outbound_link_leads_nowhere(
    post: Post, newer_tokens: Callable[[Any], str], caplog: pytest.LogCaptureFixture
) -> None:
    from readtrack.script.outbound import outbound_url

    link = newer_tokens(lambda: outbound_url(post, "https://example.com/"))
    assert factories.browser().get(link).status_code == 404
    assert "A link of outbound_url of layout 2" in caplog.text


@pytest.mark.needs_parts("script")
@pytest.mark.parametrize("content", [1, None, {}, [], "", [[1]], {"1": 2}, [True, "x"]])
def test_a_signed_token_of_any_other_shape_is_refused(content: Any) -> None:
    from readtrack.script import shown

    token = signing.dumps(content, salt=keys.salt("page"))
    assert shown.page_of(token) is None
    link = signing.Signer(salt=keys.salt("outbound")).sign_object(content)
    assert factories.browser().get(f"/readtrack/out/{link}/").status_code == 404


def test_a_placeholder_of_a_newer_kind_is_removed_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    placeholders._warn_of_kind.cache_clear()  # type: ignore[attr-defined]
    newer = str(Placeholder("badge", "site.post:1|more", 3, "de")).encode()
    for _ in range(2):
        assert filled(b"<p>" + newer + b"</p>", lambda: None) == b"<p></p>"
    assert "of the kind badge" in one_warning(caplog)


def test_a_placeholder_of_a_newer_layout_is_removed_as_one_of_another_site(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(layouts, "PLACEHOLDER", "placeholder2")
        text = str(Placeholder(COUNT, "site.post:1", 5)).encode()
    assert placeholders_in(text) == {}
    assert filled(b"<p>" + text + b"</p>", lambda: None) == b"<p></p>"


@pytest.mark.usefixtures("explained")
def test_a_visitor_with_a_cookie_of_a_newer_layout_is_a_new_one(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = factories.browser()
    with monkeypatch.context() as newer:
        newer.setattr(layouts, "COOKIE", "cookie2")
        visitors._signing_keys.cache_clear()  # type: ignore[attr-defined]
        browser.get(f"/posts/{post.pk}/")
    visitors._signing_keys.cache_clear()  # type: ignore[attr-defined]
    before = browser.cookies["anon_id"].value
    response = browser.get(f"/posts/{post.pk}/")
    assert response.status_code == 200
    assert browser.cookies["anon_id"].value != before
