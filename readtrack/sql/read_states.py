"""SQL's copies of read state, in case that Redis loses it."""

import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from django.core.exceptions import SynchronousOnlyOperation
from django.db import Error

from readtrack.models import ReadState
from readtrack.progress import Progress, no_progress
from readtrack.sql import databases, reader_numbers, subject_tables
from readtrack.store import connection, keys, read_state
from readtrack.store.circuit import fail_open
from readtrack.store.read_state import copies, of_parts
from readtrack.store.read_state.copies import Copy
from readtrack.subjects import subject_column

# The first level halves bits in random order, and takes a fifth of the time of the usual one.
COMPRESSION = 1
ROWS_AT_ONCE = 50  # which may have megabytes each
FIELDS = ("full_subject", "family", "tag", "published", "state")
PAUSE = 5.0  # seconds after which a process asks again whether a site is new


class NotRestoredError(connection.RedisError):
    """Redis lost its read state, and no flush has restored it yet."""


_asked_at = -PAUSE  # when this process asked last (s, of a monotonic clock)


def store(new_copies: Sequence[Copy]) -> list[Copy]:
    """Stores copies of read state.

    The later publication of a category wins; copies of the same one are joined, because two flushes
    may come in any order. Returns the copies that are in SQL now. Raises django.db.Error.
    """
    if not new_copies:
        return []
    return databases.retried(databases.of(ReadState), partial(_store, new_copies))


def _store(new_copies: Sequence[Copy]) -> list[Copy]:
    """Stores copies of read state in one transaction. Returns those that are in SQL now."""
    copy_by_column = {subject_column(copy.subject): copy for copy in new_copies}

    def new_row(column: str) -> ReadState:
        return _row(copy_by_column[column])

    with databases.own_transaction(databases.of(ReadState)):
        accepted = []
        changed_rows = []
        for row in databases.locked(ReadState, copy_by_column.keys(), new_row):
            copy = copy_by_column[row.subject]
            if row.published > copy.published:
                continue
            accepted.append(copy)
            joined = _joined(row, copy)
            if joined != _copy(row) or row.tag != keys.tag(copy.subject):
                changed_rows.append(_row(joined))
        databases.replace(ReadState, ["subject"], FIELDS, rows=changed_rows)
    return accepted


def _row(copy: Copy) -> ReadState:
    """Returns the row for a copy."""
    return ReadState(
        subject=subject_column(copy.subject),
        full_subject=copy.subject,
        family=copy.family,
        tag=keys.tag(copy.subject),
        published=copy.published,
        state=zlib.compress(copy.state, COMPRESSION),
    )


def _joined(row: ReadState, copy: Copy) -> Copy:
    """Returns the copy as SQL stores it: joined with the row if that is of the same publication."""
    stored = _copy(row)
    copy = copy._replace(changed="")
    is_of_same_publication = stored.published == copy.published
    numbers_readers_alike = stored.family == copy.family and row.tag == keys.tag(copy.subject)
    if not (is_of_same_publication and numbers_readers_alike) or stored.state == copy.state:
        return copy
    form = read_state.form_of(copy.subject)
    return copy._replace(state=form.joined(stored.state, copy.state))


def _copy(row: ReadState) -> Copy:
    """Returns the row as a copy."""
    state = zlib.decompress(bytes(row.state))
    return Copy(row.full_subject, row.family, row.published, state)


def begin_new_site() -> bool:
    """Begins the read state of a site that never had any, so that its pages show dots.

    Returns False if SQL has copies of read state, which the next flush gives to Redis first; also
    if Redis or SQL fails, and if this process has asked less than PAUSE ago.
    """
    global _asked_at
    if time.monotonic() - _asked_at < PAUSE:
        return False
    _asked_at = time.monotonic()
    return fail_open(_begin_new_site, False)  # noqa: FBT003 - the default result


def _begin_new_site() -> bool:
    """Begins the read state if SQL has no copies. Returns False if it has some, or fails.

    Raises redis.RedisError.
    """
    try:
        if has_copies():
            return False
    except (Error, SynchronousOnlyOperation):
        return False
    read_state.begin(connection.server_time())
    return True


def has_copies() -> bool:
    """Returns True if SQL has copies of read state. Raises django.db.Error."""
    if databases.rows(ReadState).exists() or reader_numbers.exist():
        return True
    return any(keys_of_part.exist() for keys_of_part in of_parts.all_keys())


def is_lost(*, has_begun: bool) -> bool:
    """Returns True if Redis lost its read state, so that pages show no dots until a flush has
    restored it: Redis has not begun, and SQL has copies. Raises django.db.Error.
    """
    return not has_begun and has_copies()


