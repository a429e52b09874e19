"""Imports that are disturbed: by a kill at any step, by another import, by a loss of Redis."""

import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.flush.settling import settle
from readtrack.imports import ledger
from readtrack.imports.ledger import Batch, ImportRefusedError, Report
from readtrack.imports.models import Import
from readtrack.imports.weblog import Importer
from readtrack.numbers.reports import series
from readtrack.sql.epochs import SqlEpoch
from readtrack.sql.faults import Faults
from readtrack.store import keys, scripts
from tests.imports import weblogs
from tests.imports.conftest import Victim
from tests.site.models import Post
from tests.support import factories
from tests.support.depth import STRIDE
from tests.support.interference import dump, restore

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def post() -> Post:
    return factories.post()


@pytest.fixture
def record() -> Import:
    return Import.objects.create(source="test", name="access.log")


def batch(post: Post, views: int = 1) -> Batch:
    found = Batch()
    for number in range(views):
        found.add(f"site.post:{post.pk}", visitor=f"visitor{number}", at=weblogs.START)
    return found


def views(post: Post) -> int:
    flush()
    return int(Post.objects.values_list("view_count", flat=True).get(pk=post.pk))


def begin(record: Import, post: Post, *, after: int) -> None:
    """Starts an import, up to the point where it adds something."""
    subject = f"site.post:{post.pk}"
    assert scripts.run_all(
        *ledger.intend(record.source, [subject], before=record.position, after=after)
    ) == [1]
    part = ledger.part_of(batch(post), at=weblogs.START)
    Import.objects.filter(pk=record.pk).update(intended=after, part=part.text)
    record.refresh_from_db()


def apply(record: Import, added: Batch, *, after: int) -> bool:
    totals = ledger.part_of(Batch(views=added.views), at=weblogs.START)
    (call,) = ledger.apply(record.source, totals, before=record.position, after=after)
    if (answer := scripts.run(call)) == ledger.UNSETTLED:
        settle(SqlEpoch(), Faults())
        answer = scripts.run(call)
    return answer == ledger.APPLIED


def test_a_batch_is_in_sql_once_it_is_added(record: Import, post: Post) -> None:
    ledger.add(record, batch(post, 3), position=100)
    row = Post.objects.get()
    assert (row.view_count, row.visitor_count) == (3, 3)
    assert Import.objects.values_list("position", "intended").get() == (100, 100)
    assert str(record) == "access.log"


def test_sql_is_the_base_of_a_subject_that_redis_lacks(record: Import) -> None:
    post = factories.post(view_count=1000)
    ledger.add(record, batch(post), position=100)
    assert Post.objects.get().view_count == 1001


@pytest.mark.usefixtures("new_redis")
def test_an_empty_batch_only_moves_the_position(record: Import, redis: Redis) -> None:
    ledger.add(record, Batch(), position=100)
    assert redis.keys() == []
    assert ledger.resume(Import.objects.get()) == (100, 0)


def test_redis_lost_after_an_import_takes_nothing_along(
    record: Import, post: Post, redis: Redis
) -> None:
    ledger.add(record, batch(post), position=100)
    redis.flushdb()
    assert ledger.resume(Import.objects.get()) == (100, 0)
    ledger.add(record, batch(post), position=200)
    assert views(post) == 2


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_part_that_was_announced_only_is_added_again(
    record: Import, post: Post, *, dry_run: bool
) -> None:
    begin(record, post, after=100)
    assert ledger.resume(record, dry_run=dry_run) == (0, 0)
    ledger.add(record, batch(post), position=120)
    assert views(post) == 1


def test_a_part_that_was_added_is_carried_and_not_added_again(record: Import, post: Post) -> None:
    begin(record, post, after=100)
    assert apply(record, batch(post), after=100)
    assert ledger.resume(record, dry_run=True) == (100, 0)
    assert Import.objects.get().position == 0
    assert ledger.resume(record) == (100, 0)
    assert Post.objects.get().view_count == 1
    assert Import.objects.get().position == 100


def test_where_the_source_ends_before_the_part_nothing_is_noted(record: Import, post: Post) -> None:
    begin(record, post, after=100)
    assert ledger.resume(record, digest=lambda position: None) == (0, 0)
    apply(record, batch(post), after=100)
    assert ledger.resume(record, digest=lambda position: None) == (100, 0)
    assert Import.objects.get().position == 0


