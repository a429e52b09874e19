"""What `manage.py` does with each word; imports nothing third-party before the environment is
there.
"""

from __future__ import annotations

import os
import sys

from demo_project import bootstrap
from demo_project.environment import ROOT

NO_DEMO = (
    "No demo is running, so this asks the Redis at 127.0.0.1:6379 and the file db.sqlite3. To start a"
    " demo: python3 manage.py demo. Servers of your own: REDIS_URL and DATABASE_URL."
)


def demo(words: list[str]) -> int:
    """Run the example site until it is interrupted."""
    # Read first, so that `--help` and a wrong option answer at once on a bare machine.
    from demo_project.run.options import parse

    options = parse(words)
    bootstrap.enter("demo")
    from demo_project.run.supervisor import run

    return run(options)


def test(words: list[str]) -> int:
    """Run pytest in the checkout, with a worker for each core; `-n 0` makes it one process."""
    bootstrap.enter("test")
    os.chdir(ROOT)
    if "no:xdist" not in words:
        words = ["-n", "auto", *words]
    # Tests start many processes, each of which would compile the same modules again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # A process of its own, so that coverage sees every import.
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *words])


def lint(words: list[str]) -> int:
    """Examine the code without running the tests."""
    # Read first, so that `--help` and a wrong word answer at once on a bare machine.
    from demo_project import lint

    lint.parse(words)
    bootstrap.enter("lint")
    return lint.run(words)


def docs(words: list[str]) -> int:
    """Write the generated parts of the documentation, and build its site."""
    bootstrap.enter("docs")
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "-m", "docs", *words])


def benchmark(words: list[str]) -> int:
    """Print how fast it is."""
    bootstrap.enter("test")
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "-m", "tests.benchmarks", *words])


def overview(usage: str) -> int:
    """Our own words first, then Django's list of commands; nothing is installed just to show help."""
    if not bootstrap.is_at_hand("demo"):
        print(usage)
        return 0
    bootstrap.enter("demo")
    print(usage, flush=True)
    return django(["help"])


def django(words: list[str]) -> int:
    """Run a Django command on the example site: on the demo that runs, unless the environment names
    servers.
    """
    names_servers = bool({"DATABASE_URL", "REDIS_URL"} & os.environ.keys())
    if os.name == "posix" and not names_servers:
        from demo_project.state import known

        running = known()
        os.environ.update(running)
        names_servers = bool(running)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "demo_project.settings")
    bootstrap.enter("demo")
    if words[:1] == ["readtrack"] and not names_servers:
        print(NO_DEMO, file=sys.stderr)
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *words])
    return 0
