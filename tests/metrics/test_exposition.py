"""Metrics: read by parsers of both formats, equal to what is counted by hand, and closed to all
whom METRICS does not name.
"""

import re
import socket
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_open_metrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text
from pytest_django import DjangoAssertNumQueries, Settings
from redis import Redis

from readtrack import buckets, reports, tracker
from readtrack.flush.run import flush
from readtrack.hits.hit import REASONS
from readtrack.hits.stages import STAGES
from readtrack.hits.visitors import Visitor
from readtrack.models import FlushRun, PendingPublication
from readtrack.numbers.models import History
from readtrack.store import connection, keys, skips
from readtrack.subjects import counted_models, label_of, subject_of
from tests.conftest import Start, use_redis
from tests.doctor.conftest import SECOND, run
from tests.site.models import Page, Post, Product
from tests.support import factories
from tests.support.counts import view_times
from tests.support.faulty import missing
from tests.support.forks import Forks
from tests.support.frozen import freeze_time
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

URL = "/readtrack/metrics"
TOKEN = "a-secret-that-nobody-guesses"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
OPEN_METRICS = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"

Samples = dict[tuple[str, str], float]  # by the name of the sample, and the value of its label


@pytest.fixture(autouse=True)
def _token(settings: Settings) -> None:
    settings.READTRACK = {"METRICS": {"token": TOKEN}, "RATE": (0, 10), "TIMEOUT": 10.0}


def exposed(accept: str = OPEN_METRICS, **values: Any) -> list[Metric]:
    """Returns the metrics, as a parser of their format reads them."""
    response = Client().get(URL, headers={**BEARER, "Accept": accept}, **values)
    assert response.status_code == 200
    is_open = response["Content-Type"].startswith("application/openmetrics-text")
    return [*(parse_open_metrics if is_open else parse_text)(response.text)]


def samples_of(metrics: list[Metric]) -> Samples:
    samples: Samples = {}
    for metric in metrics:
        for sample in metric.samples:
            assert len(sample.labels) <= 1
            samples[sample.name, "".join(sample.labels.values())] = sample.value
    return samples


def scrape(**values: Any) -> Samples:
    return samples_of(exposed(**values))


def status(client: Client | None = None, **values: Any) -> int:
    return int((client or Client()).get(URL, **values).status_code)


def test_without_a_setting_there_are_no_metrics(settings: Settings) -> None:
    settings.READTRACK = {}
    assert status(headers=BEARER) == 404
    assert status(factories.browser(factories.user(is_superuser=True))) == 404


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer {TOKEN}", 200),
        (f"Bearer {TOKEN}x", 401),
        (f"Bearer {TOKEN[:-1]}", 401),
        (f"Bearer {TOKEN.upper()}", 401),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        ("Bearer ", 401),
        ("Bearer é", 401),
        ("", 401),
    ],
)
def test_the_token_has_to_be_the_sites(header: str, expected: int) -> None:
    response = Client().get(URL, headers={"Authorization": header})
    assert response.status_code == expected
    assert response.has_header("WWW-Authenticate") == (expected == 401)
    assert bool(response.content) == (expected == 200)


@pytest.mark.parametrize(
    ("networks", "peer", "forwarded", "expected"),
    [
        (["10.0.0.0/8"], "10.2.3.4", "", 200),
        (["10.2.3.4"], "10.2.3.4", "", 200),
        (["192.168.0.0/16", "10.0.0.0/8"], "10.2.3.4", "", 200),
        (["10.0.0.0/8"], "11.2.3.4", "", 403),
        (["::1"], "::1", "", 200),
        (["2001:db8:1:2::/64"], "2001:db8:1:2::77", "", 200),
        (["2001:db8:1:2::/64"], "2001:db8:1:3::77", "", 403),
        (["10.0.0.0/8"], "2001:db8::1", "", 403),
        (["10.0.0.0/8"], "", "", 403),
        # Behind a proxy it is the address that the proxy has seen, not one that a client made up.
        (["198.51.100.0/24"], "10.0.0.1", "198.51.100.9", 200),
        (["198.51.100.0/24"], "10.0.0.1", "198.51.100.9, 203.0.113.5", 403),
        (["10.0.0.0/8"], "10.0.0.1", "203.0.113.5", 403),
        (["198.51.100.0/24"], "203.0.113.5", "198.51.100.9", 403),
    ],
)
def test_the_address_has_to_be_in_a_network(
    settings: Settings, networks: list[str], peer: str, forwarded: str, expected: int
) -> None:
    settings.READTRACK = {"METRICS": {"networks": networks}}
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    assert status(headers=headers, REMOTE_ADDR=peer) == expected


