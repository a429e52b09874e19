"""The keys of readers' positions, of threads and of boards."""

from typing import Any

from readtrack.registry import registry
from readtrack.store import keys as core_keys
from readtrack.store.keys import Key

# What a reader and a thread are taken to have within the `days` of THREADS.
THREADS_READ = 20
PUBLICATIONS = 10


def _has_threads() -> bool:
    return any(options.read_state == "positions" for options in registry().values())


def _never() -> bool:
    return False


def _positions_of(size: Any) -> tuple[float, float]:
    # Each partition has a hash of a reader who has read one of its threads.
    hashes = min(len(core_keys.tags()), THREADS_READ)
    return (size.readers + 1) * hashes, max(1, THREADS_READ / len(core_keys.tags()))


def _news_of(size: Any) -> tuple[float, float]:
    return size.threads, PUBLICATIONS


def _none_of(size: Any) -> tuple[float, float]:
    return 0, 0


# fmt: off
positions = Key("positions:{model}:{reader}", "hash of times", "THREADS.days", "when (µs) up to which a reader has read each thread, by key; @ and a board: the threads in it then; *: all", is_used=_has_threads, amount=_positions_of)
positions_start = Key("positions:start:{model}", "string", "THREADS.days", "when (µs) up to which everybody has read all threads", united="highest", divided="copied", is_used=_never, amount=_none_of)
thread_news = Key("positions:news:{subject}", "set of times", "THREADS.days", "the last 100 publications of a thread by time (µs); its boards, numbered, since when, and until when", kept_with="read state", is_used=_has_threads, amount=_news_of)
board_news = Key("positions:board:{model}:{within}", "set of times", "THREADS.days", "the 100 threads of a board that were published to or moved there last, by time (µs); @ and when a thread last left it", is_used=_never, amount=_none_of)
# fmt: on

ROWS = (positions, positions_start, thread_news, board_news)
