"""Read state: next to a row for each user and category, next to django-machina, in memory, under
contention, and its copy in SQL.
"""

import os
import threading
from collections.abc import Callable
from functools import partial
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Sum
from django.db.models.functions import Length
from django.test import override_settings

from readtrack import buckets, reports, tracker
from readtrack.flush import read_state as flush_read_state
from readtrack.hits.hit import Hit
from readtrack.hits.readers import Reader
from readtrack.hits.visitors import Visitor
from readtrack.models import ReadState
from readtrack.store import keys, read_state, scripts
from readtrack.store.connection import connect
from readtrack.store.read_state import Publication, copies
from tests.benchmarks.measuring import compare, table
from tests.benchmarks.peer import Peer
from tests.site.models import Category, Post

USERS = int(os.environ.get("BENCH_USERS", "100000"))
CATEGORIES = 20
OPENS = 500
THREADS = 50
SECONDS = 3
ARCHIVED = int(os.environ.get("BENCH_ARCHIVED", "200"))  # categories that are copied to SQL
READERS = 1_000_000  # of the site
SHARE = 20  # every twentieth has read a category


def has_read(subject: str) -> set[int]:
    """Returns the numbers of the readers whose bit is set."""
    content: Any = connect().get(read_state.form_of(subject).key()(subject)) or b""
    return {
        8 * start + bit
        for start, byte in enumerate(content)
        for bit in range(8)
        if byte & (0x80 >> bit)
    }


SUBJECTS = [f"site.category:{number}" for number in range(1, CATEGORIES + 1)]

# The design this replaces.
TABLE = """
CREATE TABLE bench_read (user_id integer, category_id integer, is_read boolean NOT NULL,
    PRIMARY KEY (user_id, category_id));
CREATE INDEX ON bench_read (category_id);
INSERT INTO bench_read SELECT u, c, true FROM generate_series(1, {users}) u, generate_series(1, {categories}) c;
ANALYZE bench_read;
"""
OPEN = """INSERT INTO bench_read VALUES (%s, %s, true)
    ON CONFLICT (user_id, category_id) DO UPDATE SET is_read = true"""
PUBLISH = "UPDATE bench_read SET is_read = false WHERE category_id = %s AND is_read"
DOTS = "SELECT category_id FROM bench_read WHERE user_id = %s AND NOT is_read"


def main() -> None:
    """Prints five tables; the second one needs the network, once, for an environment of the peer's
    own.
    """
    with override_settings(READTRACK={"TIMEOUT": 60.0}):  # what is measured here is never given up
        empty()
        against_rows()
        against_machina()
        memory()
        contention()
        archive()


def empty() -> None:
    connect().flushdb()
    read_state.begin(0)


