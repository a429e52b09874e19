"""An ordinary run leaves out the slow tests, says so, and names those that have become slow."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import selection

ROOT = Path(__file__).parents[1]
MODULE = "tests/test_sample.py"


def test_the_list_names_tests_that_exist() -> None:
    assert [test for test in selection.slow_tests() if not selection.exists(test)] == []


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Returns a folder with tests, one of which is in the list, and with the plugin."""
    support = tmp_path / "tests" / "support"
    support.mkdir(parents=True)
    for package in (support.parent, support):
        (package / "__init__.py").touch()
    (support / "selection.py").write_text((ROOT / "tests/support/selection.py").read_text())
    (tmp_path / "tests" / "slow.txt").write_text(f"9.00 {MODULE}::test_slow\n")
    (tmp_path / MODULE).write_text(
        "import pytest\n\n\n"
        "def test_quick():\n    pass\n\n\n"
        "@pytest.mark.parametrize('number', [1, 2])\ndef test_slow(number):\n    pass\n"
    )
    return tmp_path


def run(folder: Path, *words: str) -> str:
    """Returns what pytest prints of the folder."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--disable-plugin-autoload",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-p", "tests.support.selection", "-q", "-m", "not mariadb", *words]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_an_ordinary_run_leaves_out_the_slow_tests_and_says_so(sample: Path) -> None:
    printed = run(sample)
    assert "1 passed, 2 deselected" in printed
    assert "Left to --all: 1 slow tests" in printed


def test_words_choose_which_tests_run(sample: Path) -> None:
    results = {
        words: run(sample, *words.split()).splitlines()[-1].partition(" in ")[0]
        for words in ("--all", "--rest", MODULE, "-k slow", f"--under 5 {MODULE}", "--under 10")
    }
    assert results == {
        "--all": "3 passed",
        "--rest": "2 passed, 1 deselected",
        MODULE: "3 passed",
        "-k slow": "2 passed, 1 deselected",
        f"--under 5 {MODULE}": "1 passed, 2 deselected",
        "--under 10": "3 passed",
    }


def test_a_file_whose_tests_are_all_left_out_is_not_imported(sample: Path) -> None:
    (sample / MODULE).write_text("raise ValueError\n\n\ndef test_slow():\n    pass\n")
    assert "no tests ran" in run(sample)
    assert "ValueError" in run(sample, "--all")


def test_a_file_without_a_slow_test_is_not_imported_for_the_rest(sample: Path) -> None:
    (sample / "tests" / "test_quick.py").write_text("raise ValueError\n")
    assert "2 passed" in run(sample, "--rest")
    assert "ValueError" in run(sample)


def test_measuring_writes_the_list(sample: Path) -> None:
    (sample / MODULE).write_text(
        "import time\n\n\n"
        "def test_slow():\n    pass\n\n\n"
        f"def test_new():\n    time.sleep({selection.SLOW})\n"
    )
    run(sample, "--all", "--measure")
    lines = (sample / "tests" / "slow.txt").read_text().splitlines()
    [line] = [line for line in lines if not line.startswith("#")]
    assert line.endswith(f"{MODULE}::test_new")


def test_measuring_files_leaves_what_the_list_says_of_others(sample: Path) -> None:
    other = "tests/test_other.py"
    (sample / other).write_text("def test_slow():\n    pass\n")
    listed = sample / "tests" / "slow.txt"
    listed.write_text(
        f"9.00 {MODULE}::test_slow\n8.00 {other}::test_slow\n7.00 {other}::test_gone\n"
    )
    run(sample, "--measure", MODULE)
    lines = listed.read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [f"8.00 {other}::test_slow"]


@pytest.mark.parametrize("words", ["", f"-k slow {MODULE}", f"{MODULE}::test_slow[1]"])
def test_measuring_needs_whole_tests(sample: Path, words: str) -> None:
    assert "--measure needs --all, or files" in run(sample, "--measure", *words.split())


def test_an_unknown_word_is_an_error_of_pytest(sample: Path) -> None:
    assert "unrecognized arguments: --fast" in run(sample, "--fast")
