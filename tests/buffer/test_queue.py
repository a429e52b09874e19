"""Views wait in the process, and one thread sends many of them by one script."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from math import inf
from pathlib import Path
from socket import create_server
from time import monotonic
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import AsyncClient
from pytest_django import Settings
from redis import Redis

from demo_project.engines.valkey import Valkey
from readtrack import buckets, reports, tracker
from readtrack.buffer import batch, queue, waiting
from readtrack.buffer.queue import hit_buffer
from readtrack.hits import visitors
from readtrack.hits.addresses import watch
from readtrack.hits.hit import Hit, Outcome
from readtrack.hits.visitors import Visitor
from readtrack.middleware import ReadTrackMiddleware
from readtrack.numbers import reports as numbers_reports
from readtrack.script import robots
from readtrack.store import (
    clock,
    counters,
    day_keys,
    keys,
    read_state,
    scripts,
)
from readtrack.store.circuit import Circuit, circuit
from readtrack.store.counting import count_views
from readtrack.store.skips import key_of, skip_buffer
from readtrack.subjects import subject_of
from tests.conftest import Start, use_redis
from tests.support import factories
from tests.support.buffered import send
from tests.support.forks import Forks
from tests.support.scripts import load_scripts
from tests.support.waiting import comes_true, is_ever_below
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

BUFFERED = {"BUFFER": {"seconds": 1}, "DEBUG_HEADER": True}


@pytest.fixture(autouse=True)
def _buffered(settings: Settings) -> Iterator[None]:
    handler = signal.getsignal(signal.SIGTERM)
    settings.READTRACK = BUFFERED
    clock.ask()
    send()  # no thread of a test before
    yield
    send()
    signal.signal(signal.SIGTERM, handler)


def views(redis: Redis) -> dict[str, int]:
    """Returns the views of each subject."""
    start = len("views:total:")
    return {key[start:]: int(redis.get(key) or 0) for key in map(str, redis.keys("views:total:*"))}


FUNNELS = {"NUMBERS": {"funnels": True}}


@pytest.mark.parametrize("extra", [{}, FUNNELS], ids=str)
def test_hits_are_sent_as_queued_with_the_command_of_each_alone(
    settings: Settings, extra: dict[str, Any]
) -> None:
    settings.READTRACK = BUFFERED | extra | {"CLUSTER": {"partitions": 1}}
    visitors = [
        Visitor("a", fallback_id="b", new_cookie="c"),
        Visitor("a"),
        Visitor("u", fallback_id="a", kind="user"),
        Visitor("d", fallback_id="e", kind="day"),
        Visitor("f", kind="address", opted_out=True),
    ]
    hits = [
        Hit(
            visitor,
            buckets.now() + timedelta(seconds=seconds),
            views,
            is_report=is_report,
            **others,
        )
        for visitor in visitors
        for seconds in (0, 61, 0)
        for views in (
            ("site.post:1",),
            ("site.post:2",),
            ("site.category:1",),
            ("site.post:1", "site.post:3"),
        )
        for is_report in (False, True)
        for others in (
            {},
            {"dimensions": (("device", "phone"),)},
            {"stand_in": "s"} if visitor == Visitor("a") else {},
        )
    ]
    alone = [*map(count_views, hits)]
    sent = batch.count_batch(
        waiting.entry_of(queued, prefix="") for queued in map(waiting.queued_form, hits)
    )
    expected = batch.count_batch(map(batch.entry_of_call, alone))
    assert (sent.keys, sent.args) == (expected.keys, expected.args)
    assert ("new keys" in sent.args) == (not extra)


@pytest.mark.parametrize("prefix", ["", "site:", "café:"])  # Redis counts bytes
@pytest.mark.one_server("a batch of several partitions is made of objects")
def test_a_batch_leaves_in_redis_what_its_hits_leave_alone(
    redis: Redis, settings: Settings, prefix: str
) -> None:
    settings.READTRACK = {**BUFFERED, "PREFIX": prefix}
    visitors = [
        Visitor("a" * 16, "b" * 16, "cookie"),
        Visitor("c", "d"),
        Visitor("e"),
        Visitor("ü", kind="address"),
    ]
    hits = [
        Hit(visitor, at, (subject,), stand_in=stand_in)
        for at in (buckets.now(), buckets.now() + timedelta(minutes=1))
        for visitor in visitors
        for subject in ("site.post:1", "site.post:22", "site.page:%C3%A9")
        for stand_in in ("", "f")
    ]

    def left_by(*calls: scripts.Call[Any]) -> dict[str, Any]:
        redis.flushdb()
        scripts.run_all(*calls)
        listed = {str(name) for name in redis.zrange(keys.unsettled(""), 0, -1)}
        names = {str(name) for name in redis.keys("*")} - {
            keys.unsettled("")
        }  # whose scores are times
        left = {name: redis.dump(name) for name in names}
        return {"unsettled": {name for name in listed if not name.startswith("epoch")}, **left}

    alone = left_by(*map(count_views, hits))
    queued = map(waiting.queued_form, hits)
    parts = [waiting.entry_of(one, prefix=prefix) for one in queued]
    assert left_by(batch.count_batch(parts)) == alone
    assert len(alone) > 20


def test_a_page_queues_its_view_sets_the_cookie_and_says_so(redis: Redis) -> None:
    post, browser = factories.post(), factories.browser()
    page = browser.get(f"/posts/{post.pk}/")
    assert page["X-Readtrack"] == "queued"
    assert "anon_id" in page.cookies
    assert views(redis) == {}
    assert browser.get(f"/posts/{post.pk}/")["X-Readtrack"] == "queued"
    send()
    assert views(redis) == {f"site.post:{post.pk}": 1}
    assert reports.skips()["repeat"] == 1


@pytest.mark.parametrize(
    "way", ["queued", "queued as an object", "recorded directly", "without a cookie"]
)
def test_who_brings_no_cookie_is_known_by_address_and_browser(
    rf: Any, redis: Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "recorded directly":
        monkeypatch.setattr(queue, "MOST", 0)
    elif way == "queued as an object":
        settings.READTRACK = {**BUFFERED, "PREFIX": f"{__name__}.tenant"}
    subject = "site.post:1"

    def page(request: Any) -> HttpResponse:
        request.readtrack.views[subject] = None
        return HttpResponse(
            headers={"Cache-Control": "public"} if way == "without a cookie" else {}
        )

    for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2"):
        for agent in (factories.BROWSER, factories.BROWSER.replace("Linux", "FreeBSD")):
            request = rf.get("/", REMOTE_ADDR=address, headers={"User-Agent": agent})
            response: Any = ReadTrackMiddleware(page)(request)
            assert ("queued" in response["X-Readtrack"]) == (way != "recorded directly")
    send()
    assert scripts.run(counters.totals([subject]))[subject].views == 4
    assert redis.get(keys.rate(visitors.address_id(request))) == "1"


def test_an_async_page_queues_its_view(redis: Redis) -> None:
    post = factories.post()
    assert (
        factories.fetch_async(AsyncClient(), f"/posts/{post.pk}/async/")["X-Readtrack"] == "queued"
    )
    send()
    assert views(redis) == {f"site.post:{post.pk}": 1}


def test_views_are_sent_after_the_time_of_the_setting(redis: Redis) -> None:
    post = factories.post()
    for _ in range(2):  # the thread goes on
        factories.browser(REMOTE_ADDR="192.0.2.1").get(f"/posts/{post.pk}/")
        assert comes_true(lambda: views(redis) == {f"site.post:{post.pk}": 1})
        redis.flushdb()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ANONYMOUS": "hash"},
        {"NUMBERS": {"dimensions": ["device"], "funnels": True}, "UNIQUE": "set"},
    ],
)
def test_many_views_are_one_round_trip_and_count_as_alone(
    redis: Redis, wire: Wire, settings: Settings, options: dict[str, Any]
) -> None:
    def state() -> dict[str, Any]:
        unstable = (
            "views:unsettled",
            "visitors:key",
            "viewed:",
            "rate:",
            "views:unique:",
            "views:hll:",
        )
        kept = [key for key in map(str, redis.keys("*")) if not key.startswith(unstable)]
        return {key: redis.dump(key) for key in kept}

    settings.READTRACK = {**BUFFERED, **options, "RATE": (3, 10)}
    hits = [
        factories.hit(
            "site.post:1",
            f"site.post:{number}",
            dimensions=(("device", "phone"),) * ("NUMBERS" in options),
        )
        for number in range(2, 7)
    ]
    hits += [hits[0]._replace(views=(f"site.post:{number}",)) for number in range(7, 11)]
    for hit in hits:
        tracker.record(hit)
    alone, found = state(), views(redis)
    redis.flushdb()
    read_state.begin(0)
    for hit in hits:
        assert hit_buffer.take(hit) == Outcome(queued=hit.views)
    load_scripts(redis)
    with wire.counted() as trips:
        send()
    assert trips == [1 + 1]  # the second has the skips of the first
    assert views(redis) == found
    assert {key: value for key, value in state().items() if "skips" not in key} == {
        key: value for key, value in alone.items() if "skips" not in key
    }


def test_each_view_of_a_batch_is_its_own_visitors(redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {**BUFFERED, "UNIQUE": "set"}
    for name in ("ann", "bob", "cleo"):
        hit_buffer.take(factories.hit(f"site.post:{len(name)}", visitor=Visitor(name)))
    send()
    assert redis.smembers("views:unique:site.post:3") == {"ann", "bob"}
    assert redis.smembers("views:unique:site.post:4") == {"cleo"}


def test_the_rate_of_a_visitor_holds_in_a_batch_of_several_partitions(settings: Settings) -> None:
    settings.READTRACK = {**BUFFERED, "CLUSTER": {"partitions": 16}, "RATE": (5, 10)}
    posts = [factories.post() for _ in range(7)]
    for post in posts:
        hit_buffer.take(factories.hit(subject_of(post), visitor=Visitor("ann")))
    send()
    assert sum(reports.views(posts).values()) == 5


@pytest.mark.parametrize(
    "partitions", [pytest.param(1, marks=pytest.mark.one_server("needs partitions")), 16]
)
def test_the_rate_of_hits_that_waited_is_that_of_the_time_when_they_came(
    settings: Settings, partitions: int
) -> None:
    settings.READTRACK = {**BUFFERED, "CLUSTER": {"partitions": partitions}, "RATE": (5, 10)}
    ago = buckets.now().replace(second=0, microsecond=0) - timedelta(minutes=2)
    readers = {
        "reader": 7.0,
        "flood": 0.1,
        "robot": 7.0,
        "script": 1.5,
    }  # seconds between their hits
    posts = {name: [factories.post() for _ in range(8)] for name in readers}
    robots.mark_robots(["robot"])
    for name, pause in readers.items():
        for number, post in enumerate(posts[name]):
            hit = factories.hit(
                subject_of(post), visitor=Visitor(name), at=ago + timedelta(seconds=pause * number)
            )
            hit_buffer.take(hit)
            if (
                name == "script"
            ):  # whose hit is taken back; with partitions once the batch was counted
                hit_buffer.take(hit._replace(is_report=True))
    send()
    counted = {name: sum(reports.views(some).values()) for name, some in posts.items()}
    assert counted == {
        "reader": 8,
        "flood": 5,
        "robot": 0,
        "script": 5 + 1 if partitions == 1 else 3 + 1,
    }
    assert reports.skips()["honeypot"] == 8


def test_a_batch_counts_the_refusal_of_the_hit_that_was_refused() -> None:
    """What a page's script repeats is expected, and is no skip."""
    told = factories.hit("site.post:1", is_report=True)
    tracker.record(told)
    for hit in (
        factories.hit("site.post:2", visitor=Visitor("bob")),
        told,
        factories.hit("site.post:2"),
    ):
        hit_buffer.take(hit)
    send()
    assert not reports.skips()["repeat"]