def ensure_begun() -> None:
    """Begins the read state of a new site. Raises NotRestoredError while the read state that Redis
    lost is not restored, and redis.RedisError or django.db.Error.
    """
    if read_state.not_begun(keys.tags()) and not _begin_new_site():
        raise NotRestoredError("Redis lost its read state. The next flush restores it.")


def delete(subjects: Sequence[str]) -> None:
    """Deletes what SQL has about the read state of `subjects`. Raises django.db.Error."""
    subject_tables.delete(subjects, kept_with="read state")
    for keys_of_part in of_parts.all_keys():
        keys_of_part.delete(subjects)


def restore(tag: str, *, restoration_id: str) -> int | None:
    """Gives the Redis of a partition the read state that SQL has, and the ordinals of readers.

    `restoration_id` is what `copies.begin_restoring` returned. Returns the number of categories;
    None if Redis has another restoration. Raises redis.RedisError or django.db.Error.
    """
    copies.forget_ordinals(tag, restoration_id=restoration_id)
    number_of_categories = 0
    # No ordinal that SQL knows, or that its copies have, is given to a new reader.
    following = reader_numbers.following(tag)
    for portion in _in_portions(tag):
        number_of_categories += len(portion)
        copies_by_family: dict[str, list[Copy]] = {}
        for copy in portion:
            copies_by_family.setdefault(copy.family, []).append(copy)
        for family, group in copies_by_family.items():
            if family in copies.FAMILIES_BY_ORDINAL:
                form = copies.FORM_BY_FAMILY[family]
                following = max(following, *(form.capacity(copy.state) for copy in group))
            if not copies.restore(group, restoration_id=restoration_id):
                return None
    for numbers in reader_numbers.portions(tag):
        if not copies.restore_readers(
            tag, numbers, following=following, restoration_id=restoration_id
        ):
            return None
    return number_of_categories


def _in_portions(tag: str) -> Iterator[list[Copy]]:
    """Yields SQL's copies of the partition's read state, of forms that are in use."""
    rows = databases.rows(ReadState).filter(tag=tag)
    for portion in databases.in_portions(rows, "subject", ROWS_AT_ONCE):
        usable = [_copy(row) for row in portion if _is_usable(row, tag)]
        if usable:
            yield usable


def _is_usable(row: ReadState, tag: str) -> bool:
    """Returns True if the copy has the form that the site uses, and the category is in the
    partition `tag`.
    """
    row_of_keys = copies.ROW_BY_FAMILY.get(row.family)
    is_in_use = row_of_keys is read_state.form_of(row.full_subject).key()
    return is_in_use and keys.tag(row.full_subject) == tag


def store_readers(tag: str) -> int:
    """Stores the ordinals of some new readers. Returns their number, 0 if there are no more.

    Raises redis.RedisError or django.db.Error.
    """
    numbers = copies.new_readers(tag)
    reader_numbers.store(tag, numbers)
    return len(numbers)


def erase(
    name: str,
    *,
    number: int | None,
    ordinals: Mapping[str, int],
    is_dry_run: bool = False,
    progress: Progress = no_progress,
) -> int:
    """Clears one user in SQL's copies of read state. Returns in how many the user was set.

    `name` is the user's name as a reader, `number` the number where numbers are user ids, and
    `ordinals` are those that Redis knows, by the tags of the partitions. With `is_dry_run` nothing
    is changed. `progress` is told the number of copies. Raises django.db.Error.
    """
    ordinal_by_tag = {**reader_numbers.of(name), **ordinals}
    cleared = 0
    subjects = databases.rows(ReadState).only("subject")
    for some_rows in databases.in_portions(subjects, "subject", ROWS_AT_ONCE):
        portion = [row.subject for row in some_rows]
        with databases.own_transaction(databases.of(ReadState)):
            rows = databases.rows(ReadState).select_for_update().filter(subject__in=portion)
            for row in rows.order_by("subject"):
                number_in_row = number
                if row.family in copies.FAMILIES_BY_ORDINAL:
                    number_in_row = ordinal_by_tag.get(row.tag)
                state_without_user = _state_without(row, number_in_row)
                if state_without_user is None:
                    continue
                cleared += 1
                if not is_dry_run:
                    state = zlib.compress(state_without_user, COMPRESSION)
                    rows.filter(pk=row.pk).update(state=state)
        progress(len(portion))
    if not is_dry_run:
        reader_numbers.retire_reader(name, ordinals)
    return cleared


def _state_without(row: ReadState, number: int | None) -> bytes | None:
    """Returns the state without the reader with the number `number`; None if the reader is not in
    it.
    """
    form = copies.FORM_BY_FAMILY.get(row.family)
    if form is None or number is None:
        return None
    state = _copy(row).state
    state_without_reader = form.cleared(state, number)
    if state_without_reader == state:
        return None
    return state_without_reader
