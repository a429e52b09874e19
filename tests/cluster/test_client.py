"""readtrack on a cluster: a server that fails or hangs costs the others nothing, and slots may move
at any time.
"""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from random import Random
from threading import Barrier, current_thread
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.cache import caches
from django.test import Client
from pytest_django import Settings
from redis import Redis, RedisCluster
from redis.connection import SSLConnection
from redis.crc import key_slot
from redis.exceptions import ResponseError

from readtrack import buckets, reports, tracker
from readtrack.checks.setup import check_setup
from readtrack.cluster.client import ANSWER, PATIENCE, Cluster
from readtrack.cluster.connection import ClusterFactory
from readtrack.doctor.report import examine
from readtrack.flush.run import flush
from readtrack.models import PendingPublication
from readtrack.numbers import live_counters
from readtrack.store import (
    clock,
    connection,
    counters,
    erasure,
    keys,
    read_state,
    scripts,
)
from readtrack.store.circuit import Circuit, Page, SilentError, circuit
from readtrack.store.connection import connect, server_time
from readtrack.store.counting import count_views
from readtrack.store.scripts import Call
from readtrack.store.skips import by_hour, key_of, skip_buffer
from readtrack.subjects import subject_of
from tests.conftest import DJANGO_REDIS, Start
from tests.site.models import Post
from tests.store.test_clients import assert_it_counts
from tests.support import caches as site_caches
from tests.support import factories
from tests.support.caches import use_pool
from tests.support.cluster import SHARDS, ValkeyCluster
from tests.support.counts import view
from tests.support.waiting import comes_true, making

pytestmark = [pytest.mark.django_db]

COUNT = 16
NOBODY = ("127.0.0.1", 1)


@pytest.fixture(scope="module")
def servers() -> Iterator[ValkeyCluster]:
    with ValkeyCluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(servers: ValkeyCluster, settings: Settings) -> ValkeyCluster:
    """Returns an empty cluster, which the site uses."""
    servers.empty()
    settings.CACHES = {"default": site_caches.cluster(servers.urls[:1])}
    settings.READTRACK = {"CLUSTER": {"partitions": COUNT}, "RATE": (0, 10), "TIMEOUT": 1.0}
    Circuit.longest_pause = 60
    return servers


@pytest.fixture
def posts() -> list[Post]:
    """Returns posts of all partitions."""
    return Post.objects.bulk_create(
        Post(pk=number, title="A", view_count=7) for number in range(1001, 1033)
    )


def slot_of(post: Post) -> int:
    return key_slot(keys.total(subject_of(post)).encode())


def owner(cluster: ValkeyCluster, post: Post) -> int:
    """Returns the number of the server that has the post's slot, as servers began."""
    return slot_of(post) // (16384 // SHARDS + 1)


@pytest.fixture
def patient_pages(cluster: ValkeyCluster, settings: Settings) -> None:
    """Gives pages more time than a busy machine takes, in tests that make no server hang."""
    settings.READTRACK = {**settings.READTRACK, "TIMEOUT": 10.0}


@contextmanager
def paused(cluster: ValkeyCluster, number: int) -> Iterator[None]:
    cluster.servers[number].pause()
    try:
        yield
    finally:
        cluster.servers[number].resume()


@pytest.mark.usefixtures("patient_pages")
def test_a_cluster_counts_by_the_factory_that_readtrack_brings() -> None:
    assert_it_counts()


class Theirs:
    """A connection factory that gives the cluster client of redis-py."""

    clients: list[Any] = []

    def __init__(self, options: dict[str, Any]) -> None:
        pass

    def connect(self, url: str) -> Any:
        self.clients.append(RedisCluster.from_url(url))
        return self.clients[-1]


@pytest.fixture
def theirs(cluster: ValkeyCluster, settings: Settings) -> Iterator[None]:
    own = {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": cluster.urls[0],
        "OPTIONS": {"CONNECTION_FACTORY": f"{__name__}.Theirs"},
    }
    settings.CACHES = {"default": own}
    yield
    while Theirs.clients:
        Theirs.clients.pop().close()


@pytest.mark.usefixtures("patient_pages", "theirs")
def test_a_cluster_counts_by_the_client_of_another_library() -> None:
    assert_it_counts()


BACKENDS = [
    "django_valkey.cluster_cache.cache.ClusterValkeyCache",
    "django_cachex.cache.ValkeyClusterCache",
    "django_cachex.cache.RedisClusterCache",
]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, cluster: ValkeyCluster, settings: Settings) -> None:
    """Makes the cache one of another library."""
    module = request.param.rpartition(".")[0]
    pytest.importorskip("valkey")
    pytest.importorskip(module)
    settings.CACHES = {"default": {"BACKEND": request.param, "LOCATION": cluster.urls[0]}}


@pytest.mark.usefixtures("patient_pages", "backend")
def test_a_cluster_counts_by_the_cache_of_another_library() -> None:
    assert_it_counts()


@pytest.mark.usefixtures("backend")
def test_a_cache_of_another_library_does_without_a_silent_server_and_the_flush_writes_all(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    for post in posts:
        view(post)
    with paused(cluster, 1):
        assert reports.views(posts) == {
            post: 7 if owner(cluster, post) == 1 else 8 for post in posts
        }
    circuit_of(cluster, 1).opened = None
    assert flush().written == len(posts)
    assert {*Post.objects.values_list("view_count", flat=True)} == {8}


def test_a_cluster_without_partitions_is_refused_and_costs_no_page(
    cluster: ValkeyCluster, settings: Settings
) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 1}}
    [message] = [message for message in check_setup(None) if message.id == "readtrack.E012"]
    assert "READTRACK['CLUSTER']" in message.msg
    assert ">7<" in factories.browser().get(f"/posts/{factories.post(view_count=7).pk}/").text


