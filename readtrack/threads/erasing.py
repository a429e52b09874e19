"""Erasing the positions of one user."""

from collections.abc import Sequence
from typing import Any

from readtrack.hits.readers import Reader
from readtrack.store import erasure, scanning
from readtrack.store import keys as store_keys
from readtrack.store.read_state import copies
from readtrack.threads import keys, read_times


def erase(pk: Any, *, is_dry_run: bool) -> int:
    """Erases the positions of the user with the primary key `pk`, in Redis and in SQL's copies.

    Returns how many keys and copies there were. With `is_dry_run` it changes nothing. Raises
    redis.RedisError or django.db.Error.
    """
    # By the user's id, and by the name under which Redis numbers readers.
    names_of_reader: list[Reader] = [erasure.name_of(pk)]
    number = erasure.number_of(pk)
    if number is not None:
        names_of_reader.append(number)
    removed = _remove(names_of_reader, is_dry_run=is_dry_run)
    return removed + read_times.erase(names_of_reader, is_dry_run=is_dry_run)


def _remove(names_of_reader: Sequence[Reader], *, is_dry_run: bool) -> int:
    """Removes the positions of a reader from Redis, by all names. Returns their number."""
    removed = 0
    for name_of_reader in names_of_reader:
        pattern = f"{keys.positions.family}:*:{name_of_reader}"
        for key_names in scanning.key_batches(pattern):
            names = [name for name in key_names if store_keys.parse(name)[0] is keys.positions]
            if is_dry_run:
                removed += len(names)
                continue
            removed += scanning.unlink(names)
            # A flush may have copied them before. The next one then deletes the copies.
            copies.mark_keys_changed(names)
    return removed
