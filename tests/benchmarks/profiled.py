"""The process whose instructions `bench_functions` counts by function: valgrind runs it.

python profiled.py SITE KIND REQUESTS FILE

It asks for its parent's process id before and after each call of a function of readtrack, because
valgrind then writes down, in a file of its own, the instructions since the last time. It writes the
names of the functions into FILE, one a line, behind + where one begins and - where it ends.
"""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from tests.benchmarks import instructed

IDLE = "nothing"  # the function whose calls tell what it costs to look at one
CALLER = "calls of nothing"
IDLE_CALLS = 50
METHODS = frozenset({"__call__", "__init__", "__str__"})  # of Python's own names

_events: list[str] = []


def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function with a mark at its beginning and at its end."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _events.append(f"+{name}")
        os.getppid()
        try:
            return function(*args, **kwargs)
        finally:
            _events.append(f"-{name}")
            os.getppid()

    return call


def watch_all() -> None:
    """Watches all functions and methods of readtrack, but those that are cached."""
    modules = [module for name, module in sys.modules.items() if name.startswith("readtrack.")]
    watched_functions: dict[FunctionType, Callable[..., Any]] = {}
    for module in modules:
        watched_functions.update(watched_in(module))
    for module in modules:  # which have imported functions of others
        for name, found in list(vars(module).items()):
            if isinstance(found, FunctionType) and found in watched_functions:
                setattr(module, name, watched_functions[found])


def watched_in(module: ModuleType) -> dict[FunctionType, Callable[..., Any]]:
    """Returns the watched functions of a module by the functions, and watches its methods."""
    short = module.__name__.removeprefix("readtrack.")
    found_functions: dict[FunctionType, Callable[..., Any]] = {}
    for name, found in list(vars(module).items()):
        if getattr(found, "__module__", "") != module.__name__:
            continue
        if isinstance(found, FunctionType):
            found_functions[found] = watched(f"{short}.{name}", found)
        elif isinstance(found, type):
            watch_methods(found, short=short)
    return found_functions


def watch_methods(owner: type[Any], *, short: str) -> None:
    """Watches the methods of a class."""
    for name, found in list(vars(owner).items()):
        is_own = isinstance(found, FunctionType) and found.__module__ == owner.__module__
        if is_own and (name in METHODS or not name.startswith("__")):
            setattr(owner, name, watched(f"{short}.{owner.__name__}.{name}", found))


def main(site: str, kind_name: str, requests: str, file: str) -> None:
    """Serves the requests, and writes the events."""
    kind = instructed.prepared(site, kind_name)[kind_name]
    watch_all()
    instructed.serve(kind, 1)
    nothing = watched(IDLE, lambda: None)

    def call_nothing() -> None:
        for _ in range(IDLE_CALLS):
            nothing()

    calls_of_nothing = watched(CALLER, call_nothing)
    _events.clear()
    calls_of_nothing()
    instructed.serve(kind, int(requests))
    Path(file).write_text("\n".join(_events), encoding="utf-8")
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
