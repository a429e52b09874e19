"""The memory of Redis that readtrack takes now, and would take for a site of another size."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, exp, prod
from operator import attrgetter
from typing import Any, NamedTuple

from django.db.models import Avg, Count

from readtrack import buckets, parts
from readtrack.conf import conf
from readtrack.hits import readers
from readtrack.metrics import memory
from readtrack.metrics.memory import KeyKind
from readtrack.numbers import hours_of_models
from readtrack.numbers.counted import counts_days
from readtrack.numbers.options import enters_funnel, numbers_options
from readtrack.numbers.sql import day_breakdowns
from readtrack.sql import row_counts
from readtrack.store import counters, keys, read_state, scripts
from readtrack.store.limits import rate_limit
from readtrack.store.uniques import STRATEGIES, Strategy, strategy_of
from readtrack.subjects import (
    counted_models,
    is_derived,
    label_of,
    read_state_models,
)
from readtrack.unread.starting import highest_number

# The seconds whose views share a key, by the piece of the pattern that names the time.
HOURS_OF_DAY = keys.DAY // keys.HOUR
SLOTS = {"minute": keys.MINUTE, "hour": keys.HOUR, "date": keys.DAY}
# Why to choose the strategy that takes least memory, by its name. It has to be one of these.
WHY_TO_CHOOSE = {
    "hll": "its size stays the same however many visitors come",
    "set": "a post has few visitors: their sets take next to nothing, and are exact",
    "bitmap": "most readers view a post, and a bit for each takes least",
}
SMALL = 1_000  # bytes of a post's visitors below which a smaller strategy is not worth choosing
FEW_BITS = 0.1  # share of set bits below which a bitmap is mostly empty
MONTH = 30  # days within which the visitors of a new site are assumed to come

# A row of an object by day and value, in PostgreSQL: 110 bytes with the room that its table leaves,
# and as much in its indexes.
BYTES_OF_DAY_ROW = 220
# Values of a dimension that an object has on a day, on a site that has none stored.
VALUES_OF_A_DAY = 3.0

# Examples of the pieces of patterns, as long as they are on a site.
EXAMPLES = {"visitor": "v" * 16, "hour": "h" * 10, "minute": "m" * 12}


@dataclass(frozen=True, slots=True)
class SiteSize:
    """The numbers of a site that its keys depend on."""

    posts: int
    active: float  # share of the posts that have views, 0 to 1
    visitors: int  # different visitors of a post with views
    readers: int  # the highest number of a reader
    views: int  # a day
    categories: int  # objects with read state by category
    threads: int = 0  # objects with read state by reader

    @property
    def viewed(self) -> int:
        """Returns the number of posts with views, which have keys."""
        return round(self.posts * self.active)


@dataclass(frozen=True, slots=True)
class DayRows:
    """The rows in SQL that objects get on a day, by the values of dimensions and stages of
    funnels.
    """

    rows: int
    each: int  # bytes, with the indexes
    total: int  # bytes a day


@dataclass(frozen=True, slots=True)
class Budget:
    """The result of the command. With --json it is printed with these names."""

    kinds: Mapping[str, KeyKind]  # in Redis now, by pattern
    day_rows: DayRows  # in SQL, of the site that memory is estimated for
    numbers: SiteSize  # of the site that memory is estimated for
    projected: Mapping[str, KeyKind]  # its keys by pattern, largest first, without unused ones
    strategies: Mapping[str, KeyKind]  # keys of each way to count unique visitors, by its name
    advised: str  # name of a strategy; "" while there is nothing to choose by
    reason: str


class Advice(NamedTuple):
    """The strategy to choose, and why."""

    strategy: str  # its name, "" for none
    reason: str


class Amount(NamedTuple):
    """The number of keys that a row of the key table has at once, and the members of each key."""

    keys: float
    members: float


def site_size() -> SiteSize:
    """Returns the size of this site, from SQL; its views of the last 24 hours are from Redis."""
    posts = 0
    viewed = 0
    visitors = 0.0
    for model in counted_models():
        viewed_rows = row_counts.rows_with_counts(model).filter(view_count__gt=0)
        sums = viewed_rows.aggregate(viewed=Count("pk"), visitors=Avg("visitor_count"))
        posts += model._default_manager.count()
        viewed += sums["viewed"]
        visitors += (sums["visitors"] or 0) * sums["viewed"]
    return SiteSize(
        posts=posts,
        active=viewed / posts if posts else 0.0,
        visitors=round(visitors / viewed) if viewed else 0,
        readers=highest_number(),
        views=_views_of_a_day(),
        categories=_objects_with_dots(by_reader=False),
        threads=_objects_with_dots(by_reader=True),
    )


def _objects_with_dots(*, by_reader: bool) -> int:
    """Returns the number of objects whose read state is kept by reader, or by object."""
    count = 0
    for model in read_state_models():
        is_by_reader = read_state.form_of(label_of(model)).is_by_reader
        if is_by_reader == by_reader and not is_derived(model):
            count += model._default_manager.count()
    return count


def _views_of_a_day() -> int:
    """Returns the site's views of the last 24 hours."""
    this_hour = buckets.hour_index(buckets.now())
    labels = [label_of(model) for model in counted_models()]
    calls = hours_of_models.calls(labels, range(this_hour - 23, this_hour + 1))
    views = 0
    for totals in scripts.run_all(*calls, patient=True):
        views += sum(total.views for total in totals.values())
    return views


