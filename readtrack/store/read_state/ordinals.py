"""Ordinals: the numbers that Redis gives to readers who have none of their own, in each partition.

The ordinals of users are in one hash, for ever. Those of anonymous readers are in hashes that
expire: one for each generation, which lasts as long as a cookie. No two readers of a partition
get the same ordinal, in whatever hash they are.
"""

from readtrack.conf import conf
from readtrack.hits import readers
from readtrack.hits.readers import Reader
from readtrack.hits.visitors import digest
from readtrack.store import clock, keys

# Generations whose readers are known. A cookie that was set at the end of one generation lasts
# until the end of the next one.
GENERATIONS = 2


def field(reader: Reader) -> Reader:
    """Returns the reader's number; for a reader by name, the field of the hash that has it.

    The field is a keyed hash of the name, as the ids of visitors are.
    """
    if not isinstance(reader, str):
        return reader
    return digest("reader", reader)


def hashes_of(reader: Reader, tag: str) -> list[str]:
    """Returns the keys of the hashes that may have the reader's ordinal.

    A new reader is entered into the first one. There are none for a reader who has a number.
    """
    if not isinstance(reader, str):
        return []
    if is_anonymous(reader):
        return _anonymous_hashes(tag)
    return [keys.readers(tag)]


def all_hashes(tag: str) -> list[str]:
    """Returns the keys of all hashes of the partition that have ordinals."""
    if not conf.DOTS.anonymous:
        return [keys.readers(tag)]
    return [keys.readers(tag), *_anonymous_hashes(tag)]


def other_hashes(reader: Reader, tag: str) -> list[str]:
    """Returns the keys of the partition's hashes that cannot have the reader's ordinal.

    A partition has a hash for users, and one for the anonymous readers of each generation. All of
    them give ordinals out of one sequence, so a script that gives a new one has to count all of
    them.
    """
    hashes_of_reader = hashes_of(reader, tag)
    return [name for name in all_hashes(tag) if name not in hashes_of_reader]


def most_readers(reader: Reader, *, highest: int) -> int:
    """Returns how many users, or anonymous readers, may have an ordinal in a partition.

    `highest` is the highest number of a reader.
    """
    if is_anonymous(reader):
        return _most_anonymous()
    return highest + 1


def most_shown(reader: Reader) -> int | str:
    """Returns how many anonymous readers may have dots in a partition; "" for a user, because any
    number of users may.
    """
    if not is_anonymous(reader):
        return ""
    return _most_anonymous()


def expiry(reader: Reader) -> int | str:
    """Returns when the hash for a new reader expires (seconds since 1970); "" for never."""
    if not is_anonymous(reader):
        return ""
    return (_generation() + GENERATIONS) * _generation_length()


def is_anonymous(reader: Reader) -> bool:
    """Returns True for a reader who is known by a cookie."""
    return isinstance(reader, str) and reader.startswith(readers.ANONYMOUS)


def _anonymous_hashes(tag: str) -> list[str]:
    """Returns the keys of the hashes of the present generation and of the one before."""
    present = _generation()
    return [keys.anonymous_readers(tag, present - back) for back in range(GENERATIONS)]


def _most_anonymous() -> int:
    """Returns how many anonymous readers may have an ordinal in a partition."""
    return max(1, conf.DOTS.anonymous // len(keys.tags()))


def _generation() -> int:
    """Returns the number of the present generation, since 1970."""
    return int(clock.now().timestamp()) // _generation_length()


def _generation_length() -> int:
    """Returns how long a generation lasts (seconds)."""
    return max(1, conf.COOKIE.age)
