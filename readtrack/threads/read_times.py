"""SQL's copies of the keys of positions, in case that Redis loses them."""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from readtrack.hits.readers import Reader
from readtrack.sql import databases
from readtrack.store import keys as store_keys
from readtrack.store.keys import Key
from readtrack.store.read_state.of_parts import KeysOfPart, StoredKey
from readtrack.subjects import label_in, subject_column
from readtrack.threads import carrying, keys, times
from readtrack.threads.forms import positions_by_label, positions_of, threads_in
from readtrack.threads.models import ReadTimes
from readtrack.threads.options import threads_options
from readtrack.threads.times import TimesCopy

ROWS_AT_ONCE = 500
FIELDS = ("name", "tag", "times", "stored")


class KeysOfThreads(KeysOfPart):
    """The keys of positions, as flushes store and restore them, and renames move them."""

    rows = times.ROWS
    carried = (keys.positions, keys.thread_news, keys.board_news)

    def is_used(self, row: Key, pieces: Mapping[str, str]) -> bool:
        return times.is_used(row, pieces)

    def store(self, tag: str, key_names: Sequence[str]) -> Iterator[list[StoredKey]]:
        for portion in times.copies(tag, key_names):
            store([copy for copy in portion if copy.times])
            # Redis has nothing of a reader who was erased, or of a thread that was deleted.
            delete_keys([copy.name for copy in portion if copy.is_gone])
            prefix = store_keys.prefix()
            yield [StoredKey(prefix + copy.name, copy.last, copy.changed) for copy in portion]

    def restore(self, tag: str, *, restoration_id: str) -> int | None:
        return restore(tag, restoration_id=restoration_id)

    def exist(self) -> bool:
        return exist()

    def carry(
        self,
        name: str,
        row: Key,
        pieces: Mapping[str, str],
        *,
        renamed: Callable[[str], str] = str,
    ) -> list[str]:
        return carrying.carry(name, row, pieces, renamed=renamed)

    def delete(self, subjects: Iterable[str]) -> None:
        delete(subjects)


def exist() -> bool:
    """Returns True if SQL has copies for a model that has positions. Raises django.db.Error."""
    return bool(positions_by_label()) and databases.rows(ReadTimes).exists()


def store(copies: Sequence[TimesCopy]) -> None:
    """Stores copies, each joined with the one that SQL has. Raises django.db.Error."""
    if copies:
        databases.retried(databases.of(ReadTimes), partial(_store, copies))


def _store(copies: Sequence[TimesCopy]) -> None:
    """Stores copies, as `store` does, in one transaction."""
    copy_by_key = {subject_column(copy.name): copy for copy in copies}

    def new_row(key: str) -> ReadTimes:
        return _row(copy_by_key[key])

    with databases.own_transaction(databases.of(ReadTimes)):
        joined = []
        for row in databases.locked(ReadTimes, copy_by_key.keys(), new_row):
            copy = copy_by_key[row.key]
            times_in_sql = _times(row)
            merged = times.merged(copy.name, times_in_sql, copy.times)
            if merged != times_in_sql:
                joined.append(_row(copy._replace(times=merged)))
        databases.replace(ReadTimes, ["key"], FIELDS, rows=joined)


def _row(copy: TimesCopy) -> ReadTimes:
    """Returns the row for a copy."""
    return ReadTimes(
        key=subject_column(copy.name),
        name=copy.name,
        tag=store_keys.tag_in(copy.name),
        times=zlib.compress(json.dumps(dict(copy.times)).encode()),
    )


def _times(row: ReadTimes) -> dict[str, int]:
    """Returns the times of a row, by name."""
    content: dict[str, int] = json.loads(zlib.decompress(bytes(row.times)))
    return content


def restore(tag: str, *, restoration_id: str) -> int | None:
    """Gives the Redis of a partition what SQL has of it. `restoration_id` is that of
    `begin_restoring`.

    Returns the number of keys; None if Redis has another restoration. Raises redis.RedisError or
    django.db.Error.
    """
    if not positions_by_label():
        return 0
    restored = 0
    rows = databases.rows(ReadTimes).filter(tag=tag)
    for portion in databases.in_portions(rows, "key", ROWS_AT_ONCE):
        copies_of_portion = [TimesCopy(row.name, _times(row)) for row in portion]
        if not times.restore(tag, copies_of_portion, restoration_id=restoration_id):
            return None
        restored += len(portion)
    return restored


