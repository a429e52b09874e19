"""Unique visitors: five strategies with one contract and keys of their own. A model names its
strategy, or the site.
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
from readtrack.subjects import counted_models, label_of, model_with_label

UNION_LIMIT = (
    200_000  # members of sets that are looked at together, because more would block the server
)
AT_ONCE = 5  # bitmaps that are read at once, because each has up to MAX_READER bits


class Effect(NamedTuple):
    """What a counted view does to the keys of a strategy, by a function of record.lua."""

    name: str
    keys: tuple[str, ...]
    argument: str | int


class UniquesError(ValueError):
    """The strategy cannot answer the question."""


class Strategy:
    """The contract. `command` counts the visitors at a subject's `key`; `asks` tells if the first
    row's has one.
    """

    key: keys.Key
    name = command = asks = ""
    # command that adds visitors from a log; "" if the strategy needs to know more than a log does
    adds = ""
    # SQL stores a sketch, to merge after a loss; without one, the number goes on from SQL's
    has_sketch = False
    needs_reader = False  # counts signed-in readers by number, and nobody else
    rows: tuple[keys.Key, ...] = ()  # all its keys; none where no visitors are counted
    # who viewed a subject is known for good, in Redis only, so an idle subject stays there
    is_exact = False
    answers = ""  # what it can tell, for `manage.py readtrack budget`
    suits = ""  # the reason to choose it where it takes least; "" if it is never advised
    covers_days = 0  # days, today included, whose visitors the first of its keys tells

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
        """Returns how many different visitors the subjects had in all. Raises UniquesError if that
        is not known.
        """
        raise UniquesError(
            f"The strategy {self.name!r} cannot tell how many visitors subjects have in common."
        )

    def has_seen(self, subject: str, *, visitor: str, reader: int | None, day: str) -> bool:
        """Returns True if the visitor viewed the subject, ever or on that day. Raises UniquesError
        if not known.
        """
        if not self.asks:
            raise UniquesError(
                f"The strategy {self.name!r} does not know who viewed what; 'set' and 'bitmap' do."
            )
        who = reader if self.needs_reader else visitor
        name = self.rows[0](day, subject) if self.covers_days else self.key(subject)
        return who is not None and scripts.run(Call(self.asks, [name], (who,), bool))


class HyperLogLogs(Strategy):
    """Within 0.81 % (standard error), at most 12 kB a subject (Heule et al., 2013)."""

    key, name, command, adds, has_sketch = keys.hll, "hll", "PFCOUNT", "PFADD", True
    rows, answers = (keys.hll,), "within 0.81 %, any posts together"
    suits = "its size stays the same however many visitors come"

    def together(self, subjects: Sequence[str]) -> int:
        if len(keys.by_tag(subjects)) == 1:
            return scripts.run(Call("PFCOUNT", [*map(self.key, subjects)], (), int))
        calls = (
            Call("MGET", [*map(self.key, some)], (), list) for some in scripts.parted(subjects)
        )
        sketches = [*filter(None, chain.from_iterable(scripts.run_all(*calls)))]
        return scripts.run(count_together(self.key(subjects[0]), sketches))


class Sets(Strategy):
    """Exact, about 60 bytes a visitor and subject."""

    key, name, command, adds, asks = keys.unique, "set", "SCARD", "SADD", "SISMEMBER"
    rows, is_exact, answers = (keys.unique,), True, "exact, who has seen what"
    suits = "a post has few visitors: their sets take next to nothing, and are exact"

    def together(self, subjects: Sequence[str]) -> int:
        return _union(map(self.key, subjects))


class DailySets(Strategy):
    """A set for each day, and a running count: a visitor who comes on three days is three visitors
    of all time.
    """

    key, name, command, asks = keys.daily, "daily", "GET", "SISMEMBER"
    rows, answers = (
        (keys.unique_day, keys.daily),
        "exact for a day, who has seen what on it; two days at most",
    )
    covers_days = keys.unique_day.ttl // keys.DAY

    def effect(self, subject: str, hit: Hit) -> Effect | None:
        members = keys.unique_day(buckets.day_bucket(hit.at), subject)
        return Effect(self.name, (members, self.key(subject)), keys.unique_day.ttl)


class Bitmaps(Strategy):
    """Exact, one bit for each reader number. Visitors who are not signed in are not counted."""

    key, name, command, asks, needs_reader = keys.bitmap, "bitmap", "BITCOUNT", "GETBIT", True
    rows, is_exact, answers = (keys.bitmap,), True, "exact, signed-in users only, who has seen what"
    suits = "most readers view a post, and a bit for each takes least"

    def together(self, subjects: Sequence[str]) -> int:
        bits = 0
        for some in scripts.sliced(subjects, AT_ONCE):
            # Here, because BITOP would write the union to a key of its own.
            for found in scripts.run_all(*(Call("GET", [self.key(subject)]) for subject in some)):
                bits |= int.from_bytes(found or b"", "little")
        return bits.bit_count()


class NoVisitors(Strategy):
    """Counts no visitors. What "hll" counted before stays as it was."""

    key, name, command, has_sketch, answers = keys.hll, "none", "PFCOUNT", True, "nothing"


def count_together(name: str, sketches: Sequence[bytes]) -> Call[int]:
    """Counts the visitors of sketches out of several partitions; `name` is a key of the partition
    that does it.
    """
    return Call("count_sketches", [f"{name}:stored", f"{name}:union"], sketches, int)


def of_minutes(labels: Sequence[str], minutes: int, *, at: datetime) -> list[Call[Any]]:
    """Counts the different visitors of models in the last minutes. Several partitions have a sketch
    as their result.
    """
    slots = buckets.minute_buckets(minutes, until=at)
    calls = []
    for tag in keys.tags() if labels else ():
        names = [keys.minute_visitors(tag, slot, label) for slot in slots for label in labels]
        calls.append(
            Call(
                "visitors_now",
                [f"{names[0]}:union", *names],
                (int(bool(tag)),),
                lambda found: found,
                None,
            )
        )
    return calls


def _union(names: Iterable[str]) -> int:
    """Returns the number of different members of the sets. Raises UniquesError if they have more
    than UNION_LIMIT.
    """
    groups = keys.by_tag(names, keys.tag_in).values()
    # The members themselves are needed only where no script can see all sets.
    calls = [
        Call("union", some, (UNION_LIMIT, int(len(groups) > 1)), lambda found: found)
        for some in groups
    ]
    found = scripts.run_all(*calls)
    if -1 in found or (len(groups) > 1 and sum(map(len, found)) > UNION_LIMIT):
        raise UniquesError(
            f"Sets of more than {UNION_LIMIT} members are not counted together; 'hll' does that."
        )
    return len(set(chain.from_iterable(found))) if len(groups) > 1 else int(found[0])


STRATEGIES = {
    one.name: one for one in (HyperLogLogs(), Sets(), DailySets(), Bitmaps(), NoVisitors())
}


def strategy_of(subject: str) -> Strategy:
    """Returns the strategy of the subject's model, which may be given by its label alone."""
    model = model_with_label(subject.partition(":")[0])
    name = getattr(model, "unique_strategy", "") or conf.UNIQUE
    return STRATEGIES.get(name, STRATEGIES["hll"])  # a system check names an unknown one


