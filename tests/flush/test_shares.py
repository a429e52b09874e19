"""A flush in shares: each writes some of the partitions, and together they are one flush."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from pytest_django import Settings
from redis import Redis

from readtrack import reports, scheduled, tracker
from readtrack.flush.run import flush
from readtrack.models import FlushRun
from readtrack.sql import runs
from readtrack.store import clock, counters, keys, read_state, scripts
from readtrack.store.connection import connect
from readtrack.store.counters import Total
from readtrack.subjects import subject_of
from readtrack.tasks import run_job
from tests.site.models import Post
from tests.support import factories
from tests.support.celery_site import celery_site, celery_worker
from tests.support.counts import stored, view
from tests.support.depth import some
from tests.support.interference import dump, restore
from tests.support.partitions import slots_checked
from tests.support.waiting import comes_true

pytestmark = [pytest.mark.django_db, pytest.mark.needs_parts("cluster")]

Kind = FlushRun.Kind
HALVES = ["1/2", "2/2"]


@pytest.fixture(autouse=True)
def _partitions(settings: Settings, redis: Redis) -> Iterator[None]:
    settings.READTRACK = {"CLUSTER": {"partitions": 16}}
    clock.ask()
    with slots_checked():
        yield


@pytest.fixture
def posts() -> list[Post]:
    """Returns posts of both halves of the partitions."""
    made = [factories.post(pk=number) for number in range(2001, 2009)]
    assert {share_of(post) for post in made} == {*HALVES}
    return made


def share_of(post: Post) -> str:
    return HALVES[keys.tags().index(keys.tag(subject_of(post))) % 2]


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize("only_changed", [True, False])
def test_the_shares_together_write_what_one_flush_does(
    posts: list[Post], *, only_changed: bool
) -> None:
    from readtrack.numbers import reports as numbers_reports

    flush()
    view(*posts)
    for place, share in enumerate(HALVES):
        run = flush(share=share, only_changed=only_changed)
        assert run.written == sum(share_of(post) == share for post in posts)
        assert [stored(post) for post in posts] == [
            int(share_of(post) in HALVES[: place + 1]) for post in posts
        ]
    assert flush().written == 0
    assert sum(point.views for point in numbers_reports.series(Post)) == 8


def test_a_share_looks_at_what_changed_since_its_own_last_flush(posts: list[Post]) -> None:
    for share in HALVES:
        assert flush(share=share, only_changed=True).kind == Kind.FULL  # its first one
    view(*posts)
    assert flush(share="1/2", only_changed=True).kind == Kind.CHANGED
    assert flush(share="2/2", only_changed=True).kind == Kind.CHANGED
    assert [stored(post) for post in posts] == [1] * 8


def test_a_whole_flush_is_one_of_each_share(posts: list[Post]) -> None:
    flush()
    view(*posts)
    assert [flush(share=share, only_changed=True).kind for share in HALVES] == [Kind.CHANGED] * 2
    assert flush(only_changed=True).kind == Kind.CHANGED
    assert [stored(post) for post in posts] == [1] * 8


def test_a_snapshot_that_comes_back_is_noticed_by_each_share(
    posts: list[Post], redis: Redis
) -> None:
    view(*posts)
    snapshot = dump(redis)
    for _ in range(2):
        view(*posts)
        assert sum(flush(share=share).written for share in HALVES) == 8
    restore(redis, snapshot)
    for share in HALVES:
        assert flush(share=share, only_changed=True).kind == Kind.FULL
        assert [
            scripts.run(counters.totals([subject_of(post)]))
            for post in posts
            if share_of(post) == share
        ] == [{subject_of(post): Total(3)} for post in posts if share_of(post) == share]


def test_a_partition_that_is_restored_alone_makes_the_next_flush_a_full_one(
    posts: list[Post],
) -> None:
    client: Any = connect(patient=True)
    [post, *_] = [post for post in posts if tag_of(post) != keys.tags()[0]]
    view(post)
    flush()
    own = {
        name: client.dump(name)
        for name in client.scan_iter()
        if keys.tag_in(name.decode()) == tag_of(post)
    }
    view(post)
    flush()
    assert flush(only_changed=True).kind == Kind.CHANGED
    for name, value in own.items():
        client.restore(name, 0, value, replace=True)
    assert flush(only_changed=True).kind == Kind.FULL
    assert reports.views([post])[post] == 2


def tag_of(post: Post) -> str:
    return keys.tag(subject_of(post))


@pytest.mark.parametrize(
    ("first", "then"),
    some([(["1/1"], HALVES), (HALVES, ["1/1"])], deep=[(["1/3", "2/3", "3/3"], HALVES)]),
)
def test_a_snapshot_is_noticed_by_whichever_flush_comes_next(
    posts: list[Post], redis: Redis, first: list[str], then: list[str]
) -> None:
    def flush_all(shares: list[str]) -> list[FlushRun]:
        return [flush(share="" if share == "1/1" else share, only_changed=True) for share in shares]

    flush_all([*first, *then])
    view(*posts)
    flush_all(then)
    snapshot = dump(redis)
    view(*posts)
    flush_all(then)
    restore(redis, snapshot)
    assert {run.kind for run in flush_all(first)} == {Kind.FULL}
    assert [*reports.views(posts).values()] == [2] * 8


def test_a_reset_holds_in_its_share(posts: list[Post]) -> None:
    view(*posts)
    for share in HALVES:
        flush(share=share)
    tracker.reset_views(posts[0])
    for share in HALVES:
        flush(share=share)
    assert [stored(post) for post in posts] == [0] + [1] * 7


@pytest.mark.needs_parts("numbers")
def test_only_the_first_share_does_what_is_of_the_whole_site() -> None:
    from readtrack.numbers.models import ReaderHistory

    flush()
    read_state.begin(0)
    category, user = factories.category(), factories.user()
    tracker.mark_read(user, [category])
    for share, readers in (("2/2", 0), ("1/2", 1)):
        assert flush(share=share).share == share
        assert ReaderHistory.objects.count() == readers


def test_shares_are_as_old_as_the_one_that_is_behind() -> None:
    assert runs.last_good() is None
    first = flush(share="1/2")
    assert runs.last_good() is None
    flush(share="2/2")
    flush(share="2/2")
    assert runs.last_good() == first


def test_a_whole_flush_and_one_of_some_partitions_count_for_the_shares() -> None:
    assert flush() == runs.last_good()
    whole = runs.last_good()
    first = flush(share="1/2")
    assert runs.last_good() == whole
    second = flush(share="2/2")
    assert runs.last_good() == first
    flush(share="3/8")
    assert runs.last_good() == first
    flush(share="1/2")
    assert runs.last_good() == second


@pytest.mark.parametrize("job", some(["flush-changed"], deep=["flush-views"]))
@pytest.mark.django_db(transaction=True)
def test_a_task_sends_one_for_each_share(posts: list[Post], settings: Settings, job: str) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 16, "flush_tasks": 2}}
    view(*posts)
    with celery_site() as app, celery_worker(app):
        run_job.delay(job)
        assert comes_true(lambda: FlushRun.objects.filter(ended__isnull=False).count() == 2)
        connections.close_all()
    assert {*FlushRun.objects.values_list("share", "error")} == {("1/2", ""), ("2/2", "")}
    assert [stored(post) for post in posts] == [1] * 8


def test_the_command_flushes_some_partitions(posts: list[Post]) -> None:
    view(*posts)
    call_command("readtrack", "flush", "--share", "2/2", verbosity=0)
    assert [stored(post) for post in posts] == [int(share_of(post) == "2/2") for post in posts]
    call_command("readtrack", "flush", "--share", "1/1", verbosity=0)
    assert FlushRun.objects.first().share == ""  # type: ignore[union-attr]


@pytest.mark.parametrize("share", ["0/2", "3/2", "1", "a/b", "1/2/3"])
def test_a_share_that_there_is_not_is_refused(share: str) -> None:
    with pytest.raises(CommandError, match="invalid 'share' value"):
        call_command("readtrack", "flush", "--share", share)


def test_more_tasks_than_partitions_write_everything_and_the_others_do_nothing(
    posts: list[Post], settings: Settings
) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 2, "flush_tasks": 4}}
    view(*posts)
    sent: list[str] = []
    queue = scheduled.Queue(lambda share, only_changed: sent.append(share), lambda job: None)
    scheduled.flush_views(queue)
    assert sent == ["1/4", "2/4", "3/4", "4/4"]
    for share in sent:
        scheduled.flush_share(share, only_changed=False)
    assert [stored(post) for post in posts] == [1] * 8
    assert {*FlushRun.objects.values_list("share", "error")} == {("1/4", ""), ("2/4", "")}
    with pytest.raises(ValueError, match="share 4/4 has no partitions"):
        flush(share="4/4")


def test_there_are_no_more_shares_than_partitions() -> None:
    with pytest.raises(CommandError, match="no share 1/17"):
        call_command("readtrack", "flush", "--share", "1/17")
