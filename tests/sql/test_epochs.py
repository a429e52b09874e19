"""Epochs: SQL follows the settlings of Redis, and notices a Redis that was restored."""

from typing import Any

import pytest
from redis import Redis

from readtrack import reports, tracker
from readtrack.flush import archiving, merging
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.models import KnownEpoch
from readtrack.sql.runs import SqlEpoch, known_epoch
from readtrack.store import counters, scripts
from readtrack.store.connection import server_time
from readtrack.store.counters import Epoch
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.interference import Dump, dump, restore

pytestmark = pytest.mark.django_db(databases=["default", "lite"])

BASE = 100  # what SQL held before Redis ever heard of it


@pytest.mark.usefixtures("database")
def test_sql_follows_only_from_where_it_is() -> None:
    epoch = SqlEpoch()
    assert epoch.number == 0
    assert epoch.advance(Epoch(10, 0))
    assert epoch.advance(Epoch(10, 0))
    assert epoch.advance(Epoch(20, 10))
    assert not epoch.advance(Epoch(30, 10))
    assert epoch.number == known_epoch() == 20
    assert str(KnownEpoch.objects.get()) == "20"


@pytest.mark.usefixtures("database")
def test_a_restored_redis_is_taken_into_the_line_only_when_none_of_its_old_marks_is_left(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "SLICE", 1)
    for _ in range(3):
        view(factories.post(view_count=BASE))
    snapshot = dump(redis)
    flush()
    restore(redis, snapshot)
    flush()
    assert stored() == [BASE + 1] * 3


@pytest.mark.usefixtures("database")
def test_a_flush_that_is_killed_before_it_tells_of_what_it_settled_leaves_no_other_base_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scripts, "SLICE", 1)
    for _ in range(3):
        view(factories.post(view_count=BASE))
    epoch = settle_and_die()
    assert SqlEpoch().advance(epoch)
    settle_and_die()  # the last mark is older than what SQL was told of
    flush()
    assert stored() == [BASE + 1] * 3


@pytest.mark.usefixtures("database")
def test_sql_is_told_of_an_epoch_before_it_stores_a_total_that_was_settled_in_it(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = factories.post(view_count=BASE)
    view(post)
    flush()
    snapshot: Dump = {}
    read = merging._live

    def be_late(*args: Any) -> Any:
        """Lets another flush settle, which is then killed, before this one reads."""
        monkeypatch.setattr(merging, "_live", read)
        redis.delete(f"views:total:{subject_of(post)}")
        view(post)
        snapshot.update(dump(redis))
        settle_and_die()
        return read(*args)

    monkeypatch.setattr(merging, "_live", be_late)
    flush()
    assert stored() == [BASE + 2]
    restore(redis, snapshot)
    flush()
    assert stored() == [BASE + 2]


@pytest.mark.usefixtures("database")
def test_sql_is_told_of_an_epoch_before_it_stores_a_hash_that_was_settled_in_it(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = factories.post()
    click(post, "a")
    flush()
    snapshot: Dump = {}
    keep = archiving.store_breakdowns

    def be_late_and_die(subjects: Any, epoch: SqlEpoch) -> None:
        redis.delete(f"funnel:{subject_of(post)}")
        click(post, "b")
        snapshot.update(dump(redis))
        settle_and_die()
        keep([subject_of(post)], epoch)
        raise ValueError("killed here")

    with monkeypatch.context() as patched:
        patched.setattr(archiving, "store_breakdowns", be_late_and_die)
        with pytest.raises(ValueError, match="killed here"):
            flush(only_changed=True)
    restore(redis, snapshot)
    flush()
    assert [stage.count for stage in reports.funnel(Post.objects.get())][1] == 2


@pytest.mark.usefixtures("database")
def test_a_flush_that_two_others_overtook_settles_by_the_epoch_of_now(redis: Redis) -> None:
    post = factories.post(view_count=BASE)
    epoch = SqlEpoch()
    for _ in range(2):
        redis.delete(f"views:total:{subject_of(post)}")
        view(post)
        flush()
    merging.settle(epoch)
    assert known_epoch() == scripts.run(counters.epoch()).current
    redis.delete(f"views:total:{subject_of(post)}")
    view(post)
    flush()
    assert stored() == [BASE + 3]


def settle_and_die() -> Epoch:
    """Settles without telling SQL, as a flush does that is killed in between. Returns what it would have told."""
    bases = merging._stored(counters.unsettled(until=server_time(patient=True)))
    settled = scripts.run(counters.settle(bases, known=known_epoch()))
    assert settled.counters == 1
    return settled.epoch


def view(post: Post) -> None:
    assert tracker.record(factories.hit(subject_of(post))).counted


def click(post: Post, visitor: str) -> None:
    assert tracker.step(post, "click", visitor=Visitor(visitor))


def stored() -> list[int]:
    return list(Post.objects.order_by("pk").values_list("view_count", flat=True))
