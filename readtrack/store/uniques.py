"""Unique visitors: five strategies with one contract, each with its own keys.

A model may name its strategy in `unique_strategy`. All other models have that of the setting
UNIQUE.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from readtrack import buckets
from readtrack.conf import cached_setting, conf
from readtrack.hits import readers
from readtrack.hits.hit import Hit
from readtrack.parts import Effect
from readtrack.store import keys, scripts
from readtrack.store.scripts import Call
from readtrack.subjects import counted_models, label_in, label_of, model_with_label

# Members of sets that are counted together. More would block the server for too long.
UNION_LIMIT = 200_000
BITMAPS_AT_ONCE = 5  # bitmaps read in one round trip, because each has up to 100,000,000 bits


class UniquesError(ValueError):
    """The strategy cannot answer the question."""


class Strategy:
    """The contract of all strategies."""

    name = ""  # in the settings
    key: keys.Key  # the row of the key that has a subject's visitors, or their number
    rows: tuple[
        keys.Key, ...
    ] = ()  # all rows that it writes; none for a strategy that counts nobody
    command = ""  # the command that returns the number of visitors at `key`
    asks = ""  # the command that says if a visitor is at a key of `rows[0]`; "" if none can
    # SQL stores a sketch, and Redis merges it after a loss. Without a sketch, SQL stores the
    # number, and Redis adds later visitors to it.
    has_sketch = False
    needs_reader = False  # counts only signed-in readers, by their numbers
    # Redis knows for ever who viewed a subject, and SQL does not. So no idle subject leaves Redis.
    is_exact = False
    covers_days = (
        0  # days, today included, for which there are keys of `rows[0]`; 0 if they have none
    )

    def effects(self, hit: Hit, subject: str) -> tuple[Effect, ...]:
        """Returns what a counted view does to the keys; nothing for a visitor who is not
        counted.
        """
        number: int | None = 0
        if self.needs_reader:
            number = readers.number_of(hit.reader)
        if number is None:
            return ()
        return (Effect(self.name, (self.key.start(keys.tag(subject)),), number),)

    def known_days(self) -> list[date]:
        """Returns the days (in TIME_ZONE) whose visitors it knows, the oldest first, up to today.

        They are none for a strategy without daily sets.
        """
        if not self.covers_days:
            return []
        now = buckets.now()
        return buckets.local_days(now - (self.covers_days - 1) * buckets.DAY, now)

    def together(self, subjects: Sequence[str]) -> int:
        """Returns how many different visitors the subjects had in all.

        Raises UniquesError if the strategy does not know that, and redis.RedisError.
        """
        raise UniquesError(
            f"The strategy {self.name!r} cannot tell how many visitors subjects have in common."
        )

    def has_seen(self, subject: str, *, visitor: str, reader: int | None, day: str) -> bool:
        """Returns True if the visitor viewed the subject; by the strategy `daily` only on that day.

        `reader` is the number of a signed-in reader, `day` a day such as "20260131". Raises
        UniquesError if the strategy does not know that, and redis.RedisError.
        """
        if not self.asks:
            raise UniquesError(
                f"The strategy {self.name!r} does not know who viewed what; 'set' and 'bitmap' do."
            )
        member = reader if self.needs_reader else visitor
        if member is None:
            return False
        key_name = self.rows[0](day, subject) if self.covers_days else self.key(subject)
        return scripts.run(Call(self.asks, [key_name], (member,), bool))


class HyperLogLogs(Strategy):
    """A HyperLogLog for each subject: 0.81 % standard error, 12 kB at most (Heule et al., 2013)."""

    name = "hll"
    key = keys.hll
    rows = (keys.hll,)
    command = "PFCOUNT"
    has_sketch = True

    def together(self, subjects: Sequence[str]) -> int:
        if len(keys.by_tag(subjects)) == 1:
            return scripts.run(Call("PFCOUNT", [*map(self.key, subjects)], (), int))
        # No command sees the keys of several partitions, so one of them counts all sketches.
        calls: list[Call[list[bytes | None]]] = [
            Call("MGET", [*map(self.key, portion)], (), list)
            for portion in scripts.parted(subjects)
        ]
        scripts.run_all(*calls)
        sketches = [sketch for call in calls for sketch in call.result if sketch]
        return scripts.run(union(sketches, tag=keys.tag(subjects[0]))).visitors


class Sets(Strategy):
    """A set for each subject: exact, and about 60 bytes for each visitor."""

    name = "set"
    key = keys.unique
    rows = (keys.unique,)
    command = "SCARD"
    asks = "SISMEMBER"
    is_exact = True

    def together(self, subjects: Sequence[str]) -> int:
        return count_union(map(self.key, subjects))


class DailySets(Strategy):
    """A set for each subject and day, and the sum of the daily numbers.

    A visitor who comes on three days counts three times in the sum.
    """

    name = "daily"
    key = keys.daily
    rows = (keys.unique_day, keys.daily)
    command = "GET"
    asks = "SISMEMBER"
    covers_days = keys.unique_day.ttl // keys.DAY

    def effects(self, hit: Hit, subject: str) -> tuple[Effect, ...]:
        """Returns the effect that adds the visitor to the set of the day, and a new one to the
        sum.
        """
        tag = keys.tag(subject)
        set_of_day = keys.unique_day.start(tag, buckets.local_day_bucket(hit.at))
        sum_of_days = self.key.start(tag)
        return (Effect(self.name, (set_of_day, sum_of_days), keys.unique_day.ttl),)


class Bitmaps(Strategy):
    """A bitmap for each subject: exact, and one bit for each signed-in reader, by number.

    Visitors who are not signed in are not counted.
    """

    name = "bitmap"
    key = keys.bitmap
    rows = (keys.bitmap,)
    command = "BITCOUNT"
    asks = "GETBIT"
    needs_reader = True
    is_exact = True

    def together(self, subjects: Sequence[str]) -> int:
        bits = 0
        for portion in scripts.sliced(subjects, BITMAPS_AT_ONCE):
            calls: list[Call[bytes | None]] = [
                Call("GET", [self.key(subject)]) for subject in portion
            ]
            scripts.run_all(*calls)
            for call in calls:
                # Not by BITOP, which would write the union to another key.
                bits |= int.from_bytes(call.result or b"", "little")
        return bits.bit_count()


class NoVisitors(Strategy):
    """Counts no visitors. What "hll" counted before stays as it was."""

    name = "none"
    key = keys.hll
    command = "PFCOUNT"
    has_sketch = True


class Union(NamedTuple):
    """The different visitors of some sketches together."""

    visitors: int
    sketch: bytes  # b"" if it was not asked for


def union(
    sketches: Sequence[bytes],
    *,
    tag: str,
    live: Sequence[str] = (),
    wants_sketch: bool = False,
) -> Call[Union]:
    """Unites sketches of visitors, in the tag's partition.

    `live` are keys of that partition with further sketches; they may be missing.
    """
    start = keys.united(tag, "")  # once, because a flush unites the sketches of many objects
    scratch_keys = [f"{start}{number}" for number in range(len(sketches) + 1)]
    arguments: list[int | bytes] = [int(wants_sketch), *sketches]

    def decode(answer: Sequence[Any]) -> Union:
        visitors, sketch = answer
        return Union(visitors, sketch)

    return Call("unite_sketches", [*scratch_keys, *live], arguments, decode)


def count_union(key_names: Iterable[str]) -> int:
    """Returns the number of different members of the sets at these keys.

    Raises UniquesError if the sets have more than UNION_LIMIT members, and redis.RedisError.
    """
    groups = keys.by_tag(key_names, keys.tag_in).values()
    # The members themselves are fetched only if no single script can see all sets.
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
    """Returns the strategy of the model of a subject, or of the model with that label."""
    model = model_with_label(label_in(subject))
    name = getattr(model, "unique_strategy", "") or conf.UNIQUE
    return STRATEGIES.get(name, STRATEGIES["hll"])  # a system check names an unknown one


def counts_by_hll(label: str) -> bool:
    """Returns True if visitors of the model's objects are counted by sketches, the plain way."""
    return keys.hll in strategy_of(label).rows


