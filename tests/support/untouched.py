"""A pytest plugin: no test writes into the checkout. A run that has changed a file there fails where
`READTRACK_CI` is set, and says so elsewhere, because people edit files while their tests run.
"""

import os
import subprocess
from pathlib import Path

import pytest

# Each file that git calls changed or new, and when it was last written (nanoseconds); None if it is
# gone.
Changes = dict[str, int | None]
BEFORE = pytest.StashKey[Changes]()
TOUCHED = pytest.StashKey[list[str]]()


def changes(checkout: Path) -> Changes:
    """Returns what differs from the last commit; nothing where there is no git."""
    # In a container the checkout may belong to another user.
    command = ["git", "-c", "safe.directory=*", "status", "--porcelain", "-z"]
    command += ["--untracked-files=all", "--no-renames"]
    # Without a lock, so that a commit at this moment does not fail.
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    if not (checkout / ".git").exists():
        return {}
    try:
        status = subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, text=True
        )
    except FileNotFoundError:
        return {}
    names = [entry[3:] for entry in status.stdout.split("\0") if entry]
    return {name: _written(checkout / name) for name in names}


def _written(path: Path) -> int | None:
    return path.lstat().st_mtime_ns if os.path.lexists(path) else None


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        session.config.stash[BEFORE] = changes(session.config.rootpath)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Compares the checkout with what it was at the start."""
    config = session.config
    if hasattr(config, "workerinput"):
        return
    before, now = config.stash.get(BEFORE, {}), changes(config.rootpath)
    touched = [name for name in sorted({*before, *now}) if before.get(name, 0) != now.get(name, 0)]
    config.stash[TOUCHED] = touched
    if touched and os.environ.get("READTRACK_CI"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if touched := config.stash.get(TOUCHED, []):
        terminalreporter.section("files of the checkout that changed during the run")
        terminalreporter.line("A test may write into temporary folders only.")
        for name in touched:
            terminalreporter.line(name)
