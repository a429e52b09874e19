"""Keeping SQL's copy of the read state, and giving it back to a Redis that lost its own.

A Redis has "begun" if it has all read state. One that was emptied has not; the flush takes that note
from one that was restored from an older snapshot. Until a flush has given it SQL's copies there are
no dots, nothing is marked read, and publications wait in the outbox.

The copy and the outbox together lose no news. A publication leaves the outbox only if it was sent
before this flush noted itself in Redis, and SQL has a copy of its category that is not older. A
Redis that lacks such a publication lacks the note of the flush, too, so it gets SQL's copy.
"""

from collections.abc import Iterator, Mapping, Sequence

from readtrack.conf import logger
from readtrack.sql import read_states
from readtrack.store import keys, read_state
from readtrack.store.connection import server_time
from readtrack.store.read_state import copies
from readtrack.store.read_state.copies import Copy
from readtrack.unread import outbox
from readtrack.unread.outbox import Pending

# Larger states are copied by full flushes only: a copy of a million readers takes 10 ms.
MOST_BYTES_EACH_TIME = 50_000
MOST_BYTES = 512 * 1024 * 1024  # of a string in Redis


def restore(tags: Sequence[str]) -> None:
    """Gives SQL's copies to those of the partitions whose Redis has not begun, and lets it begin.

    Raises redis.RedisError or django.db.Error.
    """
    not_begun = read_state.not_begun(tags)
    for tag in not_begun:
        categories = read_states.restore(tag)
        if categories is None:
            continue  # another flush was first
        copies.mark_all_changed(tag)  # an older snapshot may have what SQL lacks
        sent = outbox.sent_publications([tag])
        outbox.send_again([publication for group in sent.values() for publication in group])
        read_state.begin(server_time(patient=True), [tag])
        if categories:
            name = f" in partition {tag[1:]}" if tag else ""
            logger.warning("Restored the read state of %d categories%s from SQL.", categories, name)
    if not_begun:
        outbox.resend()


def store(tags: Sequence[str], sent: Mapping[str, Sequence[Pending]], *, is_full: bool) -> int:
    """Stores copies of the read state that changed. Returns their number.

    `sent` are publications that Redis had before the flush noted itself there, by the subjects of
    their categories. Without `is_full`, large states are left to the next full flush. Raises
    redis.RedisError or django.db.Error.
    """
    most_bytes = MOST_BYTES if is_full else MOST_BYTES_EACH_TIME
    number = 0
    by_category = {}
    for subject, publications in sent.items():
        if read_state.knows_readers(subject):
            by_category[subject] = publications
        else:  # positions have no copy in SQL
            outbox.delete(publications)
    for tag in tags:
        with_news = [subject for subject in by_category if keys.tag(subject) == tag]
        subjects = dict.fromkeys([*copies.changed(tag), *with_news])
        for portion in copies.copies([*subjects], most_bytes=most_bytes):
            number += _store(portion, by_category)
        read_states.store_readers(tag)
    return number


def _store(portion: Sequence[Copy], sent: Mapping[str, Sequence[Pending]]) -> int:
    """Stores copies of categories of one partition. Returns their number."""
    # Redis has nothing of a category that was deleted.
    deleted = [copy for copy in portion if copy.is_empty]
    accepted = read_states.store([copy for copy in portion if not copy.is_empty])
    in_copies = [news for copy, news in _with_news(accepted, sent) if news.sent <= copy.published]
    outbox.delete(in_copies)
    # A replica became the primary before it had got the publication.
    lost = [news for copy, news in _with_news(portion, sent) if news.sent > copy.published]
    outbox.send_again(lost)
    copies.forget_changes([*accepted, *deleted])
    return len(accepted)


def _with_news(
    portion: Sequence[Copy], sent: Mapping[str, Sequence[Pending]]
) -> Iterator[tuple[Copy, Pending]]:
    """Yields each publication that was sent in these categories, with the copy of its category."""
    for copy in portion:
        for news in sent.get(copy.subject, ()):
            yield copy, news