def test_more_views_than_one_script_takes_are_sent_by_several(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def noting(parts: Iterable[Any], of: Callable[[Sequence[Any]], Any] = batch.count_batch) -> Any:
        several = list(parts)
        sizes.append(len(several))
        return of(several)

    monkeypatch.setattr(queue, "BATCH", 4)
    monkeypatch.setattr(batch, "count_batch", noting)
    for post in factories.neighbours(10):
        hit_buffer.take(factories.hit(subject_of(post)))
    send()
    assert len(views(redis)) == 10
    assert sizes == [4, 4, 2]


def test_a_full_queue_records_directly(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MOST", 2)
    said = [
        factories.browser(REMOTE_ADDR=f"192.0.2.{n}").get(f"/posts/{factories.post().pk}/")
        for n in range(4)
    ]
    assert [page["X-Readtrack"] for page in said] == ["queued", "queued", "counted", "counted"]
    assert len(views(redis)) == 2
    send()
    assert len(views(redis)) == 4


def test_a_process_that_ends_records_directly(redis: Redis) -> None:
    factories.browser().get(f"/posts/{factories.post().pk}/")
    hit_buffer.close()
    page = factories.browser(REMOTE_ADDR="192.0.2.1").get(f"/posts/{factories.post().pk}/")
    assert page["X-Readtrack"] == "counted"
    assert len(views(redis)) == 2
    skip_buffer.clear()  # it is due again
    tracker.skip(["site.post:1"], "bot")
    assert reports.skips()["bot"] == 1


def test_what_is_read_does_not_wait(redis: Redis) -> None:
    category, browser = factories.category(), factories.browser(factories.user())
    assert browser.get(f"/categories/{category.pk}/")["X-Readtrack"] == "read"
    assert "readtrack-dot__text" not in browser.get("/list/").text


def test_visitors_by_a_hash_of_the_day_wait_as_well(redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {**BUFFERED, "ANONYMOUS": "hash"}
    post = factories.post()
    for _ in range(2):
        assert factories.browser().get(f"/posts/{post.pk}/")["X-Readtrack"] == "queued"
    send()
    assert redis.get(f"views:total:site.post:{post.pk}") == "1"


def test_visitors_by_a_hash_of_the_day_do_not_wait_for_a_redis_that_hangs(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """A process that has no key of the day, as after midnight, learns that Redis hangs by two pages."""
    settings.READTRACK = {**BUFFERED, "ANONYMOUS": "hash", "TIMEOUT": 1}
    Circuit.longest_pause = 60
    with create_server(("127.0.0.1", 0)) as listener:
        use_redis(settings, f"redis://127.0.0.1:{listener.getsockname()[1]}/0")
        day_keys._known_keys.clear()

        def look_at_a_page() -> float:
            post, began = factories.post(), monotonic()
            page = factories.browser().get(f"/posts/{post.pk}/")
            assert page["X-Readtrack"] == "skipped; reason=error"
            return monotonic() - began

        assert look_at_a_page() >= 1
        look_at_a_page()
        assert is_ever_below(0.5, look_at_a_page)
    skip_buffer.clear()


def test_visitors_by_a_hash_of_the_day_that_is_known_wait_for_redis(
    redis: Redis, settings: Settings
) -> None:
    settings.READTRACK = {**BUFFERED, "ANONYMOUS": "hash"}
    Circuit.longest_pause = 60
    posts = [factories.post(), factories.post()]
    for post in posts:
        assert factories.browser().get(f"/posts/{post.pk}/")["X-Readtrack"] == "queued"
        circuit.pause = inf
        circuit.opened = monotonic()
    circuit.opened = None
    send()
    assert len(views(redis)) == 2


def test_a_step_does_not_wait_and_counts_the_view_before_it(
    redis: Redis, settings: Settings
) -> None:
    settings.READTRACK = {**BUFFERED, "NUMBERS": {"funnels": True}}
    post, browser = factories.post(), factories.browser()
    assert browser.get(f"/posts/{post.pk}/")["X-Readtrack"] == "queued"
    assert browser.get(f"/posts/{post.pk}/buy/")["X-Readtrack"] == "step"
    send()
    assert [stage.count for stage in numbers_reports.funnel(post)] == [1, 1, 1]


def test_robots_are_counted_by_the_thread_as_well(wire: Wire, redis: Redis) -> None:
    with wire.counted() as trips:
        for _ in range(3):
            tracker.skip(["site.post:1"], "bot")
    assert trips == [0]
    with wire.counted() as trips:
        send()
    assert trips == [1]
    assert reports.skips()["bot"] == 3


def test_notices_of_addresses_are_sent_with_the_views(redis: Redis) -> None:
    watch.notices.add("one address")
    factories.browser().get(f"/posts/{factories.post().pk}/")
    send()
    assert redis.hgetall(redis.keys("views:skips:*")[0]) == {"one address": "1"}


def test_a_lost_answer_counts_no_view_twice(wire: Wire, redis: Redis) -> None:
    hits = [factories.hit("site.post:1") for _ in range(5)]
    for hit in hits:
        hit_buffer.take(hit)

    def lose(moment: str, trip: int) -> None:
        if moment == "answer":
            wire.hook = None
            wire.drop()

    wire.hook = lose
    send()
    assert views(redis) == {"site.post:1": 5}


def test_views_wait_for_a_redis_that_comes_back(
    start_redis: Callable[..., Valkey], settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.READTRACK = {**BUFFERED}
    Circuit.longest_pause = 0.1
    server = start_redis()
    clock.ask()
    server.stop()
    page = factories.browser().get(f"/posts/{factories.post().pk}/")
    assert page["X-Readtrack"] == "queued"
    assert comes_true(lambda: circuit.opened is not None)
    assert (
        factories.browser(REMOTE_ADDR="192.0.2.1").get(f"/posts/{factories.post().pk}/")[
            "X-Readtrack"
        ]
        == "queued"
    )
    server.start()
    with Redis.from_url(server.url, decode_responses=True) as redis:
        assert comes_true(lambda: len(redis.keys("views:total:*")) == 2)


def test_views_that_were_sent_too_long_ago_are_errors(
    settings: Settings, redis: Redis, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings.READTRACK = {**BUFFERED, "WINDOW": 0}
    Circuit.longest_pause = 0.01
    there = settings.CACHES
    hit_buffer.take(factories.hit("site.post:1"))
    settings.CACHES = {"default": {**there["default"], "LOCATION": "redis://127.0.0.1:1/0"}}
    assert comes_true(lambda: bool(skip_buffer.skips))
    settings.CACHES = there
    send()
    assert views(redis) == {}
    assert reports.skips()["error"] == 1


def test_the_end_of_a_process_tells_what_redis_did_not_take(
    settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "PATIENCE", 0.1)
    monkeypatch.setattr(queue, "GRACE", 0.5)
    settings.CACHES = {
        "default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    }
    hit_buffer.take(factories.hit("site.post:1"))
    hit_buffer.close()
    assert "1 queued views were not recorded before the process ended." in caplog.text
    hit_buffer.clear()


def test_the_thread_asks_a_redis_that_pages_do_without(redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {**BUFFERED}
    Circuit.longest_pause = 600
    circuit.pause = inf
    circuit.opened = monotonic()
    hit_buffer.take(factories.hit("site.post:1"))
    assert comes_true(lambda: views(redis) == {"site.post:1": 1})
    assert circuit.opened is None


@pytest.mark.parametrize("seconds", [0.5, 4])
def test_the_end_of_a_process_waits_for_a_redis_that_hangs(
    start_redis: Start, settings: Settings, caplog: pytest.LogCaptureFixture, seconds: float
) -> None:
    settings.READTRACK = {"BUFFER": {"seconds": 60}, "TIMEOUT": 0.25}
    Circuit.longest_pause = 600
    server = start_redis()
    clock.ask()
    with Redis.from_url(server.url, decode_responses=True) as redis:
        for number in range(300):
            hit_buffer.take(factories.hit(f"site.post:{number}"))
        skip_buffer.add(key_of(buckets.now()), ["bot"] * 3)
        server.pause()
        threading.Timer(seconds, server.resume).start()
        send()
        assert len(views(redis)) == 300
        assert reports.skips()["bot"] == 3


def test_hits_wait_with_the_others_while_the_end_of_a_process_waits_for_redis(
    start_redis: Start, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.READTRACK = {"BUFFER": {"seconds": 60}, "TIMEOUT": 0.25}
    Circuit.longest_pause = 600
    server = start_redis()
    clock.ask()
    with Redis.from_url(server.url, decode_responses=True) as redis:
        hit_buffer.take(factories.hit("site.post:1"))
        server.pause()
        hit_buffer._end(0.0)
        assert hit_buffer.take(factories.hit("site.post:2"))
        server.resume()
        send()
        assert views(redis) == {"site.post:1": 1, "site.post:2": 1}
    assert hit_buffer._thread is None


def test_skips_are_sent_at_the_end_of_a_process_that_pages_do_without_redis() -> None:
    Circuit.longest_pause = 600
    circuit.pause = inf
    circuit.opened = monotonic()
    tracker.skip(["site.post:1"], "bot")
    skip_buffer.close()
    circuit.close()
    assert reports.skips()["bot"] == 1


def test_a_green_thread_that_a_fork_has_copied_sends_nothing(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As gevent's do, where a page was served before the fork."""
    senders: set[threading.Thread | None] = set()

    def noting(send: Callable[[], None] = hit_buffer._send_all) -> None:
        senders.add(threading.current_thread())
        send()

    monkeypatch.setattr(hit_buffer, "_send_all", noting)
    hit_buffer.take(factories.hit("site.post:1"))
    soon: Any = hit_buffer._soon
    assert comes_true(lambda: len(soon._cond._waiters) == 1)  # until BUFFER seconds are over
    hit_buffer.clear()  # as in the child
    hit_buffer.take(factories.hit("site.post:2"))
    assert comes_true(lambda: not soon._cond._waiters)
    assert comes_true(lambda: views(redis) == {"site.post:2": 1})
    assert senders == {hit_buffer._thread}


def test_a_hit_that_redis_refuses_costs_the_others_nothing(redis: Redis) -> None:
    hits = [factories.hit(f"site.post:{number}") for number in range(3)]
    redis.set("views:hour:none", 1)
    redis.rpush("views:total:site.post:1", "no number")
    for hit in hits:
        hit_buffer.take(hit)
    send()
    redis.delete("views:total:site.post:1")
    assert views(redis) == {"site.post:0": 1, "site.post:2": 1}
    assert reports.skips()["error"] == 1
    assert circuit.opened is None


REFUSALS = {
    "NOREPLICAS": ("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"),
    "OOM": ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
    "MASTERDOWN": ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
}


@pytest.mark.parametrize(("refuse", "serve"), REFUSALS.values(), ids=REFUSALS)
def test_views_wait_for_a_redis_that_refuses_all_writes(
    start_redis: Start,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    refuse: str,
    serve: str,
) -> None:
    settings.READTRACK = {**BUFFERED}
    Circuit.longest_pause = 0.1
    server = start_redis(replica_serve_stale_data="no")
    with Redis.from_url(server.url, decode_responses=True) as redis:
        clock.ask()
        redis.execute_command(refuse)
        for number in range(8):  # by one reader, each seven seconds
            at = buckets.now() - timedelta(seconds=7 * number)
            hit_buffer.take(factories.hit(f"site.post:{number}", visitor=Visitor("ann"), at=at))
        assert comes_true(lambda: circuit.opened is not None)
        redis.execute_command(serve)
        assert comes_true(lambda: views(redis) == {f"site.post:{number}": 1 for number in range(8)})
        send()
        assert not redis.keys("views:skips:*")


def test_an_error_of_ours_ends_no_thread(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(batch, "count_batch", None)
        hit_buffer.take(factories.hit("site.post:1"))
        assert comes_true(lambda: bool(skip_buffer.skips))
    assert "Queued views could not be recorded." in caplog.text
    hit_buffer.take(factories.hit("site.post:2"))
    send()
    assert views(redis) == {"site.post:2": 1}
    assert reports.skips()["error"] == 1


def test_without_a_thread_views_are_recorded_directly(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert hit_buffer.take(factories.hit("site.post:1")) is None
        assert not hit_buffer.take_skips()


def test_views_of_tenants_keep_their_prefixes(
    redis: Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "due", 0.0)
    settings.READTRACK = {**BUFFERED, "PREFIX": f"{__name__}.tenant"}
    for name in ("red", "blue"):
        _tenant.name = name
        hit_buffer.take(factories.hit("site.post:1"))
    _tenant.name = "green"
    send()
    assert clock.due > 0  # Redis's clock was asked along with them
    assert sorted(map(str, redis.keys("*views:total:*"))) == [
        "blue:views:total:site.post:1",
        "red:views:total:site.post:1",
    ]


_tenant = threading.local()


def tenant() -> str:
    return str(getattr(_tenant, "name", "none"))


def test_a_forked_process_sends_nothing_of_its_parent(redis: Redis, forks: Forks) -> None:
    code = run(
        """
hit_buffer.take(hit("site.post:1"))
child = os.fork()
if not child: signal.alarm(60)
hit_buffer.take(hit(f"site.post:{2 if child else 3}"))
if child: assert os.waitpid(child, 0)[1] == 0
""",
        forks,
    )
    assert code == 0
    assert views(redis) == {"site.post:1": 1, "site.post:2": 1, "site.post:3": 1}


def test_a_fork_of_multiprocessing_sends_its_views_at_its_end(redis: Redis, forks: Forks) -> None:
    """As the workers of granian are, whose exit handlers Python calls since 3.13 only."""
    code = run(
        """
import multiprocessing
fork = multiprocessing.get_context("fork")
process = fork.Process(target=hit_buffer.take, args=(hit("site.post:1"),))
process.start()
process.join()
assert process.exitcode == 0
""",
        forks,
    )
    assert code == 0
    assert views(redis) == {"site.post:1": 1}


HANDLERS = {
    "default": ("", -signal.SIGTERM),
    "ignored": ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", 0),
    "a function": ("signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))", 7),
}


@pytest.mark.parametrize(("before", "code"), HANDLERS.values(), ids=HANDLERS)
def test_sigterm_sends_the_views_and_then_does_what_it_did(
    redis: Redis, forks: Forks, before: str, code: int
) -> None:
    program = f"""
{before}
hit_buffer.begin()
hit_buffer.begin()
hit_buffer.take(hit("site.post:1"))
os.kill(os.getpid(), signal.SIGTERM)
"""
    assert run(program, forks) == code
    assert views(redis) == {"site.post:1": 1}


HANGS = """
from readtrack.conf import Conf
from readtrack.store.connection import connect
Conf.TIMEOUT = 0.25
hit_buffer.take(hit("site.post:1"))
connect(patient=True).execute_command("CLIENT", "PAUSE", 4000, "ALL")
"""


def test_sigterm_leaves_a_server_time_for_its_requests_though_redis_hangs(
    redis: Redis, forks: Forks
) -> None:
    program = f"""
from readtrack.buffer import queue
queue.PATIENCE = 0.25  # much less than Redis hangs, also on a busy machine
def leave(number, frame): sys.exit(7 if hit_buffer._waiting_hits else 8)
signal.signal(signal.SIGTERM, leave)
hit_buffer.begin()
{HANGS}
os.kill(os.getpid(), signal.SIGTERM)
"""
    assert run(program, forks) == 7
    assert views(redis) == {"site.post:1": 1}


def test_sigterm_that_ends_the_process_waits_for_a_redis_that_hangs(
    redis: Redis, forks: Forks
) -> None:
    program = f"""
hit_buffer.begin()
{HANGS}
os.kill(os.getpid(), signal.SIGTERM)
"""
    assert run(program, forks) == -signal.SIGTERM
    assert views(redis) == {"site.post:1": 1}


def test_sigterm_is_left_alone_outside_of_the_main_thread() -> None:
    handler = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=ReadTrackMiddleware, args=(lambda request: HttpResponse(),))
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) == handler


def run(code: str, forks: Forks) -> int:
    """Runs the code in a process of its own. Returns its exit code."""
    start = """
import os, signal, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
from readtrack.buffer.queue import hit_buffer
from tests.support.factories import hit
from django.conf import settings
"""
    return forks.run(start + code).code


def test_enough_hits_are_sent_at_once(
    redis: Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.READTRACK = {**BUFFERED, "BUFFER": {"seconds": 60}}
    monkeypatch.setattr(queue, "ENOUGH", 20)
    for post in factories.neighbours(20):
        assert hit_buffer.take(factories.hit(subject_of(post)))
    assert comes_true(lambda: len(views(redis)) == 20)


@pytest.mark.usefixtures("redis")
def test_a_thread_that_never_rests_lets_the_queue_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "ENOUGH", 500)
    hits = [factories.hit(subject_of(post)) for post in factories.neighbours(500)]
    direct = 0
    for _ in range(8):
        for hit in hits:
            direct += hit_buffer.take(hit) is None
            sum(range(4000))  # what the page itself takes
            Path().stat()  # releases the GIL for a moment, as a server does for each request
    assert direct == 0
