"""Filling in: the placeholders of a finished content give way to counts and dots.

In two phases, so that the questions of a page can go to Redis with other calls, in one round trip.
"""

import json
from collections.abc import Callable
from functools import cached_property

from readtrack.hits import readers
from readtrack.page.placeholders import (
    ELSE,
    END,
    IF,
    OF_COUNTS,
    OF_DOTS,
    PATTERN,
    Placeholder,
    placeholders_in,
)
from readtrack.page.rendering import rendered
from readtrack.reports.page_state import PageQuestion

FindReader = Callable[[], readers.Reader | None]


class Filling:
    """A content with its placeholders: first its `question` is asked, then it is `filled`."""

    def __init__(
        self,
        content: bytes,
        find_reader: FindReader,
        *,
        branches: list[bool] | None = None,
        salt: str = "",
    ) -> None:
        """Looks for the placeholders.

        `branches` are those of `if_unread` open since earlier parts of a stream, and are kept up to
        date. `salt` is as in `placeholders_in`.
        """
        self._content = content
        self._find_reader = find_reader
        self._branches = [] if branches is None else branches  # for each, whether it is shown
        self._placeholders = placeholders_in(content, salt)

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

    def filled(self, *, is_json: bool = False, charset: str = "utf-8") -> bytes:
        """Returns the content with the answers to the question in place of all placeholders."""
        if not (self._placeholders or self._branches):
            return self._content
        state = self.question.state()
        html = rendered(self._placeholders, state)
        parts: list[bytes] = []
        end = 0  # of the last placeholder
        for match in PATTERN.finditer(self._content):
            text = match[0] + match[1]
            placeholder = self._placeholders.get(text)
            if placeholder is None or match.start() < end:
                continue
            if self._is_shown:
                parts.append(self._content[end : match.start()])
                shown = json.dumps(html[text])[1:-1] if is_json else html[text]
                parts.append(shown.encode(charset, "xmlcharrefreplace"))
            end = match.start() + len(text)
            self._turn(placeholder, is_unread=state.unread.get(placeholder.subject, 0) > 0)
        if self._is_shown:
            parts.append(self._content[end:])
        return b"".join(parts)

    @property
    def _is_shown(self) -> bool:
        """False within a hidden branch of `if_unread`."""
        return all(self._branches)

    def _turn(self, placeholder: Placeholder, *, is_unread: bool) -> None:
        """Goes into a branch of `if_unread`, into the other one, or out of it."""
        if placeholder.kind == IF:
            self._branches.append(is_unread)
        elif placeholder.kind == ELSE and self._branches:
            self._branches[-1] = not self._branches[-1]
        elif placeholder.kind == END and self._branches:
            self._branches.pop()


def filled(
    content: bytes,
    find_reader: FindReader,
    *,
    branches: list[bool] | None = None,
    salt: str = "",
) -> bytes:
    """Returns the content with all placeholders replaced, in one round trip.

    The parameters are those of Filling.
    """
    filling = Filling(content, find_reader, branches=branches, salt=salt)
    filling.question.ask()
    return filling.filled()
