"""The forms of read state: two strategies with one contract, and keys of their own.

A form is chosen for each category by `strategy_of`.
"""

from collections.abc import Sequence
from functools import partial
from struct import iter_unpack
from typing import Any, NamedTuple

from readtrack.conf import READER_BITS, conf
from readtrack.hits import readers
from readtrack.hits.readers import Reader
from readtrack.store import clock, keys, scripts
from readtrack.store.read_state import ordinals
from readtrack.store.scripts import Call

PUBLISHED_FOR = keys.published.ttl * 1_000_000  # µs that the time of a publication is kept

# Bytes of the longest read state that a publication is taken back in: of 250,000 readers.
TAKEN_BACK_IN = 1_000_000


class Publication(NamedTuple):
    """Something new in a category."""

    subject: str
    items: int = 1
    author: Reader | None = None  # gets no dot
    is_own: bool = False  # the category is the author's own text
    token: str = ""  # of several publications with one token within a day, the items of one count


class PageTime(NamedTuple):
    """When a page began. What was published after that stays unread."""

    age: int | str = ""  # µs, by the web server; "" where only `began` is known
    began: int | str = ""  # µs, by our estimate of Redis's clock; "" for now


class Strategy:
    """The contract of all forms. Each method takes categories of one partition and of its form.

    The scripts of a form are `mark_read_NAME`, `unread_NAME`, `publish_NAME` and `fill_NAME`. A
    form whose keys are not a category's overrides the methods that name keys.
    """

    name = ""  # in the settings
    has_numbers = False  # knows how many publications are new, not only that there are some
    erases = ""  # how erase.lua removes a reader from a key of this form
    by_id: keys.Key  # of a category's read state by user ids
    # Ordinals have keys of their own, because a bit at the same position belongs to another reader.
    by_ordinal: keys.Key

    @property
    def rows(self) -> tuple[keys.Key, keys.Key]:
        """The kinds of keys that a category may have."""
        return self.by_id, self.by_ordinal

    def key(self) -> keys.Key:
        """Returns the kind of key that is in use."""
        return self.by_ordinal if readers.has_ordinals() else self.by_id

    @property
    def bits(self) -> int:
        """The memory of a reader in a category's read state (bits)."""
        return READER_BITS[self.name]

    def highest(self) -> int:
        """Returns the highest position of a reader, which bounds the memory of a category."""
        return conf.MAX_READER // self.bits

    def size_of(self, highest: int) -> int:
        """Returns the memory of a category's read state up to that position (bytes)."""
        return (highest + 1) * self.bits // 8 + 1

    def unread(self, reader: Reader, subjects: Sequence[str]) -> Call[dict[str, int]]:
        """Reads how much is new to the reader in each category."""
        tag = keys.tag(subjects[0])
        # Not by the row itself, which takes twice as long on a page with many dots.
        start = keys.prefix()
        template = self.key().template
        names = [keys.reads_began(tag)]
        names += [start + template % (tag, subject) for subject in subjects]
        names += ordinals.hashes_of(reader, tag)
        arguments = (ordinals.field(reader), len(subjects), ordinals.most_shown(reader))
        decode = partial(scripts.by_subject, subjects)
        return Call(f"unread_{self.name}", names, arguments, decode, absent={})

    def mark(
        self, reader: Reader, subjects: Sequence[str], *, page: PageTime, absent: Any = ...
    ) -> Call[tuple[str, ...]]:
        """Marks the categories read. Returns those that are read now."""
        tag = keys.tag(subjects[0])
        names = [keys.reads_began(tag), *self._states(subjects)]
        highest = self.highest()
        arguments: list[str | int] = [
            len(subjects),
            ordinals.field(reader),
            page.age,
            page.began,
            highest,
            PUBLISHED_FOR,
        ]
        if isinstance(reader, str):
            hashes = ordinals.hashes_of(reader, tag)
            names += [keys.readers_next(tag), *hashes, *ordinals.other_hashes(reader, tag)]
            most = ordinals.most_readers(reader, highest=highest)
            arguments += [len(hashes), most, ordinals.end(reader)]
        decode = partial(_marked, subjects)
        return Call(f"mark_read_{self.name}", names, arguments, decode, absent)

    def publish(self, publications: Sequence[Publication]) -> Call[int]:
        """Makes the categories unread. Returns their number."""
        tag = keys.tag(publications[0].subject)
        state = self.key()
        # Also read state of other settings, which would be out of date if they came back.
        outdated = [row for row in ROWS if row is not state]
        names = [keys.reads_began(tag)]
        keys_per_category = 3 + len(outdated)
        arguments: list[str | int] = [len(publications), keys_per_category, keys.published.ttl]
        for publication in publications:
            subject = publication.subject
            names += [state(subject), keys.published(subject), keys.sent(subject)]
            names += [row(subject) for row in outdated]
            author = publication.author
            arguments += [
                publication.items,
                "" if author is None else ordinals.field(author),
                int(publication.is_own),
                publication.token,
            ]
        if any(isinstance(publication.author, str) for publication in publications):
            names.append(keys.readers(tag))
        return Call(f"publish_{self.name}", names, arguments, int)

    def unpublish(self, subjects: Sequence[str], *, token_start: str) -> list[Call[int]]:
        """Takes publications whose tokens begin so back. Returns no calls if the form cannot."""
        return []

    def fill(self, subjects: Sequence[str], *, highest: int, as_of: int) -> Call[int]:
        """Marks the categories read for all readers up to that position.

        Categories that were published to since `as_of` (µs) stay as they are. Returns the number of
        the categories that are marked.
        """
        return Call(f"fill_{self.name}", self._states(subjects), (highest, as_of), int)

    def count_readers(self, subjects: Sequence[str], *, patient: bool = False) -> dict[str, int]:
        """Returns how many have read each category since its last publication.

        The categories may be of several partitions. Raises redis.RedisError.
        """
        raise NotImplementedError

    def _states(self, subjects: Sequence[str]) -> list[str]:
        """Returns two keys for each category: its state, and the time of its last publication."""
        state = self.key()
        names = []
        for subject in subjects:
            names += [state(subject), keys.published(subject)]
        return names


