"""Unique visitors: five strategies with one contract and keys of their own.

A model names its strategy, or the site does.
"""

from collections import ChainMap
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from readtrack import buckets
from readtrack.conf import cached_setting, conf
from readtrack.hits import readers
from readtrack.hits.hit import Hit
from readtrack.store import keys, scripts
from readtrack.store.scripts import Call
from readtrack.subjects import counted_models, label_in, label_of, model_with_label

# Members of sets that are looked at together, because more would block the server.
UNION_LIMIT = 200_000
BITMAPS_AT_ONCE = 5  # bitmaps that are read at once, because each has up to MAX_READER bits


class Effect(NamedTuple):
    """What a counted view does to the keys of a strategy, by a function of record.lua."""

    name: str
    keys: tuple[str, ...]
    argument: str | int


class UniquesError(ValueError):
    """The strategy cannot answer the question."""


class Strategy:
    """The contract of all strategies."""

    name = ""  # in the settings
    key: keys.Key  # of a subject's visitors
    rows: tuple[keys.Key, ...] = ()  # all its keys; none where no visitors are counted
    command = ""  # counts the visitors at a key
    asks = ""  # tells whether the first row's key has a visitor; "" if that is not known
    # Adds visitors from a log; "" if the strategy needs to know more than a log does.
    adds = ""
    # SQL stores a sketch, to merge after a loss; without one, the number goes on from SQL's.
    has_sketch = False
    needs_reader = False  # counts signed-in readers by number, and nobody else
    # Who viewed a subject is known for good, in Redis only, so an idle subject stays there.
    is_exact = False
    covers_days = 0  # days, today included, whose visitors the first row's key has
    answers = ""  # what it can tell, for `manage.py readtrack budget`
    suits = ""  # the reason to choose it where it takes least; "" if it is never advised

    def effect(self, subject: str, hit: Hit) -> Effect | None:
        """Returns the effect of a counted view; None for a visitor that the strategy cannot count."""
        if not self.rows:
            return None
        argument: int | None = 0
        if self.needs_reader:
            argument = readers.number_of(hit.reader)
        if argument is None:
            return None
        return Effect(self.name, (self.key(subject),), argument)

    def together(self, subjects: Sequence[str]) -> int:
        """Returns how many different visitors the subjects had in all.

        Raises UniquesError if the strategy does not know that.
        """
        raise UniquesError(
            f"The strategy {self.name!r} cannot tell how many visitors subjects have in common."
        )

    def has_seen(self, subject: str, *, visitor: str, reader: int | None, day: str) -> bool:
        """Returns True if the visitor viewed the subject, ever or on that day.

        Raises UniquesError if the strategy does not know that.
        """
        if not self.asks:
            raise UniquesError(
                f"The strategy {self.name!r} does not know who viewed what; 'set' and 'bitmap' do."
            )
        member = reader if self.needs_reader else visitor
        if member is None:
            return False
        name = self.rows[0](day, subject) if self.covers_days else self.key(subject)
        return scripts.run(Call(self.asks, [name], (member,), bool))


class HyperLogLogs(Strategy):
    """Within 0.81 % (standard error), at most 12 kB a subject (Heule et al., 2013)."""

    name = "hll"
    key = keys.hll
    rows = (keys.hll,)
    command = "PFCOUNT"
    adds = "PFADD"
    has_sketch = True
    answers = "within 0.81 %, any posts together"
    suits = "its size stays the same however many visitors come"

    def together(self, subjects: Sequence[str]) -> int:
        if len(keys.by_tag(subjects)) == 1:
            return scripts.run(Call("PFCOUNT", [*map(self.key, subjects)], (), int))
        calls: list[Call[list[bytes | None]]] = [
            Call("MGET", [*map(self.key, portion)], (), list)
            for portion in scripts.parted(subjects)
        ]
        scripts.run_all(*calls)
        sketches = [sketch for call in calls for sketch in call.result if sketch]
        return scripts.run(count_together(self.key(subjects[0]), sketches))