@pytest.mark.needs_parts("metrics")
def test_counts_of_all_servers_are_one_answer(cluster: ValkeyCluster, posts: list[Post]) -> None:
    from readtrack.metrics.memory import key_kinds

    for post in posts:
        view(post)
    assert {owner(cluster, post) for post in posts} == set(range(SHARDS))
    assert set(reports.views(posts).values()) == {8}
    assert flush().written == len(posts)
    assert tracker.refresh_trending() == len(posts)
    assert len(reports.trending(limit=100)) == len(posts)
    assert sum(kind.keys for kind in key_kinds().values()) > 5 * len(posts)
    assert server_time() > 0


def test_a_server_that_hangs_costs_one_page_its_time_and_the_other_servers_nothing(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    for post in posts:
        view(post)
    reports.views(posts)  # opens connections
    with paused(cluster, 1):
        browser = factories.browser()
        began = time.perf_counter()
        assert browser.get("/list/").status_code == 200
        for post in posts:
            is_silent = owner(cluster, post) == 1
            assert reports.views([post])[post] == (7 if is_silent else 8)
            assert tracker.record(factories.hit(subject_of(post))).counted == (
                () if is_silent else (subject_of(post),)
            )
        assert time.perf_counter() - began < 60
        assert set(reports.views(posts).values()) == {7, 9}
    assert circuit.opened is None


@pytest.mark.usefixtures("patient_pages")
def test_threads_that_share_one_connection_to_each_server_lose_no_view(
    posts: list[Post], settings: Settings
) -> None:
    use_pool(settings, max_connections=1)
    subjects = [subject_of(post) for post in posts]
    # Each thread asks for the servers in an order of its own.
    hits = [factories.hit(*Random(number).sample(subjects, 8)) for number in range(48)]
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(tracker.record, hits))
    assert {len(outcome.counted) for outcome in outcomes} == {8}
    assert circuit.opened is None


