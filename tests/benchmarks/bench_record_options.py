"""Recording one view with what a site may turn on: each option alone, then all of them, next to a
PING.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

from django.test import override_settings

from readtrack import buckets, tracker
from readtrack.hits.hit import Hit
from readtrack.hits.visitors import Visitor
from readtrack.store.connection import connect
from tests.benchmarks.measuring import compare, table

VIEWS = 1000
POSTS = 1000
ROUNDS = 11

VALUES = {
    "device": "phone",
    "browser": "Firefox",
    "os": "Android",
    "country": "DE",
    "referrer": "example.com",
}
OPTIONS: dict[str, dict[str, Any]] = {
    "the default": {},
    "unique visitors: set": {"UNIQUE": "set"},
    "unique visitors: daily": {"UNIQUE": "daily"},
    "unique visitors: bitmap": {"UNIQUE": "bitmap"},
    "no visitors of a day": {"NUMBERS": {"history": False}},
    "funnels": {"NUMBERS": {"funnels": True}},
    "one dimension": {"NUMBERS": {"dimensions": ["device"]}},
    "five dimensions": {"NUMBERS": {"dimensions": list(VALUES)}},
    "everything": {
        "NUMBERS": {"funnels": True, "dimensions": list(VALUES)},
    },
}

_visitors = count()


def main() -> None:
    """Prints a table; every row is one round trip."""
    connect().flushdb()
    works: dict[str, Callable[[], object]] = {"PING": pings}
    for name, options in OPTIONS.items():
        works[name] = recording(options)
    found = compare(works, each=VIEWS, rounds=ROUNDS)
    default = found["the default"][1]
    rows = [("", "median", "ratio", "adds")]
    for name, (spent, ratio) in found.items():
        adds = f"{ratio - default:+.2f}" if name not in ("PING", "the default") else ""
        rows.append((name, f"{spent:.1f} µs", f"{ratio:.2f} × PING", adds))
    table(
        f"Recording a view with options ({VIEWS} new visitors a round, {POSTS} posts; default at most 1.6)",
        rows,
    )


def pings() -> None:
    client = connect()
    for _ in range(VIEWS):
        client.ping()


def recording(options: dict[str, Any]) -> Callable[[], None]:
    """Records views of visitors nobody has seen before, under the options."""
    dimensions = tuple(
        (name, VALUES[name]) for name in options.get("NUMBERS", {}).get("dimensions", ())
    )

    def work() -> None:
        for _ in range(VIEWS):
            number = next(_visitors)
            subject = f"site.post:{number % POSTS}"
            visitor = Visitor(f"v{number:015}")
            tracker.record(
                Hit(visitor, buckets.now(), views=(subject,), reader=number, dimensions=dimensions)
            )

    # Under settings of their own, loaded outside of what is timed for each view.
    return override_settings(READTRACK=options)(work)
