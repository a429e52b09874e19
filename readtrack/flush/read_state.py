"""Keeping SQL's copy of the read state, and giving it back to a Redis that lost its own.

A Redis has "begun" if it has all read state. One that was emptied has not; the flush takes that
note from one that was restored from an older snapshot. Until a flush has given it SQL's copies
there are no dots, nothing is marked read, and publications wait in the outbox.

The copy and the outbox together lose no news. A publication leaves the outbox only if it was sent
before this flush noted itself in Redis, and SQL has a copy of its category that is not older. A
Redis that lacks such a publication lacks the note of the flush, too, so it gets SQL's copy.

A flush does this after all else, so counts never wait for read state. It copies the categories
whose news waits in the outbox, and then what else changed, the oldest changes first, for
COPYING_SECONDS. The rest stays noted in Redis, so the next flush copies it. No news depends on the
rest: it stays in the outbox until its own category is copied. If Redis is lost before, reads are
lost that were not copied: dots come on once too often.
"""

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from time import monotonic

from readtrack import parts
from readtrack.conf import logger
from readtrack.hits import readers
from readtrack.sql import read_states, reader_numbers
from readtrack.store import keys, read_state, scripts
from readtrack.store.connection import server_time
from readtrack.store.read_state import copies, of_parts
from readtrack.unread import outbox
from readtrack.unread.outbox import Pending

# Larger states are copied by full flushes only: a copy of a million readers takes 10 ms.
MOST_BYTES_EACH_TIME = 50_000
MOST_BYTES = 512 * 1024 * 1024  # of a string in Redis
# For which a flush copies what changed. It has stored the counts before, but while it runs, a
# single worker cannot begin the next flush.
COPYING_SECONDS = 30


def restore(tags: Sequence[str]) -> None:
    """Gives SQL's copies to those of the partitions whose Redis has not begun, and lets it begin.

    Publications that it lacks after that are sent again. Raises redis.RedisError or
    django.db.Error.
    """
    not_begun = read_state.not_begun(tags)
    for tag in not_begun:
        restoration_id = copies.begin_restoring(tag)
        if restoration_id is None:
            continue  # another flush was first
        # None is for another restoration, which another flush has begun, or the next one will.
        categories = read_states.restore(tag, restoration_id=restoration_id)
        if categories is None:
            continue
        keys_of_parts = _restore_keys_of_parts(tag, restoration_id=restoration_id)
        if keys_of_parts is None:
            continue
        copies.mark_states_changed(tag)  # an older snapshot may have what SQL lacks
        outbox.send_again(_lost(outbox.sent_publications([tag])))
        has_begun = copies.end_restoring(tag, restoration_id, at=server_time(patient=True))
        if has_begun and (categories or keys_of_parts):
            logger.warning(
                "Restored the read state of %d categories and %d keys of parts from SQL%s.",
                categories,
                keys_of_parts,
                _of_partition(tag),
            )
    if not_begun:
        outbox.resend()


def _of_partition(tag: str) -> str:
    """Returns what the log says behind a sentence about a partition; "" if there is only one."""
    if not tag:
        return ""
    return f" (partition {tag[1:]})"


def _restore_keys_of_parts(tag: str, *, restoration_id: str) -> int | None:
    """Gives the Redis of a partition the keys that parts have copied. `restoration_id` is that of
    `copies.begin_restoring`.

    Returns the number of keys; None if Redis has another restoration. Raises redis.RedisError or
    django.db.Error.
    """
    restored = 0
    for keys_of_part in of_parts.all_keys():
        restored_of_part = keys_of_part.restore(tag, restoration_id=restoration_id)
        if restored_of_part is None:
            return None
        restored += restored_of_part
    return restored


def separate_readers(tags: Sequence[str]) -> None:
    """Takes an ordinal away from all readers that share it in SQL: nobody knows whose it is.

    `store` does so with those that it stores; these are left where it was killed on the way.

    Raises redis.RedisError or django.db.Error.
    """
    if readers.has_ordinals():
        for tag in tags:
            reader_numbers.separate_all(tag)


def store(tags: Sequence[str], sent: Mapping[str, Sequence[Pending]], *, is_full: bool) -> int:
    """Stores copies of the read state that changed. Returns their number.

    `sent` are publications that Redis had before the flush noted itself there, by the subjects of
    their categories. Those that it has lost since are sent again. Without `is_full`, large states
    are left to the next full flush. Raises redis.RedisError or django.db.Error.
    """
    # Before keys move to another number of partitions, processes with that number publish where
    # this one does not look. So what it does not find may not be lost.
    if not parts.division().is_earlier:
        sent = _send_lost_again(sent)
    most_bytes = MOST_BYTES_EACH_TIME
    if is_full:
        most_bytes = MOST_BYTES
    number_of_copies = 0
    for tag in tags:
        sent_to_tag = {subject: sent[subject] for subject in sent if keys.tag(subject) == tag}
        number_of_copies += _store_news(tag, sent_to_tag, most_bytes=most_bytes)
    end = monotonic() + COPYING_SECONDS
    for index, tag in enumerate(tags):
        # The partitions that are left share the time that is left.
        now = monotonic()
        seconds = (end - now) / (len(tags) - index)
        number_of_copies += _store_changes(tag, most_bytes=most_bytes, until=now + seconds)
    return number_of_copies


