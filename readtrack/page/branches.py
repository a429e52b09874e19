"""The branches of `if_unread`: which placeholders belong together.

A placeholder without its partner hides nothing. Somebody may have found it in a mail, where no
middleware fills it in, and pasted it into a comment.
"""

from collections.abc import Sequence
from typing import NamedTuple

from readtrack.page.placeholders import ELSE, END, IF, Spot


class Block(NamedTuple):
    """An `if_unread` whose end has not come yet."""

    subject: str
    indexes: list[int]  # of its placeholders in the list of all


def paired(spots: Sequence[Spot]) -> set[int]:
    """Returns the indexes of the placeholders of each `if_unread` that has all three of them."""
    complete: set[int] = set()
    open_blocks: list[Block] = []
    for index, spot in enumerate(spots):
        kind = spot.placeholder.kind
        if kind == IF:
            open_blocks.append(Block(spot.placeholder.subject, [index]))
        elif kind == ELSE:
            _add_else(open_blocks, spot.placeholder.subject, index)
        elif kind == END:
            complete.update(_end(open_blocks, spot.placeholder.subject, index))
    return complete


def _add_else(open_blocks: list[Block], subject: str, index: int) -> None:
    """Adds the placeholder between the two branches to its block."""
    place = _place_of_innermost(open_blocks, subject)
    if place is None:
        return
    del open_blocks[place + 1 :]  # which have no end within this branch
    if len(open_blocks[place].indexes) == 1:
        open_blocks[place].indexes.append(index)


def _end(open_blocks: list[Block], subject: str, index: int) -> list[int]:
    """Removes the block that ends with the placeholder of that index.

    Returns the indexes of its placeholders; none unless it has all three, which the tag leaves.
    """
    place = _place_of_innermost(open_blocks, subject)
    if place is None:
        return []
    indexes = [*open_blocks[place].indexes, index]
    del open_blocks[place:]  # with those in it, which have no end
    if len(indexes) != 3:
        return []
    return indexes


def _place_of_innermost(open_blocks: list[Block], subject: str) -> int | None:
    """Returns the place of the subject's innermost block in the list; None without one."""
    for place in reversed(range(len(open_blocks))):
        if open_blocks[place].subject == subject:
            return place
    return None


def first_without_end(spots: Sequence[Spot]) -> int | None:
    """Returns where in the content the first `if_unread` begins that has no end there, or None."""
    complete = paired(spots)
    for index, spot in enumerate(spots):
        if spot.placeholder.kind == IF and index not in complete:
            return spot.start
    return None
