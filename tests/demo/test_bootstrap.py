"""`manage.py` notices when it needs an environment, makes it, and says why it cannot."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from demo_project import bootstrap, environment
from tests.support.depth import DEEP
from tests.support.waiting import comes_true
from tests.support.workers import REDIS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Returns a folder that looks like an environment."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.touch()
    return tmp_path


def distribution(
    folder: Path, *, name: str, version: str = "1.0", needs: list[str] | None = None
) -> None:
    """Installs a distribution that has only metadata."""
    lines = [
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {need}" for need in needs or []),
    ]
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines, ""]))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Leaves one folder to import from, with readtrack and nothing that it requires."""
    needs = ["web>=5.2", 'queue[fast]<9,>=5.7; extra == "jobs"', 'readtrack[jobs]; extra == "demo"']
    needs.append('server>=1; sys_platform != "win32" and extra == "demo"')
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    distribution(tmp_path, name="readtrack", needs=needs)
    return tmp_path


def test_a_stamp_changes_with_the_extra_the_requirements_and_the_folder(tmp_path: Path) -> None:
    stamps = set()
    for name, text, constraints in [
        ("a", "x", "1"),
        ("a", "y", "1"),
        ("a", "y", "2"),
        ("b", "y", "2"),
    ]:
        root = tmp_path / name
        (root / "demo_project").mkdir(parents=True, exist_ok=True)
        (root / "pyproject.toml").write_text(text)
        (root / environment.CONSTRAINTS).write_text(constraints)
        stamps |= {environment.stamp(extra, root=root) for extra in ("demo", "test")}
    assert len(stamps) == 8


def test_an_environment_is_good_for_the_extras_it_was_stamped_for(home: Path) -> None:
    (home / "demo.stamp").write_text(environment.stamp("demo"))
    assert environment.is_stamped(home, "demo")
    assert not environment.is_stamped(home, "test")


def test_an_environment_without_its_interpreter_or_with_an_old_stamp_is_not(home: Path) -> None:
    (home / "demo.stamp").write_text("of another pyproject.toml")
    assert not environment.is_stamped(home, "demo")
    (home / "demo.stamp").write_text(environment.stamp("demo"))
    (home / "bin" / "python").unlink()
    assert not environment.is_stamped(home, "demo")


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ("Django>=5.2", ("Django", [], "5.2")),
        ("queue[fast]<9,>=5.7; extra == 'x'", ("queue", ["fast"], "5.7")),
        ("readtrack[celery,postgres]", ("readtrack", ["celery", "postgres"], "")),
        ("is-bot (>=0.3.7) ; python_version >= '3.10'", ("is-bot", [], "0.3.7")),
    ],
)
def test_requirements_are_read(requirement: str, expected: tuple[str, list[str], str]) -> None:
    assert bootstrap.parsed(requirement) == expected


@pytest.mark.usefixtures("installed")
def test_without_readtrack_or_its_requirements_an_environment_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert bootstrap.missing("readtrack[demo]") == "web"
    monkeypatch.setattr(sys, "path", [])
    assert bootstrap.missing("readtrack[demo]") == "readtrack"


def test_requirements_count_with_their_version_and_through_nested_extras(installed: Path) -> None:
    distribution(installed, name="web", version="5.10")
    assert bootstrap.missing("readtrack") == ""
    assert bootstrap.missing("readtrack[demo]") == "queue"
    distribution(installed, name="queue", version="5.6.2")
    assert bootstrap.missing("readtrack[demo]") == "queue"


