"""Commands at another terminal find the running demo, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.core import management

from demo_project import bootstrap, commands, state
from demo_project.environment import ROOT

ENV = {"REDIS_URL": "redis://127.0.0.1:1/0", "DATABASE_URL": "sqlite:////tmp/x"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the folder of the file."""
    folder = tmp_path / "state"
    monkeypatch.setenv("READTRACK_DEMO_STATE", str(folder / "demo.json"))
    folder.mkdir()
    return folder


def test_a_demo_is_known_while_it_runs() -> None:
    assert state.known() == {}
    with state.told(ENV) as is_told:
        assert is_told
        assert state.known() == ENV
        assert state.path().stat().st_mode & 0o777 == 0o600
    assert state.known() == {}
    assert not state.path().exists()


def test_an_error_inside_a_demo_is_raised() -> None:
    with pytest.raises(OSError, match="disk full"), state.told(ENV):
        raise OSError("disk full")
    assert not state.path().exists()


def test_of_two_demos_commands_use_the_first() -> None:
    with state.told(ENV), state.told({}) as is_told:
        assert not is_told
        assert state.known() == ENV


@pytest.mark.parametrize("left", ["{}", "", '{"REDIS_URL": "redis://gone/0"}'])
def test_files_of_a_killed_demo_are_ignored(left: str) -> None:
    state.path().write_text(left)
    assert state.known() == {}
    with state.told(ENV) as is_told:
        assert is_told
        assert state.known() == ENV


def test_a_file_of_another_user_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    with state.told(ENV):
        mine = state.path()
        monkeypatch.setattr(os, "getuid", lambda: 12_345)
        monkeypatch.setattr(state, "path", lambda: mine)
        assert state.known() == {}
        with state.told({}) as is_told:
            assert not is_told


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    state.path().symlink_to(theirs)
    with state.told(ENV) as is_told:
        assert not is_told
    assert theirs.read_text() == "theirs"


def test_the_file_is_in_the_checkout_where_nobody_else_makes_it_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("READTRACK_DEMO_STATE")
    assert state.path() == ROOT / ".venv" / "demo.json"


def test_without_a_folder_to_write_to_it_is_not_told(folder: Path) -> None:
    folder.rmdir()
    folder.touch()
    with state.told(ENV) as is_told:
        assert not is_told


def test_a_command_beside_no_running_demo_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ENV:
        monkeypatch.setenv(name, "")  # so that the end of the test restores it
        monkeypatch.delenv(name)
    monkeypatch.setattr(bootstrap, "enter", lambda extra: None)
    monkeypatch.setattr(management, "execute_from_command_line", lambda words: None)

    def says_so(*words: str) -> bool:
        assert commands.django([*words]) == 0
        return "No demo is running" in capsys.readouterr().err

    assert says_so("readtrack", "doctor")
    assert says_so("readtrack", "flush")
    assert not says_so("check")
    with state.told(ENV):
        assert not says_so("readtrack", "doctor")
    assert os.environ["REDIS_URL"] == ENV["REDIS_URL"]
    assert not says_so("readtrack", "doctor")
