"""Moving the keys of a renamed model, or of a row with a new primary key, to other partitions.

Keys for another partition are first renamed where they are, then copied, removed, and moved to
their name. So what a process that dies has not finished is found by its name, and none of it is
added twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from secrets import token_hex
from typing import Any

from readtrack.store import keys, scanning, scripts
from readtrack.store.renaming import (
    OF_CATEGORY,
    Move,
    Rename,
    move_categories,
    move_of,
    move_within,
)
from readtrack.store.scripts import Call

STATES = ("settled", "unsettled")  # of a key on its way to another partition


def finish(rename: Rename) -> int:
    """Moves the keys that an earlier call took out of one partition, and did not get into the
    other. Returns their number. Raises redis.RedisError.
    """
    on_their_way = chain.from_iterable(scanning.key_batches(f"{keys.moving.family}:*"))
    return _arrive(on_their_way, rename)


def move(moves: Sequence[Move], categories: Mapping[str, str], rename: Rename) -> int:
    """Moves keys, and the read state of categories, within their partitions and to others.

    `categories` has the new names by the old ones. Returns the number of keys. Raises
    redis.RedisError.
    """
    moves_within = [move for move in moves if keys.tag_in(move.name) == move.tag]
    moves_across = [move for move in moves if keys.tag_in(move.name) != move.tag]
    moved = move_within(moves_within)
    moved += move_categories(_staying(categories))
    moved += _send(moves_across, rename)
    moved += _send_categories(_leaving(categories), rename)
    return moved


def _staying(categories: Mapping[str, str]) -> dict[str, str]:
    """Returns the categories that stay in their partition. The new names are by the old ones."""
    return {old: new for old, new in categories.items() if keys.tag(old) == keys.tag(new)}


def _leaving(categories: Mapping[str, str]) -> dict[str, str]:
    """Returns the categories that come to another partition. The new names are by the old ones."""
    return {old: new for old, new in categories.items() if keys.tag(old) != keys.tag(new)}


def _send(moves: Sequence[Move], rename: Rename) -> int:
    """Moves keys to other partitions. Returns their number."""
    on_their_way: list[str] = []
    for portion in scripts.parted(
        moves, scripts.SLICE // 2, tag_of=lambda move: keys.tag_in(move.name)
    ):
        tag = keys.tag_in(portion[0].name)
        names = [keys.unsettled(tag)]
        transit_names: list[str] = []
        for move in portion:
            names_on_way = _transit_names(move.name, tag)
            names += [move.name, *names_on_way]
            transit_names += names_on_way
        call = Call("readtrack.cluster/take", names, [move.member for move in portion], int)
        if scripts.run(call, patient=True):
            on_their_way += _existing(transit_names)
    return _arrive(on_their_way, rename)


def _existing(key_names: Sequence[str]) -> list[str]:
    """Returns those of the keys that exist."""
    calls = [Call("EXISTS", [name], (), bool) for name in key_names]
    answers = scripts.run_all(*calls, patient=True)
    return [name for name, exists in zip(key_names, answers, strict=True) if exists]


def _transit_names(name: str, tag: str) -> list[str]:
    """Returns the names that a key has on its way, for each of STATES."""
    move_id = token_hex(8)
    name_without_prefix = name.removeprefix(keys.prefix())
    return [keys.moving(tag, state, move_id, name_without_prefix) for state in STATES]


def _send_categories(categories: Mapping[str, str], rename: Rename) -> int:
    """Moves the read state of categories to other partitions. Returns the number of keys."""
    # Each partition numbers its readers itself.
    rows_without_ordinals = [row for row in OF_CATEGORY if not row.pattern.endswith(":ordinal")]
    moves = []
    for old, new in categories.items():
        moves += [Move(row(old), row(new), "") for row in rows_without_ordinals]
    return _send(moves, rename)


def _arrive(names: Iterable[str], rename: Rename) -> int:
    """Moves keys that are on their way to their new names. Returns their number."""
    moves: list[Move] = []
    categories: dict[str, str] = {}
    arrived: dict[tuple[str, keys.Key], str] = {}
    for name in dict.fromkeys(names):
        _, transit = keys.parse(name)
        row, pieces = keys.parse(keys.prefix() + transit["name"])
        new_subject = rename.renamed(pieces["subject"])
        if row is None or new_subject is None:
            continue
        arrived_name = _carry(name, transit, tag=keys.tag(new_subject))
        if row in OF_CATEGORY:
            categories[pieces["subject"]] = new_subject
            arrived[pieces["subject"], row] = arrived_name
            continue
        here = move_of(name, row, pieces, new_subject=new_subject)
        moves.append(here._replace(name=arrived_name, member="", state=transit["state"]))
    return move_within(moves) + move_categories(categories, arrived)


def _carry(name: str, transit: Mapping[str, str], *, tag: str) -> str:
    """Copies a key on its way to the partition with the tag, and removes it where it was.

    Returns its name there.
    """
    new_name = keys.moving.placed(transit, tag=tag)
    if new_name == name:
        return name
    content, lifetime = scripts.run_all(
        Call[Any]("DUMP", [name]), Call[Any]("PTTL", [name]), patient=True
    )
    if content is not None:
        arguments = (max(0, lifetime), content, "REPLACE")
        scripts.run(Call("RESTORE", [new_name], arguments), patient=True)
        scripts.run(Call("UNLINK", [name]), patient=True)
    return new_name
