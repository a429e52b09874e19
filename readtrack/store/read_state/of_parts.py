"""The contract of keys of read state that are a part's.

The read state of categories, in the forms of the core, is copied by `copies`. A part with keys of
other rows says here how a flush stores copies of them, how a Redis that lost them gets them back,
and where their content goes that belongs elsewhere after a rename or a division of partitions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from readtrack import parts
from readtrack.conf import cached_setting
from readtrack.store.keys import Key


class StoredKey(NamedTuple):
    """A key of which SQL has a copy now."""

    name: str
    published: int  # when something was last published by it (µs), 0 for never
    changed: str  # when the copied state changed (µs), "" if SQL had it already


class KeysOfPart:
    """How a part copies its keys of read state, and moves them. A script that changes one enters it
    into `reads:changed`, so that the next flush copies it.
    """

    rows: Sequence[Key] = ()  # of the keys that are copied
    # Rows of keys that are moved by `carry`, because what a key has may belong to several
    # partitions.
    carried: Sequence[Key] = ()

    def is_used(self, row: Key, pieces: Mapping[str, str]) -> bool:
        """Returns True if the key is in use by the settings. Changes of others are forgotten."""
        raise NotImplementedError

    def store(self, tag: str, key_names: Sequence[str]) -> Iterator[list[StoredKey]]:
        """Stores copies of these keys of a partition, in portions, and yields each portion once SQL
        has it.

        Yields nothing while its Redis has not begun. Raises redis.RedisError or django.db.Error.
        """
        raise NotImplementedError

    def restore(self, tag: str, *, restoration_id: str) -> int | None:
        """Gives the Redis of a partition what SQL has. `restoration_id` is that of
        `copies.begin_restoring`.

        Returns the number of keys; None if Redis has another restoration. Raises redis.RedisError
        or django.db.Error.
        """
        raise NotImplementedError

    def exist(self) -> bool:
        """Returns True if SQL has copies that Redis may need. Raises django.db.Error."""
        raise NotImplementedError

    def carry(
        self,
        name: str,
        row: Key,
        pieces: Mapping[str, str],
        *,
        renamed: Callable[[str], str] = str,
    ) -> list[str]:
        """Adds what a key has to the keys where it belongs, and returns their names.

        The key itself stays. `renamed` returns the new name of a label or a subject. Raises
        redis.RedisError.
        """
        raise NotImplementedError

    def delete(self, subjects: Iterable[str]) -> None:
        """Deletes the copies of the read state of `subjects`. Raises django.db.Error."""
        raise NotImplementedError


@cached_setting("INSTALLED_APPS", maxsize=1)
def all_keys() -> tuple[KeysOfPart, ...]:
    """Returns the keys of read state of the installed parts."""
    keys_of_parts = [part.keys_of_read_state() for part in parts.installed()]
    return tuple(filter(None, keys_of_parts))


@cached_setting("INSTALLED_APPS", maxsize=1)
def _by_copied_row() -> Mapping[Key | None, KeysOfPart]:
    """Returns the keys of each part by the rows of keys that it copies."""
    return {row: keys_of_part for keys_of_part in all_keys() for row in keys_of_part.rows}


@cached_setting("INSTALLED_APPS", maxsize=1)
def _by_carried_row() -> Mapping[Key | None, KeysOfPart]:
    """Returns the keys of each part by the rows of keys that it carries."""
    return {row: keys_of_part for keys_of_part in all_keys() for row in keys_of_part.carried}


def copying(row: Key | None) -> KeysOfPart | None:
    """Returns the keys of the part that copies the keys of that row; None if no part does."""
    return _by_copied_row().get(row)


def carrying(row: Key | None) -> KeysOfPart | None:
    """Returns the keys of the part that carries the keys of that row; None if no part does."""
    return _by_carried_row().get(row)