class Sets(Strategy):
    """Exact, about 60 bytes a visitor and subject."""

    name = "set"
    key = keys.unique
    rows = (keys.unique,)
    command = "SCARD"
    asks = "SISMEMBER"
    adds = "SADD"
    is_exact = True
    answers = "exact, who has seen what"
    suits = "a post has few visitors: their sets take next to nothing, and are exact"

    def together(self, subjects: Sequence[str]) -> int:
        return _count_union(map(self.key, subjects))


class DailySets(Strategy):
    """A set for each day, and a running count.

    A visitor who comes on three days is three visitors of all time.
    """

    name = "daily"
    key = keys.daily
    rows = (keys.unique_day, keys.daily)
    command = "GET"
    asks = "SISMEMBER"
    covers_days = keys.unique_day.ttl // keys.DAY
    answers = "exact for a day, who has seen what on it; two days at most"

    def effect(self, subject: str, hit: Hit) -> Effect | None:
        members = keys.unique_day(buckets.day_bucket(hit.at), subject)
        return Effect(self.name, (members, self.key(subject)), keys.unique_day.ttl)


class Bitmaps(Strategy):
    """Exact, one bit for each reader number. Visitors who are not signed in are not counted."""

    name = "bitmap"
    key = keys.bitmap
    rows = (keys.bitmap,)
    command = "BITCOUNT"
    asks = "GETBIT"
    needs_reader = True
    is_exact = True
    answers = "exact, signed-in users only, who has seen what"
    suits = "most readers view a post, and a bit for each takes least"

    def together(self, subjects: Sequence[str]) -> int:
        bits = 0
        for portion in scripts.sliced(subjects, BITMAPS_AT_ONCE):
            calls: list[Call[bytes | None]] = [
                Call("GET", [self.key(subject)]) for subject in portion
            ]
            scripts.run_all(*calls)
            for call in calls:
                # Here, because BITOP would write the union to a key of its own.
                bits |= int.from_bytes(call.result or b"", "little")
        return bits.bit_count()


class NoVisitors(Strategy):
    """Counts no visitors. What "hll" counted before stays as it was."""

    name = "none"
    key = keys.hll
    command = "PFCOUNT"
    has_sketch = True
    answers = "nothing"


def count_together(name: str, sketches: Sequence[bytes]) -> Call[int]:
    """Counts the visitors of sketches out of several partitions.

    `name` is a key of the partition that does it.
    """
    return Call("count_sketches", [f"{name}:stored", f"{name}:union"], sketches, int)


def of_minutes(labels: Sequence[str], minutes: int, *, at: datetime) -> list[Call[Any]]:
    """Counts the different visitors of models in the last minutes.

    With several partitions the result of each call is a sketch.
    """
    if not labels:
        return []
    slots = buckets.minute_buckets(minutes, until=at)
    calls: list[Call[Any]] = []
    for tag in keys.tags():
        names = [keys.minute_visitors(tag, slot, label) for slot in slots for label in labels]
        wants_sketch = 1 if tag else 0
        names.insert(0, f"{names[0]}:union")
        calls.append(Call("visitors_now", names, (wants_sketch,), absent=None))
    return calls


def _count_union(names: Iterable[str]) -> int:
    """Returns the number of different members of the sets.

    Raises UniquesError if they have more than UNION_LIMIT.
    """
    groups = keys.by_tag(names, keys.tag_in).values()
    # The members themselves are needed only where no script can see all sets.
    wants_members = len(groups) > 1
    calls: list[Call[Any]] = [
        Call("union", group, (UNION_LIMIT, int(wants_members))) for group in groups
    ]
    answers = scripts.run_all(*calls)
    is_over = -1 in answers
    if wants_members and not is_over:
        is_over = sum(map(len, answers)) > UNION_LIMIT
    if is_over:
        raise UniquesError(
            f"Sets of more than {UNION_LIMIT} members are not counted together; 'hll' does that."
        )
    if not wants_members:
        return int(answers[0])
    return len(set(chain.from_iterable(answers)))


