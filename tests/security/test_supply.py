"""The demo, the tests, the linters and the documentation install known versions, on each Python."""

from __future__ import annotations

import re
import sys
from importlib.metadata import distributions, requires
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from demo_project import environment
from tests.support.rows import each_row

ROOT = Path(__file__).parents[2]
LINES = (ROOT / environment.CONSTRAINTS).read_text().splitlines()
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]


def system(python: str) -> dict[str, str]:
    """Returns what markers ask for, of a Python such as 3.11, whose first release it is, or 3.11.7."""
    major, minor, *micro = python.split(".")
    return {
        "python_version": f"{major}.{minor}",
        "python_full_version": f"{major}.{minor}.{''.join(micro) or '0'}",
        "sys_platform": "linux",
    }


def versions(python: str) -> dict[str, str]:
    """Returns the version of each package by its name, for that Python."""
    found: dict[str, str] = {}
    for line in LINES:
        pin, _, marker = line.partition(" ; ")
        if marker and not Marker(marker).evaluate(system(python)):
            continue
        name, _, version = pin.partition("==")
        assert name not in found, line
        found[name] = version
    return found


def required(extra: str, *, python: str) -> list[Requirement]:
    """Returns what readtrack requires with that extra, other than itself with other extras."""
    found = []
    for requirement in map(Requirement, requires("readtrack") or []):
        condition = requirement.marker
        if condition and not condition.evaluate({**system(python), "extra": extra}):
            continue
        if requirement.name == "readtrack":
            for name in requirement.extras:
                found += required(name, python=python)
        else:
            found.append(requirement)
    return found


@each_row("python", PYTHONS)
@each_row("extra", ["test", "lint", "docs"])
def test_every_package_of_an_extra_has_one_version_that_is_allowed(python: str, extra: str) -> None:
    pinned = versions(python)
    needed = required(extra, python=python)
    assert len(needed) > 10
    for requirement in needed:
        version = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement


def test_the_versions_name_no_index_and_no_file() -> None:
    line = re.compile(r"[a-z0-9-]+==[\w.]+( ; [\w<>=!'.* ]+)?")
    assert [text for text in LINES if not line.fullmatch(text)] == []


@pytest.mark.skipif(
    Path(sys.prefix).resolve() != environment.HOME.resolve(),
    reason="another environment than the checkout's own is the developer's affair",
)
def test_the_checkouts_own_environment_has_these_versions() -> None:
    pinned = versions(".".join(map(str, sys.version_info[:3])))
    installed: dict[str, str] = {
        canonicalize_name(each.name): each.version for each in distributions()
    }
    both = pinned.keys() & installed.keys()
    assert len(both) > 50
    assert {name: installed[name] for name in both} == {name: pinned[name] for name in both}
