"""A pytest plugin: the number of workers that run the tests (`-n auto`), and which tests stay
together.
"""

import os
from argparse import Namespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.selection import seconds_of

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

MOST = 4  # more would hardly be faster: the longest tests take a while
REDIS = "READTRACK_TEST_REDIS_URL"  # each worker needs a server to itself
# One worker runs all tests of these files, because they share what takes seconds: the start of a
# server or a browser, the reading of all texts, and a year of views. Those of Sentinel mostly wait:
# in all workers at once, nothing would run.
TOGETHER = {
    "tests/alerts/test_replay.py": "replayed weeks",
    "tests/cluster/test_client.py": "a cluster",
    "tests/store/test_sentinel.py": "failovers",
    "tests/test_locale.py": "catalogues",
    "tests/demo/test_past.py": "a past",
    "tests/demo/test_run.py": "a running demo",
    "tests/security/test_local_users.py": "one server of each kind",
    "tests/browser/test_reading.py": "a browser",
    "tests/browser/test_script.py": "a browser",
    "tests/browser/test_firefox.py": "Firefox",
} | dict.fromkeys(
    (f"tests/demo/test_{name}.py" for name in ("browser", "shoot", "site", "traffic")),
    "the demo site",
)


def number_of_workers(options: Namespace) -> int:
    """Returns the number of workers that run the tests; 0 if this process runs them itself."""
    asked = getattr(options, "numprocesses", None)
    if asked != "auto":
        return int(asked or 0)
    # Two more than there are cores, because for a third of the time each of them waits for a server
    # or a browser.
    number = min(len(os.environ.get(REDIS, "").split()) or MOST, (os.cpu_count() or 1) + 2)
    return 0 if number == 1 or _is_short(options) else number


def _is_short(options: Namespace) -> bool:
    """Returns True for a run of few tests, or of none: workers would take longer to start than the
    tests take.
    """
    is_chosen = any(
        getattr(options, name, False) for name in ("keyword", "lf", "collectonly", "usepdb")
    )
    paths = getattr(options, "file_or_dir", [])  # with --help there are none
    return is_chosen or any(".py" in path for path in paths)


# First, because xdist answers too.
@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Answers xdist's question for the number behind `-n auto`."""
    return number_of_workers(config.option)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "LoadScopeScheduling":
    """Hands out the tests in their order, one at a time, save for those that stay together: these
    go first.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            return TOGETHER.get(nodeid.partition("::")[0], nodeid)

    return Scheduling(config, log)


# Last, because pytest-django has an order of its own.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the slowest tests first where workers share them, so that at the end none waits for
    another one's. Those that stay together keep their order.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: 0.0 if is_together(item) else -seconds_of(item))


def is_together(item: pytest.Item) -> bool:
    return item.nodeid.partition("::")[0] in TOGETHER