class Bitmaps(Strategy):
    """Knows if something is new. One bit for each reader is 1 if the reader has read.

    A publication removes the bitmap.
    """

    name = "bitmap"
    erases = "bit"
    by_id = keys.read_bits
    by_ordinal = keys.ordinal_read_bits

    def count_readers(self, subjects: Sequence[str], *, patient: bool = False) -> dict[str, int]:
        # The server counts a bitmap of 1,000,000 readers in 10 µs.
        state = self.key()
        calls = [Call("BITCOUNT", [state(subject)], (), int) for subject in subjects]
        return scripts.by_subject(subjects, scripts.run_all(*calls, patient=patient))


class Sequences(Strategy):
    """Knows how much is new. The first four bytes hold the number of publications.

    Four bytes for each reader hold that number when the reader came, plus one; 0 means never.
    """

    name = "sequence"
    has_numbers = True
    erases = "slot"
    by_id = keys.seen_counters
    by_ordinal = keys.ordinal_seen_counters

    def unpublish(self, subjects: Sequence[str], *, token_start: str) -> list[Call[int]]:
        state = self.key()
        names = []
        for subject in subjects:
            names += [state(subject), keys.sent(subject)]
        return [Call("unpublish_sequence", names, (TAKEN_BACK_IN, token_start), int)]

    def count_readers(self, subjects: Sequence[str], *, patient: bool = False) -> dict[str, int]:
        state = self.key()
        counts = {}
        for subject in subjects:
            # One at once and always patient, because a key may have megabytes.
            content = scripts.run(Call[Any]("GET", [state(subject)]), patient=True)
            counters = (counter for (counter,) in iter_unpack(">I", content or bytes(4)))
            published = next(counters)
            counts[subject] = sum(seen > published for seen in counters)
        return counts


STRATEGIES: dict[str, Strategy] = {"bitmap": Bitmaps(), "sequence": Sequences()}
DEFAULT = STRATEGIES["bitmap"]
ROWS = tuple(row for strategy in STRATEGIES.values() for row in strategy.rows)


def strategy_of(subject: str) -> Strategy:
    """Returns the form of a category's read state, by its subject or by the label of its model.

    "" asks for the form of the site. A model that names a form of its own is to be looked up here.
    """
    return STRATEGIES.get(conf.READ_STATE, DEFAULT)  # a check names an unknown one


def _marked(subjects: Sequence[str], answer: Sequence[Any]) -> tuple[str, ...]:
    """Returns the categories that a script marked, and learns the time of Redis behind them."""
    *outcomes, time = answer
    if conf.PARTITIONS == 1:  # the clocks of several servers differ
        clock.learn(int(time))
    return tuple(subject for subject, outcome in zip(subjects, outcomes, strict=True) if outcome)
