"""The doctor sees what is wrong with a Redis server."""

import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.doctor import redis
from readtrack.doctor.findings import Order
from readtrack.store import server
from readtrack.store.server import families
from readtrack.subjects import subject_of
from tests.conftest import Start, use_redis
from tests.doctor.conftest import found, levels
from tests.support.factories import hit, post

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("config", "name", "level", "words"),
    [
        ({}, "eviction", "ok", "noeviction"),
        ({"maxmemory_policy": "allkeys-lru"}, "eviction", "error", "may delete counts"),
        ({"maxmemory_policy": "volatile-ttl"}, "eviction", "warning", "what tells repeats"),
        ({"maxmemory": "1000000"}, "eviction", "warning", "counts nothing more"),
        ({"maxmemory": "1000000000"}, "eviction", "ok", "noeviction"),
        ({}, "persistence", "warning", "keeps nothing over a restart"),
        ({"appendonly": "yes"}, "persistence", "ok", "AOF"),
        ({"save": "3600 1"}, "persistence", "ok", "save 3600 1"),
        ({}, "role", "ok", "a primary, with 0 replicas"),
        ({"cluster_enabled": "yes"}, "role", "error", "part of a cluster"),
        ({}, "version", "ok", "The server is"),
        ({}, "scripts", "ok", "load and run"),
        ({}, "answer", "ok", "A PING takes"),
    ],
)
def test_a_server_is_judged_by_how_it_is_configured(
    start_redis: Start, config: dict[str, str], name: str, level: str, words: str
) -> None:
    start_redis(**config)
    [finding] = found(name)
    assert finding.level == level
    assert words in finding.message
    assert bool(finding.hint) == (level != "ok")


def test_a_server_that_is_stopped_is_one_error_and_nothing_more_is_asked_of_it(start_redis: Start) -> None:
    valkey = start_redis()
    valkey.stop()
    [finding] = found("answer")
    assert finding.level == "error"
    assert finding.hint.startswith(f"CACHES['default'] points at 127.0.0.1:{valkey.port}. Is Redis running there")
    assert not found("memory")
    assert found("migrations")


def test_a_user_that_redis_does_not_know_is_told_where_to_look(start_redis: Start, settings: Settings) -> None:
    use_redis(settings, start_redis().url.replace("redis://", "redis://nobody:wrong@"))
    [finding] = found("answer")
    assert finding.hint == "Look at the user and the password in CACHES['default']."
    assert "wrong" not in str(finding)


