"""Filling in: counts and dots take the place of the placeholders in a finished content.

There are two phases, so that the question of a page can go to Redis with other calls, in one round
trip: first the content is searched for placeholders, then the answers are filled in.
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
    """A content with placeholders. Its `question` has to be asked before it can be `filled`."""

    def __init__(
        self,
        content: bytes,
        find_reader: FindReader,
        *,
        branches: list[bool] | None = None,
        salt: str = "",
    ) -> None:
        """Looks for the placeholders.

        `find_reader` is called only if there are dots. `branches` has an entry for each tag
        `if_unread` that earlier parts of a stream have begun: True if its present branch is shown.
        The list is kept up to date. `salt` is as in `placeholders_in`.
        """
        self._content = content
        self._find_reader = find_reader
        self._branches: list[bool] = []
        if branches is not None:
            self._branches = branches
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
        """The question to Redis, and to SQL for counts that no placeholder carries.

        Raises django.db.Error.
        """
        return PageQuestion(counts=self._counts(), dots=self.dots, reader=self.reader)

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

    def filled(self, *, is_json: bool = False, charset: str = "utf-8") -> bytes:
        """Returns the content with counts and dots in the place of all placeholders."""
        if not (self._placeholders or self._branches):
            return self._content
        state = self.question.state()
        html = rendered(self._placeholders, state)
        pieces: list[bytes] = []
        end = 0  # of the last placeholder
        for match in PATTERN.finditer(self._content):
            text = match[0] + match[1]  # "!rt", and what the lookahead has found behind it
            placeholder = self._placeholders.get(text)
            if placeholder is None or match.start() < end:
                continue
            if self._is_shown:
                pieces.append(self._content[end : match.start()])
                replacement = html[text]
                if is_json:
                    replacement = json.dumps(replacement)[1:-1]  # without the quotes
                pieces.append(replacement.encode(charset, "xmlcharrefreplace"))
            end = match.start() + len(text)
            is_unread = state.unread.get(placeholder.subject, 0) > 0
            self._change_branch(placeholder, is_unread=is_unread)
        if self._is_shown:
            pieces.append(self._content[end:])
        return b"".join(pieces)

    @property
    def _is_shown(self) -> bool:
        """Returns False within a hidden branch of `if_unread`; tags may be within one another."""
        return all(self._branches)

    def _change_branch(self, placeholder: Placeholder, *, is_unread: bool) -> None:
        """Begins the first branch of an `if_unread`, changes to the second, or ends the tag.

        Other placeholders change nothing.
        """
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
    """Returns the content with all placeholders filled in, in one round trip to Redis.

    The parameters are those of Filling.
    """
    filling = Filling(content, find_reader, branches=branches, salt=salt)
    filling.question.ask()
    return filling.filled()
