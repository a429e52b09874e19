"""Filling in: counts and dots take the place of the placeholders in a finished content.

There are two phases, so that the question of a page can go to Redis with other calls, in one round
trip: first the content is searched for placeholders, then the answers are filled in.
"""

import json
from collections.abc import Callable
from functools import cached_property

from readtrack.hits import readers
from readtrack.page import branches
from readtrack.page.placeholders import (
    ELSE,
    IF,
    OF_COUNTS,
    OF_DOTS,
    TOLD,
    spots_in,
    without_strangers,
)
from readtrack.page.rendering import NO_DELIVERY, Delivery, rendered
from readtrack.reports.page_state import PageQuestion

FindReader = Callable[[], readers.Reader | None]


class Filling:
    """A content with placeholders. Its `question` has to be asked before it can be `filled`."""

    def __init__(self, content: bytes, find_reader: FindReader, *, salt: str = "") -> None:
        """Looks for the placeholders.

        `find_reader` is called only if there are dots. `salt` is as in `spots_in`.
        """
        self._content = content
        self._find_reader = find_reader
        self._spots = spots_in(content, salt)
        self._placeholders = {spot.text: spot.placeholder for spot in self._spots}

    @cached_property
    def dots(self) -> list[str]:
        """The subjects whose read state the content shows."""
        subjects = (entry.subject for entry in self._placeholders.values() if entry.kind in OF_DOTS)
        return list(dict.fromkeys(subjects))

    @cached_property
    def reader(self) -> readers.Reader | None:
        """Who reads the dots; None without dots."""
        if not self.dots:
            return None
        return self._find_reader()

    @cached_property
    def question(self) -> PageQuestion:
        """The question to Redis, and to SQL for counts that no placeholder carries.

        Raises django.db.Error.
        """
        has_times = any(entry.kind == TOLD for entry in self._placeholders.values())
        return PageQuestion(
            counts=self._counts(), dots=self.dots, reader=self.reader, has_times=has_times
        )

    def _counts(self) -> dict[str, int | None]:
        """Returns SQL's counts by subject, as the placeholders carry them; None if none does.

        Placeholders of one subject may carry several, of which the highest is taken.
        """
        counts: dict[str, int | None] = {}
        for entry in self._placeholders.values():
            if entry.kind not in OF_COUNTS:
                continue
            count = counts.get(entry.subject)
            if count is None:
                counts[entry.subject] = entry.stored
            else:
                counts[entry.subject] = max(count, entry.stored or 0)
        return counts

    def filled(
        self,
        *,
        is_json: bool = False,
        charset: str = "utf-8",
        delivery: Delivery = NO_DELIVERY,
    ) -> bytes:
        """Returns the content with counts and dots in the place of all placeholders.

        What only looks like a placeholder is removed.
        """
        state = self.question.state()
        html = rendered(self._placeholders, state, delivery=delivery)
        paired = branches.paired(self._spots)
        pieces: list[bytes] = []
        are_shown: list[bool] = []  # of each `if_unread` that has begun, whether its branch is
        end = 0  # of the last placeholder
        for index, spot in enumerate(self._spots):
            if all(are_shown):
                pieces.append(without_strangers(self._content[end : spot.start]))
                replacement = html[spot.text]
                if is_json:
                    replacement = json.dumps(replacement)[1:-1]  # without the quotes
                pieces.append(replacement.encode(charset, "xmlcharrefreplace"))
            end = spot.end
            if index in paired:
                is_unread = state.unread.get(spot.placeholder.subject, 0) > 0
                _change_branch(are_shown, kind=spot.placeholder.kind, is_unread=is_unread)
        pieces.append(without_strangers(self._content[end:]))
        return b"".join(pieces)


def _change_branch(are_shown: list[bool], *, kind: str, is_unread: bool) -> None:
    """Begins the first branch of an `if_unread`, changes to the second, or ends the tag."""
    if kind == IF:
        are_shown.append(is_unread)
    elif kind == ELSE:
        are_shown[-1] = not are_shown[-1]
    else:
        are_shown.pop()


def filled(
    content: bytes,
    find_reader: FindReader,
    *,
    salt: str = "",
    delivery: Delivery = NO_DELIVERY,
) -> bytes:
    """Returns the content with all placeholders filled in, in one round trip to Redis.

    The parameters are those of Filling.
    """
    filling = Filling(content, find_reader, salt=salt)
    filling.question.ask()
    return filling.filled(delivery=delivery)