def test_with_a_token_and_networks_both_have_to_fit(settings: Settings) -> None:
    settings.READTRACK = {"METRICS": {"token": TOKEN, "networks": ["10.0.0.0/8"]}}
    assert status(headers=BEARER, REMOTE_ADDR="10.0.0.1") == 200
    assert status(REMOTE_ADDR="10.0.0.1") == 401
    assert status(headers=BEARER, REMOTE_ADDR="11.0.0.1") == 403


@pytest.mark.parametrize(
    "setting",
    [
        {"token": ""},
        {"token": None},
        {"token": "short"},
        {"networks": []},
        {"networks": "127.0.0.1"},
        {"networks": ["localhost"]},
        {"networks": None},
        {"tokens": TOKEN},
        {"token": TOKEN, "networks": ["127.0.0.1", "nonsense"]},
        {"token": TOKEN, "network": "127.0.0.1"},
    ],
    ids=str,
)
def test_while_the_setting_is_wrong_nobody_may_read_them(
    settings: Settings, setting: dict[str, Any]
) -> None:
    settings.READTRACK = {"METRICS": setting}
    for header in (f"Bearer {TOKEN}", "Bearer ", "Bearer None", "Bearer short"):
        assert status(headers={"Authorization": header}) == 403


def test_a_site_where_everybody_has_to_sign_in_is_scraped_without_a_session(
    settings: Settings,
) -> None:
    required = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, required]
    assert status(headers=BEARER) == 200
    assert status(factories.browser(factories.user(is_superuser=True))) == 401


def test_no_cache_keeps_them_and_no_visitor_is_made() -> None:
    response = factories.browser().get(URL, headers=BEARER)
    assert "no-store" in response["Cache-Control"]
    assert not response.cookies
    assert Client().head(URL, headers=BEARER).content == b""
    assert Client().post(URL, headers=BEARER).status_code == 405


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4"),
        ("*/*", "text/plain; version=0.0.4"),
        ("text/html", "text/plain; version=0.0.4"),
        (OPEN_METRICS, "application/openmetrics-text; version=1.0.0"),
        ("application/openmetrics-text", "application/openmetrics-text; version="),
        ("application/openmetrics-text; version=x", "text/plain; version=0.0.4"),
        ("text/plain; version=1.x; escaping=", "text/plain; version=0.0.4"),
    ],
)
def test_both_formats_have_the_same_numbers(accept: str, content_type: str) -> None:
    run(ago=60)
    response = Client().get(URL, headers={**BEARER, "Accept": accept})
    assert response["Content-Type"].startswith(content_type)
    named = samples_of(exposed(accept))
    plain = samples_of(exposed("text/plain"))
    assert named.keys() == plain.keys()
    assert len(named) > 20
    for name, value in plain.items():
        is_age = "memory" in name[0] or "age" in name[0]
        assert is_age or named[name] == value


def test_every_metric_says_what_it_is_and_in_which_unit() -> None:
    run(ago=60)
    metrics = exposed()
    for metric in metrics:
        assert metric.documentation.endswith((".", ").")), metric.name
        assert metric.type in {"counter", "gauge"}
        assert metric.name.startswith("readtrack_")
        if metric.name.endswith(("_seconds", "_bytes")):
            assert metric.unit == metric.name.rpartition("_")[2]
    assert len({metric.documentation for metric in metrics}) == len(metrics)


def test_the_page_about_metrics_has_every_metric_with_its_label() -> None:
    page = Path("docs/howto/metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(readtrack_\w+)` \| (?:`(\w+)`)? ?\|", page, re.MULTILINE)
    run(ago=60)
    measured = {
        (sample.name, "".join(sample.labels)) for metric in exposed() for sample in metric.samples
    }
    if keys.is_divided():  # a cluster has no memory of its own
        rows = [row for row in rows if "memory" not in row[0]]
        measured = {sample for sample in measured if "memory" not in sample[0]}
    assert sorted(rows) == sorted(measured)


