"""Instructions of one request by function of readtrack, each without the functions that it calls.

valgrind counts them, so they are the same whatever else the machine does. `profiled.py` is what it
runs. What a cached function takes is part of the function that calls it, and what Django takes, of
the middleware. Not in it are new cookies, which are made for many visitors at once.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from redis import Redis

from tests.benchmarks.bench_instructions import ROOT
from tests.benchmarks.measuring import table
from tests.benchmarks.profiled import CALLER, IDLE, IDLE_CALLS

CHILD = Path(__file__).with_name("profiled.py")
KINDS = ("new visitor", "robot", "no subject", "mounted POST, new")
REQUESTS = 3
LEAST = 500  # instructions of a function in a request that is listed
TOTALS = re.compile(r"^totals: (\d+)", re.MULTILINE)
# Instructions between two calls of a function that does nothing which are not those of the marks.
LOOP, CALL = 120, 60


def main() -> None:
    """Prints a table for each kind of request."""
    if shutil.which("valgrind") is None:
        print("\nInstructions by function: skipped, because valgrind is not installed.")
        return
    for kind in KINDS:
        title = f"Thousands of instructions by function, everything installed: {kind}"
        table(title, rows(*measured(kind)))


def measured(kind: str) -> tuple[list[str], list[int]]:
    """Returns the events of `profiled.py`, and the instructions before each of them."""
    with Redis.from_url(os.environ["READTRACK_TEST_REDIS_URL"]) as redis:
        redis.flushdb()
    with tempfile.TemporaryDirectory(prefix="readtrack-functions-") as folder:
        events_file = Path(folder, "events")
        command = [
            *("valgrind", "-q", "--tool=callgrind", "--dump-before=os_getppid"),
            f"--callgrind-out-file={folder}/dump",
            *(sys.executable, "-W", "ignore", str(CHILD)),
            *("everything", kind, str(REQUESTS), str(events_file)),
        ]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True
        )
        if ended.returncode:
            raise RuntimeError(f"The requests failed:\n{ended.stderr}")
        events = events_file.read_text(encoding="utf-8").split("\n")
        dumps = sorted(Path(folder).glob("dump.*"), key=lambda dump: int(dump.suffix[1:]))
        # The first ones are from before the events.
        return events, [total_in(dump) for dump in dumps[-len(events) :]]


def total_in(dump: Path) -> int:
    """Returns the instructions by a file that valgrind wrote."""
    found = TOTALS.search(dump.read_text(encoding="utf-8"))
    if found is None:
        raise RuntimeError("valgrind wrote no totals. Does this Python have symbols?")
    return int(found[1])


def rows(events: Sequence[str], instructions: Sequence[int]) -> Sequence[tuple[str, ...]]:
    """Returns the rows of the table, in the order in which the functions begin."""
    own: Counter[str] = Counter()  # instructions by function
    calls: Counter[str] = Counter()
    calls_by: Counter[str] = Counter()  # of other functions, by the function that calls them
    depth_of: dict[str, int] = {}
    running = [""]
    for event, before in zip(events, instructions, strict=True):
        own[running[-1]] += before
        if event.startswith("-"):
            running.pop()
            continue
        name = event[1:]
        calls_by[running[-1]] += 1
        calls[name] += 1
        running.append(name)
        depth_of.setdefault(name, len(running) - 2)
    mark_inside = own[IDLE] / IDLE_CALLS - CALL
    mark_outside = own[CALLER] / IDLE_CALLS - LOOP
    lines = [("", "calls", "thousands")]
    for name, depth in depth_of.items():
        marks = calls[name] * mark_inside + calls_by[name] * mark_outside
        in_request = (own[name] - marks) / REQUESTS
        if name not in {IDLE, CALLER} and in_request >= LEAST:
            times = f"{calls[name] / REQUESTS:.0f}"
            lines.append((f"{'· ' * depth}{name}", times, f"{in_request / 1000:.1f}"))
    return lines
