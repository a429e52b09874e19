"""Every kind of key, model and database gives the same results."""

from contextlib import closing
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, connections
from django.db.backends.sqlite3.base import DatabaseWrapper
from django.db.models import Model
from django.test.utils import override_settings
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from redis import Redis

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.models import Archive, SubjectCount
from readtrack.sql import archive, databases, raising, row_counts
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import subject_of
from tests.site.models import Page, Post
from tests.support import factories
from tests.support.counts import view_times as view
from tests.support.depth import some

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "lite"])


class Lite:
    """Keeps all models in SQLite."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        return "lite"

    db_for_write = db_for_read


class Apart:
    """Keeps the site's rows in one database, and the app's in the other."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        return "lite" if model._meta.app_label == "readtrack" else "default"

    db_for_write = db_for_read


PLACES: dict[str, list[str]] = {
    "default": [],
    "lite": ["tests.sql.test_databases.Lite"],
    "apart": ["tests.sql.test_databases.Apart"],
}
ROUTERS = pytest.mark.parametrize("router", PLACES.values(), ids=PLACES)


@override_settings(DATABASE_ROUTERS=["tests.sql.test_databases.Lite"])
def test_a_transaction_of_sqlite_begins_with_its_write(django_assert_num_queries: Any) -> None:
    post = factories.post()
    with django_assert_num_queries(4, using="lite") as queries:
        raising.write(Post, {post.pk: RowCounts(1, 1)})
    statements = [query["sql"].removeprefix("1 times: ").split()[0] for query in queries]
    assert statements == ["SELECT", "BEGIN", "UPDATE", "COMMIT"]


@pytest.mark.parametrize(
    ("kind", "place"),
    some(
        [
            *product(factories.KINDS, ["default"]),
            *product(["whole number", "UUID", "text", "another's key, another column"], ["lite"]),
            *product(["whole number", "text"], ["apart"]),
        ],
        deep=product(factories.KINDS, PLACES),
    ),
)
def test_every_kind_is_written_settled_lifted_and_reset(
    kind: str, place: str, redis: Redis
) -> None:
    with override_settings(DATABASE_ROUTERS=PLACES[place]):
        obj = factories.KINDS[kind]()

        def stored() -> tuple[int, int]:
            obj.refresh_from_db()
            return obj.view_count, obj.visitor_count

        view(obj, 3)
        flush()
        assert stored() == (3, 3)
        redis.flushdb()
        view(obj, 2)
        flush(only_changed=True)
        assert stored()[0] == 5
        redis.set(f"views:total:{subject_of(obj)}", 1)
        assert flush().lifted == 1
        assert redis.get(f"views:total:{subject_of(obj)}") == "5"
        tracker.reset_views(obj)
        assert stored() == (0, 0)


@pytest.mark.needs_parts("numbers")
@ROUTERS
def test_the_apps_own_rows_are_upserts(router: list[str]) -> None:
    from readtrack.numbers.models import Breakdown, History
    from readtrack.numbers.sql import history

    with override_settings(DATABASE_ROUTERS=router):
        for views in (5, 3, 7):
            history.store({"a": RowCounts(views, views), "b": RowCounts(1, 1)}, hour=1)
        assert list(
            History.objects.order_by("subject").values_list("subject", "views", "visitors")
        ) == [
            ("a", 7, 7),
            ("b", 1, 1),
        ]
        rows = [("a", views, 1, bytes([views]), 1) for views in (2, 9)]
        for row in [*rows, *rows]:
            databases.upsert(
                Archive, ("subject",), ("views", "visitors", "sketch", "hour"), rows=[row]
            )
        assert archive.sketches(["a", "b"]) == {"a": b"\x09"}
        databases.upsert(Breakdown, ("subject", "kind", "field"), ("count",), rows=[])
        assert not Breakdown.objects.exists()


@pytest.mark.needs_parts("numbers")
@ROUTERS
def test_what_is_added_to_a_row_adds_up(router: list[str]) -> None:
    from readtrack.numbers.models import Breakdown

    def add(*rows: tuple[str, str, str, int]) -> None:
        databases.add(Breakdown, ("subject", "kind", "field"), "count", rows=rows)

    with override_settings(DATABASE_ROUTERS=router):
        add(("a", "funnel", "view", 2), ("a", "funnel", "click", 1))
        add(("b", "funnel", "view", 5), ("a", "funnel", "view", 3))
        add()
        rows = Breakdown.objects.order_by("subject", "field").values_list(
            "subject", "field", "count"
        )
        assert list(rows) == [("a", "click", 1), ("a", "view", 5), ("b", "view", 5)]


