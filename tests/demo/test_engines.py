"""The servers start, stop, crash, restart, and end with the process that started them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
import redis

from demo_project.engines.engine import Engine
from demo_project.engines.postgres import Postgres
from demo_project.engines.process import Child, ChildError, is_free
from demo_project.engines.valkey import Valkey
from tests.support.depth import some
from tests.support.waiting import comes_true

ROOT = Path(__file__).parents[2]


@pytest.fixture
def valkey() -> Iterator[Valkey]:
    with Valkey() as engine:
        yield engine


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with Postgres() as engine:
        yield engine


def has(engine: Valkey, key: str) -> bool:
    with engine.client() as client:
        return bool(client.exists(key))


def put(engine: Valkey, key: str) -> None:
    with engine.client() as client:
        client.set(key, 1)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_valkey_answers_by_tcp_and_by_its_unix_socket(valkey: Valkey) -> None:
    put(valkey, "a")
    with redis.Redis(unix_socket_path=str(valkey.socket), password=valkey.password) as client:
        assert client.exists("a")


def test_a_second_start_is_the_same_server(valkey: Valkey) -> None:
    pid = valkey.pid
    valkey.start()
    assert valkey.pid == pid


def test_valkey_restarts_empty_or_with_its_data_on_the_same_port(valkey: Valkey) -> None:
    put(valkey, "a")
    valkey.restart(keep=True)
    assert has(valkey, "a")
    valkey.restart(keep=False)
    assert not has(valkey, "a")


def test_a_killed_valkey_comes_back_with_its_last_dump(valkey: Valkey) -> None:
    put(valkey, "saved")
    valkey.stop(save=True)
    valkey.start()
    put(valkey, "not saved")
    valkey.kill()
    assert not valkey.is_running
    valkey.restart(keep=True)
    assert has(valkey, "saved")
    assert not has(valkey, "not saved")


def test_a_paused_valkey_is_silent_and_can_still_be_stopped(valkey: Valkey) -> None:
    put(valkey, "a")
    valkey.pause()
    client = valkey.client(socket_timeout=0.1, retry=None)
    with client, pytest.raises(redis.TimeoutError):
        client.ping()
    valkey.resume()
    assert has(valkey, "a")
    valkey.pause()
    valkey.stop()
    assert is_free(valkey.port)


def test_valkey_takes_directives() -> None:
    config = {"maxmemory-policy": "allkeys-lru"}
    with Valkey(config=config) as engine, engine.client() as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "allkeys-lru"}


def test_an_engine_that_is_not_started_says_so() -> None:
    with pytest.raises(ChildError, match="Valkey is not started"):
        Valkey().pause()


PORTS = """
import random, sys
from demo_project.engines.process import free_port
for _ in range(50):
    random.seed(1)  # both processes draw the same ports, each time
    print(free_port(), end=" ")
print(flush=True)
sys.stdin.read()
"""


def test_no_port_is_given_twice_though_nothing_listens_on_it_yet() -> None:
    ports: list[str] = []
    with ExitStack() as stack:
        for _ in range(2):
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", PORTS],
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            assert process.stdout
            ports += process.stdout.readline().split()
    assert len({*ports}) == len(ports) == 100


def test_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ChildError, match=f"port {port} is in use"):
            Valkey(port=port).start()


def test_a_server_that_refuses_its_configuration_shows_its_last_words() -> None:
    with pytest.raises(ChildError, match=r"(?s)did not start.*nonsense"):
        Valkey(config={"nonsense": "1"}).start()


def test_postgres_is_utf8_and_a_folder_lasts_until_it_closes(postgres: Postgres) -> None:
    with psycopg.connect(postgres.url) as connection:
        assert connection.execute("SHOW server_encoding").fetchone() == ("UTF8",)
    assert postgres.data.exists()


@pytest.mark.parametrize("immediate", [False, True])
def test_postgres_keeps_what_was_committed(postgres: Postgres, *, immediate: bool) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
        connection.execute("CREATE TABLE kept AS SELECT 42 AS number")
        postgres.restart(immediate=immediate)  # with this client still connected
    with psycopg.connect(postgres.url) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (42,)


def test_a_killed_postgres_frees_its_port_and_a_durable_one_waits_for_the_disk() -> None:
    with Postgres(durable=True) as engine:
        with psycopg.connect(engine.url) as connection:
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
        engine.kill()
        assert is_free(engine.port)
    assert not engine.folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to step down")
@pytest.mark.parametrize(
    ("name", "file"), [("valkey", "valkey.sock"), ("postgres", "postmaster.pid")]
)
def test_root_runs_servers_as_another_user(
    request: pytest.FixtureRequest, name: str, file: str
) -> None:
    engine: Engine = request.getfixturevalue(name)
    assert (engine.data / file).owner() == "nobody"


PARENT = """
import time
from demo_project.engines.postgres import Postgres
from demo_project.engines.valkey import Valkey
for engine in (Valkey(), Postgres()):
    engine.start()
    print(engine.port, engine.folder, flush=True)
{end}
"""


def start_parent(end: str) -> tuple[subprocess.Popen[str], list[int], list[Path]]:
    """Starts a process with both engines. Returns the process, their ports and their folders."""
    command = [sys.executable, "-c", PARENT.format(end=end)]
    parent = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    lines = [parent.stdout.readline().split() for _ in range(2)]
    return parent, [int(line[0]) for line in lines], [Path(line[1]) for line in lines]


@pytest.mark.parametrize(("end", "killed"), some([("time.sleep(60)", True)], deep=[("", False)]))
def test_engines_and_their_folders_go_with_the_process_that_started_them(
    end: str, *, killed: bool
) -> None:
    parent, ports, folders = start_parent(end)
    with parent:
        if killed:
            parent.kill()
    assert comes_true(lambda: all(map(is_free, ports)))
    assert comes_true(lambda: not any(folder.exists() for folder in folders))


def test_a_forked_process_leaves_the_engines_alone(valkey: Valkey) -> None:
    if (child := os.fork()) == 0:
        valkey.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert valkey.is_running


def test_stopping_a_child_ends_what_it_started_too(tmp_path: Path) -> None:
    child = Child(["/bin/sh", "-c", "sleep 60 & echo $!; wait"], log=tmp_path / "log")
    assert comes_true(lambda: child.log.read_text().endswith("\n"))
    grandchild = int(child.last_lines())
    child.stop(signal.SIGTERM, grace=2)
    assert comes_true(lambda: not is_alive(grandchild))