@pytest.mark.parametrize("is_flushed", [True, False])
@pytest.mark.parametrize("is_applied", [True, False])
def test_redis_lost_while_a_part_is_open_never_counts_it_twice(
    record: Import, post: Post, redis: Redis, *, is_flushed: bool, is_applied: bool
) -> None:
    begin(record, post, after=100)
    if is_applied:
        apply(record, batch(post), after=100)
    if is_flushed:
        flush()
    redis.flushdb()
    assert ledger.resume(record, digest=lambda position: None) == (100, 100)
    assert ledger.resume(record, dry_run=True) == (100, 100)
    assert Import.objects.get().position == 0
    assert ledger.resume(record) == (100, 100)
    assert ledger.resume(Import.objects.get()) == (100, 0)
    assert views(post) == (is_flushed and is_applied)


def test_an_old_snapshot_of_redis_does_not_take_the_import_back(
    record: Import, post: Post, redis: Redis
) -> None:
    ledger.add(record, batch(post), position=100)
    snapshot = dump(redis)
    ledger.add(record, batch(post), position=200)
    flush()
    restore(redis, snapshot)
    flush()  # as every run begins with
    assert ledger.resume(Import.objects.get()) == (200, 0)
    ledger.add(record, batch(post), position=300)
    assert views(post) == 3


def test_a_batch_on_a_redis_restored_from_before_a_flush_adds_no_base_twice(
    post: Post, redis: Redis
) -> None:
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    snapshot = dump(redis)  # its mark says that SQL's base is missing
    flush()
    restore(redis, snapshot)
    other = factories.post()
    ledger.add(Import.objects.create(source="test"), batch(other), position=100)
    assert (views(post), views(other)) == (1, 1)


def test_of_two_imports_at_once_one_is_refused(record: Import, post: Post) -> None:
    other = Import.objects.get()
    ledger.add(record, batch(post), position=100)
    with pytest.raises(ImportRefusedError):
        ledger.add(other, batch(post), position=100)
    assert views(post) == 1


def test_what_another_import_has_added_cannot_be_announced_again(
    record: Import, post: Post
) -> None:
    other = Import.objects.get()
    begin(record, post, after=100)
    assert apply(record, batch(post), after=100)
    with pytest.raises(ImportRefusedError):  # SQL does not know yet, Redis does
        ledger.add(other, batch(post), position=100)
    assert ledger.resume(record) == (100, 0)
    assert views(post) == 1


def test_an_import_overtaken_after_its_announcement_is_refused(
    record: Import, post: Post, redis: Redis
) -> None:
    other = Import.objects.get()
    ledger.add(record, batch(post), position=100)
    redis.delete("import:test")
    with pytest.raises(ImportRefusedError):  # Redis does not know any more, SQL does
        ledger.add(other, batch(post), position=100)
    assert views(post) == 1


def test_a_part_sent_twice_is_added_once(record: Import, post: Post) -> None:
    begin(record, post, after=100)
    assert apply(record, batch(post), after=100)
    assert apply(record, batch(post), after=100)
    assert views(post) == 1


def test_a_part_announced_to_another_redis_is_refused(
    record: Import, post: Post, redis: Redis
) -> None:
    begin(record, post, after=100)
    redis.flushdb()
    assert not apply(record, batch(post), after=100)
    for begun, done in ((100, 50), (90, 0)):
        redis.hset("import:test", mapping={"begun": begun, "done": done})
        assert not apply(record, batch(post), after=100)
    assert redis.keys() == ["import:test"]


def test_an_import_that_is_killed_at_every_step_counts_every_line_once(
    victim: Victim, tmp_path: Path
) -> None:
    posts = [factories.post(view_count=10).pk for _ in range(5)]
    path = weblogs.write(tmp_path / "access.log", weblogs.day(posts, lines=300))
    expected = Importer(dry_run=True).run([path])
    kills, step = 0, 1
    while (code := victim.run(path, step=step)) == -signal.SIGKILL:
        kills, step = kills + 1, step + STRIDE
    assert code == 0
    assert kills * STRIDE > 20
    assert expected.counted > 80
    assert sum(Post.objects.values_list("view_count", flat=True)) == expected.counted + 50
    assert Importer().run([path]) == Report(finished=1)
    flush()
    assert sum(Post.objects.values_list("view_count", flat=True)) == expected.counted + 50
    everything: list[Any] = [None, Post, *Post.objects.all()]
    charts = [
        series(of, since=weblogs.START, until=weblogs.START + timedelta(minutes=59))
        for of in everything
    ]
    site, model, *others = [chart[0].views for chart in charts]
    assert (site, model, sum(others)) == (expected.counted,) * 3
    assert Import.objects.get().part == ""


def test_the_key_of_an_import_is_a_row_of_the_table_of_keys() -> None:
    row, _ = keys.parse("import:hitcount.default")
    assert row
    assert row.pattern == "import:{source}"