STRATEGIES: dict[str, Strategy] = {
    "hll": HyperLogLogs(),
    "set": Sets(),
    "daily": DailySets(),
    "bitmap": Bitmaps(),
    "none": NoVisitors(),
}


def strategy_of(subject: str) -> Strategy:
    """Returns the strategy of the subject's model, which may be given by its label alone."""
    model = model_with_label(label_in(subject))
    name = getattr(model, "unique_strategy", "") or conf.UNIQUE
    return STRATEGIES.get(name, STRATEGIES["hll"])  # a system check names an unknown one


@cached_setting()
def needs_readers() -> bool:
    """Returns True if some model's visitors are counted by the numbers of signed-in readers."""
    return any(strategy_of(label_of(model)).needs_reader for model in counted_models())


def visitors(subjects: Sequence[str]) -> Call[dict[str, int]]:
    """Reads how many different visitors each subject of a partition had.

    Their models may have different strategies.
    """
    labels = [label_in(subject) for subject in subjects]
    strategy_by_label = {label: strategy_of(label) for label in set(labels)}
    tag = keys.tag(subjects[0])
    # Not by the key itself, which takes a tenth of the time of a flush.
    start_by_label = {
        label: keys.prefix() + strategy.key.template % (tag, "")
        for label, strategy in strategy_by_label.items()
    }
    names = [
        start_by_label[label] + subject for label, subject in zip(labels, subjects, strict=True)
    ]
    commands: list[str] = []
    if not all(strategy.has_sketch for strategy in strategy_by_label.values()):
        names += map(keys.earlier, subjects)
        commands = [strategy_by_label[label].command for label in labels]
    return Call("visitors", names, commands, partial(scripts.by_subject, subjects), absent={})


def visitors_together(subjects: Sequence[str]) -> int:
    """Returns how many different visitors the subjects had in all.

    Raises UniquesError if the strategies do not know that.
    """
    if not subjects:
        return 0
    return _common_strategy(subjects).together(subjects)


def _common_strategy(subjects: Sequence[str]) -> Strategy:
    """Returns the one strategy of the subjects. Raises UniquesError if they have several."""
    strategies = {strategy_of(subject) for subject in subjects}
    if len(strategies) > 1:
        names = ", ".join(sorted(strategy.name for strategy in strategies))
        raise UniquesError(
            f"Visitors counted in different ways ({names}) cannot be counted together."
        )
    return strategies.pop()


def recent_visitors(subjects: Sequence[str], *, days: int, at: datetime) -> dict[str, int]:
    """Returns the visitors of each subject in the last days (UTC), up to an hour old.

    Raises UniquesError for days that are not kept.
    """
    if not subjects:
        return {}
    if days < 1:
        raise UniquesError("Visitors of the last days need one day at least.")
    dates = buckets.day_buckets(days, until=at)
    if days > conf.UNIQUE_DAYS:
        return _visitors_in_sets(subjects, dates)
    calls = []
    for portion in scripts.parted(subjects, max(1, scripts.SLICE // (days + 1))):
        names: list[str] = []
        for subject in portion:
            names.append(keys.last_days(days, dates[-1], subject))
            names += [keys.day_visitors(date, subject) for date in dates]
        arguments = (days, keys.last_days.ttl)
        decode = partial(scripts.by_subject, portion)
        calls.append(Call("visitors_since", names, arguments, decode))
    return dict(ChainMap(*scripts.run_all(*calls)))


def _visitors_in_sets(subjects: Sequence[str], dates: Sequence[str]) -> dict[str, int]:
    """Returns the visitors of each subject on those days, by the sets of a strategy that has them."""
    strategies = {strategy_of(subject) for subject in subjects}
    strategy = strategies.pop()
    if strategies or len(dates) > strategy.covers_days:
        raise UniquesError(
            f"Visitors of {len(dates)} days are not kept:"
            f" READTRACK['UNIQUE_DAYS'] is {conf.UNIQUE_DAYS}."
            f" Set it to {len(dates)} or more, and they are counted from then on."
        )
    members = strategy.rows[0]
    return {subject: _count_union(members(date, subject) for date in dates) for subject in subjects}