def test_what_a_silent_server_does_not_count_is_told_as_an_error(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    [post, *_] = [post for post in posts if owner(cluster, post) == 2]
    with paused(cluster, 2):
        outcome = tracker.record(factories.hit(subject_of(post)))
        assert outcome.skipped == {subject_of(post): "error"}
        with pytest.raises(SilentError):
            scripts.run(Call("INCR", [keys.total(subject_of(post))], (), int))


def test_a_slot_that_moved_is_followed_at_once(cluster: ValkeyCluster, posts: list[Post]) -> None:
    [post, *_] = [post for post in posts if owner(cluster, post) == 0]
    view(post)
    with cluster.moved(slot_of(post), 0, 1):
        view(post)
        assert reports.views([post])[post] == 9
        connect(patient=True).get(keys.total(subject_of(post)))
        assert flush().written == 1
    view(post)
    assert reports.views([post])[post] == 10


def test_a_slot_on_its_way_loses_no_count(cluster: ValkeyCluster, posts: list[Post]) -> None:
    [post, *_] = [post for post in posts if owner(cluster, post) == 0]
    view(post)
    with cluster.importing(slot_of(post), 0, 1):
        assert reports.views([post])[post] == 8
        assert connect().get(keys.daily(subject_of(post))) is None
        assert connect().get(keys.total(subject_of(post))) == b"1"
    view(post)
    assert reports.views([post])[post] == 9


def test_the_doctor_examines_each_server(cluster: ValkeyCluster) -> None:
    found = {finding.name: finding for finding in examine()}
    assert {finding.message for finding in found.values() if finding.level == "error"} == set()
    assert found["version"].message.count("127.0.0.1:") == SHARDS
    assert "1 replica" in found["role"].message


def test_metrics_leave_out_what_a_silent_server_would_add(
    cluster: ValkeyCluster, posts: list[Post], settings: Settings
) -> None:
    settings.READTRACK = {**settings.READTRACK, "METRICS": {"networks": ["127.0.0.1"]}}
    for post in posts:
        view(post)
    answer = factories.browser().get("/readtrack/metrics").text
    assert "readtrack_redis_up 1.0" in answer
    people = re.findall(r"^readtrack_recent_visitors (.+)", answer, re.MULTILINE)
    assert float(people[0]) == pytest.approx(len(posts), abs=2)
    assert "readtrack_redis_memory" not in answer  # each server has its own
    with paused(cluster, 1):
        answer = factories.browser().get("/readtrack/metrics").text
    assert "readtrack_redis_up 0.0" in answer
    assert "readtrack_sql_up 1.0" in answer
    assert "readtrack_views_total" in answer
    assert "readtrack_recent_visitors" not in answer
    assert "readtrack_unsettled_counters" not in answer


def test_a_view_in_a_slot_on_its_way_is_told_as_an_error_and_a_flush_waits_for_it(
    cluster: ValkeyCluster, posts: list[Post], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.cluster.client.PATIENCE", 0.2)
    [post, *_] = [post for post in posts if owner(cluster, post) == 0]
    subject = subject_of(post)
    view(post)
    with cluster.importing(slot_of(post), 0, 1):
        assert tracker.record(factories.hit(subject)).skipped == {subject: "error"}
        with pytest.raises(SilentError, match="TryAgainError"):
            scripts.run(
                replace(count_views(factories.hit(subject), hits=1), absent=None),
                patient=True,
            )
    assert tracker.record(factories.hit(subject)).counted == (subject,)


@pytest.mark.needs_parts("script")  # an object has one hash without it
def test_long_work_with_two_keys_waits_for_a_slot_on_its_way(
    cluster: ValkeyCluster, posts: list[Post], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.cluster.client.PATIENCE", 0.2)
    [post, *_] = [post for post in posts if owner(cluster, post) == 0]
    with cluster.importing(slot_of(post), 0, 1), pytest.raises(SilentError):
        live_counters.have_hashes([subject_of(post)])
    assert not live_counters.have_hashes([subject_of(post)])


def test_a_page_does_not_wait_for_two_keys_in_a_slot_on_its_way(
    cluster: ValkeyCluster, posts: list[Post], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.cluster.client.PATIENCE", 600.0)
    monkeypatch.setattr("readtrack.cluster.client.PAUSE", 600.0)
    [post, *_] = [post for post in posts if owner(cluster, post) == 0]
    names = [row(subject_of(post)) for row in (keys.total, keys.hll)]
    client: Any = connect()
    with (
        cluster.importing(slot_of(post), 0, 1),
        making(Page(None, 1.0)),
        pytest.raises(SilentError, match="TryAgainError"),
    ):
        client.exists(*names)


def test_plain_commands_follow_a_slot_and_raise_what_one_server_refuses(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    [post, *_] = [post for post in posts if owner(cluster, post) == 0]
    subject = subject_of(post)
    counters.mark_changed([subject, subject_of(posts[-1])])
    with cluster.moved(slot_of(post), 0, 1):
        assert not live_counters.have_hashes([subject_of(one) for one in posts])
    view(post)
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        scripts.run(Call("ZRANGE", [keys.total(subject)], (0, 1)), patient=True)


@pytest.mark.usefixtures("patient_pages")
def test_a_page_that_has_waited_long_enough_asks_no_server(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    view(posts[0])
    reports.views(posts[:1])
    made = cluster.ask(owner(cluster, posts[0]), "INFO", "stats")["total_connections_received"]
    with making(Page(None, 0.0)):
        assert reports.views(posts[:1])[posts[0]] == 7
    assert reports.views(posts[:1])[posts[0]] == 8
    # The connection is still open, because nothing was begun on it; the one more is this
    # question's.
    assert (
        cluster.ask(owner(cluster, posts[0]), "INFO", "stats")["total_connections_received"]
        == made + 1
    )


def test_a_server_that_was_given_little_time_is_not_to_blame(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    name, own = keys.total(subject_of(posts[0])), circuit_of(cluster, owner(cluster, posts[0]))
    client: Any = connect()
    client.get(name)
    with making(Page(None, 0.1)), pytest.raises(SilentError):
        client.blpop(name, timeout=5)
    assert own.opened is None


@pytest.mark.usefixtures("patient_pages")
def test_after_some_seconds_a_page_asks_a_server_again_that_failed(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    view(posts[0])
    own = circuit_of(cluster, owner(cluster, posts[0]))
    own.opened = time.monotonic() - 30.0
    assert reports.views(posts[:1])[posts[0]] == 7
    own.opened -= 31.0  # more than the longest pause ago
    assert reports.views(posts[:1])[posts[0]] == 8
    assert own.opened is None


@pytest.mark.usefixtures("patient_pages")
def test_pages_that_miss_a_server_ask_the_others_four_times_a_second_where_slots_are(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    reports.views(posts)
    for number in range(len(cluster.servers)):
        cluster.ask(number, "CONFIG", "RESETSTAT")
    circuit_of(cluster, 1).opened = began = time.monotonic()
    client: Any = connect()
    client._asked = -1.0
    for post in posts:
        reports.views([post])
    took = time.monotonic() - began
    told = [cluster.ask(number, "INFO", "commandstats") for number in range(len(cluster.servers))]
    assert (
        1
        <= sum(one.get("cmdstat_cluster|slots", {"calls": 0})["calls"] for one in told)
        <= 1 + took / 0.25
    )


@pytest.mark.usefixtures("patient_pages")
def test_all_servers_are_sent_their_scripts_before_any_is_waited_for(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    for post in posts:
        view(post)
    # The server of the last one is asked first.
    ordered = sorted(map(subject_of, posts), key=lambda one: key_slot(keys.total(one).encode()))
    calls = [counters.totals(some) for some in scripts.parted(ordered)]
    scripts.run_all(*calls)
    for number in range(SHARDS - 1):
        cluster.ask(number, "CONFIG", "RESETSTAT")

    def are_asked() -> bool:
        told = [cluster.ask(number, "INFO", "commandstats") for number in range(SHARDS - 1)]
        return all("cmdstat_evalsha" in one for one in told)

    with ThreadPoolExecutor(1) as pool, paused(cluster, SHARDS - 1):
        found = pool.submit(scripts.run_all, *calls)
        assert comes_true(are_asked)
        cluster.servers[SHARDS - 1].resume()
        assert sum(map(len, found.result())) == len(posts)


def test_long_work_asks_a_server_that_pages_do_without(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    client: Any = connect(patient=True)
    client.server(("127.0.0.1", cluster.servers[owner(cluster, posts[0])].port))[
        1
    ].opened = time.monotonic()
    assert client.get(keys.total(subject_of(posts[0]))) is None


def test_long_work_waits_for_a_server_once_and_a_page_sends_each_command_again(
    cluster: ValkeyCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(self: Cluster, *command: str) -> None:
        sent.append(command[1])
        self.server(self.address(command[1]))[1].opened = time.monotonic()
        raise SilentError

    sent: list[str] = []
    commands = [("GET", "{a}"), ("GET", "{a}:b"), ("GET", "{b}")]
    monkeypatch.setattr(Cluster, "execute_command", again)
    client: Any = connect(patient=True)
    assert client.address("{a}") != client.address("{b}")
    answers = client.spread(commands, lambda _, some, __: [SilentError()] * len(some))
    assert [type(answer) for answer in answers] == [SilentError] * 3
    assert sent == ["{a}", "{b}"]
    client = connect()
    client.spread(commands, lambda _, some, __: [SilentError()] * len(some))
    assert sent == ["{a}", "{b}", "{a}", "{a}:b", "{b}"]


def test_a_slot_on_its_way_keeps_long_work_from_no_other_slot_of_its_server(
    cluster: ValkeyCluster, posts: list[Post], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.cluster.client.PATIENCE", 0.2)
    own = [post for post in posts if owner(cluster, post) == 0]
    slot = slot_of(own[0])
    calls = [
        Call[int]("EXISTS", [keys.total(subject_of(post)), keys.hll(subject_of(post))])
        for post in own
    ]
    with cluster.importing(slot, 0, 1):
        answers = scripts.sender(True)([call.command() for call in calls])  # noqa: FBT003
    expected = [SilentError if slot_of(post) == slot else int for post in own]
    assert [type(answer) for answer in answers] == expected


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives long work less time, for tests in which a server hangs."""
    monkeypatch.setattr("readtrack.cluster.connection.ANSWER", 0.5)
    monkeypatch.setattr("readtrack.cluster.client.PATIENCE", 1.0)


def stored_views() -> dict[int, int]:
    return dict(Post.objects.values_list("pk", "view_count"))


@pytest.mark.needs_parts("numbers")
@pytest.mark.usefixtures("impatient", "patient_pages")
@pytest.mark.parametrize("number", range(SHARDS))
def test_a_flush_without_one_server_stores_what_is_on_the_others(
    cluster: ValkeyCluster, posts: list[Post], number: int, caplog: pytest.LogCaptureFixture
) -> None:
    from readtrack.numbers import reports as numbers_reports

    Post.objects.update(view_count=0)
    view(*posts)
    flush()
    view(*posts)
    with paused(cluster, number):
        partial = flush(only_changed=True)
        full = flush(must_archive=True)
    silent = {post.pk for post in posts if owner(cluster, post) == number}
    assert stored_views() == {post.pk: 1 if post.pk in silent else 2 for post in posts}
    for run in (partial, full):
        assert run.error == ""
        assert f"127.0.0.1:{cluster.servers[number].port}" in run.faults
        named = {keys.tag(f"site.post:{pk}").strip(":{}") for pk in silent}
        assert named <= set(run.faults.partition(":")[0].replace(",", "").split())
    assert full.faults in caplog.text
    again = flush(only_changed=True)
    assert (again.kind, again.faults) == ("full", "")
    assert stored_views() == dict.fromkeys(stored_views(), 2)
    assert flush(only_changed=True).kind == "changed"
    assert sum(point.views for point in numbers_reports.series(Post)) == 2 * len(posts)


@pytest.mark.usefixtures("impatient", "patient_pages")
def test_a_share_of_the_flush_does_without_a_server(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    Post.objects.update(view_count=0)
    view(*posts)
    for share in ("1/2", "2/2"):
        flush(share=share)
    view(*posts)
    with paused(cluster, 0):
        for share in ("1/2", "2/2"):
            assert flush(share=share).faults
    silent = {post.pk for post in posts if owner(cluster, post) == 0}
    assert stored_views() == {post.pk: 1 if post.pk in silent else 2 for post in posts}


@pytest.mark.usefixtures("impatient")
def test_a_flush_takes_no_silent_server_for_an_empty_one(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    call = counters.totals([subject_of(posts[0])])
    with paused(cluster, owner(cluster, posts[0])), pytest.raises(SilentError):
        scripts.run(call, patient=True)


@pytest.mark.usefixtures("impatient", "patient_pages")
def test_the_other_servers_bring_their_trending_lists_up_to_date(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    view(*posts)
    assert tracker.refresh_trending() == len(posts)
    with paused(cluster, 0):
        others = sum(owner(cluster, post) != 0 for post in posts)
        assert tracker.refresh_trending() == others


@pytest.mark.usefixtures("impatient")
def test_news_for_the_other_servers_is_sent_while_one_is_silent(
    cluster: ValkeyCluster, settings: Settings
) -> None:
    # News waits for a silent server as long as a page does, and then once more.
    settings.READTRACK = {**settings.READTRACK, "TIMEOUT": 3.0}
    read_state.begin(0)
    categories = [factories.category() for _ in range(COUNT)]
    user = factories.user()
    tracker.mark_read(user, categories)
    with paused(cluster, 0):
        PendingPublication.objects.bulk_create(
            PendingPublication(subject=subject_of(category)) for category in categories
        )
        sent = tracker.resend()
    unsent = PendingPublication.objects.filter(sent=None)
    waiting = {*unsent.values_list("subject", flat=True)}
    on_silent = {
        subject_of(category)
        for category in categories
        if key_slot(keys.published(subject_of(category)).encode()) // (16384 // SHARDS + 1) == 0
    }
    assert waiting == on_silent
    assert sent == COUNT - len(on_silent)
    circuit_of(cluster, 0).opened = None
    assert tracker.resend() == len(on_silent)
    assert reports.unread(user, categories) == {*categories}


@pytest.mark.usefixtures("impatient")
def test_a_worker_that_knew_a_hanging_primary_flushes_by_its_replica(
    settings: Settings, posts: list[Post], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = 3.0  # seconds
    monkeypatch.setattr("readtrack.cluster.connection.ANSWER", answer)
    Post.objects.update(view_count=0)
    with ValkeyCluster() as cluster:
        settings.CACHES = {"default": cluster.cache()}
        settings.READTRACK = {"CLUSTER": {"partitions": COUNT}, "RATE": (0, 10), "TIMEOUT": 5.0}
        view(*posts)
        flush()
        view(*posts)
        cluster.until_all(lambda told: told[0] == "master" or told[3] == "connected", "ROLE")
        cluster.ask(0, "WAIT", 1, 60_000)
        cluster.servers[0].pause()
        cluster.ask(SHARDS, "CLUSTER", "FAILOVER", "TAKEOVER")
        assert comes_true(lambda: cluster.is_primary(SHARDS))
        cluster.until_all(
            lambda told: cluster.servers[0].port not in {shard[2][1] for shard in told},
            "CLUSTER",
            "SLOTS",
            servers=[1, 2],
        )
        began = time.monotonic()
        run = flush(only_changed=True)
        assert (
            time.monotonic() - began < COUNT * answer / 2
        )  # it waited for one answer, not for all
        assert run.faults == ""
        assert stored_views() == dict.fromkeys(stored_views(), 2)
        cluster.servers[0].resume()


def test_long_work_on_a_cluster_waits_less_for_one_answer_than_for_a_replica(
    cluster: ValkeyCluster,
) -> None:
    client: Any = connect(patient=True)
    [server, *_] = client.clients()
    assert server.connection_pool.connection_kwargs["socket_timeout"] == ANSWER
    assert PATIENCE > 15  # seconds after which a replica takes over by default


@DJANGO_REDIS
@pytest.mark.parametrize("raise_on_error", [True, False])
def test_an_error_of_one_command_of_a_pipeline_is_told_after_the_others_ran(
    cluster: ValkeyCluster, *, raise_on_error: bool
) -> None:
    made: Any = caches["default"]
    client = made.client.get_client()
    pipeline = client.pipeline().set("a", "text").incr("a").set("b", 1)
    if raise_on_error:
        with pytest.raises(ResponseError, match="not an integer"):
            pipeline.execute()
    else:
        answers = pipeline.execute(raise_on_error=False)
        assert [isinstance(answer, ResponseError) for answer in answers] == [False, True, False]
    assert client.get("b") == b"1"
    assert pipeline.execute() == []


@DJANGO_REDIS
def test_the_cache_itself_works_on_the_cluster(cluster: ValkeyCluster, settings: Settings) -> None:
    django_cache: Any = caches["default"]
    django_cache.set("a", 1)
    assert django_cache.get("a") == 1
    many = {f"many:{number}": number for number in range(20)}
    django_cache.set_many(many)
    assert django_cache.get("many:7") == 7
    assert django_cache.delete_pattern("many:*") == 20
    assert django_cache.get("many:7") is None
    django_cache.set_many(many)
    django_cache.clear()
    assert not any(django_cache.get(name) for name in many)
    # as after each request with DJANGO_REDIS_CLOSE_CONNECTION
    django_cache.client.do_close_clients()
    django_cache.set("a", 2)
    settings.READTRACK = {**settings.READTRACK, "WINDOW_MINUTES": 10}
    assert django_cache.get("a") == 2


@pytest.mark.parametrize("is_there", [True, False])
def test_without_a_server_that_knows_slots_pages_show_what_sql_has(
    cluster: ValkeyCluster,
    posts: list[Post],
    settings: Settings,
    start_redis: Start,
    is_there: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = start_redis(cluster_enabled="yes").url if is_there else "redis://127.0.0.1:1"
    settings.CACHES = {"default": site_caches.cluster([url])}
    monkeypatch.setattr("readtrack.cluster.client.PATIENCE", 0.2)
    assert ">7<" in factories.browser().get(f"/posts/{posts[0].pk}/").text
    assert set(reports.views(posts).values()) == {7}
    with pytest.raises(SilentError):
        server_time(patient=True)
    assert any(finding.level == "error" for finding in examine())


def test_skips_wait_for_the_server_that_keeps_them(
    cluster: ValkeyCluster, posts: list[Post], noon: datetime
) -> None:
    kept = key_slot(key_of(noon).encode()) // (16384 // SHARDS + 1)
    skip_buffer.add(key_of(noon), ["rate"])
    [post, *_] = [post for post in posts if owner(cluster, post) != kept]
    total = counters.totals([subject_of(post)])
    with paused(cluster, kept):
        assert skip_buffer.send(total) == [{}]
    assert skip_buffer.skips[key_of(noon), "rate"] == 1


def test_the_doctor_tells_servers_apart_and_warns_of_full_coverage(cluster: ValkeyCluster) -> None:
    with cluster.configured(1, "cluster-require-full-coverage", "yes"):
        found = [finding for finding in examine() if finding.name == "role"]
    assert sorted(finding.level for finding in found) == ["ok", "warning"]
    [warning] = [finding for finding in found if finding.level == "warning"]
    assert warning.message.startswith(f"127.0.0.1:{cluster.servers[1].port}: ")


def test_the_doctor_warns_of_a_primary_without_replicas(
    cluster: ValkeyCluster, settings: Settings, start_redis: Start
) -> None:
    valkey = start_redis(cluster_enabled="yes")
    with Redis.from_url(valkey.url) as client:
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    settings.CACHES = {"default": site_caches.cluster([valkey.url])}
    assert {finding.level for finding in examine() if finding.name == "role"} == {"warning"}


def test_the_client_of_another_library_lends_its_password_and_tls(settings: Settings) -> None:
    class Nodes:
        connection_kwargs = {
            "ssl": True,
            "ssl_ca_certs": "ca.pem",
            "username": "site",
            "socket_timeout": 99,
        }

    class Found:
        nodes_manager = Nodes()

        def get_nodes(self) -> list[Any]:
            return [SimpleNamespace(host="10.0.0.1", port="6379")]

    settings.READTRACK = {"CLUSTER": {"partitions": COUNT}}
    pool: Any = ClusterFactory.servers_like(Found(), 0.5).connection_pool
    assert pool.connection_class is connection._limited_class(SSLConnection)
    wanted = {"username": "site", "ssl_ca_certs": "ca.pem", "socket_timeout": 0.5}
    assert wanted.items() <= pool.connection_kwargs.items()


@pytest.mark.needs_parts("buffer")
def test_a_silent_server_holds_up_its_own_queued_views_alone_and_skips_are_sent_once(
    cluster: ValkeyCluster, posts: list[Post], settings: Settings, noon: datetime
) -> None:
    from readtrack.buffer.queue import HitBuffer, _count_alone
    from readtrack.buffer.waiting import ViewsOfPartition

    settings.READTRACK = {**settings.READTRACK, "BUFFER": {"seconds": 60}}
    kept = key_slot(key_of(noon).encode()) // (16384 // SHARDS + 1)
    silent = (kept + 1) % SHARDS
    late = [post for post in posts if owner(cluster, post) == silent]
    buffer = HitBuffer()
    buffer._thread = current_thread()  # nobody else sends
    reports.views(posts)
    with paused(cluster, silent):
        skip_buffer.add(key_of(noon), ["rate"])
        for post in posts:
            buffer.take(factories.hit(subject_of(post)))
        buffer.take(
            factories.hit(
                subject_of(late[0]), *{subject_of(post) for post in posts} - {subject_of(late[0])}
            )
        )
        for _ in range(2):
            buffer._send_all()
        assert len(buffer._queue) == len(late) + 1
        assert (
            _count_alone(ViewsOfPartition(1, count_views(factories.hit(subject_of(late[0])))))
            is None
        )
        assert {post: 7 if post in late else 9 for post in posts} == reports.views(posts)
        assert skip_buffer.skips == {}
    circuit_of(cluster, silent).opened = None
    buffer.take(factories.hit(subject_of(posts[0])))  # beside those that come back
    buffer._send_all()
    assert not buffer._queue
    assert reports.views(posts) == {post: 10 if post == posts[0] else 9 for post in posts}
    assert scripts.run(by_hour(1, at=noon)) == [{"rate": 1}]


@pytest.mark.needs_parts("buffer")
def test_a_queued_view_that_is_refused_costs_those_of_a_silent_server_nothing(
    cluster: ValkeyCluster, posts: list[Post], settings: Settings
) -> None:
    from readtrack.buffer.queue import HitBuffer

    settings.READTRACK = {**settings.READTRACK, "BUFFER": {"seconds": 60}}
    bad, good, silent = (
        next(post for post in posts if owner(cluster, post) == number) for number in (0, 1, 2)
    )
    hits = [factories.hit(subject_of(post)) for post in (bad, good, silent)]
    connect().rpush(keys.total(subject_of(bad)), "no number")
    buffer = HitBuffer()
    buffer._thread = current_thread()  # nobody else sends
    with paused(cluster, 2):
        for hit in hits:
            buffer.take(hit)
        buffer._send_all()
        assert len(buffer._queue) == 1
        assert skip_buffer.skips[key_of(hits[0].at), "error"] == 1
    circuit_of(cluster, 2).opened = None
    buffer._send_all()
    assert reports.views([good, silent]) == {good: 8, silent: 8}


def circuit_of(cluster: ValkeyCluster, number: int) -> Circuit:
    """Returns the circuit of a server for pages."""
    client: Any = connect()
    found: Circuit = client.server(("127.0.0.1", cluster.servers[number].port))[1]
    return found


@contextmanager
def full(cluster: ValkeyCluster, number: int) -> Iterator[None]:
    with cluster.configured(number, "maxmemory", "1"):
        yield


@contextmanager
def short_of_replicas(cluster: ValkeyCluster, number: int) -> Iterator[None]:
    with cluster.configured(number, "min-replicas-to-write", "9"):
        yield


@contextmanager
def unable_to_save(cluster: ValkeyCluster, number: int) -> Iterator[None]:
    def has_failed() -> bool:
        told = cluster.ask(number, "INFO", "persistence")
        return bool(told["rdb_last_bgsave_status"] == "err" and not told["rdb_bgsave_in_progress"])

    folder = cluster.servers[number].data
    mode = folder.stat().st_mode
    with cluster.configured(number, "save", "3600 1000000"):
        folder.chmod(0o500)
        try:
            cluster.ask(number, "BGSAVE")
            assert comes_true(has_failed)
            yield
        finally:
            folder.chmod(mode)


@contextmanager
def busy_with_a_script(cluster: ValkeyCluster, number: int) -> Iterator[None]:
    def is_busy() -> bool:
        try:
            cluster.ask(number, "PING")
        except ResponseError as error:
            return str(error).startswith("BUSY")
        return False

    def run() -> None:
        with (
            cluster.servers[number].client(socket_timeout=None) as client,
            pytest.raises(ResponseError, match="killed"),
        ):
            client.eval("while true do end", 0)

    with cluster.configured(number, "busy-reply-threshold", "1"), ThreadPoolExecutor(1) as pool:
        script = pool.submit(run)
        try:
            assert comes_true(is_busy)
            yield
        finally:
            cluster.ask(number, "SCRIPT KILL")
            script.result()


@contextmanager
def without_a_slot(cluster: ValkeyCluster, number: int) -> Iterator[None]:
    taken = {key_slot(tag[1:].encode()) for tag in keys.tags()}
    slot = next(slot for slot in range(number * (16384 // SHARDS + 1), 16384) if slot not in taken)
    with cluster.configured(number, "cluster-require-full-coverage", "yes"):
        cluster.ask(number, "CLUSTER", "DELSLOTS", slot)
        try:
            cluster.until_all(
                lambda told: "cluster_state:fail" in told, "CLUSTER", "INFO", servers=[number]
            )
            yield
        finally:
            cluster.ask(number, "CLUSTER", "ADDSLOTS", slot)
            cluster.until_all(
                lambda told: "cluster_state:ok" in told, "CLUSTER", "INFO", servers=[number]
            )


REFUSALS = {
    "OOM": full,
    "NOREPLICAS": short_of_replicas,
    "MISCONF": unable_to_save,
    "BUSY": busy_with_a_script,
    "CLUSTERDOWN": without_a_slot,
}


@pytest.mark.usefixtures("patient_pages")
@pytest.mark.parametrize("name", REFUSALS)
def test_a_live_server_that_refuses_costs_the_pages_of_the_others_nothing(
    cluster: ValkeyCluster, posts: list[Post], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("readtrack.cluster.client.PATIENCE", 600.0)  # that no page has
    for post in posts:
        view(post)
    own = [post for post in posts if owner(cluster, post) == 1]
    browser, began = factories.browser(), time.perf_counter()
    with REFUSALS[name](cluster, 1):
        pages = [browser.get(f"/posts/{post.pk}/") for post in posts]
        assert {page.status_code for page in pages} == {200}
        assert circuit.opened is None
        assert (circuit_of(cluster, 1).opened is None) == (
            name == "CLUSTERDOWN"
        )  # which is of slots
    assert time.perf_counter() - began < 300
    circuit_of(cluster, 1).opened = None
    assert reports.views(posts) == {post: 8 if post in own else 9 for post in posts}


def test_a_slow_server_opens_its_own_circuit(
    cluster: ValkeyCluster, posts: list[Post], settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.READTRACK = {**settings.READTRACK, "TIMEOUT": 0.2}
    client: Any = connect()
    name = keys.total(subject_of(posts[0]))
    number = owner(cluster, posts[0])
    client.get(name)
    own = circuit_of(cluster, number)

    def is_slow_again() -> bool:
        try:
            with making(Page(None, 0.2)):
                client.blpop(name, timeout=0.12)
        except SilentError:  # the machine is busy, so it took longer than TIMEOUT
            own.opened = None
        return f"{own.name} failed, pages go on without it: TimeoutError: pages wait" in caplog.text

    assert comes_true(is_slow_again)
    assert circuit.opened is None


def test_threads_that_begin_at_once_all_learn_where_the_slots_are(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    for post in posts:
        view(post)
    client: Any = connection.make(10.0)
    barrier = Barrier(4)

    def total() -> bytes | None:
        barrier.wait()
        found: bytes | None = client.get(keys.total(subject_of(posts[0])))
        return found

    with ThreadPoolExecutor(4) as pool:
        assert [one.result() for one in [pool.submit(total) for _ in range(4)]] == [b"1"] * 4
    client.disconnect()


def test_a_process_that_begins_takes_the_earliest_clock(cluster: ValkeyCluster) -> None:
    for number in range(SHARDS):
        cluster.ask(number, "CONFIG", "RESETSTAT")
    client: Any = connection.make(10.0)
    at, behind = client.at, iter([0, 3600, 0])

    def hour_behind(address: Any, ask: Any) -> Any:
        answer = at(address, ask)
        return (answer[0] - next(behind), answer[1]) if isinstance(answer, tuple) else answer

    client.at = hour_behind
    seconds, _ = client.time()
    client.disconnect()
    assert time.time() - 3660 < seconds <= time.time() - 3600
    asked = [
        cluster.ask(number, "INFO", "commandstats")["cmdstat_time"]["calls"]
        for number in range(SHARDS)
    ]
    assert asked == [1] * SHARDS


def test_a_mark_on_one_of_several_servers_teaches_no_clock(cluster: ValkeyCluster) -> None:
    clock.ask()
    learnt = dict(clock._learnt)
    scripts.run_all(*read_state.marks(1, ["site.category:1"]))
    assert clock._learnt == learnt


def test_a_server_that_hangs_makes_the_time_of_a_cluster_no_later(cluster: ValkeyCluster) -> None:
    """Pages of the next minute would seem to have begun earlier than they did, and leave dots."""
    clock.ask()
    with paused(cluster, 2):
        began = time.perf_counter()
        clock.ask()
        waited = time.perf_counter() - began
    late = time.time() - clock.at(time.perf_counter()) / 1_000_000
    assert 0 <= late < waited / 2


def test_a_process_learns_of_a_cluster_whose_clocks_were_set(
    cluster: ValkeyCluster,
) -> None:
    """Each page of that process would leave categories unread for as long as it runs."""
    category = factories.category()
    subject = subject_of(category)
    read_state.begin(0)
    tracker.mark_unread([category])
    # A minute ago, because a late answer makes a page seem to begin earlier.
    connect().decrby(keys.published(subject), 60_000_000)
    clock.ask()
    clock._offsets["default"] -= 3_600_000_000  # Redis's clock was set an hour later since
    assert scripts.run_all(*read_state.marks(1, [subject], began=time.perf_counter())) == [()]
    clock._learnt["default"] -= clock.EVERY
    assert scripts.run_all(*read_state.marks(1, [subject], began=time.perf_counter())) == [
        (subject,)
    ]


@DJANGO_REDIS
def test_caches_of_a_url_share_a_client(cluster: ValkeyCluster) -> None:
    made: Any = caches
    first, second = (made.create_connection("default").client.get_client() for _ in range(2))
    assert first is second


def test_keys_of_a_primary_that_is_new_or_takes_over_are_scanned(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    for post in posts:
        view(post)
    wanted = {subject_of(post) for post in posts}
    client: Any = connect(patient=True)
    client._asked = -1.0
    del client._primaries[1:]
    assert set(counters.scan()) == wanted
    client._primaries[1] = NOBODY
    assert set(counters.scan()) == wanted
    assert NOBODY not in client._servers
    assert erasure.erase("nobody").keys == 0
    assert len(set(client.scan_iter(count=1))) == len(set(client.scan_iter())) > len(posts)


def test_a_scan_ends_with_an_error_while_a_server_is_gone(
    cluster: ValkeyCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.cluster.client.PATIENCE", 0.0)
    monkeypatch.setattr(
        "readtrack.cluster.client.ASKED_EVERY", 600.0
    )  # nobody learns better meanwhile
    client: Any = connect(patient=True)
    client.clients()
    client._primaries[0] = NOBODY
    with pytest.raises(SilentError):
        list(client.scan_iter())


def test_a_slot_leads_to_a_primary_without_a_name(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    [post, *_] = [post for post in posts if owner(cluster, post) == 0]
    view(post)
    client: Any = connect()
    own = ("127.0.0.1", cluster.servers[1].port)
    nameless = cluster.configured(0, "cluster-preferred-endpoint-type", "unknown-endpoint")
    with nameless, cluster.moved(slot_of(post), 0, 1):
        client._primaries.remove(own)
        client._asked = time.monotonic()  # the error alone tells where it is
        assert client.get(keys.total(subject_of(post))) == b"1"
        assert own in client._primaries


def test_visitors_of_a_silent_server_alone_come_out_of_sql(
    cluster: ValkeyCluster, posts: list[Post]
) -> None:
    for post in posts:
        view(post)
    with paused(cluster, 1):
        assert reports.visitors(posts) == {post: int(owner(cluster, post) != 1) for post in posts}


@pytest.mark.usefixtures("patient_pages")
def test_marking_read_is_an_error_while_the_server_of_a_category_is_silent(
    cluster: ValkeyCluster,
) -> None:
    categories = [factories.category(pk=number) for number in range(1001, 1033)]
    places = {
        key_slot(keys.read_bits(subject_of(one)).encode()) // (16384 // SHARDS + 1): one
        for one in categories
    }
    silent, other = places[1], places[2]
    browser, names = (
        factories.browser(user := factories.user()),
        [subject_of(silent), subject_of(other)],
    )
    read_state.begin(0)

    def answer(*some: str) -> tuple[int, Any]:
        found = browser.post("/readtrack/read/", {"category": some})
        return found.status_code, found.json()

    circuit_of(cluster, 1).opened = time.monotonic()
    assert browser.get(f"/categories/{silent.pk}/").status_code == 200
    assert answer(names[1]) == (200, {"read": [names[1]], "unread": []})
    assert answer(*names)[0] == 503
    with pytest.raises(SilentError):
        tracker.mark_read(user, [silent])
    circuit_of(cluster, 1).opened = None
    assert answer(*names) == (200, {"read": names, "unread": []})


@pytest.mark.usefixtures("patient_pages")
def test_a_new_account_is_told_of_in_the_log_while_the_server_of_a_category_is_silent(
    cluster: ValkeyCluster,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    django_capture_on_commit_callbacks: Any,
) -> None:
    settings.READTRACK = {
        **settings.READTRACK,
        "DOTS": {**settings.READTRACK.get("DOTS", {}), "start_as_read": True},
    }
    categories = [factories.category(pk=number) for number in range(1001, 1033)]
    slots = {one: key_slot(keys.read_bits(subject_of(one)).encode()) for one in categories}
    silent = {one for one, slot in slots.items() if slot // (16384 // SHARDS + 1) == 1}
    read_state.begin(0)
    circuit_of(cluster, 1).opened = time.monotonic()
    with django_capture_on_commit_callbacks(execute=True):
        user = factories.user()
    assert f"dots of the new user {user.pk} stay" in caplog.text
    circuit_of(cluster, 1).opened = None
    assert reports.unread(user, categories) == silent != set()


@pytest.mark.needs_parts("numbers", "dashboard")
@pytest.mark.usefixtures("patient_pages")
@pytest.mark.parametrize("has_skips", [True, False])
def test_the_dashboard_shows_what_the_other_servers_know_and_says_that_one_is_missing(
    cluster: ValkeyCluster,
    posts: list[Post],
    settings: Settings,
    admin_client: Client,
    *,
    has_skips: bool,
) -> None:
    from readtrack.dashboard.navigation import TABS
    from readtrack.numbers import panel
    from readtrack.numbers.objects import CANDIDATES
    from readtrack.numbers.tables import NOT_KNOWN

    settings.READTRACK = {
        **settings.READTRACK,
        "NUMBERS": {"dimensions": ["readtrack.numbers.dimensions.referrer"]},
    }
    kept = key_slot(key_of(buckets.now()).encode()) // (16384 // SHARDS + 1)
    silent = kept if has_skips else (kept + 1) % SHARDS
    for post in posts:
        view(post)
    tracker.refresh_trending()
    live = [post for post in posts if owner(cluster, post) != silent]
    gone = next(post for post in posts if post not in live)

    def page(**given: str) -> Any:
        return admin_client.get("/admin/readtrack/dashboard/", given, follow=True)

    def trending(page: Any) -> int:
        [shown] = [
            one["table"] for one in page.context["tables"] if one["table"].name == "trending"
        ]
        return len(shown.rows)

    shown = page()
    assert "does not answer" not in shown.text
    assert shown.context["recent"] == str(len(posts))
    circuit_of(cluster, silent).opened = time.monotonic()
    shown = page()
    assert "A server of the Redis cluster does not answer" in shown.text
    assert (shown.context["data"].is_live, shown.context["data"].is_whole) == (True, False)
    assert (shown.context["recent"], trending(shown)) == (
        str(len(live)),
        min(len(live), CANDIDATES),
    )
    assert shown.context["figures"][0].value == str(len(live))
    file = page(table="most-viewed", format="json")
    assert json.loads(b"".join(file.streaming_content))["is_complete"] is False
    assert page(model="site.post", object=subject_of(live[0])).context["recent"] == "1"
    texts = {tab: page(tab=tab).text for tab in TABS}
    assert ("Not known at the moment." in texts["refused"]) is has_skips
    assert panel.numbers(subject_of(live[0]), live[0])["is_live"] is True
    assert panel.numbers(subject_of(gone), gone)["is_live"] is False
    for tab, text in texts.items():
        assert "A server of the Redis cluster does not answer" in text, tab
    for number in range(SHARDS):
        circuit_of(cluster, number).opened = time.monotonic()
    shown = page()
    assert "Redis does not answer" in shown.text
    assert (shown.context["data"].is_live, shown.context["recent"]) == (False, NOT_KNOWN)