def test_views_are_those_that_the_tables_have() -> None:
    posts = [factories.post() for _ in range(4)]
    product = Product.objects.create(name="x")
    for number, post in enumerate(posts):
        view_times(post, number + 1)
    view_times(product, 3)
    flush()
    view_times(posts[0])
    flush(only_changed=True)
    samples = scrape()
    for model in (Post, Product, Page):
        by_hand = sum(model.objects.values_list("view_count", flat=True))
        assert samples["readtrack_views_total", label_of(model)] == by_hand
    assert samples["readtrack_views_total", "site.post"] == 11


@pytest.mark.parametrize("stage", STAGES)
def test_stages_of_views_are_those_of_all_objects_of_a_model(stage: str) -> None:
    post = factories.post()
    view_times(post, 3)
    now = buckets.hour_index(buckets.now())
    rows = [(f"{stage}:site.post", 5, 4), (f"{stage}:site.post", 0, 9)]
    rows.append((f"{stage}:{subject_of(post)}", 0, 5))
    for subject, hours_ago, views in rows:
        History.objects.create(subject=subject, hour=now - hours_ago, views=views, visitors=0)
    samples = scrape()
    assert samples[f"readtrack_{stage}_total", "site.post"] == 9
    assert samples[f"readtrack_{stage}_total", "site.product"] == 0


def test_a_counter_does_not_fall_when_counts_do() -> None:
    kept, reset, deleted = (factories.post() for _ in range(3))
    for post in (kept, reset, deleted):
        view_times(post, 5)
    flush()
    assert scrape()["readtrack_views_total", "site.post"] == 15
    tracker.reset_views(reset)
    deleted.delete()
    assert scrape()["readtrack_views_total", "site.post"] == 15
    view_times(kept, 2)
    assert scrape()["readtrack_views_total", "site.post"] == 15
    flush()
    assert scrape()["readtrack_views_total", "site.post"] == 17


def test_a_redis_that_lost_everything_lowers_no_counter_of_views(redis: Redis) -> None:
    post = factories.post()
    view_times(post, 5)
    flush()
    redis.flushdb()
    view_times(post, 2)
    assert scrape()["readtrack_views_total", "site.post"] == 5
    assert scrape()["readtrack_unsettled_counters", ""] > 0
    flush()
    samples = scrape()
    assert samples["readtrack_views_total", "site.post"] == 7
    assert samples["readtrack_unsettled_counters", ""] == 0


def test_a_site_without_history_has_no_counters_of_views(settings: Settings) -> None:
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {"history": False}}
    view_times(factories.post(), 2)
    flush()
    samples = scrape()
    assert samples["readtrack_sql_up", ""] == 1
    assert "readtrack_views_total" not in {name for name, _ in samples}


@freeze_time("2026-11-20 02:30:00")
def test_skips_are_those_since_midnight_by_reason(redis: Redis) -> None:
    now = buckets.now()
    for hours, reason, number in (
        (0, "bot", 2),
        (1, "bot", 3),
        (2, "repeat", 4),
        (3, "repeat", 50),
        (25, "bot", 50),
    ):
        redis.hincrby(skips.key_of(now - hours * buckets.HOUR), reason, number)
    samples = scrape()
    assert samples["readtrack_skips_total", "bot"] == 5
    assert samples["readtrack_skips_total", "repeat"] == 4
    assert samples["readtrack_skips_total", "error"] == 0


def test_skips_are_those_that_reports_have() -> None:
    post = factories.post()
    browser = factories.browser()
    for _ in range(3):
        browser.get(f"/posts/{post.pk}/")
    robot = factories.browser(headers={"User-Agent": "Googlebot/2.1"})
    robot.get(f"/posts/{post.pk}/")
    skips.skip_buffer.send()
    samples = scrape()
    counted = reports.skips()
    assert counted["bot"] == 1
    for reason in REASONS:
        assert samples["readtrack_skips_total", reason] == counted[reason]


