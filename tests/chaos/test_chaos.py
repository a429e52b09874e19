"""A chaos run of some seconds. `python -m tests.chaos` is a long one."""

import subprocess
import sys
from typing import Any

import pytest

from tests.chaos import cluster
from tests.chaos.__main__ import table
from tests.chaos.run import Result
from tests.chaos.watcher import Decrease, Watcher
from tests.support.depth import DEEP
from tests.support.rows import each_row


@pytest.mark.skipif(not DEEP, reason="takes ten seconds on an idle machine: READTRACK_DEEP=1")
@pytest.mark.parametrize("options", [["--lose-redis"], []])
def test_every_promise_holds_among_kills_and_crashes(options: list[str]) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.chaos",
        "--seconds",
        "3",
        "--recorders",
        "1",
        "--flushers",
        "2",
        *options,
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "every promise held" in run.stdout


@pytest.mark.skipif(not DEEP, reason="takes half a minute on an idle machine: READTRACK_DEEP=1")
def test_every_promise_holds_while_servers_of_a_cluster_fail_and_slots_move() -> None:
    command = [sys.executable, "-m", "tests.chaos.cluster"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "every promise held" in run.stdout


@each_row(
    ("broken", "verdict"),
    [
        ({}, "every promise held"),
        ({"errors": 1}, "A PROMISE WAS BROKEN"),
        ({"unexplained": 1}, "A PROMISE WAS BROKEN"),
        ({"overcounts": 1}, "A PROMISE WAS BROKEN"),
        ({"decreases": 1}, "A PROMISE WAS BROKEN"),
        ({"unsent": cluster.LAG - 1}, "A PROMISE WAS BROKEN"),
        ({"silences": {"killed": (4.9, 1.1)}}, "A PROMISE WAS BROKEN"),
        ({"silences": {"killed": (5.1, 0.9)}}, "A PROMISE WAS BROKEN"),
    ],
)
def test_the_verdict_on_a_cluster_names_a_broken_promise(
    broken: dict[str, Any], verdict: str
) -> None:
    good = {"unsent": cluster.LAG, "silences": {"killed": (4.9, 0.9)}}
    sums: dict[str, Any] = {**dict.fromkeys(cluster.Result._fields, 0), **good}
    told = cluster.table(cluster.Result(**{**sums, **broken}))
    assert told.endswith(verdict)
    assert "killed" in told


@pytest.mark.parametrize(
    ("broken", "verdict"),
    [
        ({}, "every promise held"),
        ({"decreases": 1}, "A PROMISE WAS BROKEN"),
        ({"overcounts": 1}, "A PROMISE WAS BROKEN"),
        ({"unexplained": 1}, "A PROMISE WAS BROKEN"),
    ],
)
def test_the_verdict_names_a_broken_promise(broken: dict[str, int], verdict: str) -> None:
    sums = dict.fromkeys(Result._fields, 0)
    result = Result(**{**sums, **broken, "blows": {"Redis killed": 1234}})  # type: ignore[arg-type]
    assert table(result).endswith(verdict)
    assert "Redis killed              1,234" in table(result)


def test_the_watcher_sees_a_count_go_down() -> None:
    watcher = Watcher("", table="posts")
    for stored in ({1: 5, 2: 3}, {1: 6, 2: 2}, {1: 6, 2: 2}):
        watcher.look(stored)
    assert watcher.decreases == [Decrease(2, 3, 2)]
