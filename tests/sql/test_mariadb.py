"""The flush on MariaDB, by the portable path: what holds on the other databases holds there."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.mariadb import MariaDB, is_installed

ROOT = Path(__file__).parents[2]
MODULES = [
    "sql/test_databases",
    "sql/test_history",
    "flush/test_archiving",
    "flush/test_readers",
    "flush/test_resets",
    "flush/test_scope",
]

pytestmark = [
    pytest.mark.skipif(not is_installed(), reason="no MariaDB is installed"),
    pytest.mark.skipif(not (find_spec("MySQLdb") or find_spec("pymysql")), reason="no driver for MariaDB is installed"),
]


def test_the_flush_holds_on_mariadb() -> None:
    with MariaDB() as server:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *(f"tests/{name}.py" for name in MODULES)],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": server.url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-5000:]
