"""The contract of all forms of read state, and the two forms that keep it by category.

Parts may have other forms, and `by_model` chooses the form of each category.
"""

from collections.abc import Sequence
from functools import partial
from itertools import starmap
from struct import iter_unpack, pack, unpack
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import Model

from readtrack.hits import readers
from readtrack.hits.readers import Reader
from readtrack.store import clock, keys, scripts
from readtrack.store.channel import channel
from readtrack.store.read_state import ordinals
from readtrack.store.scripts import Call

if TYPE_CHECKING:
    from readtrack.store.renaming import Rename

# Bytes of the longest read state that a publication is taken back in: of 250,000 readers.
TAKEN_BACK_IN = 1_000_000
SLOT = 4  # bytes of a number in a sequence


class Publication(NamedTuple):
    """Something new in a category."""

    subject: str  # of the category
    items: int = 1  # how many new items
    author: Reader | None = None  # gets no dot
    is_own: bool = False  # the category is the author's own text
    # If several publications within a day have one token, only the first one counts. "" for no
    # token.
    token: str = ""
    post: str = ""  # subject of what is new; "" for several, or if it is not known
    # Subjects of the objects that the category is within, which have a dot if it has one.
    within: tuple[str, ...] = ()


class PageTime(NamedTuple):
    """When a page began. A category that is published to after that stays unread."""

    age: int | str = ""  # µs, measured by the web server; "" if only `began` is known
    began: int | str = ""  # µs, by our estimate of Redis's clock; "" for the time of the script


ROWS = (
    keys.read_bits,
    keys.ordinal_read_bits,
    keys.seen_counters,
    keys.ordinal_seen_counters,
)  # read state of a category, in all forms that keep it by category