def test_no_label_has_what_a_visitor_sent() -> None:
    post = factories.post()
    evil = 'Evilbot"} 1\nreadtrack_views_total{model="x'
    browser = factories.browser(headers={"User-Agent": evil.replace("\n", " "), "Referer": evil})
    browser.get(f"/posts/{post.pk}/?utm_campaign={evil}")
    skips.skip_buffer.send()
    flush()
    allowed: dict[str, set[Any]] = {
        "model": {label_of(model) for model in counted_models()},
        "reason": set(REASONS),
        "kind": {"changed", "full"},
    }
    for metric in exposed():
        for sample in metric.samples:
            for name, value in sample.labels.items():
                assert value in allowed[name]


def test_visitors_are_the_different_ones_of_the_last_minutes() -> None:
    posts = [factories.post() for _ in range(3)]
    now = buckets.now()
    for post in posts:
        for name, minutes in (("ann", 1), ("bob", 2), ("eve", 9)):
            at = now - minutes * buckets.MINUTE
            tracker.record(factories.hit(subject_of(post), visitor=Visitor(name), at=at))
    assert scrape()["readtrack_recent_visitors", ""] == 2


def test_flushes_have_the_time_at_which_the_last_good_one_began() -> None:
    samples = scrape()
    assert ("readtrack_flush_last_success_timestamp_seconds", "changed") not in samples
    full = run(ago=500, took=7, kind="archive", failed=2)
    changed = run(ago=90, took=3, kind="changed")
    run(ago=10, kind="changed", error="OperationalError: gone")
    run(ago=5, took=None, kind="changed")
    samples = scrape()
    name = "readtrack_flush_last_success_timestamp_seconds"
    assert samples[name, "changed"] == pytest.approx(changed.started.timestamp())
    assert samples[name, "full"] == pytest.approx(full.started.timestamp())
    assert samples["readtrack_flush_duration_seconds", "changed"] == 3
    assert samples["readtrack_flush_duration_seconds", "full"] == 7
    assert samples["readtrack_flush_failures", "full"] == 2
    assert samples["readtrack_flush_failed", ""] == 1
    assert samples["readtrack_flush_late_after_seconds", ""] == 180
    newest = run(ago=1, took=0, kind="full")
    samples = scrape()
    assert samples[name, "changed"] == pytest.approx(newest.started.timestamp())
    assert samples["readtrack_flush_failed", ""] == 0


def test_publications_that_wait_are_counted_with_their_age() -> None:
    assert scrape()["readtrack_outbox_age_seconds", ""] == 0
    for ago in (50, 200):
        PendingPublication.objects.create(
            subject="site.category:1", written=buckets.now() - ago * SECOND
        )
    samples = scrape()
    assert samples["readtrack_outbox_publications", ""] == 2
    assert 200 <= samples["readtrack_outbox_age_seconds", ""] < 260


@pytest.mark.one_server("each server of a cluster has a memory of its own")
def test_memory_is_that_which_redis_compares_with_its_limit(start_redis: Start) -> None:
    with Redis.from_url(start_redis(maxmemory="100000000").url) as client:
        samples = scrape()
        used = int(client.info("memory")["used_memory"])
    assert samples["readtrack_redis_memory_limit_bytes", ""] == 100_000_000
    assert samples["readtrack_redis_memory_used_bytes", ""] == pytest.approx(used, rel=0.2)


@pytest.mark.one_server("each server of a cluster has a memory of its own")
def test_a_redis_that_refuses_to_tell_its_memory_is_up(
    start_redis: Start, settings: Settings
) -> None:
    server = start_redis()
    with Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "default", "-info")
    connection.connect().ping()
    samples = scrape()
    assert samples["readtrack_redis_up", ""] == 1
    assert ("readtrack_skips_total", "bot") in samples
    assert ("readtrack_redis_memory_used_bytes", "") not in samples
    # Pages still ask it.
    view_times(factories.post())


def test_without_redis_the_rest_is_told(settings: Settings) -> None:
    view_times(factories.post(), 3)
    flush()
    use_redis(settings, "redis://127.0.0.1:1/0")
    samples = scrape()
    assert samples["readtrack_redis_up", ""] == 0
    assert samples["readtrack_sql_up", ""] == 1
    assert samples["readtrack_views_total", "site.post"] == 3
    names = {name for name, _ in samples}
    assert not names & {
        "readtrack_skips_total",
        "readtrack_recent_visitors",
        "readtrack_unsettled_counters",
        "readtrack_redis_memory_used_bytes",
    }


