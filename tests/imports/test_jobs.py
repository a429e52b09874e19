"""Lines are judged by other processes, and count as without them."""

import json
import multiprocessing
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from pytest_django import Settings

from readtrack.flush.run import flush
from readtrack.imports import ledger, weblog, workers
from readtrack.imports.ledger import ImportRefusedError, Report
from readtrack.imports.models import Import, ImportedLines
from readtrack.imports.rules import Rules
from readtrack.imports.weblog import Importer
from readtrack.imports.workers import Work
from tests.imports import weblogs
from tests.imports.conftest import Victim
from tests.imports.weblogs import START, line
from tests.site.models import Post
from tests.support import factories
from tests.support.addresses import database_url
from tests.support.depth import STRIDE
from tests.support.factories import BROWSER

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        connection.vendor != "postgresql", reason="processes need a database that they share"
    ),
]

# In the environment of each process that a test has started.
MARK = "READTRACK_TEST_OF_JOBS"


@pytest.fixture(autouse=True)
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """What the processes set Django up by, and the mark by which the test finds them."""
    mark = uuid4().hex
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setenv("DATABASE_URL", database_url())
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.settings")
    return mark


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "VIEWS", 10)
    monkeypatch.setattr(weblog, "LINES_AT_ONCE", 20)


@pytest.fixture
def posts() -> list[int]:
    return [factories.post().pk for _ in range(5)]


def rotation(folder: Path, posts: list[int], *, lines: int = 200) -> list[str]:
    """Returns the pieces of a log, the latest first. Visitors come back in the next piece."""
    pieces = []
    for number in range(3):
        start = START + timedelta(seconds=number * lines)
        texts = weblogs.day(posts, lines=lines, seed=number, start=start)
        name = f"access.log.{3 - number}{'.gz' if number else ''}"
        pieces.append(weblogs.write(folder / name, texts, packed=number > 0))
    return pieces[::-1]


def views() -> dict[int, int]:
    return dict(Post.objects.values_list("pk", "view_count"))


def ranges() -> list[str]:
    """Returns which lines have counted, by batch."""
    batches = ImportedLines.objects.order_by("record__name", "position")
    return [*batches.values_list("ranges", flat=True)]


