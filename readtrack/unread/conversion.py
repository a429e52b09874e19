"""Carries read state over when a site changes its strategy or how readers are numbered."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import NamedTuple

from django.utils.translation import gettext

from readtrack import buckets
from readtrack.hits import readers
from readtrack.hits.hit import Hit
from readtrack.hits.readers import Reader
from readtrack.hits.visitors import Visitor
from readtrack.store import clock, read_state, scripts


class SameStateError(ValueError):
    """There is nothing to convert: that is what the settings say already."""


class Converted(NamedTuple):
    """How much was carried over; `left_out` are readers with no place in the new numbering."""

    categories: int
    reads: int
    left_out: int


def convert(state: str, *, has_ordinals: bool, progress: Callable[[int], object] = lambda done: None) -> Converted:
    """Marks read, by today's settings, whatever that strategy and numbering hold as read.

    Each is recorded as any read is, so what was published since keeps its dot. Raises redis.RedisError.
    """
    source = readers.family_of(state, has_ordinals=has_ordinals)
    if source == readers.family():
        raise SameStateError(gettext("READTRACK says so already: change READ_STATE or READERS first, then convert."))
    names = read_state.names() if has_ordinals else None
    categories, found, carried = 0, 0, 0
    for token in read_state.categories(source):
        as_of = clock.recent()
        numbers = read_state.numbers(state, token, source)
        while some := list(islice(numbers, scripts.SLICE)):
            known = [reader for number in some if (reader := _reader(number, names)) is not None]
            scripts.run_all(*(read_state.mark(_hit(token, reader, as_of)) for reader in known), patient=True)
            found, carried = found + len(some), carried + len(known)
            progress(len(some))
        categories += 1
    return Converted(categories, carried, found - carried)


def _reader(number: int, names: Mapping[int, str] | None) -> Reader | None:
    """Who has that number, as today's numbering knows them."""
    if names is None:
        return readers.or_none(number)
    name = names.get(number, "")
    if readers.has_ordinals():
        return name or None
    return readers.or_none(int(name)) if name.isdecimal() else None


def _hit(token: str, reader: Reader, as_of: int) -> Hit:
    return Hit(Visitor(""), buckets.now(), reads=(token,), reader=reader, as_of=as_of)