@cached_setting()
def needs_readers() -> bool:
    """Returns True if some model's visitors are counted by the numbers of signed-in readers."""
    return any(strategy_of(label_of(model)).needs_reader for model in counted_models())


def visitors(subjects: Sequence[str]) -> Call[dict[str, int]]:
    """Reads how many different visitors each subject of a partition had, whatever the strategies of
    their models.
    """
    labels, commands = [subject.partition(":")[0] for subject in subjects], list[str]()
    of_label = {label: strategy_of(label) for label in {*labels}}
    strategies = [of_label[label] for label in labels]
    # Not by the key itself, which takes a tenth of the time of a flush.
    starts = {
        one: keys.prefix() + one.key.template % (keys.tag(subjects[0]), "") for one in {*strategies}
    }
    names = [
        starts[strategy] + subject for strategy, subject in zip(strategies, subjects, strict=True)
    ]
    if not all(strategy.has_sketch for strategy in strategies):
        names += map(keys.earlier, subjects)
        commands = [strategy.command for strategy in strategies]
    return Call("visitors", names, commands, partial(scripts.by_subject, subjects), {})


def visitors_together(subjects: Sequence[str]) -> int:
    """Returns how many different visitors the subjects had in all. Raises UniquesError if that is
    not known.
    """
    strategies = {*map(strategy_of, subjects)}
    if len(strategies) > 1:
        names = ", ".join(sorted(strategy.name for strategy in strategies))
        raise UniquesError(
            f"Visitors counted in different ways ({names}) cannot be counted together."
        )
    return sum(
        strategy.together(subjects) for strategy in strategies
    )  # of the one that there is, or of none


def recent_visitors(subjects: Sequence[str], *, days: int, at: datetime) -> dict[str, int]:
    """Returns the visitors of each subject in the last days (UTC), up to an hour old. Raises
    UniquesError.
    """
    if not subjects:
        return {}
    if days < 1:
        raise UniquesError("Visitors of the last days need one day at least.")
    dates, strategies = buckets.day_buckets(days, until=at), {*map(strategy_of, subjects)}
    if days > conf.UNIQUE_DAYS:
        if len(strategies) > 1 or days > (strategy := strategies.pop()).covers_days:
            raise UniquesError(
                f"Visitors of {days} days are not kept: READTRACK['UNIQUE_DAYS'] is {conf.UNIQUE_DAYS}."
                f" Set it to {days} or more, and they are counted from then on."
            )
        return {
            subject: _union(strategy.rows[0](date, subject) for date in dates)
            for subject in subjects
        }
    calls = []
    for some in scripts.parted(subjects, max(1, scripts.SLICE // (days + 1))):
        names: list[str] = []
        for subject in some:
            names += (
                keys.last_days(days, dates[-1], subject),
                *(keys.day_visitors(date, subject) for date in dates),
            )
        calls.append(
            Call(
                "visitors_since",
                names,
                (days, keys.last_days.ttl),
                partial(scripts.by_subject, some),
            )
        )
    return dict(ChainMap(*scripts.run_all(*calls)))