def budget(**given: Any) -> Budget:
    """Returns the memory that Redis takes now, and would take for a site with the given numbers.

    `given` are fields of SiteSize. Fields that are not given are those of this site. Raises
    redis.RedisError.
    """
    size = _size(given)
    estimates = {row: _estimate(row, size) for row in keys.every()}
    unused_rows = _unused_rows()
    used_rows = [row for row in keys.every() if row not in unused_rows]
    used_rows.sort(key=lambda row: estimates[row].total, reverse=True)
    strategies = {}
    for name, strategy in STRATEGIES.items():
        total = sum(estimates[row].total for row in strategy.rows)
        strategies[name] = KeyKind(size.viewed, round(total / max(1, size.viewed)), total)
    advice = _advice(size, strategies)
    return Budget(
        kinds=memory.key_kinds(),
        day_rows=_day_rows(size),
        numbers=size,
        projected={row.pattern: estimates[row] for row in used_rows},
        strategies=strategies,
        advised=advice.strategy,
        reason=advice.reason,
    )


def _size(given: Mapping[str, Any]) -> SiteSize:
    """Returns the size of this site, with the given numbers in place of its own."""
    present = site_size()
    if not present.active and given.get("visitors"):
        present = replace(present, active=1.0)  # because the posts of a new site have no views yet
    size = replace(present, **given)
    if not present.views and "views" not in given:
        size = replace(size, views=size.viewed * size.visitors // MONTH)
    return size


def _day_rows(size: SiteSize) -> DayRows:
    """Returns the rows by day and value that the objects of a site of that size get on a day.

    The number of values that an object has on a day is that of this site.
    """
    if not numbers_options().history:
        return DayRows(0, BYTES_OF_DAY_ROW, 0)
    viewed_subjects = _viewed_subjects(size.viewed, size.views)
    values = day_breakdowns.values_of_a_day() or VALUES_OF_A_DAY
    fields = len(numbers_options().dimensions) * values
    if any(map(enters_funnel, counted_models())):
        fields += 1  # the first stage; few views reach a later one
    rows = round(viewed_subjects * fields)
    return DayRows(rows, BYTES_OF_DAY_ROW, rows * BYTES_OF_DAY_ROW)


def _unused_rows() -> set[keys.Key]:
    """Returns the rows of the key table that are left out of the estimate.

    These are keys that the settings do without, and keys that no setting tells anything about.
    """
    unused = {row for row in keys.every() if not row.is_used()}
    for strategy in STRATEGIES.values():
        if strategy != strategy_of(""):
            unused.update(strategy.rows)
    unused |= {*read_state.ROWS} - {read_state.form_of("").key()}
    if not counts_days(""):
        unused.add(keys.day_visitors)
    if not any(map(enters_funnel, counted_models())):
        unused |= {keys.funnel, keys.funnel_pass}
    if not readers.has_ordinals():
        unused |= {keys.readers, keys.readers_next}
    if not conf.DOTS.anonymous:
        unused.add(keys.anonymous_readers)
    return unused


def _advice(size: SiteSize, strategies: Mapping[str, KeyKind]) -> Advice:
    """Returns the strategy that takes the least memory for a site of that size.

    `strategies` has the keys of each strategy by its name.
    """
    if not size.visitors:
        return Advice(
            "", "no post has visitors that were flushed, so there is nothing to measure yet"
        )
    # A strategy that counts signed-in readers suffices if nobody else is counted, unless its bitmap
    # would be mostly empty.
    readers_suffice = conf.ANONYMOUS == "none" and size.visitors >= FEW_BITS * size.readers
    suitable = [
        strategy
        for strategy in STRATEGIES.values()
        if strategy.name in WHY_TO_CHOOSE and (readers_suffice or not strategy.needs_reader)
    ]

    def cost(strategy: Strategy) -> tuple[float, bool, float]:
        """Returns the memory; of strategies that take next to nothing, exact ones come first."""
        each = strategies[strategy.name].each
        return max(each, SMALL), not strategy.is_exact, each

    cheapest = min(suitable, key=cost)
    return Advice(cheapest.name, WHY_TO_CHOOSE[cheapest.name])


def _estimate(row: keys.Key, size: SiteSize) -> KeyKind:
    """Returns the keys of a row on a site of that size.

    Their size is that of one key, which is written for a moment.
    """
    models = counted_models()
    label = label_of(models[0]) if models else "app.model"
    examples = {**EXAMPLES, "subject": f"{label}:{size.posts}"}

    def example(piece: re.Match[str]) -> str:
        """Returns an example of a piece such as `{visitor}`, or its name if there is none."""
        return examples.get(piece[1], piece[1])

    name = f"{keys.prefix()}{keys.tags()[0]}{keys.PIECE.sub(example, row.pattern)}"
    amount = _amount(row, size)
    each = memory.weigh(row, length=len(name), members=amount.members)
    return KeyKind(round(amount.keys), round(each, 1), round(each * amount.keys))


def _amount(row: keys.Key, size: SiteSize) -> Amount:
    """Returns the number of a row's keys and of their members, by lifetime, type and pattern.

    A key gets the views of a slot of time, such as an hour. As many slots as fit into the lifetime
    have keys at once. A key that stays gets all views, which are of different visitors.
    """
    if row.amount is not None:
        return Amount(*row.amount(size))
    piece_names = frozenset(row.piece_names)
    lifetime = _lifetime(row)
    slot = _slot(piece_names, lifetime)
    subjects = size.categories if row.kept_with == "read state" else size.viewed
    if slot:
        views = size.views * slot / keys.DAY
        viewed_subjects = _viewed_subjects(subjects, views)
        slots = max(1, ceil(lifetime / slot))
    else:
        views = size.viewed * max(1.0, size.visitors)
        viewed_subjects = subjects
        slots = 1
    if "visitor" in piece_names:
        keys_in_slot = views
    elif "subject" in piece_names:
        keys_in_slot = viewed_subjects
    else:
        keys_in_slot = 1
    keys_in_slot *= _copies(piece_names)
    views_of_key = views / keys_in_slot if keys_in_slot else 0
    members = _members(
        row, piece_names, size=size, views_of_key=views_of_key, viewed_subjects=viewed_subjects
    )
    return Amount(keys_in_slot * slots, members)


def _lifetime(row: keys.Key) -> int:
    """Returns the lifetime of the row's keys (seconds), 0 for keys that stay."""
    if row is keys.hours:  # full flushes shorten it
        return keys.DAY
    if row is keys.trending_bucket:  # then the list takes it in
        return keys.MINUTE
    if isinstance(row.ttl, int):
        return row.ttl
    if row is keys.rate:
        return rate_limit().seconds
    setting: int = attrgetter(row.ttl)(conf)
    seconds = setting * keys.DAY if row.ttl.endswith("DAYS") else setting
    return max(1, seconds)  # a setting of 0 makes keys of one second


def _slot(piece_names: frozenset[str], lifetime: int) -> int:
    """Returns the time whose views enter the same key (seconds), 0 for a key that stays."""
    for piece_name, seconds in SLOTS.items():
        if piece_name in piece_names:
            return seconds
    if piece_names & {"subject", "visitor"}:
        return lifetime
    # A list of the whole site, such as the trending list, has the subjects of an hour at least.
    return max(lifetime, keys.HOUR)


def _viewed_subjects(subjects: int, views: float) -> float:
    """Returns how many of the subjects get a view. Views come by chance, so some get several."""
    if not subjects:
        return 0
    return subjects * (1 - exp(-views / subjects))


def _copies(piece_names: frozenset[str]) -> int:
    """Returns how many keys there are because each model or dimension of the site has its own."""
    counts = {
        "model": len(counted_models()),
        "dimension": len(numbers_options().dimensions),
    }
    return prod(count for piece_name, count in counts.items() if piece_name in piece_names)


def _members(
    row: keys.Key,
    piece_names: frozenset[str],
    *,
    size: SiteSize,
    views_of_key: float,
    viewed_subjects: float,
) -> float:
    """Returns the number of members of a key: visitors, subjects, values, stages or bits."""
    if row.type == "HyperLogLog":
        visitors = views_of_key
        if "subject" in piece_names:
            visitors = min(views_of_key, size.visitors)
        return min(visitors, memory.MOST_MEMBERS)  # a sketch grows no further
    if row.type == "set":
        return min(views_of_key, size.visitors)
    if row.type == "sorted set":
        return 1 if "subject" in piece_names else viewed_subjects
    if row is keys.hours:
        return min(views_of_key, HOURS_OF_DAY)
    if row.type == "hash" and "dimension" in piece_names:
        return min(size.visitors, counters.VALUES)
    if row.type == "hash":
        return len(parts.stages())
    return size.readers + 1
