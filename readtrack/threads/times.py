"""Copies of the keys of positions for SQL, and giving them back to a Redis that lost its own.

Such a key has times by name, and of two copies the later time of each name is right. So copies may
overlap, repeat and be late.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from readtrack.store import keys as store_keys
from readtrack.store import scripts
from readtrack.store.keys import Key
from readtrack.store.scripts import Call
from readtrack.subjects import key_in, label_in
from readtrack.threads import keys
from readtrack.threads.forms import positions_of
from readtrack.threads.positions import (
    ALL,
    LAST_BOARD,
    MOST_POSITIONS,
    MOST_PUBLICATIONS,
    MOST_THREADS,
    kept_for,
    lifetime,
    tags_of,
)

# The lists of boards are made anew out of the threads' publications.
ROWS = (keys.positions, keys.positions_start, keys.thread_news)
KINDS = {keys.positions: "positions", keys.positions_start: "start", keys.thread_news: "news"}
KEYS_AT_ONCE = 100
BYTES_AT_ONCE = 1_000_000


class TimesCopy(NamedTuple):
    """What a key of positions has at one moment."""

    name: str  # of the key, without the prefix
    times: Mapping[str, int]  # µs by name; the name "" for a key of one time
    changed: str = ""  # when the key changed (µs), "" if SQL has it already

    @property
    def is_gone(self) -> bool:
        """True if the key was removed since SQL got a copy."""
        return not self.times and bool(self.changed)

    @property
    def last(self) -> int:
        """The latest of the times, 0 for none."""
        return max(self.times.values(), default=0)


def is_used(row: Key | None, pieces: Mapping[str, str]) -> bool:
    """Returns True for a key of positions of a model that has this form."""
    return row in ROWS and positions_of(_label(pieces)) is not None


def _label(pieces: Mapping[str, str]) -> str:
    """Returns the label of the threads' model, by the pieces of a key's name."""
    return label_in(pieces["subject"]) if "subject" in pieces else pieces["model"]


def parse(name: str) -> tuple[Key | None, Mapping[str, str]]:
    """Returns the row and the pieces of a key's name without the prefix."""
    return store_keys.parse(store_keys.prefix() + name)


def short(name: str) -> str:
    """Returns the name of a key without the prefix."""
    return name.removeprefix(store_keys.prefix())


def copies(tag: str, key_names: Sequence[str]) -> Iterator[list[TimesCopy]]:
    """Yields copies of these keys of a partition, in short lists.

    Yields nothing while its Redis has not begun. Raises redis.RedisError.
    """
    start = 0
    while start < len(key_names):
        portion = key_names[start : start + KEYS_AT_ONCE]
        first_keys = [store_keys.reads_began(tag), store_keys.reads_changed(tag)]
        call = Call[Any]("readtrack.threads/copy_times", [*first_keys, *portion], (BYTES_AT_ONCE,))
        answers = scripts.run(call, patient=True)
        if answers is None:
            return
        copies_of_portion = []
        for name, (changed, *content) in zip(portion, answers, strict=False):
            times = dict(scripts.pairs(content))
            copies_of_portion.append(TimesCopy(short(name), times, changed.decode()))
        yield copies_of_portion
        start += len(answers)


def merged(name: str, stored: Mapping[str, int], copy: Mapping[str, int]) -> dict[str, int]:
    """Returns what the key has by two copies: the later time of each name."""
    row, _ = parse(name)
    if row is keys.thread_news:
        return _merged_news(stored, copy)
    times = _later(stored, copy)
    if row is keys.positions:
        all_until = times.get(ALL, 0)
        # Everything up to that time is read.
        times = {name: time for name, time in times.items() if time > all_until or name == ALL}
    return times


def _later(stored: Mapping[str, int], copy: Mapping[str, int]) -> dict[str, int]:
    return {name: max(stored.get(name, 0), copy.get(name, 0)) for name in {**stored, **copy}}


def _merged_news(stored: Mapping[str, int], copy: Mapping[str, int]) -> dict[str, int]:
    """Returns a thread's publications, and its boards by the copy with the later publication."""
    later = copy
    if max(stored.values(), default=0) > max(copy.values(), default=0):
        later = stored
    boards = {name: number for name, number in later.items() if number <= LAST_BOARD}
    publications = [
        (time, name) for name, time in _later(stored, copy).items() if time > LAST_BOARD
    ]
    last_publications = sorted(publications)[-MOST_PUBLICATIONS:]
    return {**boards, **{name: time for time, name in last_publications}}


def restore(tag: str, rows: Sequence[TimesCopy], *, restoration_id: str) -> bool:
    """Gives Redis what SQL has of keys of a partition. `restoration_id` is what
    `copies.begin_restoring` returned.

    Returns False if Redis has another restoration, so that nothing was changed. Raises
    redis.RedisError.
    """
    calls = [call for copy in rows for call in _restoring(tag, copy, restoration_id=restoration_id)]
    return all(answer > 0 for answer in scripts.run_all(*calls, patient=True))


def _restoring(tag: str, copy: TimesCopy, *, restoration_id: str) -> list[Call[int]]:
    """Returns the call that restores a key; none for a key that belongs elsewhere by now."""
    row, pieces = parse(copy.name)
    if row is None or not is_used(row, pieces):
        return []
    label = _label(pieces)
    times = dict(copy.times)
    thread = ""
    if row is keys.thread_news:
        if store_keys.tag(pieces["subject"]) != tag:
            return []
        thread = key_in(pieces["subject"])
    elif row is keys.positions:
        names = tags_of(label, times).get(tag, [])  # the others are of earlier partitions
        times = {name: times[name] for name in names}
    arguments: list[str | int] = [
        restoration_id,
        KINDS[row],
        lifetime(),
        kept_for(),
        MOST_POSITIONS,
        MOST_PUBLICATIONS,
        keys.board_news(tag, label, ""),
        MOST_THREADS,
        thread,
    ]
    for name, time in times.items():
        arguments += [name, time]
    key_names = [
        store_keys.reads_began(tag),
        store_keys.reads_restoring(tag),
        store_keys.prefix() + copy.name,
    ]
    return [Call("readtrack.threads/restore_times", key_names, arguments, int)]