class Form:
    """The contract of all forms. Each method takes categories of one partition and of its form.

    The scripts of a form are `mark_read_NAME`, `unread_NAME`, `publish_NAME`, `fill_NAME` and
    `take_over_NAME`.
    """

    name = ""  # in the settings
    has_numbers = False  # knows how many items are new, not only whether there are any
    most_counted: int | None = None  # a higher number only says that there are more than that
    keeps_posts = False  # knows which posts are new
    knows_readers = True  # can count the readers of a category
    # Keeps what each reader has read by the reader, so that `mark_all` and `start` mark all
    # categories of the model at once.
    is_by_reader = False
    is_derived = False  # has no state of its own: its dot is made out of those of other categories
    erase_method = ""  # by which erase_read_state.lua removes a reader from a key of this form
    by_id: keys.Key  # the row of read state whose numbers of readers are user ids
    # The row of read state whose numbers of readers are ordinals. It has other keys, because there
    # the same number is that of another reader.
    by_ordinal: keys.Key

    @property
    def rows(self) -> tuple[keys.Key, ...]:
        """The rows of keys that a category may have."""
        return self.by_id, self.by_ordinal

    def key(self) -> keys.Key:
        """Returns the row of keys that is in use, by the readers of DOTS."""
        if readers.has_ordinals():
            return self.by_ordinal
        return self.by_id

    @property
    def bits(self) -> int:
        """The memory of a reader in a category's read state (bits)."""
        return readers.READER_BITS[self.name]

    def highest_possible(self) -> int:
        """Returns the highest number that a reader may have.

        It bounds the memory of a category.
        """
        return readers.MOST_BITS // self.bits

    def size_of(self, highest: int) -> int:
        """Returns the memory (bytes) of a category's read state with readers up to that number."""
        return (highest + 1) * self.bits // 8 + 1

    def unread_calls(self, reader: Reader, subjects: Sequence[str]) -> list[Call[dict[str, int]]]:
        """Returns calls that read, as `unread` does, the numbers of categories of any partition.

        If several calls have a number for a category, the highest one is right.
        """
        return [self.unread(reader, portion) for portion in scripts.parted(subjects)]

    def mark_calls(
        self, reader: Reader, subjects: Sequence[str], *, page: PageTime, absent: Any = ...
    ) -> list[Call[tuple[str, ...]]]:
        """Returns calls that mark categories of any partition read, as `mark` does."""
        return [
            self.mark(reader, portion, page=page, absent=absent)
            for portion in scripts.parted(subjects)
        ]

    def unread(self, reader: Reader, subjects: Sequence[str]) -> Call[dict[str, int]]:
        """Returns the call that reads how many new items the reader has, by subject.

        A form that keeps no numbers gives 1 for any number of them. The result is empty for a Redis
        that has not begun.
        """
        tag = keys.tag(subjects[0])
        # The keys are built from the template here, because a call of the row for each key would
        # take twice as long on a page with many dots.
        prefix = keys.prefix()
        template = self.key().template
        key_names = [keys.reads_began(tag)]  # since when the partition has read state
        key_names += [prefix + template % (tag, subject) for subject in subjects]
        key_names += ordinals.hashes_of(reader, tag)
        arguments = (ordinals.field(reader), len(subjects), ordinals.most_shown(reader))
        decode = partial(counted, subjects)
        return Call(f"unread_{self.name}", key_names, arguments, decode, absent={})

    def mark(
        self, reader: Reader, subjects: Sequence[str], *, page: PageTime, absent: Any = ...
    ) -> Call[tuple[str, ...]]:
        """Returns the call that marks the categories, of one partition, read. The result is the
        subjects of those that are read now.

        `page` says when the page began: what was published later stays unread. `absent` is the
        result if the server of a cluster is silent.
        """
        tag = keys.tag(subjects[0])
        key_names = [keys.reads_began(tag), keys.reads_changed(tag), *self._state_keys(subjects)]
        highest = self.highest_possible()  # number of a reader
        arguments: list[str | int] = [
            len(subjects),
            ordinals.field(reader),
            page.age,
            page.began,
            highest,
        ]
        if isinstance(reader, str):  # a name, by which the script finds an ordinal, or gives one
            hashes = ordinals.hashes_of(reader, tag)
            key_names += [keys.readers_new(tag), keys.readers_next(tag)]
            key_names += [*hashes, *ordinals.other_hashes(reader, tag)]
            most_readers = ordinals.most_readers(reader, highest=highest)
            is_for_sql = not ordinals.is_anonymous(reader)  # SQL has copies of users' ordinals only
            arguments += [len(hashes), most_readers, ordinals.expiry(reader), int(is_for_sql)]
        decode = partial(marked, subjects)
        return Call(f"mark_read_{self.name}", key_names, arguments, decode, absent)

    def publish(self, publications: Sequence[Publication]) -> Call[int]:
        """Returns the call that makes the categories unread. The result is Redis's time (µs), 0 if
        it has not begun.
        """
        tag = keys.tag(publications[0].subject)
        state_row = self.key()
        # The script also removes the read state of other settings, which would be out of date if
        # the site went back to them.
        outdated_rows = [row for row in ROWS if row is not state_row]
        key_names = [keys.reads_began(tag), keys.reads_changed(tag)]
        keys_per_category = 3 + len(outdated_rows)
        arguments: list[str | int] = [
            len(publications),
            keys_per_category,
            keys.sent.ttl,
            channel(),
        ]
        for publication in publications:
            subject = publication.subject
            key_names += [state_row(subject), keys.published(subject), keys.sent(subject)]
            key_names += [row(subject) for row in outdated_rows]
            author_field: Reader = ""
            if publication.author is not None:
                author_field = ordinals.field(publication.author)
            arguments += [
                publication.items,
                author_field,
                int(publication.is_own),
                publication.token,
            ]
        if any(isinstance(publication.author, str) for publication in publications):
            key_names.append(keys.readers(tag))
        return Call(f"publish_{self.name}", key_names, arguments, published_at)

    def last_published(self, subjects: Sequence[str]) -> Call[dict[str, int]]:
        """Returns the call that reads the times of the last publications (µs by Redis's clock), by
        subject.

        Leaves out the categories to which nothing was published as far as Redis knows.
        """
        key_names = [keys.published(subject) for subject in subjects]
        return Call("MGET", key_names, (), partial(times_of, subjects), absent={})

    def unpublish(self, subjects: Sequence[str], *, post: str, token_start: str) -> list[Call[int]]:
        """Returns calls that take back the publications of the post whose tokens begin with
        `token_start`; no calls if the form cannot.
        """
        return []

    def fill(self, subjects: Sequence[str], *, highest: int, as_of: int) -> Call[int]:
        """Returns the call that marks the categories read for all readers up to the number
        `highest`. Only a form that keeps read state by category can.

        Categories that were published to since `as_of` (µs) stay as they are. The result is the
        number of categories that were marked.
        """
        key_names = [keys.reads_changed(keys.tag(subjects[0])), *self._state_keys(subjects)]
        return Call(f"fill_{self.name}", key_names, (highest, as_of), int)

    def take_over(self, subjects: Sequence[str], *, number: int, user: Reader) -> Call[int]:
        """Returns the call that marks those of the categories read for the user that an anonymous
        reader has read.

        `number` is the ordinal of the anonymous reader. The result is the number of categories that
        the anonymous reader has read.
        """
        state_row = self.key()
        tag = keys.tag(subjects[0])
        key_names = [keys.readers(tag), keys.reads_changed(tag)]
        key_names += [state_row(subject) for subject in subjects]
        arguments = (number, ordinals.field(user))
        return Call(f"take_over_{self.name}", key_names, arguments, int, absent=0)

    def mark_all(
        self, reader: Reader, *, page: PageTime, within: str = "", absent: Any = ...
    ) -> list[Call[int]]:
        """Returns calls that mark all categories of the model read, or those within the object
        whose subject is `within`. Only a form with `is_by_reader` can.
        """
        raise NotImplementedError

    def check_within(self, subject: str) -> None:
        """Raises TypeError if no category of the model can be within the object of that subject."""
        raise NotImplementedError

    def mark_all_for_everybody(self, *, as_of: int) -> list[Call[Any]]:
        """Returns calls that mark all categories of the model read for everybody up to `as_of`
        (µs), in order. Only a form with `is_by_reader` can.
        """
        raise NotImplementedError

    def loaded_within(self, category: Model) -> list[str] | None:
        """Returns the subjects of the objects that a loaded category is within; None if that takes
        a query.
        """
        return []

    def within(self, subjects: Sequence[str]) -> dict[str, list[str]]:
        """Returns the subjects of the objects that categories are within, by the subject of the
        category. Asks SQL. Raises django.db.Error.
        """
        return {}

    def follow_rename(self, rename: "Rename") -> int:
        """Gives a category, or the categories of a model, the new name in keys of other categories.

        Their own keys have it by then. Returns the number of keys. Raises redis.RedisError.
        """
        return 0

    def count_readers(self, subjects: Sequence[str], *, patient: bool = False) -> dict[str, int]:
        """Returns how many readers have read each category since its last publication, by subject.

        The categories may be of several partitions. Raises redis.RedisError.
        """
        raise NotImplementedError

    def joined(self, state: bytes, other: bytes) -> bytes:
        """Returns two states of one category joined: it has the readers of both. They are of the
        same publication.
        """
        raise NotImplementedError

    def cleared(self, state: bytes, number: int) -> bytes:
        """Returns the state without the reader with the number `number`."""
        raise NotImplementedError

    def capacity(self, state: bytes) -> int:
        """Returns a number that is higher than that of any reader in the state."""
        return len(state) * 8 // self.bits

    def _state_keys(self, subjects: Sequence[str]) -> list[str]:
        """Returns two keys for each category: its state, and the time of its last publication."""
        state_row = self.key()
        key_names = []
        for subject in subjects:
            key_names += [state_row(subject), keys.published(subject)]
        return key_names


