"""One bad row costs a flush that row, one bad model that model. Both are named."""

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, connections
from django.db.models import BinaryField, F
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, subjects, tracker
from readtrack.flush import run
from readtrack.flush.run import flush
from readtrack.models import Archive, FlushRun
from readtrack.sql import databases
from readtrack.sql.faults import SAMPLE, Faults
from readtrack.store import keys
from readtrack.subjects import subject_of
from tests.doctor.conftest import found
from tests.site.models import Page, Post, Product
from tests.support import factories
from tests.support.counts import live, stored, view, view_times
from tests.support.depth import some
from tests.support.faulty import counted_statements, missing, refused

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "lite"])
MICROSECOND = timedelta(microseconds=1)
postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="alters a column")


def rows_of_many_models() -> list[Any]:
    return [factories.KINDS[kind]() for kind in ("UUID", "text", "tracked child")]


def updates_of(model: Any, statements: list[str]) -> list[str]:
    """Returns those of the statements that raise counts in the model's table."""
    table = model._meta.db_table
    return [
        sql for sql in statements if table in sql and sql.lstrip().startswith(("UPDATE", "WITH"))
    ]


def is_it(row: Any) -> str:
    return f"NEW.id = {row.pk}"


def test_a_row_that_the_database_refuses_costs_only_itself(database: str) -> None:
    bad, *good = [factories.post() for _ in range(30)]
    others = rows_of_many_models()
    flush()
    view(bad, *good, *others)
    with refused(Post, is_it(bad), alias=database):
        record = flush(only_changed=True)
        assert (record.failed, record.error, record.written) == (1, "", 32)
        assert record.faults.startswith(f"{subject_of(bad)}: ")
        assert "no more" in record.faults
        assert stored(bad) == 0
        assert {stored(row) for row in (*good, *others)} == {1}
        assert flush(only_changed=True).failed == 1  # what changed stays changed until it is stored
    assert (flush(only_changed=True).failed, stored(bad)) == (0, 1)


