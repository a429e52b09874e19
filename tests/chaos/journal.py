"""Journals of the recorders: a line for each hit sent and each answer. They survive a kill."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    """A hit that is about to be sent (`is_sent`), or one that Redis said it has counted."""

    is_answer: bool
    at: float  # seconds since 1970
    pk: int
    visitor: str


class Journal:
    """The file of one recorder. Each line is one write, so a kill leaves whole lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, entry: Entry) -> None:
        os.write(
            self._file,
            f"{int(entry.is_answer)} {entry.at:.6f} {entry.pk} {entry.visitor}\n".encode(),
        )

    def unanswered(self) -> Entry | None:
        """Returns the last hit, if its sender was killed before the answer came."""
        entries = list(read(self.path))
        return entries[-1] if entries and not entries[-1].is_answer else None


def read(path: Path) -> Iterator[Entry]:
    for line in path.read_text().splitlines():
        answer, at, pk, visitor = line.split()
        yield Entry(answer == "1", float(at), int(pk), visitor)


class Sums(NamedTuple):
    """Numbers of hits sent and of hits that counted, by post."""

    attempted: Counter[int]
    acknowledged: Counter[int]
    answers: list[Entry]


def imported_views(folder: Path) -> Counter[int]:
    """By post: lines of the logs that are taken over. Each has a visitor of its own, so each
    counts.
    """
    texts = (path.read_text() for path in folder.glob("*.access"))
    return Counter(int(pk) for text in texts for pk in re.findall(r"GET /posts/(\d+)/ .*\n", text))


def sums(folder: Path) -> Sums:
    """Returns the sums of all journals in the folder."""
    entries = [entry for path in folder.glob("*.journal") for entry in read(path)]
    answers = [entry for entry in entries if entry.is_answer]
    return Sums(
        Counter(entry.pk for entry in entries if not entry.is_answer),
        Counter(entry.pk for entry in answers),
        answers,
    )