class Bitmaps(Form):
    """Knows if something is new. The bit of a reader is 1 if the reader has read the category.

    A publication removes the bitmap.
    """

    name = "bitmap"
    erase_method = "bit"
    by_id = keys.read_bits
    by_ordinal = keys.ordinal_read_bits

    def joined(self, state: bytes, other: bytes) -> bytes:
        bits = int.from_bytes(state, "little") | int.from_bytes(other, "little")
        return bits.to_bytes(max(len(state), len(other)), "little")

    def cleared(self, state: bytes, number: int) -> bytes:
        byte, bit = divmod(number, 8)
        if byte >= len(state):
            return state
        cleared = bytearray(state)
        cleared[byte] &= ~(0x80 >> bit)  # Redis counts bits from the highest one
        return bytes(cleared)

    def count_readers(self, subjects: Sequence[str], *, patient: bool = False) -> dict[str, int]:
        # The server counts a bitmap of 1,000,000 readers in 10 µs.
        state_row = self.key()
        calls = [Call("BITCOUNT", [state_row(subject)], (), int) for subject in subjects]
        return scripts.by_subject(subjects, scripts.run_all(*calls, patient=patient))


class Sequences(Form):
    """Knows how many items are new. The first four bytes hold their number so far.

    The four bytes of a reader hold that number at the reader's last visit, plus one; 0 if there was
    no visit.
    """

    name = "sequence"
    has_numbers = True
    erase_method = "slot"
    by_id = keys.seen_counters
    by_ordinal = keys.ordinal_seen_counters

    def joined(self, state: bytes, other: bytes) -> bytes:
        # The higher number of each reader is that of the later visit.
        length = max(len(state), len(other))
        counters = zip(_counters(state, length), _counters(other, length), strict=True)
        return pack(f">{length // SLOT}I", *starmap(max, counters))

    def cleared(self, state: bytes, number: int) -> bytes:
        start = SLOT * (number + 1)  # behind the number of publications
        if start >= len(state):
            return state
        return state[:start] + bytes(SLOT) + state[start + SLOT :]

    def unpublish(self, subjects: Sequence[str], *, post: str, token_start: str) -> list[Call[int]]:
        state_row = self.key()
        key_names = [keys.reads_changed(keys.tag(subjects[0]))]
        for subject in subjects:
            key_names += [state_row(subject), keys.sent(subject)]
        return [Call("unpublish_sequence", key_names, (TAKEN_BACK_IN, token_start), int)]

    def count_readers(self, subjects: Sequence[str], *, patient: bool = False) -> dict[str, int]:
        state_row = self.key()
        counts = {}
        for subject in subjects:
            # One key a round trip, and always patient, because a key may have megabytes.
            content = scripts.run(Call[Any]("GET", [state_row(subject)]), patient=True)
            counters = (counter for (counter,) in iter_unpack(">I", content or bytes(SLOT)))
            publications = next(counters)
            # A reader's counter is the number of publications at the last visit, plus one.
            counts[subject] = sum(counter > publications for counter in counters)
        return counts


