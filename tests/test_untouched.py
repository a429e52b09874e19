"""A run notices a test that writes into the checkout."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.untouched import changes

ROOT = Path(__file__).parent.parent


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Returns a folder of git with a file that is not committed, and a rule that ignores others."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "page.md").write_text("by hand")
    (tmp_path / ".gitignore").write_text("*.log\n__pycache__/\n.pytest_cache/\n")
    return tmp_path


def test_a_file_that_is_written_again_is_a_change_though_it_was_changed_before(
    checkout: Path,
) -> None:
    before = changes(checkout)
    assert set(before) == {".gitignore", "page.md"}
    (checkout / "run.log").touch()
    assert changes(checkout) == before
    os.utime(checkout / "page.md", ns=(1, 1))
    assert changes(checkout) == {**before, "page.md": 1}


def test_where_there_is_no_git_nothing_changes(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert changes(checkout) == {}
    assert changes(checkout / "folder") == {}


@pytest.mark.parametrize(("setting", "code"), [("1", 1), ("", 0)])
def test_a_run_whose_test_writes_into_the_checkout_names_the_file_and_fails_in_ci(
    setting: str, code: int, checkout: Path
) -> None:
    (checkout / "test_it.py").write_text(
        "from pathlib import Path\n"
        "def test_it(): Path(__file__).with_name('left.txt').write_text('by a test')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["--disable-plugin-autoload", "-p", "tests.support.untouched", "test_it.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "READTRACK_CI": setting}
    ran = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    assert ran.returncode == code, ran.stdout
    assert "1 passed" in ran.stdout
    assert "\nleft.txt\n" in ran.stdout
    assert "page.md" not in ran.stdout
