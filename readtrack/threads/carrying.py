"""Carries the keys of positions to the names, and to the partitions, where they belong now.

Each partition has its own hash of a reader, and its own list of a board's threads. So what one key
has may belong to several partitions after their number or the name of the threads' model changed.
Two of a name become one by the later time, so that anything may be carried a second time.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from readtrack.store import keys as store_keys
from readtrack.store import renaming, scanning, scripts
from readtrack.store.keys import Key
from readtrack.store.read_state import copies
from readtrack.store.renaming import Rename
from readtrack.store.scripts import Call
from readtrack.threads import keys
from readtrack.threads.positions import lifetime, raised, tags_of

# A board among the positions of a reader, or in a thread: see positions.lua.
BOARD_WITH_TIMES = re.compile(r"(?P<times>@(?:\d+(?:-\d*)? )?)(?P<name>.*)", re.DOTALL)


def carry(
    name: str,
    row: Key,
    pieces: Mapping[str, str],
    *,
    renamed: Callable[[str], str] = str,
) -> list[str]:
    """Adds what a key has to the keys where it belongs, and returns their names. See
    `KeysOfPart.carry`.

    The key itself stays. `renamed` returns the new name of a label or a subject. Raises
    redis.RedisError.
    """
    if row is keys.positions:
        return _carry_positions(name, pieces, renamed)
    members: list[tuple[str, int]] = scripts.run(
        Call("ZRANGE", [name], (0, -1, "WITHSCORES"), scripts.pairs), patient=True
    )
    if not members:  # it has expired
        return []
    if row is keys.thread_news:
        new_name = keys.thread_news(renamed(pieces["subject"]))
        _add(new_name, renamed_times(dict(members), renamed))
        copies.mark_keys_changed([new_name])
        return [new_name]
    label = renamed(pieces["model"])
    board = renamed(pieces["within"])
    times = dict(members)
    new_names = []
    for tag, threads in tags_of(label, times).items():
        new_name = keys.board_news(tag, label, board)
        _add(new_name, {thread: times[thread] for thread in threads})
        new_names.append(new_name)
    return new_names


def _carry_positions(
    name: str, pieces: Mapping[str, str], renamed: Callable[[str], str]
) -> list[str]:
    """Adds the positions of a reader to those of the reader in the partitions of the threads."""
    content: list[tuple[str, int]] = scripts.run(
        Call("HGETALL", [name], (), _pairs_of_hash), patient=True
    )
    times = renamed_times(dict(content), renamed)
    label = renamed(pieces["model"])
    calls = []
    for tag, fields in tags_of(label, times).items():
        new_name = keys.positions(tag, label, pieces["reader"])
        fields_of_tag = {field: times[field] for field in fields}
        calls.append(raised(new_name, fields_of_tag, tag=tag))
    scripts.run_all(*calls, patient=True)
    return [call.keys[1] for call in calls]


def _pairs_of_hash(answer: Any) -> list[tuple[str, int]]:
    """Returns the fields and numbers of a hash, which are a dict in the protocol RESP3."""
    if isinstance(answer, dict):
        return [(field.decode(), int(number)) for field, number in answer.items()]
    return scripts.pairs(answer)


def follow_rename(label: str, rename: Rename) -> int:
    """Gives boards their new name in the keys of the threads of the model `label`. Returns the
    number of keys. Raises redis.RedisError.
    """
    moved = 0
    for key_names in scanning.key_batches(f"{keys.positions.family}*:{label}:*"):
        renaming.extend_turn()
        with_boards = []
        for name in key_names:
            row, pieces = store_keys.parse(name)
            if row in (keys.positions, keys.thread_news):
                with_boards.append(name)
            elif row is keys.board_news:
                moved += renaming.carry(name, row, pieces, rename=rename)
        moved += rename_boards(with_boards, rename.before, rename.after)
    return moved


def rename_boards(key_names: Sequence[str], before: str, after: str) -> int:
    """Renames a board, or the boards of a model, in keys of readers and of threads.

    Returns the number of keys that had the name `before`. Raises redis.RedisError.
    """
    calls = []
    for portion in scripts.parted(key_names, tag_of=store_keys.tag_in):
        names = [store_keys.reads_changed(store_keys.tag_in(portion[0])), *portion]
        calls.append(Call("readtrack.threads/rename_boards", names, (before, after), int))
    return sum(scripts.run_all(*calls, patient=True))


def renamed_times(times: Mapping[str, int], renamed: Callable[[str], str]) -> dict[str, int]:
    """Returns the times with the new names of their members. Of two of one name the later stays."""
    new_times: dict[str, int] = {}
    for member, time in times.items():
        new_member = renamed_member(member, renamed)
        new_times[new_member] = max(time, new_times.get(new_member, 0))
    return new_times


def renamed_member(member: str, renamed: Callable[[str], str]) -> str:
    """Returns the member with the new name of the board or the post in it. Keys of threads stay."""
    board = BOARD_WITH_TIMES.fullmatch(member)
    if board:
        return board["times"] + renamed(board["name"])
    return renamed(member) if ":" in member else member


def _add(name: str, times: Mapping[str, int]) -> None:
    """Adds members to a sorted set, in which the later time of two stays."""
    arguments: list[str | int] = ["GT"]
    for member, time in times.items():
        arguments += [time, member]
    scripts.run_all(
        Call("ZADD", [name], arguments), Call("EXPIRE", [name], (lifetime(),)), patient=True
    )
