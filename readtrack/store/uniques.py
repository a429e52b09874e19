"""Unique visitors, each subject's by the strategy that its model names, or else the site's.

A strategy may be changed at any time: its keys are its own, so the new one begins at nothing and the old
key stays until it is forgotten.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from readtrack import buckets
from readtrack.conf import cached_setting, conf
from readtrack.hits import readers
from readtrack.hits.hit import Hit
from readtrack.store import keys, scripts
from readtrack.store.connection import connect
from readtrack.store.scripts import Call
from readtrack.subjects import model_with_label

DAY_LIFE = 172_800  # seconds that a day's set of visitors is kept
UNION_LIMIT = 200_000  # members of sets that are looked at together; more would hold up the server
PIECE = 1 << 20  # bytes of a bitmap that are read at once


class UniquesError(ValueError):
    """The strategy does not know what was asked."""


class Effect(NamedTuple):
    """What a counted view does besides counting: its name in record.lua, its keys, what it is told."""

    name: str
    keys: tuple[str, ...]
    argument: str | int = 0


class Strategy(ABC):
    """The contract. `command` is what gives the count of a subject's `key`."""

    name = ""
    command = ""
    adds = ""  # the command by which visitors of the past are added; most need to know more of a visit than a log does

    @abstractmethod
    def key(self, subject: str) -> str:
        """The key that holds a subject's count."""

    def effect(self, subject: str, hit: Hit) -> Effect | None:
        """What to do when the view counts; None for a visitor that the strategy cannot tell."""
        return Effect(self.name, (self.key(subject),))

    def together(self, subjects: Sequence[str]) -> int:
        """How many different visitors the subjects had in all. Raises UniquesError where that is not known."""
        raise UniquesError(f"The strategy {self.name!r} cannot tell how many visitors subjects have in common.")

    def has_seen(self, subject: str, *, visitor: str, reader: int | None) -> Call[bool]:
        """Whether that visitor viewed the subject. Raises UniquesError where that is not known."""
        raise UniquesError(f"The strategy {self.name!r} does not know who viewed what; 'set' and 'bitmap' do.")


class HyperLogLogs(Strategy):
    """Within 0.81 % (standard error), at most 12 kB a subject (Heule et al., 2013)."""

    name, command, adds = "hll", "PFCOUNT", "PFADD"

    def key(self, subject: str) -> str:
        return keys.hll(subject)

    def together(self, subjects: Sequence[str]) -> int:
        return scripts.run(Call("together", [keys.hll(subject) for subject in subjects], (), int))


class Sets(Strategy):
    """Exact, some 60 B a visitor and subject."""

    name, command, adds = "set", "SCARD", "SADD"

    def key(self, subject: str) -> str:
        return keys.unique(subject)

    def together(self, subjects: Sequence[str]) -> int:
        return union([self.key(subject) for subject in subjects])

    def has_seen(self, subject: str, *, visitor: str, reader: int | None) -> Call[bool]:
        return Call("has_member", [self.key(subject)], (visitor,), bool)


class DailySets(Strategy):
    """A set for each day and a running count: who comes on three days is three visitors of all time.

    That is exact for a day, and bounded by a day's visitors however old the subject is.
    """

    name, command = "daily", "GET"

    def key(self, subject: str) -> str:
        return keys.daily(subject)

    def effect(self, subject: str, hit: Hit) -> Effect:
        day = keys.unique_day(subject, day=buckets.day_bucket(hit.at))
        return Effect(self.name, (day, self.key(subject)), DAY_LIFE)


class Bitmaps(Strategy):
    """Exact, a bit for each reader number. Who is not signed in has none, and is not among the visitors."""

    name, command = "bitmap", "BITCOUNT"

    def key(self, subject: str) -> str:
        return keys.bitmap(subject)

    def effect(self, subject: str, hit: Hit) -> Effect | None:
        number = readers.number_of(hit.reader)
        return None if number is None else Effect(self.name, (self.key(subject),), number)

    def together(self, subjects: Sequence[str]) -> int:
        # BITOP would write the union to a key of its own; read in pieces, it takes neither memory nor a write.
        found = start = 0
        while True:
            pieces = _pieces([self.key(subject) for subject in subjects], start=start)
            bits = 0
            for piece in pieces:
                bits |= int.from_bytes(piece.ljust(PIECE, b"\0"), "big")
            found += bits.bit_count()
            if all(len(piece) < PIECE for piece in pieces):
                return found
            start += PIECE

    def has_seen(self, subject: str, *, visitor: str, reader: int | None) -> Call[bool]:
        bitmap = [] if reader is None else [self.key(subject)]
        return Call("has_read", bitmap, (reader or 0, len(bitmap)), lambda bits: bits == [1])


def union(names: Sequence[str]) -> int:
    """How many different members the sets have. Raises UniquesError for more than a script can look at."""
    found = scripts.run(Call("union", names, (UNION_LIMIT,), int))
    if found < 0:
        raise UniquesError(f"Sets of more than {UNION_LIMIT} members are not counted together; 'hll' does that.")
    return found


def _pieces(names: Sequence[str], *, start: int) -> list[bytes]:
    pipeline: Any = connect().pipeline(transaction=False)
    for name in names:
        pipeline.getrange(name, start, start + PIECE - 1)
    pieces: list[bytes] = pipeline.execute()
    return pieces


STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy for strategy in (HyperLogLogs(), Sets(), DailySets(), Bitmaps())
}


def strategy_of(subject: str) -> Strategy:
    """The strategy of the subject's model."""
    return _strategy(subject.partition(":")[0])


@cached_setting()
def _strategy(label: str) -> Strategy:
    name = getattr(model_with_label(label), "unique_strategy", "") or conf.UNIQUE
    return STRATEGIES.get(name, STRATEGIES["hll"])  # a system check names an unknown one


def need_reader(subjects: Iterable[str]) -> bool:
    """Whether a view of one of the subjects is counted by its reader's number."""
    return any(strategy_of(subject).name == "bitmap" for subject in subjects)


def visitors(subjects: Sequence[str]) -> Call[dict[str, int]]:
    """How many different visitors each subject had, whatever the strategies of their models."""

    def decode(counts: list[int]) -> dict[str, int]:
        return dict(zip(subjects, counts, strict=True))

    strategies = [strategy_of(subject) for subject in subjects]
    names = [strategy.key(subject) for strategy, subject in zip(strategies, subjects, strict=True)]
    commands = [strategy.command for strategy in strategies]
    return Call("visitors", names, commands if set(commands) - {"PFCOUNT"} else (), decode)


def visitors_together(subjects: Sequence[str]) -> int:
    """How many different visitors the subjects had in all. Raises UniquesError where that is not known."""
    if not subjects:
        return 0
    first, *others = {strategy_of(subject) for subject in subjects}
    if others:
        names = ", ".join(sorted(strategy.name for strategy in (first, *others)))
        raise UniquesError(f"Visitors counted in different ways ({names}) cannot be counted together.")
    return first.together(subjects)
