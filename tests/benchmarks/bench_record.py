"""Recording one view: next to a PING, next to the same steps as single commands, next to
django-hitcount.
"""

from collections.abc import Callable
from functools import partial
from itertools import count

from readtrack import buckets, tracker
from readtrack.hits.hit import Hit
from readtrack.hits.visitors import Visitor
from readtrack.store.connection import connect
from tests.benchmarks.measuring import compare, table
from tests.benchmarks.peer import Peer

VIEWS = 2000
POSTS = 1000

_visitors = count()


def main() -> None:
    """Prints two tables; the second one needs the network, once, for an environment of the peer's
    own.
    """
    connect().flushdb()
    found = compare(
        {"PING": pings, "one view recorded": records, "the same as single commands": commands},
        each=VIEWS,
    )
    rows = [
        (name, f"{spent:.1f} µs", f"{ratio:.2f} × PING") for name, (spent, ratio) in found.items()
    ]
    table(
        f"Recording a view ({VIEWS} new visitors a round, {POSTS} posts; at most 1.6 × PING)",
        [("", "median", "ratio"), *rows],
    )
    against_hitcount()


def against_hitcount() -> None:
    """The peer in a process of its own, in turn with ours."""
    with Peer("hitcount") as peer:
        theirs = partial(peer.do, "count", answer="100")
        found = compare(
            {"readtrack": one_hundred, "django-hitcount 1.3.5": theirs}, each=100, rounds=5
        )
    rows = [(name, f"{spent:.0f} µs", f"{ratio:.1f} ×") for name, (spent, ratio) in found.items()]
    table(
        "A counted view against django-hitcount, on the same PostgreSQL (at least 20 ×)",
        [("", "median", "ratio"), *rows],
    )


def pings() -> None:
    client = connect()
    for _ in range(VIEWS):
        client.ping()


def records() -> None:
    _each(
        lambda visitor, subject: tracker.record(
            Hit(Visitor(visitor), buckets.now(), views=(subject,))
        ),
        VIEWS,
    )


def one_hundred() -> None:
    _each(
        lambda visitor, subject: tracker.record(
            Hit(Visitor(visitor), buckets.now(), views=(subject,))
        ),
        100,
    )


def commands() -> None:
    """What the script does, a command at a time, as one would write it by hand."""
    client = connect()

    def record(visitor: str, subject: str) -> None:
        now = buckets.now()
        hour, minute = buckets.hour_bucket(now), buckets.minute_bucket(now)
        if client.incr(f"rate:{visitor}") == 1:
            client.expire(f"rate:{visitor}", 10)
        if not client.set(f"viewed:{visitor}:{subject}", 1, nx=True, ex=1800):
            return
        if client.incr(f"views:total:{subject}") == 1:
            client.zadd("views:unsettled", {subject: 1}, nx=True)
        if client.incr(f"views:hour:{hour}:{subject}") == 1:
            client.expire(f"views:hour:{hour}:{subject}", 86400)
        if client.incr(f"views:hour:{hour}:site.post") == 1:
            client.expire(f"views:hour:{hour}:site.post", 172800)
            client.zadd("views:unsettled", {f"views:hour:{hour}:site.post": 1}, nx=True)
        client.pfadd(f"views:hll:{subject}", visitor)
        client.zincrby(f"trending:bucket:{minute}", 1, subject)
        client.zadd("views:changed", {subject: 1})
        if client.pfadd(f"visitors:minute:{minute}:site.post", visitor):
            client.expire(f"visitors:minute:{minute}:site.post", 360)

    _each(record, VIEWS)


def _each(record: Callable[[str, str], object], views: int) -> None:
    for _ in range(views):
        number = next(_visitors)
        record(f"v{number:015}", f"site.post:{number % POSTS}")
