"""Another user of the machine can neither use the servers of the demo and of the tests nor read
their passwords, and can lead no program of ours to a file of ours.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg
import pymysql  # type: ignore[import-untyped]
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from demo_project import state
from demo_project.engines import private
from demo_project.engines.engine import Engine
from demo_project.engines.postgres import Postgres
from demo_project.engines.process import Child, ChildError
from demo_project.engines.valkey import Valkey
from tests.demo.running import running
from tests.security.strangers import (
    SERVER,
    STRANGER,
    as_user,
    contents,
    everything_in,
    needs_root,
    plant_links,
    told_by_processes,
)
from tests.support.mariadb import MariaDB, is_installed
from tests.support.rows import each_row
from tests.support.sentinel import Sentinel
from tests.support.waiting import comes_true

ROOT = Path(__file__).parents[2]

# By default redis-py tries a wrong password again, for seconds.
NEVER = Retry(NoBackoff(), 0)

needs_mariadb = pytest.mark.skipif(not is_installed(), reason="no MariaDB is installed")


def new(name: str) -> Engine:
    if name == "postgres":
        return Postgres()
    if name == "mariadb":
        return MariaDB()
    if name == "sentinel":
        return WithoutReplica(Valkey())
    if name == "cluster":
        return Valkey(config={"cluster-enabled": "yes"})
    return Valkey(config={"appendonly": "yes"})


class WithoutReplica(Sentinel):
    """A Sentinel that waits for no replica to be found."""

    def start(self) -> None:
        Engine.start(self)


SERVERS = [
    "valkey",
    "cluster",
    "sentinel",
    "postgres",
    pytest.param("mariadb", marks=needs_mariadb),
]


class Server(NamedTuple):
    name: str
    engine: Engine


@pytest.fixture(params=SERVERS, scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Returns each of the servers in turn. All tests of one server follow each other."""
    with new(request.param) as engine:
        yield Server(request.param, engine)


def password_of(engine: Engine) -> str:
    url: str = engine.url  # type: ignore[attr-defined]  # each server has one
    password = urlsplit(url).password or ""
    assert len(password) >= 32
    return password


def is_refused(name: str, port: int | None, password: str | None) -> bool:
    """Returns whether the server lets nobody in with this password, by its own words."""
    try:
        if name == "postgres":
            address = f"host=127.0.0.1 port={port} user=postgres dbname=postgres connect_timeout=5"
            psycopg.connect(address, password=password).close()
        elif name == "mariadb":
            pymysql.connect(
                host="127.0.0.1", port=port, user="root", password=password or ""
            ).close()
        else:
            with redis.Redis(port=port or 0, password=password, retry=NEVER) as client:
                client.ping()
    except psycopg.OperationalError as error:
        return "password" in str(error)
    except pymysql.OperationalError as error:
        return bool(error.args[0] == 1045)  # access denied
    except redis.AuthenticationError:
        return True
    return False


@each_row("password", [None, "", "postgres", "wrong"])
def test_a_server_lets_nobody_in_without_its_password(server: Server, password: str | None) -> None:
    port = server.engine.port
    assert is_refused(server.name, port, password)
    assert not is_refused(server.name, port, password_of(server.engine))


@needs_mariadb
@pytest.mark.parametrize("server", ["mariadb"], indirect=True)
@each_row("account", ["root", "", "mariadb.sys", "mysql"])
def test_no_account_of_mariadb_is_without_a_password(server: Server, account: str) -> None:
    path = server.engine.data / "mariadb.sock"
    with pytest.raises(pymysql.OperationalError, match=r"1045|1698|4151"):
        pymysql.connect(unix_socket=str(path), user=account)


def test_only_the_starter_and_the_server_can_read_a_servers_files(server: Server) -> None:
    engine = server.engine
    files = [path for path in engine.folder.iterdir() if path.is_file()]
    modes = {path.name: mode_of(path) for path in files}
    programs = {"valkey-server": 0o755} if "valkey-server" in modes else {}
    assert modes == dict.fromkeys(modes, 0o600) | programs
    assert mode_of(engine.data) == 0o700
    assert mode_of(engine.folder) == (0o700 if os.geteuid() else 0o711)
    assert engine.folder.stat().st_uid == os.geteuid()


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_no_log_and_no_command_line_holds_a_password(server: Server) -> None:
    engine = server.engine
    password = password_of(engine)
    assert password not in private.read(engine.folder / "server.log")
    assert password not in Path(f"/proc/{engine.pid}/cmdline").read_text()


@needs_root
def test_a_stranger_reads_and_changes_nothing_of_a_server(server: Server) -> None:
    engine = server.engine
    paths = everything_in(engine.folder)
    password = password_of(engine)
    seen = as_user(STRANGER, lambda: contents(paths))
    assert not [path for path, text in seen.items() if password in text]
    beside_programs = {path.relative_to(engine.folder).parts[0] for path in map(Path, seen)}
    assert beside_programs <= {"programs", "valkey-server"}
    assert as_user(STRANGER, lambda: plant_links(paths, Path("/etc/passwd"))) == []
    sockets = [path for path in paths if path.is_socket()]
    assert as_user(STRANGER, lambda: [str(path) for path in sockets if reaches(path)]) == []
    assert password not in as_user(STRANGER, told_by_processes)


