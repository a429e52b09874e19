"""Another user of this machine, who is not the one that runs the tests."""

from __future__ import annotations

import json
import os
import pwd
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

STRANGER = 65_533  # no account of this machine, and so without rights
SERVER = pwd.getpwnam("nobody").pw_uid  # as whom servers run that root starts

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can act as another user of the machine"
)


def as_user(user: int, deed: Callable[[], Any]) -> Any:
    """Returns what the function returns in a process of that user, as JSON can say it."""
    receiver, sender = os.pipe()
    with warnings.catch_warnings():
        # Of a fork beside threads: this one only asks the operating system.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            answer = {"answer": deed()}
        except BaseException as error:
            answer = {"error": repr(error)}
        os.write(sender, json.dumps(answer).encode())
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as pipe:
        said = json.load(pipe)
    os.waitpid(child, 0)
    assert "error" not in said, said["error"]
    return said["answer"]


def everything_in(folder: Path) -> list[Path]:
    """Returns the folder and all that is in it."""
    return [folder, *sorted(folder.rglob("*"))]


def contents(paths: Iterable[Path]) -> dict[str, str]:
    """Returns the text of each file that this user can read."""
    found = {}
    for path in paths:
        try:
            found[str(path)] = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
    return found


def told_by_processes() -> str:
    """Returns the command lines and environments of all processes, as far as this user can read
    them.
    """
    processes = Path("/proc").glob("[0-9]*")
    paths = [process / name for process in processes for name in ("cmdline", "environ")]
    return "\n".join(contents(paths).values())


def plant_links(paths: Iterable[Path], target: Path) -> list[str]:
    """Puts a link to the target in the place of each path where this user can. Returns these
    paths.
    """
    planted = []
    for path in paths:
        try:
            if path.is_dir() and not path.is_symlink():
                path.rename(path.with_name(f"{path.name}.away"))
            else:
                path.unlink(missing_ok=True)
            path.symlink_to(target)
        except OSError:
            continue
        planted.append(str(path))
    return planted
