"""The doctor sees what is wrong with a Redis server, and how pages wait for it."""

import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.doctor import findings, measurements
from readtrack.store.connection import PATIENCE
from readtrack.store.skips import skip_buffer
from tests.conftest import Start, use_redis
from tests.doctor.conftest import found, levels
from tests.support.waiting import ENOUGH

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("config", "name", "level", "words"),
    [
        ({}, "eviction", "ok", "noeviction"),
        ({"maxmemory_policy": "allkeys-lru"}, "eviction", "error", "may delete counts"),
        (
            {"maxmemory_policy": "volatile-ttl"},
            "eviction",
            "warning",
            "keys that mark repeated views",
        ),
        ({"maxmemory": "1000000"}, "eviction", "error", "Nothing is counted now"),
        ({"maxmemory": "1000000000"}, "eviction", "ok", "noeviction"),
        ({}, "persistence", "note", "keeps nothing over a restart"),
        ({"appendonly": "yes"}, "persistence", "ok", "AOF"),
        ({"save": "3600 1"}, "persistence", "ok", "save 3600 1"),
        ({}, "role", "ok", "a primary with 0 replicas"),
        ({"cluster_enabled": "yes"}, "role", "error", "part of a cluster"),
        ({}, "version", "ok", "The server is"),
        ({}, "scripts", "ok", "load and run"),
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


def test_a_server_that_is_stopped_is_one_error_and_no_further_question(start_redis: Start) -> None:
    valkey = start_redis()
    valkey.stop()
    [finding] = found("connection")
    assert finding.level == "error"
    assert finding.hint.startswith(
        f"CACHES['default'] points at 127.0.0.1:{valkey.port}. Is Redis running there"
    )
    assert not found("version")
    assert found("flushes")


def test_for_a_user_unknown_to_redis_the_hint_names_the_setting(
    start_redis: Start, settings: Settings
) -> None:
    use_redis(settings, start_redis().url_of("nobody", "wrong"))
    [finding] = found("connection")
    assert finding.hint == "Correct the user or the password in CACHES['default']."
    assert "wrong" not in str(finding)


@pytest.mark.parametrize(
    ("cache", "words"),
    [
        ({"LOCATION": ""}, "Missing connections string"),
        ({"LOCATION": "127.0.0.1:6379"}, "must specify one of the following schemes"),
        ({"LOCATION": "redis://127.0.0.1:99999/0"}, "Port out of range"),
        (
            {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": ""},
            "LocMemCache, which is not in Redis",
        ),
        ({"BACKEND": "nowhere.Cache"}, "nowhere"),
    ],
    ids=["none", "no scheme", "no port", "another cache", "no cache"],
)
def test_settings_that_name_no_redis_are_an_error(
    settings: Settings, cache: dict[str, str], words: str
) -> None:
    settings.CACHES = {"default": {**settings.CACHES["default"], **cache}}
    [finding] = found("connection")
    assert finding.level == "error"
    assert finding.message.startswith("CACHES['default'] names no Redis: ")
    assert words in finding.message
    assert "redis://127.0.0.1:6379/0" in finding.hint
    assert not found("drift")
    assert found("flushes")


def test_a_server_that_hangs_is_found_out_within_the_pages_own_time_out(
    start_redis: Start, settings: Settings
) -> None:
    settings.READTRACK = {"TIMEOUT": 0.25}
    start_redis().pause()
    begin = time.perf_counter()
    assert levels("connection") == ["error"]
    assert time.perf_counter() - begin < PATIENCE / 2


def test_a_dump_that_failed_is_an_error(start_redis: Start) -> None:
    valkey = start_redis()
    valkey.data.chmod(0o500)
    with Redis.from_url(valkey.url) as client:
        client.bgsave()
        while client.info("persistence")["rdb_bgsave_in_progress"]:
            time.sleep(0.01)
    assert found("persistence")[0][:2] == ("error", "The last dump (RDB) of Redis failed.")


def test_a_replica_takes_no_writes(start_redis: Start) -> None:
    primary, replica = start_redis(), start_redis()
    with Redis.from_url(replica.url) as client:
        client.replicaof("127.0.0.1", primary.port)
        assert levels("role") == ["error"]


def test_a_server_that_answers_at_once_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "readtrack.doctor.findings.SLOW", ENOUGH
    )  # a busy machine takes longer than a network
    [finding] = found("connection")
    assert (finding.level, finding.message[:12]) == ("ok", "A PING takes")


class _Slow(socketserver.BaseRequestHandler):
    """Passes requests on after 10 ms."""

    port = 0

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            while request := self.request.recv(65536):
                time.sleep(0.01)
                server.sendall(request)
                self.request.sendall(server.recv(65536))


@pytest.fixture
def far_away(start_redis: Start, settings: Settings) -> Iterator[None]:
    """Puts a relay before the server that delays every answer."""
    valkey = start_redis()
    handler = type("Slow", (_Slow,), {"port": valkey.port})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as relay:
        relay.daemon_threads = True
        threading.Thread(target=relay.serve_forever, daemon=True).start()
        port = relay.server_address[1]
        use_redis(settings, f"redis://:{valkey.password}@127.0.0.1:{port}/0")
        yield
        relay.shutdown()


@pytest.mark.usefixtures("far_away")
def test_a_server_far_away_is_a_warning() -> None:
    [finding] = found("connection")
    assert finding.level == "warning"
    assert "every page waits" in finding.hint.lower()


@pytest.mark.parametrize(
    ("rights", "expected"),
    [
        (
            "-info",
            {
                "version": "note",
                "role": "note",
                "eviction": "note",
                "persistence": "note",
                "scripts": "ok",
            },
        ),
        ("-config", {"version": "ok", "persistence": "note", "scripts": "ok"}),
        ("-ping", {"connection": "note", "version": "ok"}),
        ("-evalsha", {"scripts": "error", "version": "ok"}),
        ("-eval", {"scripts": "error"}),
        ("-script", {"connection": "ok", "scripts": "ok"}),
    ],
)
def test_a_user_with_few_rights_gets_notes_not_a_crash(
    start_redis: Start, settings: Settings, rights: str, expected: dict[str, str]
) -> None:
    valkey = start_redis()
    with Redis.from_url(valkey.url) as client:
        client.execute_command(
            "ACL", "SETUSER", "site", "on", ">secret", "~*", "+@all", *rights.split()
        )
        client.script_flush()
        client.set("views:total:site.post:1", 1)
    use_redis(settings, valkey.url_of("site", "secret"))
    assert {name: found(name)[0].level for name in expected} == expected


@pytest.mark.parametrize(
    ("info", "finding"),
    [
        ({"redis_version": "6.0.16"}, ("error", "The server is Redis 6.0.16.")),
        ({"redis_version": "6.2.0"}, ("ok", "The server is Redis 6.2.0.")),
        (
            {"redis_version": "7.2.4", "valkey_version": "9.1.2"},
            ("ok", "The server is Valkey 9.1.2."),
        ),
        ({}, ("note", "The server does not tell its version.")),
    ],
)
def test_versions_are_judged_by_the_servers_own(
    info: dict[str, Any], finding: tuple[str, str]
) -> None:
    version = measurements.version(SimpleNamespace(info=lambda: info))
    [(level, message, *_)] = findings.of_version(version)
    assert (level, message) == finding


@pytest.mark.parametrize(
    ("used", "level"), [(90, "ok"), (91, "warning"), (99, "warning"), (100, "error")]
)
def test_a_server_is_judged_by_how_full_it_is(used: int, level: str) -> None:
    [finding] = findings.of_memory(measurements.Memory(policy="noeviction", used=used, limit=100))
    assert finding.level == level


def test_a_server_that_hides_its_eviction_policy_is_a_note() -> None:
    memory = measurements.memory(SimpleNamespace(info=lambda: {"redis_version": "7.2.4"}))
    [(level, message, hint, _name)] = findings.of_memory(memory)
    assert (level, message) == ("note", "The server does not tell its maxmemory-policy.")
    assert hint == "It has to be noeviction."


def test_a_log_that_cannot_be_written_is_an_error() -> None:
    told = {"aof_enabled": 1, "aof_last_write_status": "err"}
    client = SimpleNamespace(info=lambda: told, config_get=lambda name: {})
    first, *_ = findings.of_persistence(measurements.persistence(client))
    assert first[:2] == ("error", "The last write to the log (AOF) of Redis failed.")


@pytest.mark.parametrize("number", [99, 16])
def test_a_database_that_the_server_does_not_have_is_named(
    start_redis: Start, settings: Settings, number: int
) -> None:
    valkey = start_redis()
    use_redis(settings, valkey.url.removesuffix("/0") + f"/{number}")
    [finding] = found("connection")
    assert finding.level == "error"
    assert "Redis has no database of that number" in finding.message
    assert "LOCATION in CACHES['default']" in finding.hint
    assert not found("scripts")  # it is said once


def test_a_database_of_a_cluster_has_no_number(start_redis: Start, settings: Settings) -> None:
    # Valkey 9 has databases in a cluster, too, as many as it is told.
    valkey = start_redis(cluster_enabled="yes")
    use_redis(settings, valkey.url.removesuffix("/0") + "/3")
    assert "Redis has no database of that number" in found("connection")[0].message


def test_views_that_found_no_connection_are_a_warning(settings: Settings) -> None:
    kwargs = {"max_connections": 7}
    options = {**settings.CACHES["default"].get("OPTIONS", {}), "CONNECTION_POOL_KWARGS": kwargs}
    settings.CACHES = {"default": {**settings.CACHES["default"], "OPTIONS": options}}
    assert levels("connections") == ["ok"]
    tracker.skip(["site.post:1", "site.post:2"], "busy")
    skip_buffer.send_rest()
    [finding] = found("connections")
    assert finding.level == "warning"
    assert "2 views did not count" in finding.message
    assert "max_connections is 7" in finding.message
    assert "maxclients is " in finding.message


@pytest.mark.parametrize(
    ("seconds", "level", "words"),
    [
        (0, "ok", "agrees with Redis's"),
        (-3, "ok", "agrees with Redis's"),
        (90, "warning", "clock is 90 s ahead of Redis's"),
        (-7_300, "warning", "clock is 2 h behind Redis's"),
    ],
)
def test_a_clock_that_is_not_that_of_redis_is_told(
    monkeypatch: pytest.MonkeyPatch, seconds: int, level: str, words: str
) -> None:
    monkeypatch.setattr(measurements, "time", lambda: time.time() + seconds)
    [finding] = found("clock")
    assert finding.level == level
    assert words in finding.message