def reaches(path: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    except OSError:
        return False
    return True


@pytest.fixture
def treasure(tmp_path: Path) -> Iterator[Path]:
    """Returns a folder of ours with a file, which must stay as they are."""
    folder = tmp_path / "treasure"
    folder.mkdir()
    file = folder / "file"
    file.write_text("ours")
    file.chmod(0o600)
    before = [path.lstat()[:6] for path in (folder, file)]
    yield folder
    assert [path.lstat()[:6] for path in (folder, file)] == before
    assert file.read_text() == "ours"


@needs_root
@pytest.mark.parametrize("name", SERVERS)
def test_links_that_the_servers_user_plants_lead_root_nowhere(treasure: Path, name: str) -> None:
    """Each file that root might write, open, change or remove becomes a link to one of root's, as a
    program that runs as nobody can do it.
    """
    with new(name) as engine:
        engine.kill()
        likely = ["dump.rdb", "postmaster.pid", "server.log", "valkey.conf", "valkey.log", "x"]
        names = [engine.folder / name for name in likely] + [engine.data / name for name in likely]
        inside = [path for path in engine.folder.glob("*/*") if path.parent.name != "programs"]
        paths = [*engine.folder.iterdir(), *inside, *names]
        planted = as_user(SERVER, lambda: plant_links(paths, treasure / "file"))
        assert all(Path(path).parent != engine.folder for path in planted)
        # The server misses its data, which its own user has taken away.
        with suppress(ChildError):
            engine.start()
        engine.kill()
        folders = [engine.data / "appendonlydir", engine.data / "base"]
        as_user(SERVER, lambda: plant_links(folders, treasure))
        with suppress(ChildError):
            engine.restart(keep=False) if isinstance(engine, Valkey) else engine.start()
    assert not engine.folder.exists()


def test_a_log_and_a_file_of_ours_are_never_opened_by_a_link(
    tmp_path: Path, treasure: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(treasure / "file")
    with pytest.raises(OSError, match="symbolic"):
        Child(["/bin/true"], log=link)
    with pytest.raises(OSError, match="symbolic"):
        private.read(link)
    private.write(link, "secret")
    assert not link.is_symlink()
    assert link.stat().st_mode & 0o777 == 0o600


def test_what_a_killed_process_leaves_is_removed_without_following_links(
    tmp_path: Path, treasure: Path
) -> None:
    rubbish = tmp_path / "rubbish"
    rubbish.mkdir()
    (rubbish / "folder").symlink_to(treasure)
    (rubbish / "file").symlink_to(treasure / "file")
    code = (
        "import os, sys; from pathlib import Path;"
        "from demo_project.engines.process import Child;"
        "folder = Path(sys.argv[1]);"
        "Child(['/bin/sleep', '60'], log=folder / 'log', rubbish=folder);"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(rubbish)], cwd=ROOT, check=False)
    assert comes_true(lambda: not rubbish.exists())


def passwords_of_this_run() -> list[str]:
    urls = f"{os.environ['READTRACK_TEST_REDIS_URL']} {os.environ['DATABASE_URL']}".split()
    return [password for url in urls if (password := urlsplit(url).password)]


def test_the_servers_of_the_tests_ask_for_a_password() -> None:
    assert len(passwords_of_this_run()) >= 2
    assert is_refused(
        "valkey", urlsplit(os.environ["READTRACK_TEST_REDIS_URL"].split()[0]).port, None
    )
    assert is_refused("postgres", urlsplit(os.environ["DATABASE_URL"]).port, "")


@needs_root
def test_a_stranger_learns_no_password_of_a_test_run() -> None:
    told = as_user(STRANGER, told_by_processes)
    assert "pytest" in told
    assert not [password for password in passwords_of_this_run() if password in told]


@needs_root
def test_a_stranger_gets_nothing_out_of_a_running_demo() -> None:
    with running() as demo:
        urls = {name: urlsplit(demo.servers[name]) for name in ("REDIS_URL", "DATABASE_URL")}
        passwords = [url.password for url in urls.values()]
        assert all(passwords)
        paths = everything_in(demo.folder)

        def look() -> dict[str, Any]:
            return {
                "files": contents(paths),
                "processes": told_by_processes(),
                "planted": plant_links(paths, Path("/etc/passwd")),
                "refused": [
                    is_refused("valkey", urls["REDIS_URL"].port, ""),
                    is_refused("postgres", urls["DATABASE_URL"].port, ""),
                ],
            }

        seen = as_user(STRANGER, look)
    told = seen["processes"] + "".join(seen["files"].values())
    assert "granian" in told
    assert not [password for password in passwords if password in told]
    assert seen["planted"] == []
    assert seen["refused"] == [True, True]


@needs_root
def test_no_stranger_can_take_the_place_of_the_file_that_tells_other_terminals_of_a_demo() -> None:
    place = state.path()
    place.parent.mkdir(exist_ok=True)
    assert as_user(STRANGER, lambda: plant_links([place], Path("/etc/passwd"))) == []
