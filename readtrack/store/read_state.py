"""Read state: what each reader has seen of each category, by one of two strategies with one contract.

`Bitmap` knows whether something is new, in one bit a reader; `Sequence` also how much, in four bytes.
"""

from collections.abc import Sequence as Many
from struct import iter_unpack
from time import perf_counter
from typing import Any, NamedTuple, cast

from readtrack.conf import conf
from readtrack.hits import readers
from readtrack.hits.hit import Hit
from readtrack.hits.readers import Reader
from readtrack.store import clock, keys
from readtrack.store.connection import connect
from readtrack.store.scripts import Call

COUNTED_AT_ONCE = 100  # bitmaps: of 100,000,000 readers, counting one takes the server a millisecond


class Publication(NamedTuple):
    """What is published to a category at once. `author` gets no dot for it; `is_own`: it is the author's own text."""

    subject: str
    items: int = 1
    author: Reader | None = None
    is_own: bool = False


class ReadBits:
    """1 is "has read". A publication takes the whole bitmap away."""

    def unread(self, reader: Reader, subjects: Many[str]) -> Call[dict[str, int]]:
        """For each category 0, or 1 when there is something new."""

        def decode(bits: list[int]) -> dict[str, int]:
            return {subject: 1 - bit for subject, bit in zip(subjects, bits, strict=True)}

        return Call("has_read", _asked(reader, subjects), (reader, len(subjects)), decode)

    def readers(self, states: Many[str], *, patient: bool) -> list[int]:
        """How many have read what each key holds."""
        counts: list[int] = []
        for start in range(0, len(states), COUNTED_AT_ONCE):
            pipeline: Any = connect(patient=patient).pipeline(transaction=False)
            for state in states[start : start + COUNTED_AT_ONCE]:
                pipeline.bitcount(state)
            counts += pipeline.execute()
        return counts


class SeenCounters:
    """Four bytes a reader: how many publications there had been when the reader came, and one. 0 is "never"."""

    def unread(self, reader: Reader, subjects: Many[str]) -> Call[dict[str, int]]:
        """For each category how much is new; 1 at least in one that the reader has never opened."""

        def decode(counts: list[int]) -> dict[str, int]:
            return dict(zip(subjects, counts, strict=True))

        return Call("count_unread", _asked(reader, subjects), (reader, len(subjects)), decode)

    def readers(self, states: Many[str], *, patient: bool) -> list[int]:
        """How many have read what each key holds. Always patient: each may be megabytes."""
        return [self._count(connect(patient=True).get(state)) for state in states]

    def _count(self, content: Any) -> int:
        slots = (slot for (slot,) in iter_unpack(">I", content or bytes(4)))
        published = next(slots)
        return sum(seen > published for seen in slots)


def _asked(reader: Reader, subjects: Many[str]) -> list[str]:
    names = [keys.state(subject, readers.state_kind()) for subject in subjects]
    return [*names, keys.readers()] if isinstance(reader, str) else names


STATES: dict[str, ReadBits | SeenCounters] = {"bitmap": ReadBits(), "sequence": SeenCounters()}


def unread(reader: Reader, subjects: Many[str]) -> Call[dict[str, int]]:
    """How much is new to the reader in each category, as far as the strategy knows."""
    return STATES[conf.READ_STATE].unread(reader, subjects)


def mark(hit: Hit) -> Call[tuple[str, ...]]:
    """Marks what the hit reads; gives the subjects that are read now. Raises redis.RedisError."""
    reader = cast(Reader, hit.reader)
    names = [
        name for subject in hit.reads for name in (keys.state(subject, readers.state_kind()), keys.published(subject))
    ]
    if isinstance(reader, str):
        names.append(keys.readers())

    def decode(codes: list[Any]) -> tuple[str, ...]:
        clock.learn(int(codes[-1]))
        return tuple(subject for subject, code in zip(hit.reads, codes, strict=False) if code)

    args = (len(hit.reads), reader, *_began(hit), conf.READ_STATE, readers.highest())
    return Call("mark_read", names, args, decode)


def _began(hit: Hit) -> tuple[int | str, int | str]:
    """How long ago the page began, and when that was by Redis's clock, in microseconds or as mark_read.lua has it."""
    if hit.began is None:
        return "", "" if hit.as_of is None else hit.as_of
    stale = conf.STALE_FOR * 1_000_000
    since = clock.at(hit.began) - stale
    return int((perf_counter() - hit.began) * 1_000_000) + stale, since


def publish(news: Many[Publication]) -> Call[int]:
    """Makes the categories unread."""
    names: list[str] = []
    args: list[str | int] = [conf.READ_STATE]
    for subject, items, author, is_own in news:
        today, *others = (keys.state(subject, family) for family in readers.state_kinds())
        names += (today, keys.published(subject), *others)
        args += (items, "" if author is None else author, int(is_own))
    if any(isinstance(entry.author, str) for entry in news):
        names.append(keys.readers())
    return Call("publish", names, args, int)


def count_readers(subjects: Many[str], *, patient: bool = False) -> dict[str, int]:
    """How many have read each category since it was last published to."""
    family = readers.state_kind()
    counts = STATES[conf.READ_STATE].readers([keys.state(subject, family) for subject in subjects], patient=patient)
    return dict(zip(subjects, counts, strict=True))


def remove(subject: str) -> None:
    """Removes everything that the category has."""
    connect().unlink(*(keys.state(subject, family) for family in readers.state_kinds()), keys.published(subject))