def test_a_redis_that_hangs_is_waited_for_no_longer_than_by_a_page(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        use_redis(settings, f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        settings.READTRACK = {**settings.READTRACK, "TIMEOUT": 0.2}
        began = time.monotonic()
        samples = scrape()
        took = time.monotonic() - began
    assert samples["readtrack_redis_up", ""] == 0
    assert 0.2 <= took < connection.PATIENCE / 2


@pytest.mark.django_db(transaction=True)
def test_without_a_table_the_rest_is_told() -> None:
    run(ago=5)
    with missing(FlushRun):
        samples = scrape()
    assert samples["readtrack_sql_up", ""] == 0
    assert samples["readtrack_redis_up", ""] == 1
    assert ("readtrack_skips_total", "bot") in samples
    assert ("readtrack_views_total", "site.post") not in samples


def test_without_a_database_the_rest_is_told(forks: Forks) -> None:
    code = f"""
        from django.conf import settings
        from django.db import connections
        from django.test import Client
        settings.ALLOWED_HOSTS = ["testserver"]
        settings.READTRACK["METRICS"] = {{"token": {TOKEN!r}}}
        from readtrack.conf import conf
        conf.load()
        for alias in connections:
            nowhere = {{"HOST": "127.0.0.1", "PORT": "1", "NAME": "/nowhere/at/all"}}
            connections.settings[alias].update(nowhere, ATOMIC_REQUESTS=True)
        response = Client().get({URL!r}, headers={{"Authorization": "Bearer {TOKEN}"}})
        print(response.status_code, response.text)
    """
    ended = forks.run(textwrap.dedent(code))
    assert ended.code == 0
    assert ended.output.startswith("200 ")
    assert "readtrack_sql_up 0.0" in ended.output
    assert "readtrack_redis_up 1.0" in ended.output
    assert 'readtrack_skips_total{reason="bot"}' in ended.output
    assert "readtrack_views_total" not in ended.output


@pytest.mark.one_server("one answer of each server is a trip")
@pytest.mark.parametrize("partitions", [1, 4])
def test_a_scrape_makes_five_queries_and_two_round_trips(
    partitions: int,
    wire: Wire,
    settings: Settings,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    settings.READTRACK = {**settings.READTRACK, "CLUSTER": {"partitions": partitions}}
    view_times(factories.post())
    flush()
    scrape()
    with wire.counted() as trips, django_assert_num_queries(5):
        scrape()
    assert trips[0] <= 2


def test_the_numbers_of_all_partitions_are_added_up(settings: Settings) -> None:
    settings.READTRACK = {**settings.READTRACK, "CLUSTER": {"partitions": 4}}
    posts = [factories.post() for _ in range(12)]
    assert len({keys.tag(subject_of(post)) for post in posts}) == 4
    for number, post in enumerate(posts):
        for name in ("ann", "bob"):
            tracker.record(factories.hit(subject_of(post), visitor=Visitor(name)))
        view_times(post, number)
    assert scrape()["readtrack_unsettled_counters", ""] >= 12
    flush()
    # History from before the site had partitions.
    History.objects.create(subject="site.post", hour=1, views=1000, visitors=0)
    samples = scrape()
    assert samples["readtrack_views_total", "site.post"] == 1000 + 2 * 12 + sum(range(12))
    assert samples["readtrack_unsettled_counters", ""] == 0
    assert samples["readtrack_recent_visitors", ""] == pytest.approx(2 + sum(range(12)), abs=2)


def test_a_site_without_metrics_does_not_import_the_package(forks: Forks) -> None:
    code = """
        import sys
        from django.test import Client
        from django.conf import settings
        settings.ALLOWED_HOSTS = ["testserver"]
        status = Client().get("/readtrack/metrics").status_code
        print(status, "readtrack.urls" in sys.modules, "prometheus_client" in sys.modules)
    """
    assert forks.run(textwrap.dedent(code)) == (0, "404 True False\n")
