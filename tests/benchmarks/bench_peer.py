"""What a counted view costs all processes, with its share of the flush, next to django-hitcount.

Ours goes through the middleware, and a flush of a minute stores it; requests and empty responses
alone are subtracted. Theirs is the call by which its views count a hit, on the same PostgreSQL. With
READTRACK_TEST_CORE=1 ours is the core alone.
"""

import os
from functools import partial
from statistics import median

from django.http import HttpResponse
from django.test import override_settings

from readtrack.flush.run import flush
from readtrack.models import FlushRun
from tests.benchmarks.bench_flush import request_for, seed, site_settings, view
from tests.benchmarks.bench_memory import empty_tables
from tests.benchmarks.measuring import Spent, processor_times, spent, table, time_of_family
from tests.benchmarks.peer import Peer

VIEWS = 1_000  # by new visitors, between two flushes
POSTS = {"of 10 posts": 10, "of as many posts": VIEWS}
AT_ONCE = 100  # views of the peer for a line; they are of 10 pages
ROUNDS = 7


def main() -> None:
    """Prints a table; the peer needs the network, once, for an environment of its own."""
    ours: dict[str, list[Spent]] = {name: [] for name in POSTS}
    theirs: list[Spent] = []
    bare: list[Spent] = []
    empty_tables()
    seed(VIEWS)
    with (
        override_settings(READTRACK=site_settings(), ALLOWED_HOSTS=["testserver"]),
        Peer("hitcount") as peer,
    ):
        flush()
        # In turn, so that a busy machine is busy for both. The first round only warms up.
        for _ in range(ROUNDS + 1):
            for name, posts in POSTS.items():
                ours[name].append(spent(partial(view_and_flush, posts)))
            bare.append(spent(requests_alone))
            theirs.append(spent_by(peer))
    request = median(times.process for times in bare[1:])
    for rounds in ours.values():
        rounds[:] = [times._replace(process=times.process - request) for times in rounds]
    compared = median(times.total for times in theirs[1:])
    parts = "the core alone" if os.environ.get("READTRACK_TEST_CORE") else "all parts"
    rows = [row(f"readtrack, {parts}, {name}", ours[name][1:], compared) for name in POSTS]
    rows.append(row("django-hitcount 1.3.5", theirs[1:], compared))
    head = ("", "a view", "process", "Redis", "SQL", "")
    table(f"A counted view of {VIEWS:,} between two flushes, processor time", [head, *rows])


def row(name: str, rounds: list[Spent], compared: float) -> tuple[str, ...]:
    """Returns the times of a view, each the median over the rounds, and how often they go into the
    peer's.
    """
    of_view = [Spent(*(time / VIEWS for time in times)) for times in rounds]
    total = median(times.total for times in of_view)
    parts = [median(times[part] for times in of_view) for part in range(3)]
    return (
        name,
        *(f"{time * 1e6:.0f} µs" for time in (total, *parts)),
        f"{compared / VIEWS / total:.1f} × less",
    )


def view_and_flush(posts: int) -> None:
    """Opens pages as visitors whom nobody has seen before, and stores the views."""
    view(1 + number % posts for number in range(VIEWS))
    flush(only_changed=True)
    assert FlushRun.objects.latest().written == posts


def requests_alone() -> None:
    """Makes the requests, and empty responses, which are no cost of a view."""
    for number in range(VIEWS):
        request_for(number, visitor=number)
        HttpResponse(b"<!doctype html>")


def spent_by(peer: Peer) -> Spent:
    """Returns the processor time that the peer's process and PostgreSQL take for as many views."""
    before = time_of_family(peer.pid), processor_times().sql
    for _ in range(VIEWS // AT_ONCE):
        peer.do("count", answer=str(AT_ONCE))
    return Spent(time_of_family(peer.pid) - before[0], 0.0, processor_times().sql - before[1])
