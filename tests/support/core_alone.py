"""A pytest plugin: leaves out the tests that need a part which is not installed.

`READTRACK_TEST_CORE=1` runs the tests with the core alone. Left out are then the folders of parts,
the modules that import a part, and the tests marked `needs_parts("numbers")`, which import what
they need within them.
"""

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings

from readtrack import shipped

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
IS_CORE_ALONE = bool(os.environ.get("READTRACK_TEST_CORE"))
# Folders of tests of parts, and of what has sites of its own, with all parts.
FOLDERS = {
    *(part.rpartition(".")[2] for part in shipped.PARTS),
    "benchmarks",
    "beside",
    "chaos",
    "contrib",
    "demo",
    "rolling",
}


BESIDE = ("demo_project.", "docs.", "tests.")  # the packages beside readtrack


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Does not even import a file that needs a part."""
    if not IS_CORE_ALONE or not collection_path.is_relative_to(TESTS):
        return None
    folder = collection_path.relative_to(TESTS).parts[:1]
    if FOLDERS.intersection(folder):
        return True
    is_module = collection_path.suffix == ".py"
    return True if is_module and imports_a_part(collection_path) else None


@cache
def imports_a_part(path: Path) -> bool:
    """Returns True if the module imports a part anywhere, or a module beside the package that does."""
    names = {*imported_names(path)}
    if any(name == part or name.startswith(f"{part}.") for name in names for part in shipped.PARTS):
        return True
    files = [ROOT / f"{name.replace('.', '/')}.py" for name in names if name.startswith(BESIDE)]
    return any(file.exists() and file != path and imports_a_part(file) for file in files)


def imported_names(path: Path) -> Iterator[str]:
    """Yields the names of what the module imports as it is imported itself, modules or not."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests whose parts are not installed."""
    left = [item for item in items if missing_parts(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


def missing_parts(item: pytest.Item) -> set[str]:
    """Returns the parts that the test is marked to need, and that are not installed."""
    needed = {
        f"readtrack.{name}" for mark in item.iter_markers("needs_parts") for name in mark.args
    }
    return needed.difference(settings.INSTALLED_APPS)