def running(mark: str) -> list[int]:
    """Returns the processes with that mark, without the one that a process keeps for semaphores."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with suppress(OSError):  # it may end meanwhile
                is_marked = f"{MARK}={mark}".encode() in (entry / "environ").read_bytes()
                if is_marked and b"resource_tracker" not in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


@pytest.mark.usefixtures("small_batches")
def test_the_pieces_of_a_rotation_count_as_without_other_processes(
    tmp_path: Path, posts: list[int], mark: str
) -> None:
    paths = rotation(tmp_path, posts)
    alone = Importer(dry_run=True).run(paths)
    beside = Importer(dry_run=True, jobs=2).run(paths)
    assert beside == alone
    assert beside.examples == alone.examples != []
    report = Importer(jobs=2).run(paths)
    assert (report.counted, report.skipped) == (alone.counted, alone.skipped)
    flush()
    counts, batches = views(), ranges()
    assert sum(counts.values()) == report.counted > 100
    assert Importer(jobs=2).run(paths) == Report(finished=3)
    assert running(mark) == []
    Import.objects.all().delete()
    Importer().run(paths)
    flush()
    assert views() == {pk: 2 * count for pk, count in counts.items()}
    assert ranges() == batches


FIELDS = "#Fields: date time cs-method cs-uri-stem c-ip cs(User-Agent) sc-status"
OTHER_FIELDS = "#Fields: date time c-ip cs-method cs-uri-stem sc-status cs(User-Agent)"


def w3c(number: int, *, is_other: bool) -> str:
    agent = BROWSER.replace(" ", "+")
    time_of_line = f"2026-03-01 12:{number // 60:02}:{number % 60:02}"
    if is_other:
        return f"{time_of_line} 192.0.2.{number} GET /posts/1/ 200 {agent}"
    return f"{time_of_line} GET /posts/1/ 192.0.2.{number} {agent} 200"


def kinds_of_logs() -> Iterator[tuple[str, list[str], dict[str, Any]]]:
    """Yields some logs with a state, or with options, and the options."""
    heads = [FIELDS, *(w3c(n, is_other=False) for n in range(100))]
    heads += [OTHER_FIELDS, *(w3c(n, is_other=True) for n in range(100, 200))]
    yield "W3C", heads, {}
    entries = []
    for n in range(100):
        entry = json.loads(weblogs.nginx(kind="ab"[n % 2], remote_addr=f"192.0.2.{n}"))
        entry["seen"] = entry.pop("time_iso8601")
        entries.append(json.dumps(entry))
    yield "JSON", entries, {"fields": {"time": "seen"}, "where": [("kind", "b")]}
    hosts = [line(address=f"{'ab'[n % 2]}.example.com:80 192.0.2.{n}") for n in range(60)]
    yield "hosts", hosts, {"hosts": ["a.example.com"], "until": START + timedelta(hours=1)}


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize(
    ("lines", "options"), [pytest.param(*rest, id=name) for name, *rest in kinds_of_logs()]
)
def test_each_kind_of_log_counts_as_without_other_processes(
    lines: list[str], options: dict[str, Any], tmp_path: Path
) -> None:
    factories.post(pk=1)
    path = weblogs.write(tmp_path / "access.log", lines)
    alone = Importer(dry_run=True, **options).run([path])
    assert Importer(jobs=2, **options).run([path]) == alone
    assert views() == {1: alone.counted}
    assert alone.counted > 20


@pytest.mark.usefixtures("small_batches")
def test_a_file_that_is_given_twice_counts_once(tmp_path: Path, posts: list[int]) -> None:
    [last, *_] = rotation(tmp_path, posts)
    expected = Importer(dry_run=True).run([last]).counted
    assert Importer(jobs=2).run([last, last]).counted == expected
    assert Importer(jobs=2, again=True).run([last, last]).counted == 0
    assert sum(views().values()) == expected


def kill(pids: Callable[[], list[int]]) -> Callable[[int], None]:
    """Returns what kills one of these processes when the first lines were counted."""
    killed: list[int] = []

    def progress(_bytes: int) -> None:
        if not killed:
            killed.append(pids()[0])
            os.kill(killed[0], signal.SIGKILL)

    return progress


@pytest.mark.usefixtures("small_batches")
def test_an_import_one_of_whose_processes_is_killed_may_be_repeated(
    tmp_path: Path, posts: list[int], mark: str
) -> None:
    paths = rotation(tmp_path, posts)
    expected = Importer(dry_run=True).run(paths).counted

    def own() -> list[int]:
        return [process.pid for process in multiprocessing.active_children() if process.pid]

    with pytest.raises(ImportRefusedError, match="ended by itself"):
        Importer(jobs=2, progress=kill(own)).run(paths)
    assert running(mark) == []
    assert Importer(jobs=2).run(paths).counted <= expected
    flush()
    assert sum(views().values()) == expected


def test_an_import_that_is_killed_counts_once_and_its_processes_end(
    victim: Victim, tmp_path: Path, posts: list[int], mark: str
) -> None:
    path = weblogs.write(tmp_path / "access.log", weblogs.day(posts, lines=300))
    expected = Importer(dry_run=True).run([path]).counted
    kills, step = 0, 1
    while (code := victim.run(path, step=step, command="jobs")) == -signal.SIGKILL:
        kills += 1
        step += 12 * max(STRIDE, 4)  # each run starts processes
    assert code == 0
    assert kills > 3
    flush()
    assert sum(views().values()) == expected
    deadline = time.monotonic() + 30
    while len(running(mark)) > 1 and time.monotonic() < deadline:  # 1 is the victim's own
        time.sleep(0.1)
    assert len(running(mark)) == 1


def test_what_a_process_raises_ends_the_import(
    tmp_path: Path, posts: list[int], mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = rotation(tmp_path, posts)
    monkeypatch.setenv("DATABASE_URL", f"{database_url()}_that_is_gone")
    with pytest.raises(OperationalError, match="does not exist"):
        Importer(jobs=2).run(paths)
    assert running(mark) == []
    assert sum(views().values()) == 0


def test_the_command_takes_a_number_of_processes(
    tmp_path: Path, posts: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    paths = rotation(tmp_path, posts, lines=30)
    call_command("readtrack", "import", *paths, "--jobs", "2")
    assert re.search(r"^ +90  read$", capsys.readouterr().out, re.MULTILINE)
    for number in ("0", "-1", "61", "two"):
        with pytest.raises(CommandError, match="is no number of processes from 1 to 60"):
            call_command("readtrack", "import", *paths, f"--jobs={number}")


def test_processes_need_settings_that_they_can_find(
    tmp_path: Path, posts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = rotation(tmp_path, posts, lines=30)
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE")
    with pytest.raises(CommandError, match="--jobs needs the environment variable DJANGO_SETTINGS"):
        call_command("readtrack", "import", *paths, "--jobs=2", verbosity=0)


def tenant() -> str:
    """Returns the tenant of this process, which other processes do not know."""
    return "red"


def test_processes_cannot_know_the_tenant(
    tmp_path: Path, posts: list[int], settings: Settings
) -> None:
    settings.READTRACK = {**settings.READTRACK, "PREFIX": f"{__name__}.tenant"}
    paths = rotation(tmp_path, posts, lines=30)
    with pytest.raises(CommandError, match=r"--jobs cannot be used with tenants .* Without --jobs"):
        call_command("readtrack", "import", *paths, "--jobs=2", verbosity=0)
    assert not Import.objects.exists()
    call_command("readtrack", "import", *paths, verbosity=0)
    assert sum(views().values()) > 0


def test_a_daemonic_process_starts_no_others(
    tmp_path: Path, posts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = rotation(tmp_path, posts, lines=30)
    monkeypatch.setattr(multiprocessing.current_process(), "daemon", True)
    with pytest.raises(CommandError, match="this process is daemonic"):
        call_command("readtrack", "import", *paths, "--jobs=2", verbosity=0)


def test_a_process_begins_each_file_with_its_own_head(posts: list[int]) -> None:
    rules = Rules(
        form="auto",
        fields=(),
        where=(),
        is_decoded=False,
        hosts=(),
        since=None,
        until=None,
        count_robots=False,
    )
    text = w3c(1, is_other=True).replace("/posts/1/", f"/posts/{posts[0]}/").encode()

    def reason_and_line(file: int, head: str, *, with_lines: bool) -> tuple[str, bool]:
        work = Work(
            rules=rules,
            file=file,
            has_agents=True,
            head=head.encode(),
            texts=[text],
            with_lines=with_lines,
        )
        [(reason, *_, line_of_log)] = workers.judge_chunk(work)
        return reason, line_of_log is not None

    assert reason_and_line(1, OTHER_FIELDS, with_lines=False) == ("", False)
    assert reason_and_line(1, OTHER_FIELDS, with_lines=True) == ("", True)
    assert reason_and_line(1, "", with_lines=True) == ("", True)
    assert reason_and_line(2, "", with_lines=True) == ("malformed", False)
    assert reason_and_line(2, FIELDS, with_lines=True)[0] != ""