def delete(subjects: Iterable[str]) -> None:
    """Deletes the copies of the publications of these threads. Raises django.db.Error."""
    threads = [name for name in subjects if positions_of(name) is not None]
    delete_keys([times.short(keys.thread_news(thread)) for thread in threads])


def delete_keys(names: Sequence[str]) -> None:
    """Deletes the copies of the keys with these names. Raises django.db.Error."""
    if names:
        databases.rows(ReadTimes).filter(key__in=[*map(subject_column, names)]).delete()


def delete_old() -> None:
    """Deletes copies of what says nothing any more, by the `days` of THREADS. Raises
    django.db.Error."""
    oldest = timezone.now() - timedelta(days=threads_options().days)
    databases.rows(ReadTimes).filter(stored__lt=oldest).delete()


def erase(names_of_reader: Sequence[Reader], *, is_dry_run: bool = False) -> int:
    """Deletes the copies of the positions of a reader, by all names. Returns their number.

    With `is_dry_run` nothing is changed. Raises django.db.Error.
    """
    erased = 0
    for reader in names_of_reader:
        rows = databases.rows(ReadTimes).filter(name__endswith=f":{reader}")
        of_reader = []
        for key, name in rows.values_list("key", "name"):
            row, _ = times.parse(name)
            if row is keys.positions:
                of_reader.append(key)
        erased += len(of_reader)
        if not is_dry_run:
            databases.rows(ReadTimes).filter(key__in=of_reader).delete()
    return erased


def rename(before: str, after: str) -> None:
    """Gives the copies about a model or an object, by its label or subject, the new name.

    Raises django.db.Error.
    """
    is_of_model = ":" not in before
    if is_of_model or positions_of(after) is not None:
        _rename(databases.rows(ReadTimes).filter(name__contains=f":{before}"), before, after)
    _rename_boards(before, after)


def _rename_boards(before: str, after: str) -> None:
    """Gives a board, or the boards of a model, the new name in the copies of readers and threads.

    Raises django.db.Error.
    """
    for threads in threads_in(label_in(after)):
        # Which of them have the board is not known before their content is read.
        rows = databases.rows(ReadTimes).filter(name__contains=f":{threads.label}:")
        _rename(rows, before, after)


def _rename(rows: "QuerySet[Any]", before: str, after: str) -> None:
    """Renames what has the name `before` in the names and in the content of these rows."""

    def renamed(name: str) -> str:
        if name == before or name.startswith(f"{before}:"):
            return after + name.removeprefix(before)
        return name

    for portion in databases.in_portions(rows, "key", ROWS_AT_ONCE):
        with databases.own_transaction(databases.of(ReadTimes)):
            _rename_portion([row.key for row in portion], renamed)


def _rename_portion(portion: Sequence[str], renamed: Callable[[str], str]) -> None:
    """Renames what has another name by now in the rows with these keys. It locks them."""
    rows = databases.rows(ReadTimes).filter(key__in=portion)
    moved = []
    outdated = []
    changed = []
    for row in rows.order_by("key").select_for_update():
        before = TimesCopy(row.name, _times(row))
        copy = _renamed(before, renamed)
        if copy.name != before.name:
            moved.append(copy)
            outdated.append(row.key)
        elif copy != before:
            changed.append(_row(copy))
    store(moved)
    rows.filter(key__in=outdated).delete()
    databases.replace(ReadTimes, ["key"], FIELDS, rows=changed)


def _renamed(copy: TimesCopy, renamed: Callable[[str], str]) -> TimesCopy:
    """Returns the copy with the new names."""
    key_row, pieces = times.parse(copy.name)
    if key_row is None:
        return copy
    new_pieces = {**pieces}
    for piece in ("subject", "model"):
        if piece in pieces:
            new_pieces[piece] = renamed(pieces[piece])
    tag = store_keys.tag(new_pieces["subject"]) if "subject" in pieces else pieces["tag"]
    name = times.short(key_row.placed(new_pieces, tag=tag))
    return TimesCopy(name, carrying.renamed_times(copy.times, renamed))
