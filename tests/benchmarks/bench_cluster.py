"""Recording on one server and on a cluster of three primaries: the processor time that a view costs
each server.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping
from statistics import median
from time import perf_counter, sleep
from typing import Any

from django.conf import settings
from django.test import override_settings

from readtrack import buckets, tracker
from readtrack.buffer.queue import BATCH, HitBuffer
from readtrack.buffer.waiting import queued_form
from readtrack.hits.hit import Hit
from readtrack.hits.visitors import Visitor
from readtrack.store import counters, scripts
from readtrack.store.connection import address, servers
from tests.benchmarks.measuring import table
from tests.support.cluster import ValkeyCluster

POSTS, VIEWS, ROUNDS = [f"site.post:{number}" for number in range(2_000)], 1_000, 3
IDLE = (
    0.5  # seconds in which the cost of a server that does nothing is measured, which is no view's
)


def main() -> None:
    """Prints a table; each round measures each row."""
    with ValkeyCluster() as cluster:
        caches = {"default": cluster.cache()}
        rows: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
            "one server": (settings.CACHES, {"CLUSTER": {"partitions": 1}}),
            "one server, 64 partitions": (settings.CACHES, {"CLUSTER": {"partitions": 64}}),
            "three primaries with replicas, 64 partitions": (
                caches,
                {"CLUSTER": {"partitions": 64}},
            ),
        }
        found: dict[str, list[tuple[float, float]]] = {}
        for _ in range(ROUNDS):
            for name, (where, own) in rows.items():
                for way, record in {
                    "each view by itself": directly,
                    f"{BATCH} at once": at_once,
                }.items():
                    with override_settings(CACHES=where, READTRACK={"RATE": (0, 10), **own}):
                        found.setdefault(f"{name}, {way}", []).append(measured(record))
    lines = [("", "CPU a view, all servers", "busiest server", "views a second that it takes")]
    for name, costs in found.items():
        whole, most = (median(column) for column in zip(*costs, strict=True))
        lines.append((name, f"{whole:.1f} µs", f"{most:.1f} µs", f"{1_000_000 / most:,.0f}"))
    table(
        f"Views of {len(POSTS):,} posts, each by a new visitor (INFO cpu of the primaries, beyond what they take idle)",
        lines,
    )


def measured(record: Any) -> tuple[float, float]:
    """Returns the processor time (µs) that a view costs all servers, and the busiest one."""
    lead, hits = (
        [
            Hit(Visitor(uuid.uuid4().hex), buckets.now(), views=(random.choice(POSTS),))
            for _ in range(number)
        ]
        for number in (BATCH, VIEWS)
    )
    record(lead)
    known = counted()
    idle, times = [], []
    for work in (lambda: sleep(IDLE), lambda: record(hits)):
        before, began = cpu(), perf_counter()
        work()
        times.append(perf_counter() - began)
        idle.append({name: after - before[name] for name, after in cpu().items()})
    assert counted() - known == VIEWS
    rest, busy = idle
    spent = [(busy[name] - rest[name] * times[1] / times[0]) / VIEWS * 1_000_000 for name in busy]
    return sum(spent), max(spent)


def directly(hits: list[Hit]) -> None:
    for hit in hits:
        tracker.record(hit)


def at_once(hits: list[Hit]) -> None:
    buffer = HitBuffer()
    buffer._queue.extend(map(queued_form, hits))
    buffer._send_all()


def counted() -> int:
    """Returns the views of all posts."""
    found = scripts.run_all(*map(counters.totals, scripts.parted(POSTS)))
    return sum(total.views for totals in found for total in totals.values())


def cpu() -> Mapping[str, float]:
    """Returns the processor time of each server so far (seconds)."""
    clients: list[Any] = servers()
    return {
        address(client): (told := client.info("cpu"))["used_cpu_sys"] + told["used_cpu_user"]
        for client in clients
    }
