"""`manage.py lint` runs each step and says what failed; the hooks name steps that exist."""

import re
import sys
from pathlib import Path

import pytest

from demo_project import lint

ROOT = Path(__file__).parents[2]


def step(code: str, *, fix: str = "") -> lint.Step:
    """Returns a step that runs this code of Python."""
    return lint.Step(
        title="Step",
        command=[sys.executable, "-c", code],
        fix=[sys.executable, "-c", fix] if fix else [],
    )


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replaces the steps: the first one fails until it is fixed. Returns the folder they write to."""
    first = f"import pathlib, sys; sys.exit(not pathlib.Path({str(tmp_path)!r}, 'fixed').exists())"
    fix = f"import pathlib; pathlib.Path({str(tmp_path)!r}, 'fixed').touch()"
    second = f"import pathlib; pathlib.Path({str(tmp_path)!r}, 'second').touch(); print('quiet')"
    monkeypatch.setattr(lint, "STEPS", {"first": step(first, fix=fix), "second": step(second)})
    return tmp_path


def test_a_step_that_fails_is_named_and_keeps_no_other_step_from_running(
    steps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lint.run([]) == 1
    assert (steps / "second").exists()
    printed = capsys.readouterr().out
    assert "Failed: first." in printed
    assert "manage.py lint first" in printed
    assert "quiet" not in printed  # a good step prints nothing of its own


def test_fix_mends_before_it_looks(steps: Path) -> None:
    assert lint.run(["--fix"]) == 0
    assert (steps / "fixed").exists()


def test_steps_can_be_chosen(steps: Path) -> None:
    assert lint.run(["second"]) == 0
    assert not (steps / "fixed").exists()


def test_an_unknown_step_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        lint.parse(["typos"])
    assert "typos" in capsys.readouterr().err


def test_what_a_step_finds_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lint, "STEPS", {"only": step("print('a finding'); raise SystemExit(3)")})
    assert lint.run([]) == 1
    assert "a finding" in capsys.readouterr().out


def test_the_hooks_run_steps_that_exist() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    commands = re.findall(r"entry: python3 manage\.py lint (.+)", hooks)
    assert len(commands) >= 3
    named = {name for command in commands for name in lint.parse(command.split()).steps}
    assert named == set(lint.STEPS)


def test_a_code_host_runs_what_any_machine_runs() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert re.findall(r"run: bash (.+)", workflow) == [".ci/run"]
