"""A pytest plugin: `--fast` leaves out what takes seconds, and says what it left out."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Files whose path begins so are not even imported.
PATHS = {
    "tests/browser/": "browsers",
    "tests/chaos/": "servers that are killed",
    "tests/demo/": "the example site",
    "tests/dashboard/test_page.py": "hundreds of charts",
    "tests/flush/": "flushes that are disturbed or meet the unusual",
    "tests/imports/test_moving_in.py": "tables of whole forums",
    "tests/imports/test_weblog.py": "long logs",
    "tests/rolling/": "deploys",
    "tests/security/": "attacks",
    "tests/sql/test_backfill.py": "a history of many months",
    "tests/sql/test_epochs.py": "databases and servers that are restored",
    "tests/sql/test_sums.py": "sums over many objects",
    "tests/store/test_cluster.py": "a cluster",
    "tests/store/test_connection.py": "servers that hang",
    "tests/store/test_moving.py": "every key moved between partitions",
    "tests/store/test_partitions.py": "every operation with several numbers of partitions",
    "tests/store/test_sentinel.py": "failovers",
    "tests/store/test_waiting.py": "servers that answer late",
    "tests/test_live.py": "servers of events",
    "tests/test_locale.py": "all texts in all languages",
    "tests/test_tasks.py": "Celery's worker",
    "tests/unread/test_races.py": "races",
}
KEPT = "tests/flush/test_run.py"  # what every flush does
# A test with one of these fixtures starts servers or processes of its own.
FIXTURES = {"start_redis", "forks", "bare_forks"}
SECOND_DATABASE = "lite"  # the parameter of the fixture `database`


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fast",
        action="store_true",
        help="leave out what takes seconds: browsers, the demo, other servers, the second database",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out whole files."""
    if not config.getoption("fast") or collection_path.is_dir():
        return None
    path = str(collection_path).removeprefix(f"{ROOT}/")
    return True if path.startswith(tuple(PATHS)) and path != KEPT else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out single tests."""
    if not config.getoption("fast"):
        return
    slow = [item for item in items if is_slow(item)]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


def is_slow(item: pytest.Item) -> bool:
    if item.get_closest_marker("long") or FIXTURES & set(getattr(item, "fixturenames", ())):
        return True
    callspec = getattr(item, "callspec", None)
    return callspec is not None and callspec.params.get("database") == SECOND_DATABASE


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if not config.getoption("fast"):
        return
    terminalreporter.section("left out by --fast")
    for path, reason in PATHS.items():
        terminalreporter.line(f"{path}: {reason}")
    terminalreporter.line(f"(but not {KEPT})")
    terminalreporter.line("tests marked `long`")
    terminalreporter.line(f"tests with the fixtures {', '.join(sorted(FIXTURES))}")
    terminalreporter.line("tests on the second database")
