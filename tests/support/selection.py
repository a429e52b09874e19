"""A pytest plugin: an ordinary run leaves the slow tests to `--all`, and says so in one line.

`tests/slow.txt` names the slow tests. `manage.py test --all --measure` writes it anew, and
`manage.py test --measure tests/flush` what it says of these files; nobody edits it by hand. Words that choose tests (paths, `-k`, `-m`, `--lf`) choose slow ones, too, save beside
`--under`.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "slow.txt"
# A test is slow whose cases take so long together (s). The rest runs in six minutes on two cores.
SLOW = 1.0
# A run names a test that takes so long (s) and is not in the list. It is more than SLOW, because a
# busy machine may be slow.
TELLING = 3.0
WORKERS = 4  # of a run on two cores
HEAD = """\
# Tests that `manage.py test` leaves to `--all`, and the seconds that all cases of each take.
# `manage.py test --all --measure` writes this file; with files in place of `--all`, what it says of these.
"""
TEST = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
seconds: defaultdict[str, float] = defaultdict(float)  # by test, of this run
skipped: set[str] = set()  # tests with a case that was skipped


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("readtrack")
    group.addoption("--all", action="store_true", help="run the slow tests, too")
    group.addoption("--rest", action="store_true", help="run only what an ordinary run leaves out")
    group.addoption(
        "--under",
        type=float,
        metavar="SECONDS",
        help="leave out tests that take as long, even where other words choose them",
    )
    group.addoption(
        "--measure",
        action="store_true",
        help="with --all or with files, on an idle machine: write down which tests are slow",
    )


# First, because xdist hands the options on to its workers when it is configured.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Decides what an ordinary run leaves out."""
    option = config.option
    if option.measure and not takes_whole_tests(config):
        raise pytest.UsageError("--measure needs --all, or files of tests, and all cases of a test")
    if not (option.all or option.rest or option.under or chooses_tests(config)):
        option.under = SLOW


def chooses_tests(config: pytest.Config) -> bool:
    """Returns True where words choose tests."""
    has_marks = config.option.markexpr not in ("", "not mariadb")
    names = ("file_or_dir", "keyword", "lf")  # not all of them are there with --help
    return has_marks or any(getattr(config.option, name, False) for name in names)


def takes_whole_tests(config: pytest.Config) -> bool:
    """Returns True for a run of all tests, or of files, in which no test lacks a case."""
    option = config.option
    words = option.file_or_dir
    may_lack_cases = (
        option.rest
        or option.under
        or option.keyword
        or getattr(option, "lf", False)  # not there without the plugin of the cache
        or option.markexpr not in ("", "not mariadb")
        or any("[" in word for word in words)
    )
    return not may_lack_cases and bool(option.all or words)


@cache
def slow_tests() -> Mapping[str, float]:
    """Returns the seconds of each slow test, by its name."""
    lines = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
    pairs = [line.split() for line in lines]
    return {test: float(took) for took, test in pairs}


def test_of(node_id: str) -> str:
    """Returns the name of the test that a case belongs to."""
    return node_id.partition("[")[0]


def seconds_of(item: pytest.Item) -> float:
    """Returns how long all cases of the item's test take; 0 if it is not slow."""
    return slow_tests().get(test_of(item.nodeid), 0.0)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Does not even import a file whose tests are all left out."""
    if not collection_path.match("test_*.py"):
        return None
    is_left_out = False
    if config.option.rest:
        is_left_out = not has_slow_test(collection_path)
    elif config.option.under is not None and has_slow_test(collection_path):
        is_left_out = all(took >= config.option.under for took in seconds_of_file(collection_path))
    return True if is_left_out else None  # False would collect what other plugins leave out


def has_slow_test(path: Path) -> bool:
    """Returns True for a file of tests of which the list names one."""
    name = path.relative_to(ROOT).as_posix()
    return any(test.startswith(f"{name}::") for test in slow_tests())


def seconds_of_file(path: Path) -> list[float]:
    """Returns how long each test takes that stands in the file; 0 for those that are not slow."""
    name = path.relative_to(ROOT).as_posix()
    return [slow_tests().get(f"{name}::{test}", 0.0) for test in TEST.findall(path.read_text())]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what the run does not take."""
    took = {item: seconds_of(item) for item in items}
    left = []
    if config.option.rest:
        left = [item for item in items if took[item] < SLOW]
    elif config.option.under is not None:
        left = [item for item in items if took[item] >= config.option.under]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds up the time of each test."""
    if type(report) is not pytest.TestReport:
        return  # a row of a test, whose time is in that of its test
    test = test_of(report.nodeid)
    seconds[test] += report.duration
    if report.skipped:
        skipped.add(test)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Writes the list, if that was asked for and no test was left out by an end before time."""
    is_worker = hasattr(session.config, "workerinput")
    has_run = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    if session.config.option.measure and not is_worker and has_run:
        lines = [f"{took:.2f} {test}\n" for test, took in sorted(measured().items())]
        LIST.write_text(HEAD + "".join(lines))


def measured() -> Mapping[str, float]:
    """Returns the seconds of each slow test. A test that did not run, or was skipped, keeps what it
    took before.
    """
    slow = {test: took for test, took in seconds.items() if took >= SLOW}
    kept = {
        test: took
        for test, took in slow_tests().items()
        if (test not in seconds or test in skipped) and exists(test)
    }
    return {**kept, **slow}


def exists(test: str) -> bool:
    """Returns True for the name of a test that is in its file."""
    path, _, function = test.partition("::")
    file = ROOT / path
    return file.exists() and function in TEST.findall(file.read_text())


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Says what was left out, and which tests have become slow."""
    left = [took for took in slow_tests().values() if took >= (config.option.under or SLOW)]
    if config.option.under is not None:
        terminalreporter.line(
            f"Left to --all: {len(left)} slow tests, some {sum(left) / 60 / WORKERS:.0f} minutes;"
            f" {LIST.relative_to(ROOT)} names them."
        )
    news = {test: took for test, took in seconds.items() if test not in slow_tests()}
    told = [f"  {took:.1f} s {test}" for test, took in sorted(news.items()) if took >= TELLING]
    if told and not config.option.measure:
        terminalreporter.line("Slow, and not in the list that `test --measure FILE` adds to:")
        for line in told:
            terminalreporter.line(line)