def test_an_active_environment_with_everything_is_used_as_it_is(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version in [("web", "6"), ("queue", "5.7.0"), ("server", "1")]:
        distribution(installed, name=name, version=version)
    monkeypatch.setattr(sys, "prefix", str(installed))
    assert bootstrap.is_here("demo")
    assert bootstrap.is_at_hand("demo")
    bootstrap.enter("demo")


@pytest.mark.skipif(not DEEP, reason="starts another run of pytest: READTRACK_DEEP=1")
def test_a_pytest_plugin_of_another_package_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution(tmp_path, name="stranger")
    (tmp_path / "stranger-1.0.dist-info" / "entry_points.txt").write_text(
        "[pytest11]\nstranger = stranger\n"
    )
    (tmp_path / "stranger.py").write_text("raise RuntimeError('a stranger was loaded')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/test_buckets.py"]
    run = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_checkouts_own_environment_counts_by_its_stamp(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "HOME", home)
    monkeypatch.setattr(sys, "prefix", str(home))
    assert not bootstrap.is_here("demo")
    (home / "demo.stamp").write_text(environment.stamp("demo"))
    assert bootstrap.is_here("demo")


def extras_in(extra: str) -> set[str]:
    """Returns the extra, and those of `environment.CONTAINED` that pyproject.toml has in it."""
    text = (ROOT / "pyproject.toml").read_text()
    section = text.partition(f"\n{extra} = [")[2].partition("\n]")[0]
    assert section
    found = {extra}
    for name in environment.CONTAINED:
        if re.search(rf"readtrack\[([a-z]+,)*{name}[,\]]", section):
            found |= extras_in(name)
    return found


@pytest.mark.parametrize(("extra", "contained"), environment.CONTAINED.items())
def test_an_extra_contains_those_that_pyproject_has_in_it(extra: str, contained: list[str]) -> None:
    assert extras_in(extra) == set(contained)


def test_an_environment_keeps_its_extras_when_it_gets_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "py3"
    home.mkdir()
    (home / "lint.stamp").write_text("of another pyproject.toml")
    installed: list[list[str]] = []
    monkeypatch.setattr(environment, "HOME", home)
    monkeypatch.setattr(environment, "create", lambda: None)
    monkeypatch.setattr(environment, "install", installed.append)
    environment.make("docs")
    assert installed == [["docs", "lint"]]
    stamps = {path.stem: path.read_text() for path in home.glob("*.stamp")}
    assert stamps == {name: environment.stamp(name) for name in ("demo", "test", "lint", "docs")}


def test_a_lock_is_held_by_one_at_a_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = tmp_path / "lock"
    code = (
        "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX);"
        "print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin
        assert other.stdout
        other.stdout.readline()

        def hold() -> int:
            with environment.only_one(lock):
                return other.wait()

        with ThreadPoolExecutor() as threads:
            end = threads.submit(hold)
            assert comes_true(lambda: "waiting" in capsys.readouterr().err)
            other.stdin.close()
            assert end.result() == 0


def test_an_old_python_is_refused_with_what_to_do() -> None:
    refusal = runpy.run_path(str(ROOT / "manage.py"))["refusal"]
    assert refusal((3, 10)) == refusal((4, 0)) == ""
    assert "3.9" in refusal((3, 9))
    assert "python3.12 manage.py" in refusal((3, 9))


def test_help_installs_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main = runpy.run_path(str(ROOT / "manage.py"))["main"]
    monkeypatch.setattr(bootstrap, "is_at_hand", lambda extra: False)
    assert main(["--help"]) == 0
    assert "manage.py test" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["demo", "--help"])
    assert "--no-traffic" in capsys.readouterr().out


def test_the_options_of_the_tests_are_told() -> None:
    words = [sys.executable, "-m", "pytest", "-n", "auto", "--help"]
    env = {name: value for name, value in os.environ.items() if name != REDIS}
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, env=env)
    assert ended.returncode == 0, ended.stderr
    assert "--numprocesses" in ended.stdout


def test_an_environment_is_not_cleared_by_its_own_interpreter(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "HOME", home)
    monkeypatch.setattr(sys, "prefix", str(home))
    with pytest.raises(SystemExit, match="another Python"):
        environment.create()
    assert (home / "bin" / "python").exists()
