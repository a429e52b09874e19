"""Instructions of a view in user space, beyond the same page without the middleware, as multiples of
one redis-py INCR in the view.

valgrind counts them, so they are the same whatever else the machine does: one round is enough
(`instructions --against REV --rounds 1`). `instructed.py` is what it runs.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from redis import Redis

from tests.benchmarks.instructed import KINDS, SITES
from tests.benchmarks.measuring import table

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("instructed.py")
FEW, MANY = 200, 700  # requests of a kind in two processes, whose difference is measured
TOTAL = re.compile(r"^summary: (\d+)", re.MULTILINE)
# The budgets of the design, in INCRs.
MOST = {"new visitor": 1.65, "with cookie": 1.5, "robot": 0.5, "no subject": 0.12}
MOST |= {"mounted POST, new": 2.0, "mounted POST, cookie": 2.0}


def main() -> None:
    """Prints a table for the core alone, and one for the core with all parts."""
    if shutil.which("valgrind") is None:
        print("\nInstructions of a view: skipped, because valgrind is not installed.")
        return
    for site in SITES:
        title = f"Instructions of a request behind one proxy, {site} (INCR: redis-py's, in a view)"
        table(title, rows(own(measured(site))))


def measured(site: str) -> dict[str, float]:
    """Returns the instructions of one request of each kind on that site.

    Raises RuntimeError if the process fails that serves the requests.
    """
    with Redis.from_url(os.environ["READTRACK_TEST_REDIS_URL"]) as redis:
        redis.flushdb()
    with tempfile.TemporaryDirectory(prefix="readtrack-instructions-") as folder:
        command = [
            *("valgrind", "-q", "--tool=cachegrind", "--cache-sim=no"),
            f"--cachegrind-out-file={folder}/%p",
            *(sys.executable, "-W", "ignore", str(CHILD), site, str(FEW), str(MANY)),
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
            raise RuntimeError(f"The pages of the site {site} failed:\n{ended.stderr}")
        totals: dict[str, dict[int, int]] = {}
        for kind, number, process in json.loads(ended.stdout):
            totals.setdefault(kind, {})[number] = total_in(Path(folder, str(process)))
    return {kind: (by[MANY] - by[FEW]) / (MANY - FEW) for kind, by in totals.items()}


def total_in(file: Path) -> int:
    """Returns the instructions of a process by the file that valgrind wrote of it."""
    found = TOTAL.search(file.read_text(encoding="utf-8"))
    if found is None:
        raise RuntimeError(f"{file} does not tell the instructions.")
    return int(found[1])


def own(instructions: Mapping[str, float]) -> dict[str, float]:
    """Returns the instructions of those kinds that have a base, without those of the base."""
    found = {}
    for kind, number in instructions.items():
        base = KINDS[kind].base
        if base:
            found[kind] = number - instructions[base]
    return found


def rows(found: Mapping[str, float]) -> Sequence[tuple[str, ...]]:
    """Returns the rows of the table."""
    incr = found["INCR"]
    lines = [("", "thousands", "ratio", "at most")]
    for kind, number in found.items():
        most = f"{MOST[kind]} ×" if kind in MOST else ""
        lines.append((kind, f"{number / 1000:,.0f}", f"{number / incr:.2f} ×", most))
    return lines
