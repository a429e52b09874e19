"""Read state: what each reader has seen of each category, in one of two forms that the scripts
know.

"bitmap" knows if something is new: one bit a reader is 1 if the reader has read, and a publication
removes the bitmap. "sequence" also knows how much: four bytes hold the number of publications when
a reader came, plus one; 0 means never.
"""

from collections.abc import Sequence
from functools import partial
from struct import iter_unpack
from time import perf_counter
from typing import Any, NamedTuple

from readtrack.conf import conf
from readtrack.hits import readers
from readtrack.hits.readers import Reader
from readtrack.hits.visitors import digest
from readtrack.store import clock, keys, scripts
from readtrack.store.scripts import Call

PUBLISHED_FOR = keys.published.ttl * 1_000_000  # µs that the time of a publication is kept


class Publication(NamedTuple):
    """Something new in a category."""

    subject: str
    items: int = 1
    author: Reader | None = None  # gets no dot
    is_own: bool = False  # the category is the author's own text
    token: str = ""  # of several publications with one token within a day, the items of one count


def field(reader: Reader) -> Reader:
    """Returns the reader's position, or the field of `readers` that has it: a keyed hash, as ids of
    visitors are.
    """
    return digest("reader", reader) if isinstance(reader, str) else reader


def _is_anonymous(reader: Reader) -> bool:
    return isinstance(reader, str) and reader.startswith(readers.ANONYMOUS)


def _hashes(reader: Reader, tag: str) -> list[str]:
    """Returns the hashes that may have the reader's position, and first the one for a new reader;
    none for a reader who is a position.
    """
    if _is_anonymous(reader):
        return _anonymous_hashes(tag)
    return [keys.readers(tag)] if isinstance(reader, str) else []


def _anonymous_hashes(tag: str) -> list[str]:
    """Returns the hashes of anonymous readers who are numbered in this COOKIE_AGE, and who were in
    the one before: older cookies have ended.
    """
    generation = _generation()
    return [keys.anonymous_readers(tag, generation - back) for back in range(2)]


def _generation() -> int:
    return int(clock.now().timestamp()) // max(1, conf.COOKIE_AGE)


