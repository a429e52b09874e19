"""Runs the tests in tests/contrib/wagtail, which need settings with Wagtail's apps."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("wagtail")
SETTINGS = "tests.contrib.wagtail.settings"


@pytest.mark.one_server("has a Redis without a cluster")
def test_the_app_for_wagtail_passes_its_tests_in_a_site_of_wagtail(redis_url: str) -> None:
    workers = {name for name in os.environ if name.startswith("PYTEST_XDIST")}
    env = {name: value for name, value in os.environ.items() if name not in workers}
    # In memory, so that it is no other process's database.
    env |= {"DATABASE_URL": "sqlite://", "READTRACK_TEST_REDIS_URL": redis_url}
    words = ["-q", "-n", "0", f"--ds={SETTINGS}", "tests/contrib/wagtail"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-20_000:]
    assert " passed" in ended.stdout