def against_rows() -> None:
    """Each thing done by SQL and by us, in turn."""
    sql(TABLE.format(users=USERS, categories=CATEGORIES), None)
    for subject in SUBJECTS:
        connect().set(keys.read_bits(subject), b"\xff" * (USERS // 8 + 1))
    rows = [("", "rows in SQL", "readtrack", "ratio")]
    opened = compare({"readtrack": open_ours, "rows": open_rows}, each=OPENS, rounds=5)
    drawn = compare({"readtrack": draw_ours, "rows": draw_rows}, each=OPENS, rounds=5)
    for name, found in (("open a category", opened), (f"draw {CATEGORIES} dots", drawn)):
        rows.append(
            (
                name,
                f"{found['rows'][0]:.0f} µs",
                f"{found['readtrack'][0]:.0f} µs",
                f"{found['rows'][1]:.1f} ×",
            )
        )
    theirs, ours = published()
    rows.append(
        ("publish a post", f"{theirs:,.0f} µs", f"{ours:.0f} µs", f"{theirs / ours:,.0f} ×")
    )
    table(
        f"Dots of {USERS:,} users in {CATEGORIES} categories, next to a row for each in PostgreSQL",
        rows,
    )
    sql("DROP TABLE bench_read", None)


def sql(statement: str, values: tuple[int, ...] | None) -> list[tuple[int]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall()) if cursor.description else []


def open_rows() -> None:
    for user in range(1, OPENS + 1):
        sql(OPEN, (user, 1))


def open_ours() -> None:
    for user in range(1, OPENS + 1):
        tracker.record(hit(user, SUBJECTS[:1]))


def draw_rows() -> None:
    for user in range(1, OPENS + 1):
        sql(DOTS, (user,))


def draw_ours() -> None:
    for user in range(1, OPENS + 1):
        scripts.run_all(*read_state.unread_calls(user, SUBJECTS))


def hit(reader: Reader, subjects: list[str], began: float | None = None) -> Hit:
    return Hit(Visitor("bench"), buckets.now(), reads=tuple(subjects), reader=reader, began=began)


def published() -> tuple[float, float]:
    """Microseconds of a publication in a category that everybody has read: the median of a few
    categories.
    """
    theirs, ours = [], []
    for number, subject in enumerate(SUBJECTS[1:4], start=2):
        publication = Publication(subject)
        theirs.append(timed(partial(sql, PUBLISH, (number,))))
        ours.append(timed(lambda: scripts.run_all(*read_state.publish([publication]))))  # noqa: B023 - run at once
    return median(theirs), median(ours)


def timed(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return (perf_counter() - start) * 1_000_000


def against_machina() -> None:
    """Forum tracking in a process of its own, in turn with ours, each by the calls that a site's
    code makes.
    """
    forums = Category.objects.filter(
        pk__in=[Category.objects.create().pk for _ in range(CATEGORIES)]
    )
    first = forums[0]
    for forum in forums:
        connect().set(keys.read_bits(f"site.category:{forum.pk}"), b"\xff" * (USERS // 8 + 1))
    users = [User(pk=number) for number in range(1, 101)]
    works: dict[str, tuple[str, Callable[[User], object]]] = {
        "mark a forum read": ("open", lambda user: tracker.mark_read(user, [first])),
        f"draw {CATEGORIES} dots": ("draw", lambda user: reports.unread(user, forums.all())),
        "mark all read": ("read all", lambda user: tracker.mark_all_read(user, forums)),
    }
    rows = [("", "django-machina", "readtrack", "ratio")]
    with Peer("machina") as peer:
        for name, (work, ours) in works.items():
            theirs = partial(peer.do, work, answer="100")
            rows.append(
                next_to(theirs, partial(each_of, users, ours), name=name, each=100, rounds=3)
            )
        theirs = partial(peer.do, "publish", answer="1")
        rows.append(
            next_to(
                theirs,
                lambda: Post.objects.create(category=first),
                name="save a post",
                each=1,
                rounds=50,
            )
        )
    table(
        f"Next to django-machina 1.3.1, {CATEGORIES} forums, 10,000 users who have read them",
        rows,
    )


def each_of(users: list[User], work: Callable[[User], object]) -> None:
    for user in users:
        work(user)


def next_to(
    theirs: Callable[[], object], ours: Callable[[], object], *, name: str, each: int, rounds: int
) -> tuple[str, str, str, str]:
    found = compare({"ours": ours, "theirs": theirs}, each=each, rounds=rounds)
    (spent, ratio), (mine, _) = found["theirs"], found["ours"]
    return name, f"{spent:,.0f} µs", f"{mine:,.0f} µs", f"{ratio:.1f} ×"


def memory() -> None:
    """What Redis itself says of the largest cases that are filled here; a hundred times that is
    reckoned.
    """
    rows: list[tuple[str, ...]] = [
        ("bytes", "10,000 readers", "1,000,000", "100,000,000 (reckoned)")
    ]
    for name, width in (("a category, bitmap", 1), ("a category, sequence", 32)):
        sizes = [filled(count, width=width) for count in (10_000, 1_000_000)]
        rows.append((name, *(f"{size:,}" for size in sizes), f"{sizes[1] * 100:,}"))
    for name, label in (
        ("ordinals of ids up to 2^63, once", sparse),
        ("ordinals of UUIDs, once", uuid),
    ):
        sizes = [numbered(count, label) for count in (10_000, 1_000_000)]
        rows.append((name, *(f"{size:,}" for size in sizes), f"{sizes[1] * 100:,}"))
    rows.append(("dense ids need no ordinals", "0", "0", "0"))
    table("Memory (at most 140 kB for 1,000,000 dense readers, 3 MB for 10,000 others)", rows)


def filled(count: int, *, width: int) -> int:
    connect().flushdb()
    connect().setrange("state", (count * width - 1) // 8, b"\x01")
    return usage("state")


def numbered(count: int, label: Callable[[int], str]) -> int:
    connect().flushdb()
    for start in range(0, count, 10_000):
        connect().hset(
            keys.readers(""), mapping={label(n): n for n in range(start, start + 10_000)}
        )
    return usage(keys.readers(""))


def sparse(number: int) -> str:
    return str(2**63 - number * 10**9)


def uuid(number: int) -> str:
    return f"2b0d7b3d-3d5c-4f5e-9d53-{number:012d}"


def usage(key: str) -> int:
    size = connect().memory_usage(key, samples=1000)
    connect().unlink(key)
    return int(str(size))


def contention() -> None:
    """Threads open a category while posts are published to it; a post is lost if its dot is out for
    who lacks it.
    """
    empty()
    posts, opened = [0], [0] * THREADS
    seen, is_read, lost = [0] * THREADS, [0], [0]
    stop = threading.Event()

    def reader(number: int) -> None:
        while not stop.is_set():
            began = perf_counter()
            seen[number] = posts[0]
            tracker.record(hit(number, SUBJECTS[:1], began))
            opened[number] += 1

    def writer() -> None:
        while not stop.wait(0.002):
            posts[0] += 1
            scripts.run_all(*read_state.publish([Publication(SUBJECTS[0])]))
            stop.wait(0.002)
            found = has_read(SUBJECTS[0])
            is_read[0] += len(found)
            lost[0] += sum(1 for number in found if seen[number] < posts[0])

    threads = [threading.Thread(target=reader, args=(number,)) for number in range(THREADS)]
    threads.append(threading.Thread(target=writer))
    for thread in threads:
        thread.start()
    stop.wait(SECONDS)
    stop.set()
    for thread in threads:
        thread.join()
    rows = [("posts published", "opened a second", "dots put out", "lost news")]
    rows.append((f"{posts[0]:,}", f"{sum(opened) / SECONDS:,.0f}", f"{is_read[0]:,}", str(lost[0])))
    table(
        f"{THREADS} threads open a category for {SECONDS} s while posts are published to it", rows
    )


def archive() -> None:
    """SQL's copy of large categories, and giving it back. A copy takes more, the closer the share of
    its readers is to a half: with half of them 125 KB.
    """
    empty()
    ReadState.objects.all().delete()
    chance = Random(7)
    states = [bitmap_of(chance.sample(range(READERS), READERS // SHARE)) for _ in range(ARCHIVED)]
    names = [f"site.category:{number}" for number in range(1, ARCHIVED + 1)]
    for name, state in zip(names, states, strict=True):
        connect().set(keys.read_bits(name), state)
    copies.mark_all_changed("")
    copied = timed(lambda: flush_read_state.store([""], {}, is_full=True))
    copies.mark_all_changed("")
    again = timed(lambda: flush_read_state.store([""], {}, is_full=True))
    size = ReadState.objects.aggregate(bytes=Sum(Length("state")))["bytes"]
    connect().flushdb()
    restored = timed(lambda: flush_read_state.restore([""]))
    assert connect().get(keys.read_bits(names[-1])) == states[-1]
    rows = [("", "measured", "1,000 categories (reckoned)")]
    for name, spent in (
        ("copy to SQL", copied),
        ("copy what did not change", again),
        ("restore", restored),
    ):
        rows.append((name, f"{spent / 1e6:.2f} s", f"{spent / 1e6 * 1000 / ARCHIVED:.1f} s"))
    rows.append(("in SQL", f"{size:,} bytes", f"{size * 1000 // ARCHIVED:,} bytes"))
    table(
        f"Copies of {ARCHIVED} categories, each read by {READERS // SHARE:,} of {READERS:,}", rows
    )


def bitmap_of(readers: list[int]) -> bytes:
    bits = bytearray(READERS // 8)
    for reader in readers:
        bits[reader // 8] |= 0x80 >> (reader % 8)
    return bytes(bits)
