"""Damaged and hostile tables and logs: an import refuses what cannot be counted, and goes on."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.test.utils import override_settings
from redis import Redis

from readtrack.flush.run import flush
from readtrack.imports.ledger import MOST_VIEWS, NAMED_REFUSALS, Report
from readtrack.imports.tables import take_hitcount
from readtrack.imports.weblog import Importer
from tests.imports import weblogs
from tests.imports.test_hitcount import NUMBER, Tables
from tests.site.models import Page, Post, Product
from tests.support import factories

DAMAGED = """CREATE TABLE hitcount_hit_count (id integer PRIMARY KEY AUTOINCREMENT, hits, modified,
    object_pk, content_type_id)"""
DAMAGED_HITS = """CREATE TABLE hitcount_hit (id integer PRIMARY KEY AUTOINCREMENT, created, ip, session,
    user_agent, hitcount_id, user_id)"""

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "lite"])


class AnyTables(Tables):
    """Tables in SQLite that hold any value in any column."""

    def create(self, kind: str = NUMBER) -> None:
        self._run(DAMAGED)
        self._run(DAMAGED_HITS)

    def hit_at(self, row: int, ip: Any, time: Any) -> None:
        sql = """INSERT INTO hitcount_hit (created, ip, session, user_agent, hitcount_id, user_id)
            VALUES (%s, %s, 'x', %s, %s, NULL)"""
        self._run(sql, time, ip, None, row)


@pytest.fixture
def tables() -> Iterator[AnyTables]:
    damaged = AnyTables("lite")
    damaged.create()
    yield damaged
    damaged.drop()


def take() -> Report:
    return take_hitcount(using="lite")


def views(post: Post) -> int:
    return int(Post.objects.values_list("view_count", flat=True).get(pk=post.pk))


@pytest.mark.parametrize(
    ("hits", "named"),
    [
        (2**63 - 1, "9223372036854775807"),
        (2**53, "9007199254740992"),
        (MOST_VIEWS + 1, "1000000000001"),
        (-1, "-1"),
        (-(2**63), "-9223372036854775808"),
        (None, "None"),
        ("many", "many"),
        ("7", "7"),
        (1.5, "1.5"),
        (1e300, "1e+300"),
        ("9" * 5000, "9" * 40),
        (b"\xff", "b'\\xff'"),
    ],
)
def test_a_row_whose_count_is_damaged_is_refused_by_name_and_the_import_goes_on(
    tables: AnyTables, hits: Any, named: str
) -> None:
    posts = [factories.post() for _ in range(3)]
    tables.count(Post, posts[0].pk, 3)
    row = tables.count(Post, posts[1].pk, hits)
    tables.count(Post, posts[2].pk, 4)
    report = take()
    assert (report.read, report.counted, report.skipped["refused"]) == (3, 7, 1)
    assert report.notes == [
        f"Row {row} of hitcount_hit_count is refused: its hits are no whole number from 0 to"
        f" 1,000,000,000,000: {named!r}"
    ]
    assert [views(post) for post in posts] == [3, 0, 4]


def test_the_highest_count_is_taken_to_the_last_digit(tables: AnyTables) -> None:
    post = factories.post()
    tables.count(Post, post.pk, MOST_VIEWS - 1)
    assert take() == Report(read=1, counted=MOST_VIEWS - 1)
    assert views(post) == MOST_VIEWS - 1


@pytest.mark.parametrize("rows_at_once", [1, 500])
def test_rows_of_one_object_that_add_up_too_high_are_refused_from_there_on(
    tables: AnyTables, monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    monkeypatch.setattr("readtrack.imports.tables.ROWS", rows_at_once)
    post, other = factories.post(), factories.post()
    half = MOST_VIEWS // 2
    for pk in (f"{post.pk}", f"0{post.pk}", f"00{post.pk}"):  # one key, in three spellings
        last = tables.count(Post, pk, half)
    tables.count(Post, other.pk, 1)
    report = take()
    assert (report.counted, report.skipped) == (2 * half + 1, Counter({"refused": 1}))
    assert report.notes == [
        f"Row {last} of hitcount_hit_count is refused: with its 500,000,000,000 hits"
        f" site.post:{post.pk} would have more than 1,000,000,000,000 views"
    ]
    flush()
    assert [views(post), views(other)] == [MOST_VIEWS, 1]


def test_views_that_only_redis_has_count_toward_the_highest_total(
    tables: AnyTables, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.imports.tables.flush", lambda: None)  # as if they came after it
    post, other = factories.post(), factories.post()
    redis.set(f"views:total:site.post:{post.pk}", 5)
    tables.count(Post, post.pk, MOST_VIEWS - 4)
    tables.count(Post, other.pk, 2)
    report = take()
    assert (report.counted, report.skipped["refused"], len(report.notes)) == (2, 1, 1)
    assert f"site.post:{post.pk}" in report.notes[0]
    assert int(redis.get(f"views:total:site.post:{post.pk}") or 0) == 5
    assert views(other) == 2


def test_a_table_full_of_damage_makes_a_short_report(tables: AnyTables) -> None:
    post = factories.post()
    for _ in range(NAMED_REFUSALS + 30):
        tables.count(Post, post.pk, -1)
    report = take()
    assert report.skipped["refused"] == NAMED_REFUSALS + 30
    assert len(report.notes) == NAMED_REFUSALS + 1


def test_the_command_says_which_row_was_refused(
    tables: AnyTables, capsys: pytest.CaptureFixture[str]
) -> None:
    row = tables.count(Post, factories.post().pk, 2**63 - 1)
    call_command("readtrack", "import", "--from", "hitcount", "--database", "lite")
    output = capsys.readouterr().out
    assert "1    refused (100%)" in output
    assert f"Row {row} of hitcount_hit_count is refused" in output


NO_KEYS = (
    None,
    "",
    "\0",
    "a\0b",
    "nonsense",
    2**63 - 1,
    -(2**63),
    float("inf"),
    -1.5,
    "9" * 5000,
    "1e999",
    b"\xff\xfe",
)


@pytest.mark.parametrize("model", [Post, Product, Page])
def test_a_key_that_no_object_can_have_is_no_object(tables: AnyTables, model: type[Any]) -> None:
    post = factories.post()
    for pk in NO_KEYS:
        tables.count(model, pk, 5)
    tables.count(Post, post.pk, 3)
    skipped = Counter({"no such object": len(NO_KEYS)})
    assert take() == Report(read=len(NO_KEYS) + 1, counted=3, skipped=skipped)
    assert views(post) == 3


@pytest.mark.parametrize("content_type", [None, "text", 2**63 - 1, -1, 1.5, b"\0"])
def test_a_content_type_that_is_no_number_is_not_tracked(
    tables: AnyTables, content_type: Any
) -> None:
    post = factories.post()
    tables.row(content_type, 1, 5)
    tables.count(Post, post.pk, 3)
    assert take() == Report(read=2, counted=3, skipped=Counter({"not tracked: ?": 1}))


@pytest.mark.parametrize(
    "time",
    [
        None,
        "",
        "garbage",
        "2026-13-45 00:00:00",
        "9999-12-31 23:59:59",
        "9999-12-31 23:59:59-14:00",
        "0001-01-01 00:00:00",
        "0001-01-01 00:00:00+14:00",
        "infinity",
        2**63 - 1,
        1e300,
    ],
)
def test_a_visitor_with_an_impossible_time_is_left_out_and_the_views_count(
    tables: AnyTables, time: Any
) -> None:
    post = factories.post()
    row = tables.count(Post, post.pk, 3)
    tables.hit_at(row, "192.0.2.1", time)
    tables.hit_at(row, None, "2026-01-01 00:00:00")
    report = take()
    assert (report.counted, report.skipped) == (3, Counter({"visitor without a time": 1}))
    post.refresh_from_db()
    assert (post.view_count, post.visitor_count) == (3, 1)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL has such times")
@pytest.mark.parametrize("time", ["infinity", "-infinity", "4713-01-01 BC", "294276-12-31"])
def test_a_time_that_only_postgresql_holds_is_left_out(time: str) -> None:
    tables = Tables()
    tables.create()
    try:
        post = factories.post()
        row = tables.count(Post, post.pk, 3)
        tables.hit(row, "192.0.2.1")
        tables.hit(row, "192.0.2.2")
        with connections["default"].cursor() as cursor:
            cursor.execute("UPDATE hitcount_hit SET created = %s WHERE ip = '192.0.2.2'", [time])
        assert take_hitcount().skipped == Counter({"visitor without a time": 1})
    finally:
        tables.drop()
    post.refresh_from_db()
    assert (post.view_count, post.visitor_count) == (3, 1)


@pytest.mark.parametrize("total", [2**63 - 1, MOST_VIEWS])
def test_lines_of_an_object_whose_count_is_too_high_are_refused_and_the_log_goes_on(
    tmp_path: Path, total: int
) -> None:
    full, post = factories.post(view_count=total), factories.post()
    addresses = [f"192.0.2.{number}" for number in range(3)]
    lines = [weblogs.line(f"/posts/{full.pk}/", address=address) for address in addresses]
    path = weblogs.write(tmp_path / "a.log", [*lines, weblogs.line(f"/posts/{post.pk}/")])
    report = Importer().run([path])
    assert (report.counted, report.skipped["refused"]) == (1, 3)
    assert report.notes == [
        f"{path}: 3 views of site.post:{full.pk} refused, because its count is no number below"
        " 1,000,000,000,000."
    ]
    assert [views(full), views(post)] == [total, 1]
    assert Importer().run([path]).counted == 0
    flush()
    assert [views(full), views(post)] == [total, 1]


@pytest.mark.parametrize("text", ["many", "9223372036854775807"])
def test_a_total_in_redis_that_cannot_grow_does_not_stop_the_log(
    tmp_path: Path, redis: Redis, text: str
) -> None:
    broken, post = factories.post(), factories.post()
    redis.set(f"views:total:site.post:{broken.pk}", text)
    paths = [f"/posts/{pk}/" for pk in (broken.pk, post.pk)]
    path = weblogs.write(tmp_path / "a.log", map(weblogs.line, paths))
    report = Importer().run([path])
    assert (report.counted, report.skipped["refused"]) == (1, 1)
    assert views(post) == 1


@pytest.mark.parametrize(
    "time",
    [
        "01/Jan/0001:00:00:00 +1400",
        "31/Dec/9999:23:59:59 -1400",
        "01/Jan/1969:00:00:00 +0000",
        "31/Feb/2026:00:00:00 +0000",
        "01/Jan/2026:00:00:00 +9999",
    ],
)
def test_a_line_with_an_impossible_time_is_malformed(tmp_path: Path, time: str) -> None:
    post = factories.post()
    good = weblogs.line(f"/posts/{post.pk}/")
    bad = good.replace(f"{weblogs.START:%d/%b/%Y:%H:%M:%S %z}", time)
    report = Importer().run([weblogs.write(tmp_path / "a.log", [bad, good])])
    assert (report.counted, report.skipped["malformed"]) == (1, 1)


def test_a_path_that_overflows_in_a_sites_function_is_no_object(tmp_path: Path) -> None:
    def of_second(path: str, pk: int) -> Post:
        return Post.objects.get(pk=datetime.fromtimestamp(pk, timezone.utc).year)

    post = factories.post(pk=1970)
    paths = [f"/posts/{10**30}/function/", "/posts/7/function/"]
    path = weblogs.write(tmp_path / "a.log", map(weblogs.line, paths))
    with override_settings(
        READTRACK={"IMPORTS": {"views": {"tests.site.views.post_page": of_second}}}
    ):
        report = Importer().run([path])
    assert (report.counted, report.skipped["no such object"]) == (1, 1)
    assert views(post) == 1
