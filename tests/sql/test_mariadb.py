"""The tests of the flush, of the outbox, of mails and tokens, and of SQL, run on MariaDB."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.mariadb import MariaDB, is_installed
from tests.support.servers import DATABASE
from tests.support.workers import REDIS

ROOT = Path(__file__).parents[2]
OWN = {REDIS, "PYTEST_XDIST_WORKER"}  # of the worker that starts a run
# Two runs beside each other. Each keeps the order of its files: where a test makes or drops a table,
# MariaDB commits what came before, and that stays for the next tests.
RUNS = [
    [
        "tests/sql/test_databases.py",
        "tests/sql/test_charsets.py",
        "tests/sql/test_history.py",
        "tests/sql/test_gains.py",
        "tests/sql/test_daily.py",
        "tests/sql/test_day_breakdowns.py",
        "tests/sql/test_day_visitors.py",
        "tests/sql/test_steps.py",
        "tests/sql/test_renaming.py",
        "tests/reports/test_breakdowns_by_day.py",
        "tests/reports/test_popular.py",
        "tests/sql/test_usual.py",
        "tests/reports/test_usual_views.py",
        "tests/imports/test_backfill.py",
        "tests/imports/test_undo.py",
        "tests/digest/test_sending.py",
        "tests/alerts/test_channels.py",
        "tests/alerts/test_watching.py",
        "tests/api/test_tokens.py",
    ],
    [
        "tests/flush/test_archiving.py",
        "tests/flush/test_history.py",
        "tests/flush/test_pauses.py",
        "tests/flush/test_absent_tables.py",
        "tests/flush/test_faults.py",
        "tests/flush/test_isolation.py",
        "tests/flush/test_gains.py",
        "tests/flush/test_locks.py",
        "tests/flush/test_table_locks.py",
        "tests/flush/test_readers.py",
        "tests/flush/test_resets.py",
        "tests/flush/test_run_extent.py",
        "tests/flush/test_merging.py",
        "tests/unread/test_publishing.py",
        "tests/unread/test_surviving.py",
        "tests/unread/test_unpublishing.py",
    ],
]

pytestmark = [
    pytest.mark.mariadb,
    pytest.mark.skipif(not is_installed(), reason="no MariaDB is installed"),
    pytest.mark.skipif(
        not (find_spec("MySQLdb") or find_spec("pymysql")),
        reason="no driver for MariaDB is installed",
    ),
]


@pytest.mark.parametrize("files", RUNS, ids=["sql", "flush"])
def test_the_flush_and_sql_hold_on_mariadb(files: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in OWN}
    with MariaDB() as server:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-k", "not lite", *files],
            cwd=ROOT,
            env={**environment, DATABASE: server.url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-5000:]