@cached_setting()
def needs_readers() -> bool:
    """Returns True if the visitors of any model are counted by the numbers of signed-in readers."""
    return any(strategy_of(label_of(model)).needs_reader for model in counted_models())


def visitors(subjects: Sequence[str]) -> Call[dict[str, int]]:
    """Reads how many different visitors each subject had, by subject.

    The subjects have to be of one partition. Their models may have different strategies.
    """
    labels = [label_in(subject) for subject in subjects]
    strategy_by_label = {label: strategy_of(label) for label in set(labels)}
    tag = keys.tag(subjects[0])
    # The name of each key begins with the start for its model. To call `strategy.key` for each
    # subject would take a tenth of the time of a flush.
    start_by_label = {
        label: strategy.key.start(tag) for label, strategy in strategy_by_label.items()
    }
    key_names = [
        start_by_label[label] + subject for label, subject in zip(labels, subjects, strict=True)
    ]
    commands: list[str] = []  # none if PFCOUNT counts all
    if not all(strategy.has_sketch for strategy in strategy_by_label.values()):
        key_names += map(keys.earlier, subjects)
        commands = [strategy_by_label[label].command for label in labels]
    decode = partial(scripts.by_subject, subjects)
    return Call("visitors", key_names, commands, decode, absent={})


def visitors_together(subjects: Sequence[str]) -> int:
    """Returns how many different visitors the subjects had in all.

    Raises UniquesError if their strategy does not know that, or if they have different strategies,
    and redis.RedisError.
    """
    if not subjects:
        return 0
    return _common_strategy(subjects).together(subjects)


def _common_strategy(subjects: Sequence[str]) -> Strategy:
    """Returns the strategy of all the subjects. Raises UniquesError if they have different ones."""
    strategies = {strategy_of(subject) for subject in subjects}
    if len(strategies) > 1:
        strategy_names = ", ".join(sorted(strategy.name for strategy in strategies))
        raise UniquesError(
            f"Visitors counted in different ways ({strategy_names}) cannot be counted together."
        )
    return strategies.pop()
