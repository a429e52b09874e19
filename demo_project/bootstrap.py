"""Decides which environment a command runs in, with nothing but the standard library.

The active one, if it has what pyproject.toml asks for, or else the checkout's own (`environment`).
"""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from demo_project.environment import HOME, is_stamped, make, numbers, python


def enter(extra: str) -> None:
    """Return if this environment has the extra; otherwise start over in the checkout's own."""
    if is_here(extra):
        return
    if not is_stamped(HOME, extra):
        make(extra)
    os.execv(python(HOME), [str(python(HOME)), *sys.orig_argv[1:]])


def is_at_hand(extra: str) -> bool:
    """Whether `enter` would have nothing to install."""
    return is_here(extra) or is_stamped(HOME, extra)


def is_here(extra: str) -> bool:
    """Whether this process can run what needs the extra."""
    if Path(sys.prefix).resolve() == HOME.resolve():
        return is_stamped(HOME, extra)
    return not missing(f"readtrack[{extra}]")


def missing(requirement: str) -> str:
    """The first distribution the requirement lacks here, in itself or below; empty when none.

    Reads the requirements of readtrack itself only: those of the others are pip's business.
    """
    name, extras, least = parsed(requirement)
    try:
        found = version(name)
    except PackageNotFoundError:
        return name
    if numbers(found) < numbers(least):
        return name
    if name != "readtrack":
        return ""
    wanted = [line for line in requires(name) or [] if is_wanted(line, extras=extras)]
    return next(filter(None, map(missing, wanted)), "")


def is_wanted(requirement: str, *, extras: list[str]) -> bool:
    """Whether a requirement of readtrack holds for these of its extras."""
    condition = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
    return condition is None or condition[1] in extras


def parsed(requirement: str) -> tuple[str, list[str], str]:
    """Name, extras and least version of a requirement; other conditions are left to pip."""
    what = requirement.partition(";")[0]
    name, extras = re.findall(r"^([\w.-]+)(?:\[(.*?)\])?", what)[0]
    least = re.findall(r">=\s*([\d.]+)", what)
    return name, re.findall(r"[\w-]+", extras), "".join(least[:1])
