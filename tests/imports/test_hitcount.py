"""The import of django-hitcount's tables, which the tests create as its migrations do."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connections, models
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.flush.run import flush
from readtrack.imports.ledger import ImportRefusedError, Report
from readtrack.imports.line import visitor_of
from readtrack.imports.models import Import
from readtrack.imports.tables import take_hitcount
from tests.site.models import Category, Post, Product
from tests.support import factories
from tests.support.factories import BROWSER

pytestmark = pytest.mark.django_db(transaction=True)

NUMBER = "integer NOT NULL CHECK (object_pk >= 0)"
COUNTS = """CREATE TABLE hitcount_hit_count (id serial PRIMARY KEY, hits integer NOT NULL,
    modified timestamptz NOT NULL, object_pk {}, content_type_id integer NOT NULL)"""
HITS = """CREATE TABLE hitcount_hit (id serial PRIMARY KEY, created timestamptz NOT NULL, ip varchar(40) NOT NULL,
    session varchar(40) NOT NULL, user_agent varchar(255) NOT NULL, hitcount_id integer NOT NULL, user_id integer)"""
NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


class Tables:
    """The tables of django-hitcount."""

    def __init__(self, using: str = "default") -> None:
        self.connection = connections[using]

    def create(self, kind: str = NUMBER) -> None:
        self._run(COUNTS.format(kind))
        self._run(HITS)

    def count(self, model: type[models.Model], pk: Any, hits: int) -> int:
        kind = ContentType.objects.get_for_model(model).pk
        return self.row(kind, pk, hits)

    def row(self, kind: int, pk: Any, hits: int) -> int:
        sql = """INSERT INTO hitcount_hit_count (hits, modified, object_pk, content_type_id)
            VALUES (%s, %s, %s, %s) RETURNING id"""
        return int(self._run(sql, hits, NOW, pk, kind))

    def hit(self, row: int, ip: str, *, user: int | None = None) -> None:
        sql = """INSERT INTO hitcount_hit (created, ip, session, user_agent, hitcount_id, user_id)
            VALUES (%s, %s, 'x', %s, %s, %s) RETURNING id"""
        self._run(sql, NOW, ip, BROWSER, row, user)

    def drop(self) -> None:
        self._run("DROP TABLE IF EXISTS hitcount_hit_count")
        self._run("DROP TABLE IF EXISTS hitcount_hit")

    def _run(self, sql: str, *values: Any) -> Any:
        if self.connection.vendor == "sqlite":
            sql = sql.replace("serial PRIMARY KEY", "integer PRIMARY KEY AUTOINCREMENT")
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return cursor.fetchone()[0] if cursor.description else None


@pytest.fixture
def tables() -> Iterator[Tables]:
    found = Tables()
    yield found
    found.drop()


def stored(post: Post) -> tuple[int, int]:
    row = Post.objects.get(pk=post.pk)
    return row.view_count, row.visitor_count


def test_counts_and_visitors_are_added_once(tables: Tables) -> None:
    tables.create()
    post, user = factories.post(view_count=5), factories.user()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    row = tables.count(Post, post.pk, 100)
    for ip, by in (
        ("192.0.2.1", None),
        ("192.0.2.1", None),
        ("192.0.2.2", None),
        ("192.0.2.3", user.pk),
        ("::1", user.pk),
    ):
        tables.hit(row, ip, user=by)
    assert take_hitcount() == Report(read=1, counted=100)
    assert stored(post) == (106, 4)
    assert take_hitcount() == Report(read=1, skipped=Counter({"imported before": 1}))
    flush()
    assert stored(post) == (106, 4)


def test_their_visitors_are_ours(tables: Tables, redis: Redis) -> None:
    tables.create()
    post = factories.post()
    tables.hit(tables.count(Post, post.pk, 1), "192.0.2.1")
    take_hitcount()
    assert (
        redis.pfadd(f"views:hll:site.post:{post.pk}", visitor_of("192.0.2.1", BROWSER, at=NOW).id)
        == 0
    )


def test_counts_of_unknown_objects_are_named_in_the_report(tables: Tables) -> None:
    tables.create()
    post = factories.post()
    tables.count(Post, post.pk, 3)
    tables.count(Post, 10**9, 7)
    tables.count(Category, 1, 7)
    tables.row(9999, 1, 7)
    tables.count(Post, factories.post().pk, 0)
    assert take_hitcount() == Report(
        read=5,
        counted=3,
        skipped=Counter(
            {"no such object": 1, "not tracked: site.Category": 1, "not tracked: ?": 1}
        ),
    )
    assert stored(post) == (3, 0)


def test_text_keys_are_taken_as_they_are(tables: Tables) -> None:
    tables.create("varchar(100) NOT NULL")
    product = Product.objects.create(name="x")
    tables.count(Product, str(product.pk), 3)
    tables.count(Product, "nonsense", 4)
    assert take_hitcount() == Report(read=2, counted=3, skipped=Counter({"no such object": 1}))
    assert reports.views([Product.objects.get()]) == {product: 3}


@pytest.mark.usefixtures("new_redis")
def test_a_dry_run_says_the_same_and_writes_nothing(tables: Tables, redis: Redis) -> None:
    tables.create()
    tables.hit(tables.count(Post, factories.post().pk, 3), "192.0.2.1")
    dry = take_hitcount(dry_run=True)
    assert (redis.keys(), Import.objects.count(), Post.objects.get().view_count) == ([], 0, 0)
    assert take_hitcount() == dry


def test_many_rows_are_taken_in_batches_and_later_ones_by_the_next_run(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.imports.tables.ROWS", 3)
    tables.create()
    posts = [factories.post() for _ in range(8)]
    done: list[int] = []
    for post in posts[:7]:
        tables.count(Post, post.pk, post.pk)
    take_hitcount(progress=done.append)
    assert done == [3, 3, 1]
    tables.count(Post, posts[7].pk, posts[7].pk)
    assert take_hitcount() == Report(
        read=8, counted=posts[7].pk, skipped=Counter({"imported before": 7})
    )
    assert [stored(post) for post in posts] == [(post.pk, 0) for post in posts]


@pytest.mark.django_db(transaction=True, databases=["default", "lite"])
def test_their_tables_may_be_in_another_database() -> None:
    post, tables = factories.post(), Tables("lite")
    tables.create()
    try:
        tables.hit(tables.count(Post, post.pk, 3), "192.0.2.1")
        assert take_hitcount(using="lite") == Report(read=1, counted=3)
    finally:
        tables.drop()
    assert stored(post) == (3, 1)


def test_without_their_tables_it_says_so() -> None:
    with pytest.raises(ImportRefusedError, match="hitcount_hit_count"):
        take_hitcount()


def test_their_times_are_local_without_use_tz(
    tables: Tables, settings: Settings, redis: Redis
) -> None:
    settings.USE_TZ, settings.TIME_ZONE = False, "America/New_York"  # where it is the day before
    settings.READTRACK = {"ANONYMOUS": "hash", "UNIQUE": "set"}
    tables.create()
    post = factories.post()
    tables.hit(tables.count(Post, post.pk, 2), "192.0.2.1")
    take_hitcount()
    assert redis.smembers(f"views:unique:site.post:{post.pk}") == {
        visitor_of("192.0.2.1", BROWSER, at=NOW).id
    }


def test_the_groups_that_they_left_out_are_named_with_the_setting_for_them(
    tables: Tables, settings: Settings
) -> None:
    tables.create()
    settings.HITCOUNT_EXCLUDE_USER_GROUP = ("editors", "authors")
    [note] = take_hitcount().notes
    assert note.endswith("READTRACK['EXCLUDE'] = {'groups': ['authors', 'editors']}.")
    settings.READTRACK = {"EXCLUDE": {"groups": ["authors", "editors", "others"]}}
    assert take_hitcount().notes == []
