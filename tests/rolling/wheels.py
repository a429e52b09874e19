"""Wheels of two versions of the app, each unpacked in a folder of its own."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The commit that stands for the last version until there is a tag. A
# later one takes its place if 0001_initial.py changes so that its code cannot use the tables.
FIRST = "c4607a356c133bf18bc7e67d2b7380929f837125"
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


class NoHistoryError(RuntimeError):
    """The checkout does not have the older version, because git did not fetch all commits."""


def git(*words: str) -> "subprocess.CompletedProcess[bytes]":
    """Runs git in the checkout."""
    # In a container the checkout may belong to another user.
    command = ["git", "-c", "safe.directory=*", *words]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True)


def last_version() -> str:
    """Returns the last tag of a version before the present commit; FIRST if there is none."""
    described = git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^")
    return described.stdout.decode().strip() or FIRST


def is_version(revision: str) -> bool:
    """Returns True for the tag of a version, whose migrations are never changed."""
    return git("rev-parse", "--verify", "--quiet", f"refs/tags/{revision}").returncode == 0


def old_source(revision: str, *, to: Path) -> None:
    """Writes the files of a commit into a new folder. Raises NoHistoryError without the commit."""
    archive = git("archive", "--format=zip", revision)
    if archive.returncode:
        raise NoHistoryError(archive.stderr.decode().strip())
    packed = to.with_suffix(".zip")
    packed.write_bytes(archive.stdout)
    with zipfile.ZipFile(packed) as files:
        files.extractall(to)


def new_source(*, to: Path, changes: Mapping[str, tuple[str, str]]) -> None:
    """Copies the files of the checkout that git knows into a new folder.

    `changes` has, by the name of a file, a text in it and what takes its place.
    """
    for name in git("ls-files", "-z").stdout.decode().split("\0"):
        source = ROOT / name
        if name and source.exists():
            target = to / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for name, (before, after) in changes.items():
        text = (to / name).read_text()
        if before not in text:
            raise ValueError(f"{name} has no {before!r}.")
        (to / name).write_text(text.replace(before, after))


def install(source: Path, *, to: Path) -> None:
    """Builds the wheel of that source, and unpacks it: the other packages are the environment's."""
    folder = source.with_suffix(".dist")
    folder.mkdir()
    command = [sys.executable, "-c", BUILD, str(folder)]
    built = subprocess.run(command, cwd=source, check=False, capture_output=True, text=True)
    if built.returncode:
        raise RuntimeError(built.stderr)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(to)
