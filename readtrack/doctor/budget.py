"""Memory that readtrack would take of Redis for a site of another size, and what it takes now."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, exp, prod
from typing import Any, NamedTuple

from django.db.models import Avg, Count

from readtrack import buckets
from readtrack.conf import conf
from readtrack.doctor import memory
from readtrack.doctor.memory import KeyKind
from readtrack.hits import readers
from readtrack.sql import row_counts
from readtrack.store import counters, keys, read_state, scripts
from readtrack.store.counting import rate_limit
from readtrack.store.uniques import STRATEGIES, Strategy, strategy_of
from readtrack.subjects import counted_models, enters_funnel, label_of, read_state_models
from readtrack.unread.starting import highest_position

SLOTS = {"minute": keys.MINUTE, "hour": keys.HOUR, "date": keys.DAY}  # seconds that share a key
SMALL = 1_000  # bytes of a post, up to which counting exactly costs nothing worth saving
FEW_BITS = 0.1  # share of the bits that are set, below which a bitmap is mostly empty
MONTH = 30  # days within which the visitors of a new site are taken to come

# Parts of the names of keys, as long as they are on a site.
EXAMPLES = {"visitor": "v" * 16, "hour": "h" * 10, "minute": "m" * 12}


@dataclass(frozen=True, slots=True)
class SiteSize:
    """Size of a site. Its keys depend on these numbers."""

    posts: int
    active: float  # share of the posts that have views, 0 to 1
    visitors: int  # of a post with views
    readers: int  # the highest number of one
    views: int  # a day
    categories: int

    @property
    def viewed(self) -> int:
        """Posts with views, and so with keys."""
        return round(self.posts * self.active)


@dataclass(frozen=True, slots=True)
class Budget:
    """The result of the command, as it is printed."""

    kinds: Mapping[str, KeyKind]
    numbers: SiteSize
    projected: Mapping[str, KeyKind]  # largest first; without rows that the settings leave out
    strategies: Mapping[str, KeyKind]  # by name: what counts the unique visitors of each post
    advised: str  # name of a strategy; "" while there is nothing to choose by
    reason: str


class Advice(NamedTuple):
    """The strategy to choose, "" for none, and why."""

    strategy: str
    reason: str


class Amount(NamedTuple):
    """How many keys of a row there are at once, and how many members each of them has."""

    keys: float
    members: float


def site_size() -> SiteSize:
    """Returns the site's own size, from SQL, and its views of the last 24 hours, from Redis."""
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
        readers=highest_position(),
        views=_views_of_a_day(),
        categories=sum(model._default_manager.count() for model in read_state_models()),
    )


def _views_of_a_day() -> int:
    """Returns the site's views of the last 24 hours."""
    hour = buckets.hour_index(buckets.now())
    labels = [label_of(model) for model in counted_models()]
    calls = counters.model_hours(labels, range(hour - 23, hour + 1))
    views = 0
    for totals in scripts.run_all(*calls, patient=True):
        views += sum(total.views for total in totals.values())
    return views


def budget(**given: Any) -> Budget:
    """Returns the memory of Redis now, and for the site's size with the given numbers of it.

    Raises redis.RedisError.
    """
    size = _size(given)
    sizes = {row: _estimate(row, size) for row in keys.KEYS}
    unused = _unused_rows()
    used = [row for row in keys.KEYS if row not in unused]
    used.sort(key=lambda row: sizes[row].total, reverse=True)
    strategies = {}
    for name, strategy in STRATEGIES.items():
        total = sum(sizes[row].total for row in strategy.rows)
        strategies[name] = KeyKind(size.viewed, round(total / max(1, size.viewed)), total)
    advice = _advice(size, strategies)
    return Budget(
        kinds=memory.key_kinds(),
        numbers=size,
        projected={row.pattern: sizes[row] for row in used},
        strategies=strategies,
        advised=advice.strategy,
        reason=advice.reason,
    )