def times_of(subjects: Sequence[str], answer: Sequence[bytes | None]) -> dict[str, int]:
    """Returns the times (µs) by subject, without the subjects that have none."""
    times = zip(subjects, answer, strict=True)
    return {subject: int(time) for subject, time in times if time is not None}


def _counters(state: bytes, length: int) -> tuple[int, ...]:
    """Returns the numbers in the state of a sequence, as if it had that length (bytes)."""
    return unpack(f">{length // SLOT}I", state.ljust(length, b"\0"))


def counted(subjects: Sequence[str], answer: Sequence[int] | None) -> dict[str, int]:
    """Returns the numbers by subject; no numbers for a Redis that has not begun."""
    if answer is None:
        return {}
    return scripts.by_subject(subjects, answer)


def published_at(answer: Any) -> int:
    """Returns when something was published by the answer of a script (µs), 0 for a Redis that has
    not begun.

    This process learns the time from it. So the page to which an author is sent begins later than
    the publication by whatever is known of Redis's clock.
    """
    time = int(answer)
    if time:
        clock.learn_from_server(time)
    return time


def marked(subjects: Sequence[str], answer: Sequence[Any] | None) -> tuple[str, ...]:
    """Returns the subjects that the script marked read.

    Its answer also has Redis's time (µs) at the end, from which this process learns the time. A
    Redis that has not begun answers nothing.
    """
    if answer is None:
        return ()
    *are_marked, redis_time = answer
    clock.learn_from_server(int(redis_time))
    pairs = zip(subjects, are_marked, strict=True)
    return tuple([subject for subject, is_marked in pairs if is_marked])
