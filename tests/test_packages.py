"""The sdist and the wheel have the files that they should have.

`.ci/run` installs both in fresh environments, migrates a site with the wheel, and runs tests of the
sdist in the sdist.
"""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# What setuptools adds to the sdist.
ADDED = {
    "PKG-INFO",
    "setup.cfg",
    *(
        f"readtrack.egg-info/{name}"
        for name in (
            "PKG-INFO",
            "SOURCES.txt",
            "dependency_links.txt",
            "requires.txt",
            "top_level.txt",
        )
    ),
}

pytestmark = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="this is no checkout: git does not know its files"
)


def tracked() -> set[str]:
    """Returns the files that git knows, without those that were just deleted."""
    # In a container the checkout may belong to another user.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    result = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return {name for name in result.stdout.split("\0") if name and (ROOT / name).exists()}


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the files that git knows: nothing else can get into a package."""
    folder = tmp_path_factory.mktemp("copied")
    for name in tracked():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    return folder


def build(kind: str, *, source: Path, to: Path) -> Path:
    """Returns the package, which setuptools has built as `python -m build` has it built."""
    code = (
        "import sys; from setuptools import build_meta;"
        f"print(build_meta.build_{kind}(sys.argv[1]), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, str(to)]
    result = subprocess.run(command, cwd=source, check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return to / result.stderr.splitlines()[-1]


def test_the_sdist_has_every_file_that_git_knows_and_no_other(copied: Path, tmp_path: Path) -> None:
    with tarfile.open(build("sdist", source=copied, to=tmp_path)) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    assert names - ADDED == tracked()


def test_the_wheel_has_every_file_of_the_package_and_no_other(copied: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(build("wheel", source=copied, to=tmp_path)) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {name for name in tracked() if name.startswith("readtrack/")}