def _size(given: Mapping[str, Any]) -> SiteSize:
    """Returns the site's present size, with the given numbers in place of its own."""
    present = site_size()
    if not present.active and given.get("visitors"):
        present = replace(present, active=1.0)  # on a new site, whose posts have no views yet
    size = replace(present, **given)
    if not present.views and "views" not in given:
        size = replace(size, views=size.viewed * size.visitors // MONTH)
    return size


def _unused_rows() -> set[keys.Key]:
    """Returns the rows that the settings leave out, and those that no setting tells about."""
    # There for a moment, or after a loss.
    unused = {keys.scratch, keys.budget, keys.importing, keys.earlier, keys.honeypot_visits}
    # Only of pages whose text is marked, which no setting tells.
    unused |= {keys.reading, keys.reading_pass, keys.read_pass}
    for strategy in STRATEGIES.values():
        if strategy != strategy_of(""):
            unused.update(strategy.rows)
    unused |= {*read_state.ROWS} - {read_state.strategy_of("").key()}
    if not conf.UNIQUE_DAYS:
        unused |= {keys.day_visitors, keys.last_days}
    if not any(map(enters_funnel, counted_models())):
        unused |= {keys.funnel, keys.funnel_pass}
    if not readers.has_ordinals():
        unused |= {keys.readers, keys.readers_next}
    if not conf.ANONYMOUS_READERS:
        unused.add(keys.anonymous_readers)
    return unused


def _advice(size: SiteSize, strategies: Mapping[str, KeyKind]) -> Advice:
    """Returns the strategy that takes least for a site of that size."""
    if not size.visitors:
        return Advice(
            "", "no post has visitors that were flushed, so there is nothing to measure yet"
        )
    # A strategy of signed-in readers suffices where nobody else is counted; but a bitmap with few
    # of its bits set is mostly empty.
    readers_suffice = conf.ANONYMOUS == "none" and size.visitors >= FEW_BITS * size.readers
    fitting = [
        strategy
        for strategy in STRATEGIES.values()
        if strategy.suits and (readers_suffice or not strategy.needs_reader)
    ]

    def cost(strategy: Strategy) -> tuple[float, bool, float]:
        each = strategies[strategy.name].each
        return max(each, SMALL), not strategy.is_exact, each

    least = min(fitting, key=cost)
    return Advice(least.name, least.suits)


def _estimate(row: keys.Key, size: SiteSize) -> KeyKind:
    """Returns the keys of a row on a site of that size, by one that is written for a moment."""
    models = counted_models()
    label = label_of(models[0]) if models else "app.model"
    parts = {**EXAMPLES, "subject": f"{label}:{size.posts}"}
    pattern = keys.PART.sub(lambda part: parts.get(part[1], part[1]), row.pattern)
    name = f"{keys.prefix()}{keys.tags()[0]}{pattern}"
    amount = _amount(row, size)
    each = memory.weigh(row, length=len(name), members=amount.members)
    return KeyKind(round(amount.keys), round(each, 1), round(each * amount.keys))


def _amount(row: keys.Key, size: SiteSize) -> Amount:
    """Returns the keys of a row and their members, by its lifetime, its type and its pattern."""
    parts = frozenset(keys.PART.findall(row.pattern))
    lifetime = _lifetime(row)
    slot = _slot(parts, lifetime)
    subjects = size.categories if row.pattern.startswith("category:") else size.viewed
    if slot:
        views = size.views * slot / keys.DAY
        touched = _touched(subjects, views)
        slots = max(1, ceil(lifetime / slot))
    else:
        views = size.viewed * max(1.0, size.visitors)
        touched = subjects
        slots = 1
    if "visitor" in parts:
        count = views
    elif "subject" in parts:
        count = touched
    else:
        count = 1
    count *= _copies(parts)
    views_of_each = views / count if count else 0
    members = _members(row, parts, size=size, views=views_of_each, subjects=touched)
    return Amount(count * slots, members)


def _lifetime(row: keys.Key) -> int:
    """Returns the lifetime of the row's keys (seconds), 0 for keys that stay."""
    if isinstance(row.ttl, int):
        return row.ttl
    if row is keys.rate:
        return rate_limit().seconds
    setting: int = getattr(conf, row.ttl)
    seconds = setting * keys.DAY if row.ttl.endswith("DAYS") else setting
    return max(1, seconds)  # 0 is one second there


def _slot(parts: frozenset[str], lifetime: int) -> int:
    """Returns the time in which views enter the same key (seconds), 0 for a key that stays."""
    for part, seconds in SLOTS.items():
        if part in parts:
            return seconds
    if parts & {"subject", "visitor"}:
        return lifetime
    # A list of the whole site holds an hour's subjects at least, as trending does.
    return max(lifetime, keys.HOUR)


def _touched(subjects: int, views: float) -> float:
    """Returns how many subjects get a view. Views fall on them by chance, so some get several."""
    if not subjects:
        return 0
    return subjects * (1 - exp(-views / subjects))


def _copies(parts: frozenset[str]) -> int:
    """Returns how many keys there are for each model or dimension of the site."""
    counts = {
        "model": len(counted_models()),
        "dimension": len(conf.DIMENSIONS),
    }
    return prod(count for part, count in counts.items() if part in parts)


def _members(
    row: keys.Key, parts: frozenset[str], *, size: SiteSize, views: float, subjects: float
) -> float:
    """Returns the members of a key that gets so many views, and of one of so many subjects."""
    if row.type == "HyperLogLog":
        visitors = min(views, size.visitors) if "subject" in parts else views
        return min(visitors, memory.MOST_MEMBERS)  # it grows no further
    if row.type == "set":
        return min(views, size.visitors)
    if row.type == "sorted set":
        return 1 if "subject" in parts else subjects
    if row.type == "hash":
        is_dimension = "dimension" in parts
        return min(size.visitors, counters.VALUES) if is_dimension else len(conf.FUNNEL)
    return size.readers + 1
