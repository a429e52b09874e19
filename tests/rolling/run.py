"""The rolling deploy: builds both wheels, replaces the processes one by one, and compares all numbers
in the end.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from demo_project.engines.postgres import Postgres
from demo_project.engines.process import Child
from demo_project.engines.valkey import Valkey
from tests.rolling import wheels

SITE = Path(__file__).parent / "site"
WORKER = SITE / "worker.py"
OLD, NEW = "old", "new"
WRITERS = ("write0", "write1", "write2")
FLUSHERS = ("flush0", "flush1")
# Which process is replaced by which version, one after another. One of them goes back once, as
# after a deploy that is interrupted, and some are killed.
STEPS = (
    ("flush0", NEW, signal.SIGTERM),
    ("write0", NEW, signal.SIGTERM),
    ("write1", NEW, signal.SIGKILL),
    ("write0", OLD, signal.SIGKILL),
    ("flush1", NEW, signal.SIGKILL),
    ("write2", NEW, signal.SIGTERM),
    ("write0", NEW, signal.SIGTERM),
)
GRACE = 60  # seconds until a process that is told to end is killed


@dataclass(frozen=True, slots=True)
class Plan:
    """What is deployed, and how long it takes (seconds, without builds and servers)."""

    seconds: float = 60
    old: str = ""  # the commit or the tag; "" for the last version
    # Changes of the new version's files, to see that the driver notices: by the name of a file, a
    # text in it and what takes its place.
    changes: Mapping[str, tuple[str, str]] = field(default_factory=dict)


class Result(NamedTuple):
    """What was done, and what is wrong in the end."""

    old: str  # the commit
    acts: Counter[str]  # by kind and version
    views: int  # that were counted
    problems: list[str]

    @property
    def holds(self) -> bool:
        return not self.problems


class Done(NamedTuple):
    """What was done with each post."""

    views: Counter[str]  # that counted
    reads: Counter[str]
    steps: Counter[str]  # to the last stage of the funnel

    @classmethod
    def of(cls, entries: list[Any]) -> "Done":
        """Returns what the journals say."""

        def of_kind(kind: str) -> Counter[str]:
            return Counter(entry["act"][1] for entry in entries if entry["act"][0] == kind)

        views = Counter(entry["act"][1] for entry in entries if entry.get("does_count"))
        return cls(views, of_kind("finish"), of_kind("step"))


class Rolling:
    """One run, on servers of its own."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.old = plan.old or wheels.last_version()
        self.folder = Path(tempfile.mkdtemp(prefix="readtrack-rolling-"))
        self.valkey = Valkey()
        self.postgres = Postgres()
        self.workers: dict[str, Child] = {}
        self.failures: list[str] = []

    def run(self) -> Result:
        """Deploys. Raises NoHistoryError if git does not have the older version."""
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self._build()
            stack.enter_context(self.valkey)
            stack.enter_context(self.postgres)
            self._set_up()
            stack.callback(self._kill_all)
            self._deploy()
            for version in (OLD, NEW):
                self._do("look", version, name=f"look-{version}")
            return self._compare()

    def _build(self) -> None:
        old_source = self.folder / "source-old"
        new_source = self.folder / "source-new"
        wheels.old_source(self.old, to=old_source)
        wheels.new_source(to=new_source, changes=self.plan.changes)
        wheels.install(old_source, to=self.folder / OLD)
        wheels.install(new_source, to=self.folder / NEW)

    def _set_up(self) -> None:
        # Before there is a tag, the first migration is still edited, so the newer one has run.
        has_tag = wheels.is_version(self.old)
        self._do("migrate", OLD if has_tag else NEW)
        self._do("fill", OLD, name=str(len(WRITERS)))

    def _deploy(self) -> None:
        """Replaces the processes one by one, and stops them in the end."""
        pause = self.plan.seconds / (len(STEPS) + 2)
        for name in (*WRITERS, *FLUSHERS):
            self._start(name, OLD)
        time.sleep(pause)
        self._do("migrate", NEW)
        for name, version, farewell in STEPS:
            time.sleep(pause)
            self._stop(name, farewell)
            self._start(name, version)
        time.sleep(pause)
        for name in [*self.workers]:
            self._stop(name, signal.SIGTERM)
        self._do("flush_once", NEW)

    def _environment(self, version: str) -> dict[str, str]:
        wheel = self.folder / version
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "shop.settings",
            "DATABASE_URL": self.postgres.url,
            "ROLLING_REDIS_URL": self.valkey.url,
            "ROLLING_WHEEL": str(wheel),
            "PYTHONPATH": str(wheel),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def _command(self, work: str, name: str) -> list[str]:
        return [sys.executable, str(WORKER), work, str(self.folder), name]

    def _do(self, work: str, version: str, *, name: str = "-") -> None:
        """Lets a process of that version do something, and waits for it. A failure is a problem."""
        done = subprocess.run(
            self._command(work, name),
            env=self._environment(version),
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode or done.stderr:
            self.failures.append(f"{work} by the {version} version:\n{done.stderr[-3000:]}")

    def _start(self, name: str, version: str) -> None:
        self.workers[name] = Child(
            self._command(name.rstrip("0123456789"), name),
            log=self.folder / f"{name}-{version}.log",
            env={**self._environment(version), "ROLLING_VERSION": version},
        )

    def _stop(self, name: str, farewell: signal.Signals) -> None:
        """Ends a process. One that has ended by itself is a problem, and its log says why."""
        worker = self.workers.pop(name)
        if not worker.is_running:
            self.failures.append(f"{name} has ended by itself.")
        worker.stop(farewell, grace=GRACE)

    def _kill_all(self) -> None:
        for worker in self.workers.values():
            worker.kill()

    def _compare(self) -> Result:
        entries = list(self._entries())
        done = Done.of(entries)
        problems = [*self.failures, *self._logged()]
        unread = self._unread(entries)
        for version in (OLD, NEW):
            path = self.folder / f"look-{version}.seen"
            if path.exists():
                seen = json.loads(path.read_text())
                problems += _differences(f"the {version} version", seen, done, unread)
        if not done.views:
            problems.append("Nothing was counted.")
        return Result(
            old=self.old,
            acts=Counter(f"{entry['act'][0]} by {entry['version']}" for entry in entries),
            views=done.views.total(),
            problems=problems,
        )

    def _entries(self) -> Iterator[Any]:
        """Yields what was done, of each writer in its order."""
        for path in sorted(self.folder.glob("*.journal")):
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                if entry["is_done"]:
                    yield entry

    def _unread(self, entries: list[Any]) -> list[str]:
        """Returns what is unread in the end: a place, and the reader's id.

        A category begins unread for everybody, a thread read.
        """
        rows = json.loads((self.folder / "rows").read_text())
        unread = set()
        for pk in rows["category"]:
            unread |= {f"category {pk} {reader}" for reader in rows["reader"]}
        for entry in entries:
            kind, what, who, *_ = entry["act"]
            if kind == "read":
                unread.discard(f"{what} {who}")
            elif kind == "publish":
                unread |= {f"{what} {reader}" for reader in rows["reader"]}
        return sorted(unread)

    def _logged(self) -> Iterator[str]:
        """Yields what processes have said: nothing, if all is well."""
        for path in sorted(self.folder.glob("*.log")):
            text = path.read_text(errors="replace")
            if text:
                yield f"{path.stem} says:\n{text[-3000:]}"


def _differences(who: str, seen: Mapping[str, Any], done: Done, unread: list[str]) -> Iterator[str]:
    """Yields what a version sees otherwise than it was done."""
    for place in ("SQL", "Redis", "by device"):
        for post, views in seen[place].items():
            if views != done.views[post]:
                yield f"{who}: {place} has {views} views of {post}, and {done.views[post]} counted."
    if seen["history"] != done.views.total():
        yield f"{who}: history has {seen['history']} views, and {done.views.total()} counted."
    yield from _differences_of_stages(who, seen, done)
    wrong_dots = set(seen["unread"]) ^ set(unread)
    if wrong_dots:
        yield f"{who}: dots that are wrong: {', '.join(sorted(wrong_dots)[:10])}."


def _differences_of_stages(who: str, seen: Mapping[str, Any], done: Done) -> Iterator[str]:
    """Yields in which reads and steps a version differs from what was done."""
    for place in ("reads", "history of reads"):
        for post, reads in seen[place].items():
            if reads != done.reads[post]:
                yield f"{who}: {place} of {post} are {reads}, and {done.reads[post]} were done."
    for post, stages in seen["funnel"].items():
        expected = [done.views[post], done.steps[post], done.steps[post]]
        if stages != expected:
            yield f"{who}: the funnel of {post} has {stages}, and {expected} passes were done."
