"""`manage.py lint`: everything that is examined without running the tests, in one command.

    python3 manage.py lint                  # everything
    python3 manage.py lint format types     # only these steps
    python3 manage.py lint --fix            # format and fix what can be fixed, then everything

Each step runs, even after one that failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from demo_project.environment import ROOT

# The decisions that a function of the package may have: `if`, loops, `and`, `or`, conditional
# expressions and the conditions of comprehensions, as radon counts them. The aim is 10. A function
# that has to have more says why: `def f():  # noqa: R701 - reason`.
MOST_DECISIONS = 10


class Step(NamedTuple):
    """One tool."""

    title: str
    command: list[str]
    fix: list[str] = []  # what mends the findings, for `--fix`; empty if only a person can
    settings: str = ""  # the module of Django's settings, for a step that needs Django
    # What is in the environment of each run of the command, where there are several runs.
    environments: Sequence[Mapping[str, str]] = ({},)


def python(module: str, *words: str) -> list[str]:
    """The command line of a module in this environment."""
    return [sys.executable, "-m", module, *words]


def script(name: str) -> str:
    """The path of a program that pip has installed in this environment."""
    return str(Path(sysconfig.get_path("scripts")) / name)


# `--fix` mends in this order: ruff's fixes may need formatting.
STEPS: Mapping[str, Step] = {
    "rules": Step(
        title="Rules of ruff",
        command=python("ruff", "check", "."),
        fix=python("ruff", "check", "--fix", "--quiet", "."),
    ),
    "format": Step(
        title="Format",
        command=python("ruff", "format", "--check", "."),
        fix=python("ruff", "format", "--quiet", "."),
    ),
    "decisions": Step(
        title=f"At most {MOST_DECISIONS} decisions in a function",
        command=python(
            "flake8",
            "--isolated",  # no settings of this machine
            "--select=R701",
            f"--radon-max-cc={MOST_DECISIONS}",
            "readtrack",
        ),
    ),
    "imports": Step(title="Imports go down only", command=[script("lint-imports")]),
    "migrations": Step(
        title="No migration is missing",
        command=python("django", "makemigrations", "--check", "--dry-run"),
        settings="tests.settings",
        environments=({}, {"READTRACK_TEST_CORE": "1"}),  # with all parts, and with none
    ),
    "types": Step(title="Types", command=python("mypy")),
}


def run(words: list[str]) -> int:
    """Run the steps that the words name, or all of them. Returns 1 if one of them failed."""
    options = parse(words)
    chosen = [name for name in STEPS if name in options.steps or not options.steps]
    if options.fix:
        for name in chosen:
            if STEPS[name].fix:
                execute(STEPS[name].fix)
    failed = [name for name in chosen if not is_clean(STEPS[name])]
    if failed:
        print(f"\nFailed: {', '.join(failed)}.")
        print(f"Once more: python3 manage.py lint {' '.join(failed)}")
        return 1
    print("\nAll is well.")
    return 0


def parse(words: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="manage.py lint", description="Examines the code without running the tests."
    )
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"only these: {', '.join(STEPS)}")
    parser.add_argument("--fix", action="store_true", help="first format, and fix what can be")
    options = parser.parse_args(words)
    unknown = set(options.steps) - set(STEPS)
    if unknown:
        parser.error(f"no step is called {', '.join(sorted(unknown))}")
    return options


def is_clean(step: Step) -> bool:
    """Run one step. Prints its title, its time, and what it found if it failed."""
    print(f"{step.title} … ", end="", flush=True)
    began = perf_counter()
    results = [
        execute(step.command, settings=step.settings, variables=variables)
        for variables in step.environments
    ]
    failed = [result for result in results if result.returncode != 0]
    seconds = perf_counter() - began
    print(f"{'FAILED' if failed else 'good'} ({seconds:.1f} s)", flush=True)
    for result in failed:
        print(result.stdout.rstrip(), flush=True)
    return not failed


def execute(
    command: list[str], *, settings: str = "", variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in the checkout. Its output is kept, both streams in one."""
    environment = {**os.environ, **(variables or {})}
    if settings:
        environment["DJANGO_SETTINGS_MODULE"] = settings
    return subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
