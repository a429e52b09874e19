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
        token = copies.begin_restoring(tag)
        if token is None:
            continue  # another flush was first
        categories = read_states.restore(tag, token=token)
        number = None if categories is None else _restore_keys_of_parts(tag, token=token)
        if number is None:
            continue  # another flush has begun the same, or the next one will
        copies.mark_states_changed(tag)  # an older snapshot may have what SQL lacks
        outbox.send_again(_lost(outbox.sent_publications([tag])))
        has_begun = copies.end_restoring(tag, token, at=server_time(patient=True))
        if has_begun and (categories or number):
            name = f" in partition {tag[1:]}" if tag else ""
            logger.warning(
                "Restored the read state of %d categories and %d keys of parts%s from SQL.",
                categories,
                number,
                name,
            )
    if not_begun:
        outbox.resend()


def _restore_keys_of_parts(tag: str, *, token: str) -> int | None:
    """Gives the Redis of a partition the keys that parts have copied. `token` is that of
    `copies.begin_restoring`.

    Returns the number of keys; None if Redis has another token. Raises redis.RedisError or
    django.db.Error.
    """
    restored = 0
    for own_keys in of_parts.all_keys():
        number = own_keys.restore(tag, token=token)
        if number is None:
            return None
        restored += number
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
    # Before a move, processes of the other number of partitions publish where this one does not look.
    lost = [] if keys.is_other_layout.get() else _lost(sent)
    if lost:
        # A snapshot knows of the last flush, or a replica became the primary before it had got them.
        outbox.send_again(lost)
        outbox.resend()
        sent = _without(sent, lost)
    most_bytes = MOST_BYTES if is_full else MOST_BYTES_EACH_TIME
    number = 0
    for tag in tags:
        sent_to_tag = {subject: sent[subject] for subject in sent if keys.tag(subject) == tag}
        number += _store_news(tag, sent_to_tag, most_bytes=most_bytes)
    end = monotonic() + COPYING_SECONDS
    for index, tag in enumerate(tags):
        # What a partition does not need is for the partitions after it.
        share = (end - monotonic()) / (len(tags) - index)
        number += _store_changes(tag, most_bytes=most_bytes, until=monotonic() + share)
    return number


def _lost(sent: Mapping[str, Sequence[Pending]]) -> list[Pending]:
    """Returns those of the publications that Redis lacks. `sent` has them by category.

    A category that was published to since then is as unread as if Redis had all of them: whoever
    has read it since has seen what was published before.
    """
    subjects = [subject for subject in sent if not read_state.strategy_of(subject).is_derived]
    answers = scripts.run_all(*read_state.last_published(subjects), patient=True)
    last = ChainMap(*answers)
    lost = []
    for subject in subjects:
        lost += [one for one in sent[subject] if one.sent > last.get(subject, 0)]
    return lost


def _without(
    sent: Mapping[str, Sequence[Pending]], publications: Sequence[Pending]
) -> dict[str, list[Pending]]:
    """Returns the publications by category, without some of them."""
    tokens = {publication.token for publication in publications}
    return {
        subject: [one for one in group if one.token not in tokens]
        for subject, group in sent.items()
    }


def _store_news(tag: str, sent: Mapping[str, Sequence[Pending]], *, most_bytes: int) -> int:
    """Stores copies of the categories of one partition that have news in the outbox.

    Returns the number of copies.
    """
    categories = {}
    keys_of_parts = {}
    for subject, publications in sent.items():
        form = read_state.strategy_of(subject)
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
        changed = copies.changed(tag, after=passed_over)
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
    for own_keys in of_parts.all_keys():
        own = [name for name in key_names if of_parts.copying(keys.parse(name)[0]) is own_keys]
        for portion in own_keys.store(tag, own):
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