def _most(reader: Reader) -> int:
    """Returns how many readers of this kind a partition may number."""
    if _is_anonymous(reader):
        return max(1, conf.MAX_ANONYMOUS_READERS // conf.PARTITIONS)
    return readers.highest() + 1


def _end(reader: Reader) -> int | str:
    """Returns when the hash that numbers a new reader ends (seconds since 1970), "" for never."""
    return (_generation() + 2) * max(1, conf.COOKIE_AGE) if _is_anonymous(reader) else ""


def _numbers(tag: str) -> list[str]:
    """Returns all hashes of readers who share the next ordinal."""
    return [keys.readers(tag), *(_anonymous_hashes(tag) if conf.ANONYMOUS_READERS else ())]


def unread(reader: Reader, subjects: Sequence[str]) -> Call[dict[str, int]]:
    """Reads how much is new in each category. All calls of this module take categories of one
    partition.
    """
    kind, tag = readers.state_kind(), keys.tag(subjects[0])
    names = [keys.reads_began(tag), *(keys.state(subject, kind) for subject in subjects)]
    names += _hashes(reader, tag)
    most = _most(reader) if _is_anonymous(reader) else ""
    args = conf.READ_STATE, field(reader), len(subjects), most
    return Call("unread", names, args, partial(scripts.by_subject, subjects), {})


def marks(
    reader: Reader,
    subjects: Sequence[str],
    *,
    began: float | None = None,
    as_of: int | None = None,
    absent: Any = ...,
) -> list[Call[tuple[str, ...]]]:
    """Marks categories read, in each partition its own; the answers are those read now. Times are
    as in Hit.
    """
    # How long ago the page began, and when that was by Redis's clock (µs).
    ago: int | str = ""
    since: int | str = "" if as_of is None else as_of
    if began is not None:
        stale = conf.STALE_FOR * 1_000_000
        since = clock.at(began) - stale
        ago = int((perf_counter() - began) * 1_000_000) + stale
    args: tuple[str | int, ...] = (
        field(reader),
        ago,
        since,
        conf.READ_STATE,
        readers.highest(),
        PUBLISHED_FOR,
    )
    if isinstance(reader, str):
        args += (len(_hashes(reader, "")), _most(reader), _end(reader))
    calls, kind = [], readers.state_kind()
    for some in scripts.parted(subjects):
        tag = keys.tag(some[0])
        names = [keys.reads_began(tag)]
        names += [
            name
            for subject in some
            for name in (keys.state(subject, kind), keys.published(subject))
        ]
        if isinstance(reader, str):
            own = _hashes(reader, tag)
            names += [keys.readers_next(tag), *own]
            names += [name for name in _numbers(tag) if name not in own]
        calls.append(Call("mark_read", names, (len(some), *args), partial(_marked, some), absent))
    return calls


def _marked(subjects: Sequence[str], codes: Sequence[Any]) -> tuple[str, ...]:
    if conf.PARTITIONS == 1:  # the clocks of several servers differ
        clock.learn(int(codes[-1]))
    return tuple(subject for subject, code in zip(subjects, codes, strict=False) if code)


def publish(publications: Sequence[Publication]) -> Call[int]:
    """Makes the categories unread."""
    kind, tag = readers.state_kind(), keys.tag(publications[0].subject)
    names: list[str] = [keys.reads_began(tag)]
    args: list[str | int] = [conf.READ_STATE, keys.published.ttl]
    for subject, items, author, is_own, token in publications:
        names += (keys.state(subject, kind), keys.published(subject), keys.sent(subject))
        names += (keys.state(subject, other) for other in readers.ALL_STATE_KINDS if other != kind)
        args += (items, "" if author is None else field(author), int(is_own), token)
    names += [keys.readers(tag)] if any(isinstance(one.author, str) for one in publications) else ()
    return Call("publish", names, args, int)


def fill(subjects: Sequence[str], *, highest: int, as_of: int) -> Call[int]:
    """Marks the categories, but those published to since `as_of` (µs), read for all up to that
    position.
    """
    kind = readers.state_kind()
    names = [
        name
        for subject in subjects
        for name in (keys.state(subject, kind), keys.published(subject))
    ]
    return Call("fill", names, (conf.READ_STATE, highest, as_of), int)


def number(names: Sequence[Reader]) -> list[Call[int]]:
    """Numbers readers in each partition, in their order. The answers are the highest numbers so
    far.
    """
    args = (readers.highest(), *map(field, names))
    return [
        Call("number", [keys.readers_next(tag), *_numbers(tag)], args, int) for tag in keys.tags()
    ]


def count_readers(subjects: Sequence[str], *, patient: bool = False) -> dict[str, int]:
    """Returns how many have read each category since its last publication. Raises redis.RedisError."""
    states, counts = (
        [keys.state(subject, readers.state_kind()) for subject in subjects],
        list[int](),
    )
    if (
        conf.READ_STATE == "bitmap"
    ):  # each of which the server counts in 10 µs for 1,000,000 readers
        counts = scripts.run_all(
            *(Call("BITCOUNT", [state], (), int) for state in states), patient=patient
        )
    for state in states if conf.READ_STATE == "sequence" else ():
        content = scripts.run(
            Call[Any]("GET", [state]), patient=True
        )  # always, because a key may have megabytes
        slots = (slot for (slot,) in iter_unpack(">I", content or bytes(4)))
        published = next(slots)
        counts.append(sum(seen > published for seen in slots))
    return scripts.by_subject(subjects, counts)


def begin(at: int) -> None:
    """Tells an empty Redis since when it knows publications (µs), so that pages from then on mark
    categories read.
    """
    scripts.run_all(
        *(Call("SET", [keys.reads_began(tag)], (at, "NX"), bool) for tag in keys.tags()),
        patient=True,
    )


def remove(subject: str) -> None:
    """Removes all read state of the category."""
    states = (keys.state(subject, kind) for kind in readers.ALL_STATE_KINDS)
    scripts.run(Call("UNLINK", [*states, keys.published(subject), keys.sent(subject)], (), int))
