"""Ordinals: the numbers that Redis gives to readers whose name is no position, in each partition.

Users are numbered in one hash for good. Anonymous readers are numbered in hashes that end, one for
each generation, which is a span of COOKIE_AGE. All hashes of a partition share the next ordinal.
"""

from readtrack.conf import conf
from readtrack.hits import readers
from readtrack.hits.readers import Reader
from readtrack.hits.visitors import digest
from readtrack.store import clock, keys

# A cookie that was set at the end of one generation lasts until the end of the next one.
GENERATIONS = 2


def field(reader: Reader) -> Reader:
    """Returns the reader's position, or the field of `readers` that has the position.

    A field is a keyed hash of the reader's name, as the ids of visitors are.
    """
    return digest("reader", reader) if isinstance(reader, str) else reader


def hashes_of(reader: Reader, tag: str) -> list[str]:
    """Returns the hashes that may have the reader's ordinal; none for a reader who is a position.

    The first one is that for a new reader.
    """
    if not isinstance(reader, str):
        return []
    if _is_anonymous(reader):
        return _anonymous_hashes(tag)
    return [keys.readers(tag)]


def all_hashes(tag: str) -> list[str]:
    """Returns all hashes of the partition whose readers share the next ordinal."""
    if not conf.ANONYMOUS_READERS:
        return [keys.readers(tag)]
    return [keys.readers(tag), *_anonymous_hashes(tag)]


def other_hashes(reader: Reader, tag: str) -> list[str]:
    """Returns the hashes of the partition that cannot have the reader's ordinal, but share the next
    one.
    """
    own = hashes_of(reader, tag)
    return [name for name in all_hashes(tag) if name not in own]


def most_readers(reader: Reader, *, highest: int) -> int:
    """Returns how many readers of this kind a partition may number, up to that position."""
    if _is_anonymous(reader):
        return _most_anonymous()
    return highest + 1


def most_shown(reader: Reader) -> int | str:
    """Returns how many readers of this kind may have dots in a partition; "" for any number."""
    return _most_anonymous() if _is_anonymous(reader) else ""


def end(reader: Reader) -> int | str:
    """Returns when the hash for a new reader ends (seconds since 1970); "" for never."""
    if not _is_anonymous(reader):
        return ""
    return (_generation() + GENERATIONS) * _generation_length()


def _is_anonymous(reader: Reader) -> bool:
    return isinstance(reader, str) and reader.startswith(readers.ANONYMOUS)


def _anonymous_hashes(tag: str) -> list[str]:
    """Returns the hashes of the present generation and of the one before."""
    present = _generation()
    return [keys.anonymous_readers(tag, present - back) for back in range(GENERATIONS)]


def _most_anonymous() -> int:
    return max(1, conf.MAX_ANONYMOUS_READERS // conf.PARTITIONS)


def _generation() -> int:
    return int(clock.now().timestamp()) // _generation_length()


def _generation_length() -> int:
    return max(1, conf.COOKIE_AGE)  # seconds