def test_a_changed_row_is_tried_again_however_old_its_change_is() -> None:
    post = factories.post()
    flush()
    ten_minutes = timedelta(minutes=10)
    FlushRun.objects.update(flushed_until=F("flushed_until") - 2 * ten_minutes // MICROSECOND)
    view_times(post, at=buckets.now() - ten_minutes)
    with refused(Post, is_it(post)):
        assert flush(only_changed=True).failed == 1
    assert flush(only_changed=True).written == 1


@pytest.mark.parametrize("share", some([2], deep=[3, 4]))
def test_many_bad_rows_among_good_ones_cost_only_themselves(share: int) -> None:
    posts = [factories.post() for _ in range(60)]
    flush()
    view(*posts)
    bad = [post for post in posts if post.pk % share == 0]
    with refused(Post, f"NEW.id % {share} = 0"):
        record = flush()
    assert record.failed == len(bad)
    assert f"site.post, {len(bad)} rows, such as {min(map(subject_of, bad))}, " in record.faults
    assert [stored(post) for post in posts] == [int(post not in bad) for post in posts]


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize("is_new", some([True, False], deep=[]))
def test_a_model_whose_table_is_gone_costs_only_itself(
    database: str, redis: Redis, *, is_new: bool
) -> None:
    from readtrack.numbers.models import Popular

    pages = [Page.objects.create(slug=f"page-{number}") for number in range(20)]
    others = [factories.post(), factories.KINDS["UUID"]()]
    if not is_new:  # then its counters are settled before the table goes
        view(*pages)
        flush()
    view(*pages, *others)
    Popular.objects.all().delete()
    with missing(Page, alias=database):
        for _ in range(2):
            record = flush()
            assert record.error == ""
            assert record.failed >= len(pages)
            assert "site_page" in record.faults
        assert [stored(row) for row in others] == [1, 1]
        assert Popular.objects.filter(subject=subject_of(others[0])).exists()
    record = flush()
    assert (record.failed, {stored(page) for page in pages}) == (0, {2 - is_new})
    assert live(redis, pages[0]) == 2 - is_new


def test_a_restored_redis_joins_although_a_table_is_gone(redis: Redis) -> None:
    page, post = Page.objects.create(slug="a"), factories.post()
    view(page, post)
    names = keys.unsettled(keys.tag(subject_of(page)))
    snapshot = redis.dump(names) if connection.vendor != "mysql" else None
    flush()
    view(page, post)
    if snapshot:  # both are on the list again, as after a restart from a snapshot
        redis.restore(names, 0, snapshot, replace=True)
    with missing(Page):
        flush()
        assert stored(post) == 2
    flush()
    assert stored(page) == 2


def test_a_model_that_fails_as_a_whole_costs_few_statements() -> None:
    posts = [factories.post() for _ in range(300)]
    flush()
    view(*posts)
    with refused(Post, "1 = 1"), counted_statements() as statements:
        record = flush(only_changed=True)
    assert record.failed == len(posts)
    assert len(updates_of(Post, statements)) == SAMPLE + 1


def test_a_healthy_flush_sends_each_portion_once() -> None:
    posts = [factories.post() for _ in range(30)]
    flush()
    view(*posts)
    with counted_statements() as statements:
        assert flush().written == 30
    assert len(updates_of(Post, statements)) == 1


@postgresql
def test_a_count_at_the_end_of_a_column_of_the_sites_own_costs_only_itself() -> None:
    full, post = factories.post(view_count=32_767), factories.post()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE site_post ALTER COLUMN view_count TYPE smallint")
        try:
            view(full, post)
            record = flush()
        finally:
            cursor.execute("ALTER TABLE site_post ALTER COLUMN view_count TYPE bigint")
    assert (stored(full), stored(post)) == (32_767, 1)
    assert record.faults == f"{subject_of(full)}: DataError: smallint out of range"
    assert flush().failed == 0
    assert stored(full) == 32_768


def test_a_key_that_its_field_cannot_read_is_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    product, post = factories.KINDS["UUID"](), factories.post()
    view(product, post)

    def refuse(value: object) -> None:
        raise TypeError("no such key")

    monkeypatch.setattr(Product._meta.pk, "to_python", refuse)
    assert flush().orphans == 1
    assert stored(post) == 1


@pytest.mark.parametrize("key", [b"\x00\xff", memoryview(b"a:%"), b""], ids=["a", "b", "c"])
def test_a_binary_key_is_read_back_from_its_subject(
    key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Page._meta, "pk", BinaryField())
    subject = subjects.subject_of_row(Page, key)
    assert subject.isascii()
    assert subjects.parse_subject(subject) == (Page, bytes(key))


def test_what_a_full_flush_could_not_store_is_logged_and_an_error_of_the_doctor(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad, post = factories.post(), factories.post()
    flush()
    view(bad, post)
    with refused(Post, is_it(bad)), caplog.at_level(logging.ERROR, "readtrack"):
        flush()
        assert f"could not store 1 rows or models:\n{subject_of(bad)}: " in caplog.text
        view(post)
        findings = [finding for finding in found("flushes") if finding.level == "error"]
        assert [finding.message.split(": ")[:2] for finding in findings] == [
            ["Not stored", subject_of(bad)]
        ]
    flush(only_changed=True)
    flush()
    assert [finding.level for finding in found("flushes")] == ["ok"]


def test_the_status_of_the_command_says_that_a_row_was_not_stored(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bad, post = factories.post(), factories.post()
    flush()
    view(bad, post)
    with refused(Post, is_it(bad)), pytest.raises(CommandError, match=subject_of(bad)) as error:
        call_command("readtrack", "flush")
    assert error.value.returncode == 1
    assert "        1 rows or tables not stored" in capsys.readouterr().out
    assert stored(post) == 1
    call_command("readtrack", "flush")


@pytest.mark.needs_parts("cluster")
def test_keys_do_not_move_to_other_partitions_before_every_row_is_written(
    settings: Settings, redis: Redis
) -> None:
    if redis.keys("*{*") or settings.CACHES["default"]["LOCATION"].__class__ is list:
        pytest.skip("begins without partitions")
    settings.READTRACK = {"CLUSTER": {"partitions": 1}}
    post = factories.post()
    flush()
    view(post)
    settings.READTRACK = {"CLUSTER": {"partitions": 16}}
    with refused(Post, "1 = 1"), pytest.raises(CommandError, match=subject_of(post)):
        call_command("readtrack", "repartition", verbosity=0)


def test_a_bad_row_is_not_archived_as_if_it_stored_what_redis_holds() -> None:
    bad, post = factories.post(), factories.post()
    flush()
    view(bad, post)
    with refused(Post, is_it(bad)):
        flush(must_archive=True)
    assert list(Archive.objects.values_list("subject", flat=True)) == [subject_of(post)]


def test_a_reset_of_a_bad_row_does_not_keep_other_resets_from_being_finished(redis: Redis) -> None:
    bad, post = factories.post(), factories.post()
    view(bad, post)
    flush()
    tracker.reset_views(bad)
    tracker.reset_views(post)
    Post.objects.update(view_count=1)  # as a flush does that read the count before the reset
    with refused(Post, is_it(bad)):
        assert flush().failed == 1
        assert [stored(bad), stored(post)] == [1, 0]
    flush()
    assert stored(bad) == 0


def test_a_message_with_characters_that_the_database_lacks_is_stored_without_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise RuntimeError("gone \N{PILE OF POO}")

    save = FlushRun.save

    def refuse(self: FlushRun, *args: Any, **options: Any) -> None:
        self.error.encode("latin-1")  # raises as a driver does
        save(self, *args, **options)

    monkeypatch.setattr(run, "_flush", fail)
    monkeypatch.setattr(FlushRun, "save", refuse)
    with pytest.raises(RuntimeError):
        flush()
    assert FlushRun.objects.get().error == r"RuntimeError: gone \U0001f4a9"


def test_faults_end_once_the_apps_own_database_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(names: Any) -> None:
        raise OperationalError("server closed the connection")

    monkeypatch.setattr(connections["default"], "is_usable", lambda: False)
    with pytest.raises(OperationalError):
        Faults().store(["site.post:1"], write)


def test_a_model_whose_own_database_is_down_is_given_up_at_once(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    tries: list[Any] = []

    def write(names: Any) -> None:
        tries.append(names)
        if any(name.startswith("site.post:") for name in names):
            raise OperationalError("server closed the connection")

    monkeypatch.setattr(databases, "is_down", lambda connection: connection.alias == "lite")
    settings.DATABASE_ROUTERS = ["tests.flush.test_faults.Apart"]
    noted = Faults()
    posts = [f"site.post:{number}" for number in range(100)]
    assert noted.store([*posts, "site.page:a"], write) == set(posts)
    assert noted.store([*posts, "site.page:a"], write) == set(posts)
    assert len(tries) == 4
    assert noted.attempt("site.post", lambda: 1, 0) == 0
    assert noted.failed == {*posts, "site.post"}


@pytest.mark.parametrize("error", [(1205, "Lock wait timeout"), ("database is locked",)])
def test_a_lock_that_was_waited_for_is_not_waited_for_again(error: tuple[Any, ...]) -> None:
    tries: list[Any] = []

    def write(names: Any) -> None:
        tries.append(names)
        raise OperationalError(*error)

    connection.ensure_connection()
    posts = [f"site.post:{number}" for number in range(100)]
    noted = Faults()
    for _ in range(2):
        assert noted.store(posts, write) == set(posts)
    assert noted.attempt("site.post", lambda: 1, 0) == 0
    assert (len(tries), noted.locked, noted.failed) == (1, set(posts), set())


class Apart:
    """Keeps the site's rows in another database than the app's."""

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "default" if model._meta.app_label == "readtrack" else "lite"

    db_for_read = db_for_write