@pytest.mark.parametrize(
    ("cache", "words"),
    [
        ({"LOCATION": ""}, "Missing connections string"),
        ({"LOCATION": "127.0.0.1:6379"}, "must specify one of the following schemes"),
        ({"LOCATION": "redis://127.0.0.1:99999/0"}, "Port out of range"),
        ({"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}, "'LocMemCache' object has no attribute"),
        ({"BACKEND": "nowhere.Cache"}, "nowhere"),
    ],
    ids=["none", "no scheme", "no port", "another cache", "no cache"],
)
def test_settings_that_name_no_redis_are_an_error(settings: Settings, cache: dict[str, str], words: str) -> None:
    settings.CACHES = {"default": {**settings.CACHES["default"], **cache}}
    [finding] = found("answer")
    assert finding.level == "error"
    assert finding.message.startswith("CACHES['default'] names no Redis: ")
    assert words in finding.message
    assert "redis://127.0.0.1:6379/0" in finding.hint
    assert not found("drift")
    assert found("migrations")


def test_a_server_that_hangs_is_found_out_within_the_pages_own_time_out(start_redis: Start, settings: Settings) -> None:
    settings.READTRACK = {}
    start_redis().pause()
    begin = time.perf_counter()
    assert levels("answer") == ["error"]
    assert time.perf_counter() - begin < 5


def test_a_dump_that_failed_is_an_error(start_redis: Start) -> None:
    valkey = start_redis()
    valkey.folder.chmod(0o500)
    with Redis.from_url(valkey.url) as client:
        client.bgsave()
        while client.info("persistence")["rdb_bgsave_in_progress"]:
            time.sleep(0.01)
    assert found("persistence")[0][1:3] == ("error", "Redis's last dump failed.")


def test_a_replica_takes_no_writes(start_redis: Start) -> None:
    primary, replica = start_redis(), start_redis()
    with Redis.from_url(replica.url) as client:
        client.replicaof("127.0.0.1", primary.port)
        assert levels("role") == ["error"]


class _Slow(socketserver.BaseRequestHandler):
    """Passes requests on after a while."""

    port = 0

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            while request := self.request.recv(65536):
                time.sleep(0.01)
                server.sendall(request)
                self.request.sendall(server.recv(65536))


@pytest.fixture
def far_away(start_redis: Start, settings: Settings) -> Iterator[None]:
    """A server that every answer takes a while to come from."""
    handler = type("Slow", (_Slow,), {"port": start_redis().port})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as relay:
        relay.daemon_threads = True
        threading.Thread(target=relay.serve_forever, daemon=True).start()
        use_redis(settings, f"redis://127.0.0.1:{relay.server_address[1]}/0")
        yield
        relay.shutdown()


@pytest.mark.usefixtures("far_away")
def test_a_server_far_away_is_a_warning() -> None:
    [finding] = found("answer")
    assert finding.level == "warning"
    assert "every page waits" in finding.hint.lower()


@pytest.mark.parametrize(
    ("rights", "expected"),
    [
        ("-info", {"version": "note", "role": "note", "eviction": "note", "persistence": "note", "scripts": "ok"}),
        ("-config", {"version": "ok", "persistence": "note", "scripts": "ok"}),
        ("-memory", {"memory": "note", "scripts": "ok"}),
        ("-ping", {"answer": "note", "version": "ok"}),
        ("-evalsha", {"scripts": "error", "version": "ok"}),
        ("-script|load", {"scripts": "error"}),
    ],
)
def test_a_user_with_few_rights_gets_notes_not_a_crash(
    start_redis: Start, settings: Settings, rights: str, expected: dict[str, str]
) -> None:
    valkey = start_redis()
    with Redis.from_url(valkey.url) as client:
        client.execute_command("ACL", "SETUSER", "site", "on", ">secret", "~*", "+@all", *rights.split())
        client.script_flush()
        client.set("views:total:site.post:1", 1)
    use_redis(settings, valkey.url.replace("redis://", "redis://site:secret@"))
    assert {name: found(name)[0].level for name in expected} == expected


@pytest.mark.parametrize(
    ("info", "finding"),
    [
        ({"redis_version": "6.0.16"}, ("error", "The server is Redis 6.0.16.")),
        ({"redis_version": "6.2.0"}, ("ok", "The server is Redis 6.2.0.")),
        ({"redis_version": "7.2.4", "valkey_version": "9.1.2"}, ("ok", "The server is Valkey 9.1.2.")),
        ({}, ("note", "The server does not tell its version.")),
    ],
)
def test_versions_are_judged_by_the_servers_own(info: dict[str, Any], finding: tuple[str, str]) -> None:
    [(level, message, _)] = redis.version(Order(1, print, info))
    assert (level, message) == finding


def test_a_log_that_cannot_be_written_is_an_error() -> None:
    first, *_ = redis.persistence(Order(1, print, {"aof_enabled": 1, "aof_last_write_status": "err"}))
    assert first[:2] == ("error", "Redis's last write to the log failed.")


@pytest.mark.parametrize("prefix", ["", "site:"])
def test_memory_is_told_by_kind_for_our_keys_only(redis: Redis, settings: Settings, prefix: str) -> None:
    settings.READTRACK = {"PREFIX": prefix}
    redis.mset(dict.fromkeys(["session:1", ":1:views.decorators.cache.cache_page.x", "total"], "somebody else's"))
    for _ in range(3):
        tracker.record(hit(subject_of(post())))
    kinds = {family.name: family.keys for family in families(sample=100, progress=len_of)}
    assert kinds["views:total:{id}"] == kinds["viewed:{visitor}:{id}"] == 3
    ours = {name: family for name, family in server.key_families().items() if name != "other"}
    assert kinds == {name: family.keys for name, family in ours.items()}
    assert "views:total:{id}" in found("memory")[0].message


def test_an_empty_server_has_no_keys(redis: Redis) -> None:
    assert families(sample=10, progress=len_of) == []
    assert "no keys yet" in found("memory")[0].message


@pytest.mark.parametrize(("sample", "scans"), [(500, 9), (15_000, 9), (15_000, 1), (50_000, 99)])
def test_a_sample_of_the_keys_stands_for_all_of_them(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, sample: int, scans: int
) -> None:
    monkeypatch.setattr(server, "SCANS", scans)
    redis.mset({f"views:total:site.post:{number}": 1 for number in range(20_000)})
    [(name, keys, size)] = families(sample=sample, progress=len_of)
    assert (name, keys) == ("views:total:{id}", 20_000)
    assert 30 * 20_000 < size < 400 * 20_000


def len_of(count: int) -> None:
    """Takes the progress."""
