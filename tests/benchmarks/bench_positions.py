"""Read state by reader: the server's time next to that of bitmaps, and memory for a million threads."""

from collections.abc import Callable, Mapping
from itertools import count
from random import Random
from statistics import median
from typing import Any

from django.test import override_settings

from readtrack.store import keys, read_state, scripts
from readtrack.store.connection import connect, server_time
from readtrack.store.read_state import PageTime, Publication
from readtrack.threads.forms import Threads, positions_of
from tests.benchmarks.measuring import table

MODELS = {
    "site.Thread": {"read_state": "positions", "boards": ["board", "board__forum"]},
    "site.Category": {"read_state": "bitmap"},
}
DOTS = 50
CALLS = 2_000
ROUNDS = 5
READERS = 20_000  # that are written to weigh them
THREADS = 20_000
READ = 20  # threads of a reader
MILLION = 1_000_000
FULL = 500  # threads of a reader at most

Work = Callable[[], object]


def main() -> None:
    """Prints two tables."""
    with override_settings(READTRACK={"MODELS": MODELS, "TIMEOUT": 60.0}):
        empty()
        times()
        empty()
        memory()


def empty() -> None:
    """Empties Redis, and waits until its memory is free."""
    client: Any = connect()
    client.execute_command("FLUSHDB", "SYNC")


def threads(number: int, start: int = 1) -> list[str]:
    return [f"site.thread:{pk}" for pk in range(start, start + number)]


def publish(
    subjects: list[str],
    numbers: Any = count(1),  # noqa: B008 - one for all
    *,
    boards: tuple[str, ...] = ("site.board:1", "site.forum:1"),
) -> None:
    """Publishes a reply in each thread."""
    for portion in scripts.sliced(subjects):
        news = [
            Publication(
                subject,
                post=f"site.reply:{next(numbers)}",
                within=boards,
            )
            for subject in portion
        ]
        scripts.run_all(*read_state.publish(news))


def read(reader: int, subjects: list[str]) -> None:
    now = server_time()
    form = positions()
    scripts.run_all(*form.raise_positions(reader, dict.fromkeys(subjects, now)))


def positions() -> Threads:
    form = positions_of("site.thread")
    assert form is not None
    return form


def server_microseconds(works: Mapping[str, Work]) -> dict[str, float]:
    """Returns the time that the server takes for one call of each work, which are run in turn."""
    spent: dict[str, list[float]] = {name: [] for name in works}
    client: Any = connect()
    for _ in range(ROUNDS + 1):
        for name, work in works.items():
            client.config_resetstat()
            for _ in range(CALLS // ROUNDS):
                work()
            statistics = client.info("commandstats")["cmdstat_evalsha"]
            spent[name].append(statistics["usec"] / statistics["calls"])
    return {name: median(each[1:]) for name, each in spent.items()}  # the first one warms up


def times() -> None:
    """Prints what the server takes for what a page, a reader and a post ask of it."""
    categories = [f"site.category:{number}" for number in range(1, DOTS + 1)]
    for subject in categories:
        connect().set(keys.read_bits(subject), b"\xff" * (MILLION // 8))
    topics = threads(DOTS)
    publish(threads(2_000))
    few, many, none, all_of_board = 1, 2, 3, 4
    read(few, topics[:READ])
    read(many, threads(FULL))
    read(all_of_board, threads(200, start=1_900))
    read_state.begin(0)
    replies = count(1)

    def dots(reader: int, subjects: list[str]) -> Work:
        return lambda: scripts.run_all(*read_state.unread_calls(reader, subjects))

    def mark_all(reader: int) -> Work:
        return lambda: scripts.run_all(*positions().mark_all(reader, page=PageTime()))

    def mark() -> None:
        scripts.run_all(*read_state.marks(none, topics[:1]))

    def reply() -> None:
        publish(topics[:1], replies)

    works: dict[str, Work] = {
        f"{DOTS} dots by bitmaps": dots(few, categories),
        f"{DOTS} dots, {READ} threads read": dots(few, topics),
        f"{DOTS} dots, {FULL} threads read": dots(many, topics),
        f"{DOTS} dots, all unread": dots(none, topics),
        "the dot of a board, unread": dots(none, ["site.board:1"]),
        "the dot of a board, read": dots(all_of_board, ["site.board:1"]),
        "publish a reply": reply,
        "mark a thread read": mark,
        "mark all read": mark_all(many),
    }
    found = server_microseconds(works)
    base = next(iter(found.values()))
    rows = [("", "server", "to bitmaps")]
    rows += [(name, f"{time:.0f} µs", f"{time / base:.1f} ×") for name, time in found.items()]
    table("Read state by reader: the server's time", rows)


def used_memory() -> int:
    client: Any = connect()
    return int(client.info("memory")["used_memory"])


def grown(work: Work, number: int) -> float:
    """Returns the memory by which the server grows for each of a number of things (bytes)."""
    before = used_memory()
    work()
    return (used_memory() - before) / number


def memory() -> None:
    """Prints the memory of a reader and of a thread, and that of a million of each."""
    chance = Random(7)

    def readers() -> None:
        for reader in range(1, READERS + 1):
            pks = chance.sample(range(1, MILLION), READ)
            read(MILLION + reader, [f"site.thread:{pk}" for pk in pks])

    def publications(number: int, start: int, **options: Any) -> Work:
        def work() -> None:
            for _ in range(number):
                publish(threads(THREADS, start=start), **options)

        return work

    each_reader = grown(readers, READERS)
    each_thread = grown(publications(1, start=MILLION, within=()), THREADS)
    each_placed_thread = grown(publications(1, start=2 * MILLION), THREADS)
    each_busy_thread = grown(publications(10, start=3 * MILLION), THREADS)
    total = (each_reader + each_thread) * MILLION
    table(
        "Read state by reader: memory",
        [
            ("", "each", f"{MILLION:,} of them"),
            (f"a reader of {READ} threads", f"{each_reader:.0f} B", size(each_reader * MILLION)),
            ("a thread with a publication", f"{each_thread:.0f} B", size(each_thread * MILLION)),
            (
                "the same in a board and a forum",
                f"{each_placed_thread:.0f} B",
                size(each_placed_thread * MILLION),
            ),
            ("the same with 10", f"{each_busy_thread:.0f} B", size(each_busy_thread * MILLION)),
            ("readers, and threads without boards", "", size(total)),
        ],
    )


def size(number: float) -> str:
    return f"{number / 1_000_000:,.0f} MB"
