"""Filling in: the placeholders of a finished content give way to counts and dots.

In two phases, so that the questions of a page can go to Redis with other calls, in one round trip.
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
    spots_in,
    without_strangers,
)
from readtrack.page.rendering import NO_SCRIPT_TAG, ScriptTag, rendered
from readtrack.reports.page_state import PageQuestion

FindReader = Callable[[], readers.Reader | None]


class Filling:
    """A content with its placeholders: first its `question` is asked, then it is `filled`."""

    def __init__(self, content: bytes, find_reader: FindReader, *, salt: str = "") -> None:
        """Looks for the placeholders. `salt` is as in `spots_in`."""
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
        return self._find_reader() if self.dots else None

    @cached_property
    def question(self) -> PageQuestion:
        """What the content asks Redis, in one round trip. Raises django.db.Error."""
        return PageQuestion(counts=self._counts(), dots=self.dots, reader=self.reader)

    def _counts(self) -> dict[str, int | None]:
        """Returns the highest of the stored counts of each subject; None for one without."""
        counts: dict[str, int | None] = {}
        for entry in self._placeholders.values():
            if entry.kind not in OF_COUNTS:
                continue
            count = counts.get(entry.subject)
            counts[entry.subject] = entry.stored if count is None else max(count, entry.stored or 0)
        return counts

    def filled(
        self,
        *,
        is_json: bool = False,
        charset: str = "utf-8",
        tag: ScriptTag = NO_SCRIPT_TAG,
    ) -> bytes:
        """Returns the content with the answers to the question in place of all placeholders.

        What only looks like a placeholder is removed.
        """
        state = self.question.state()
        html = rendered(self._placeholders, state, tag=tag)
        paired = branches.paired(self._spots)
        parts: list[bytes] = []
        are_shown: list[bool] = []  # the parts of `if_unread` that are open, the innermost last
        end = 0  # of the last placeholder
        for place, spot in enumerate(self._spots):
            if all(are_shown):
                parts.append(without_strangers(self._content[end : spot.start]))
                shown = json.dumps(html[spot.text])[1:-1] if is_json else html[spot.text]
                parts.append(shown.encode(charset, "xmlcharrefreplace"))
            end = spot.end
            if place in paired:
                is_unread = state.unread.get(spot.placeholder.subject, 0) > 0
                _turn(are_shown, kind=spot.placeholder.kind, is_unread=is_unread)
        parts.append(without_strangers(self._content[end:]))
        return b"".join(parts)


def _turn(are_shown: list[bool], *, kind: str, is_unread: bool) -> None:
    """Goes into a part of `if_unread`, into the other one, or out of it."""
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
    tag: ScriptTag = NO_SCRIPT_TAG,
) -> bytes:
    """Returns the content with all placeholders replaced, in one round trip.

    The parameters are those of Filling.
    """
    filling = Filling(content, find_reader, salt=salt)
    filling.question.ask()
    return filling.filled(tag=tag)