def _send_lost_again(sent: Mapping[str, Sequence[Pending]]) -> Mapping[str, Sequence[Pending]]:
    """Sends those of the publications again that Redis lacks, although it knows of the last flush:
    a replica became the primary before it had got them, or a snapshot was restored. Returns the
    other ones, by category.
    """
    lost = _lost(sent)
    if not lost:
        return sent
    outbox.send_again(lost)
    outbox.resend()
    return _without(sent, lost)


def _lost(sent: Mapping[str, Sequence[Pending]]) -> list[Pending]:
    """Returns those of the publications that Redis lacks. `sent` has them by category.

    A category that was published to since then is as unread as if Redis had all of them: whoever
    has read it since has seen what was published before.
    """
    subjects = [subject for subject in sent if not read_state.form_of(subject).is_derived]
    answers = scripts.run_all(*read_state.last_published(subjects), patient=True)
    last_published = ChainMap(*answers)
    lost = []
    for subject in subjects:
        time = last_published.get(subject, 0)
        lost += [publication for publication in sent[subject] if publication.sent > time]
    return lost


def _without(
    sent: Mapping[str, Sequence[Pending]], lost: Sequence[Pending]
) -> dict[str, list[Pending]]:
    """Returns the publications by category, without the lost ones."""
    lost_tokens = {publication.token for publication in lost}
    kept: dict[str, list[Pending]] = {}
    for subject, publications in sent.items():
        kept[subject] = [
            publication for publication in publications if publication.token not in lost_tokens
        ]
    return kept


def _store_news(tag: str, sent: Mapping[str, Sequence[Pending]], *, most_bytes: int) -> int:
    """Stores copies of the categories of one partition that have news in the outbox.

    Returns the number of copies.
    """
    categories = {}
    keys_of_parts = {}
    for subject, publications in sent.items():
        form = read_state.form_of(subject)
        if form.is_derived:  # it has no read state itself
            outbox.delete(publications)
        elif of_parts.copying(form.key()) is not None:
            keys_of_parts[form.key()(subject)] = publications
        else:
            categories[subject] = publications
    number = _store_categories([*categories], categories, most_bytes=most_bytes)
    return number + _store_keys_of_parts(tag, [*keys_of_parts], keys_of_parts)


def _store_changes(tag: str, *, most_bytes: int, until: float) -> int:
    """Stores copies of what changed in one partition, the oldest changes first.

    Stops at a time (s, of a monotonic clock), but not before the first portion is stored. Returns
    the number of copies.
    """
    while read_states.store_readers(tag) > 0:
        if monotonic() >= until:
            return 0
    number = 0
    passed_over = 0  # changes that stay noted, such as those of large states
    while True:
        changed = copies.oldest_changes(tag, skip=passed_over)
        stored = _store_categories(changed.subjects, {}, most_bytes=most_bytes)
        stored += _store_keys_of_parts(tag, changed.of_parts, {})
        number += stored
        passed_over += changed.number - stored
        if not changed.number or monotonic() >= until:
            return number


def _store_categories(
    subjects: Sequence[str], sent: Mapping[str, Sequence[Pending]], *, most_bytes: int
) -> int:
    """Stores copies of categories of one partition. Returns their number.

    `sent` are publications in these categories, by subject.
    """
    number = 0
    for portion, new_readers in copies.copies(subjects, most_bytes=most_bytes):
        # The numbers are stored before the copies that have them, so that SQL never takes a reader
        # in a copy for another reader.
        reader_numbers.store(keys.tag(subjects[0]), new_readers)
        # Redis has nothing of a category that was deleted.
        deleted = [copy for copy in portion if copy.is_empty]
        accepted = read_states.store([copy for copy in portion if not copy.is_empty])
        published = {copy.subject: copy.published for copy in portion}
        _settle_news(sent, published, in_sql={copy.subject for copy in accepted})
        copies.forget_changes([*accepted, *deleted])
        number += len(accepted) + len(deleted)
    return number


def _store_keys_of_parts(
    tag: str, key_names: Sequence[str], sent: Mapping[str, Sequence[Pending]]
) -> int:
    """Stores copies of keys of one partition that parts copy. Returns their number.

    `sent` are publications in categories, by the name of the category's key.
    """
    number = 0
    for keys_of_part in of_parts.all_keys():
        names_of_part = []
        for name in key_names:
            row, _pieces = keys.parse(name)
            if of_parts.copying(row) is keys_of_part:
                names_of_part.append(name)
        for portion in keys_of_part.store(tag, names_of_part):
            published = {stored.name: stored.published for stored in portion}
            _settle_news(sent, published, in_sql=published)
            copies.forget_keys(tag, {stored.name: stored.changed for stored in portion})
            number += len(portion)
    return number


def _settle_news(
    sent: Mapping[str, Sequence[Pending]], published: Mapping[str, int], *, in_sql: Iterable[str]
) -> None:
    """Deletes those publications from the outbox that SQL's copies have.

    `published` has the times of the last publications in Redis (µs), by the same names as `sent`.
    `in_sql` are the names of which SQL has that copy.
    """
    copied: list[Pending] = []
    for name in in_sql:
        time = published[name]
        copied += [publication for publication in sent.get(name, ()) if publication.sent <= time]
    outbox.delete(copied)