@ROUTERS
def test_rows_that_are_missing_or_ahead_are_told(router: list[str]) -> None:
    with override_settings(DATABASE_ROUTERS=router):
        low, high = factories.post(), factories.post()
        Post.objects.filter(pk=high.pk).update(view_count=9)
        written = raising.write(
            Post, {low.pk: RowCounts(2, 1), high.pk: RowCounts(5, 0), 10**9: RowCounts(1, 1)}
        )
        assert (list(written.raised), written.ahead, list(written.missing)) == (
            [low.pk],
            [high.pk],
            [10**9],
        )
        assert raising.write(Post, {high.pk: RowCounts(5, 3)}).ahead == [high.pk]


@pytest.mark.parametrize("failures", [1, 3])
def test_a_lost_conflict_is_tried_three_times_more(failures: int) -> None:
    left = [OperationalError("database is locked")] * failures

    def write() -> int:
        if left:
            raise left.pop()
        return 1

    assert databases.retried(connection, write) == 1


@pytest.mark.parametrize(("error", "tries"), [((1213, "Deadlock"), 4), (("gone",), 1), ((), 1)])
def test_only_conflicts_are_worth_another_try(error: tuple[Any, ...], tries: int) -> None:
    tried: list[int] = []

    def write() -> None:
        tried.append(1)
        raise OperationalError(*error)

    with pytest.raises(OperationalError):
        databases.retried(connection, write)
    assert len(tried) == tries


def test_a_conflict_that_lasts_is_an_error() -> None:
    def write() -> None:
        raise OperationalError("database is locked")

    with pytest.raises(OperationalError):
        databases.retried(connection, write)


@pytest.mark.needs_parts("numbers")
def test_a_row_of_which_only_the_case_differs_breaks_nothing(redis: Redis) -> None:
    from readtrack.numbers.sql import history, period_steps

    Page.objects.create(slug="AbC", view_count=5)
    Archive.objects.create(subject="site.page:AbC", views=5, visitors=1, sketch=b"x", hour=1)
    SubjectCount.objects.create(subject="site.page:AbC", view_count=5, visitor_count=1)
    history.store({"site.page:AbC": RowCounts(5, 0)}, hour=9)
    asked = ["site.page:abc"]
    assert archive.archived(asked, "views") == {}
    assert row_counts.by_subject(asked) == {}
    assert period_steps.steps(asked, [8, 9], until=10) == {asked[0]: {}}
    tracker.record(factories.hit(*asked))
    flush()


def test_a_transaction_of_sqlite_that_reads_first_writes_after_another_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two connections to one file, one has read and the other one writes before it does."""
    file = {**connections["lite"].settings_dict, "NAME": str(tmp_path / "file")}
    own, other = (DatabaseWrapper(file, "lite") for _ in range(2))
    monkeypatch.setattr(connections._connections, "lite", own)  # type: ignore[attr-defined]
    with closing(own), closing(other):
        with own.cursor() as cursor:
            cursor.execute("PRAGMA journal_mode = wal")
            cursor.execute("CREATE TABLE counts (views integer)")
            cursor.execute("INSERT INTO counts VALUES (1)")
        with databases.site_transaction(own, is_writing=True), own.cursor() as cursor:
            cursor.execute("SELECT views FROM counts")
            cursor.fetchall()
            with other.cursor() as writing:
                writing.execute("PRAGMA busy_timeout = 1")
                with pytest.raises(OperationalError, match="locked"):
                    writing.execute("UPDATE counts SET views = 2")
            cursor.execute("UPDATE counts SET views = 3")
        assert vars(own)["transaction_mode"] is None


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL has arrays")
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))),
    numbers=st.lists(st.integers(-(2**63), 2**63 - 1)),
    days=st.lists(st.dates()),
    blobs=st.lists(st.binary()),
)
@hypothesis_settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=40)
def test_arrays_have_the_values_that_were_given(
    texts: list[str], numbers: list[int], days: list[date], blobs: list[bytes]
) -> None:
    values: list[Any] = [texts, [*texts, None], numbers, days, blobs]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT %s::text[], %s::text[], %s::bigint[], %s::date[], %s::bytea[]",
            [databases.array(items) for items in values],
        )
        *others, stored_blobs = cursor.fetchone()
    assert others == values[:4]
    assert [*map(bytes, stored_blobs)] == blobs
