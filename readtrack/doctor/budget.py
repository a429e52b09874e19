"""Memory that readtrack takes of Redis now, and would take for a site of another size."""

import secrets
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from math import exp, prod
from statistics import fmean
from typing import Any

from django.db.models import Avg, Count

from readtrack import buckets
from readtrack.conf import conf
from readtrack.hits import readers
from readtrack.sql import row_counts
from readtrack.store import counters, keys, scripts
from readtrack.store.connection import connect, servers
from readtrack.store.uniques import STRATEGIES, strategy_of
from readtrack.subjects import counted_models, enters_funnel, label_of, read_state_models
from readtrack.unread.starting import highest_position

MOST = 20_000  # members of a key that is written, at most; sets grow evenly beyond that
MOST_BITS = 8_000_000  # highest bit that is set: 1 MB; bitmaps grow evenly beyond that
SLOTS = {
    "minute": keys.MINUTE,
    "hour": keys.HOUR,
    "date": keys.DAY,
}  # seconds in which views enter the same key
SMALL = 1_000  # bytes of a post, up to which counting exactly costs nothing worth saving
WEIGHED = 200  # keys of one kind that are weighed, at most
STEP = 1_000  # keys in one SCAN, and in one command

# The command that adds a member to a key of that type, and what it takes.
MEMBERS: dict[str, tuple[str, Callable[[int], tuple[str | int, ...]]]] = {
    "HyperLogLog": ("PFADD", lambda number: (f"{number:016}",)),
    "set": ("SADD", lambda number: (f"{number:016}",)),
    "set of integers": ("SADD", lambda number: (number * 2_654_435_761 % 2**31,)),
    "sorted set": ("ZADD", lambda number: (number, f"{number:016}")),
    "hash": ("HSET", lambda number: (f"{number:016}", number)),
    "hash of readers": ("HSET", lambda number: (f"{number:016}", number)),
}
BITS = {"bitmap": 1, "numbers": 32}  # of a member


@dataclass(frozen=True, slots=True)
class KeyKind:
    """Keys of one kind: their number, the average size of one and the size of all (bytes)."""

    keys: int
    each: float
    total: int


@dataclass(frozen=True, slots=True)
class Numbers:
    """Size of a site. `active` is the share of posts with views, `visitors` is of such a post,
    `views` of a day.
    """

    posts: int
    active: float
    visitors: int
    readers: int  # the highest number of one
    views: int
    categories: int

    @property
    def viewed(self) -> int:
        """Posts with views, and so with keys."""
        return round(self.posts * self.active)


@dataclass(frozen=True, slots=True)
class Budget:
    """The result of the command, as it is printed."""

    kinds: Mapping[str, KeyKind]
    numbers: Numbers
    projected: Mapping[str, KeyKind]  # largest first; without rows that the settings leave out
    strategies: Mapping[str, KeyKind]  # by name: what counts the unique visitors of each post
    advised: str  # name of a strategy; "" while there is nothing to choose by
    reason: str


def own_numbers() -> Numbers:
    """Returns the site's own numbers, from SQL, and its views of the last 24 hours, from Redis."""
    posts, viewed, visitors = 0, 0, 0.0
    for model in counted_models():
        viewed_rows = row_counts.held(model).filter(view_count__gt=0)
        found = viewed_rows.aggregate(viewed=Count("pk"), visitors=Avg("visitor_count"))
        posts += model._default_manager.count()
        viewed += found["viewed"]
        visitors += (found["visitors"] or 0) * found["viewed"]
    hour = buckets.hour_index(buckets.now())
    labels = [*map(label_of, counted_models())]
    hours = scripts.run_all(*counters.model_hours(labels, range(hour - 23, hour + 1)), patient=True)
    return Numbers(
        posts,
        active=viewed / posts if posts else 0.0,
        visitors=round(visitors / viewed) if viewed else 0,
        readers=highest_position(),
        views=sum(total.views for answer in hours for total in answer.values()),
        categories=sum(model._default_manager.count() for model in read_state_models()),
    )


def budget(**given: Any) -> Budget:
    """Returns the memory of Redis, now and with the given `Numbers`. Raises redis.RedisError."""
    own = own_numbers()
    if not own.active and given.get("visitors"):
        own = replace(own, active=1.0)  # on a new site, whose posts have no views yet
    numbers = replace(own, **given)
    if (
        not own.views and "views" not in given
    ):  # the visitors of a new site are taken to come within a month
        numbers = replace(numbers, views=numbers.viewed * numbers.visitors // 30)
    kinds = _weighed(numbers)
    states = (
        keys.read_bits,
        keys.seen_counters,
        keys.ordinal_read_bits,
        keys.ordinal_seen_counters,
    )
    unused = {  # by these settings, or not told by any, or there for a moment or after a loss
        *(keys.scratch, keys.budget, keys.importing, keys.earlier, keys.honeypot_visits),
        *(keys.reading, keys.reading_pass, keys.read_pass),  # of texts, which no setting tells
        *(
            row
            for strategy in STRATEGIES.values()
            if strategy != strategy_of("")
            for row in strategy.rows
        ),
        *(row for row in states if not row.pattern.endswith(f"}}:{readers.state_kind()}")),
        *(() if conf.UNIQUE_DAYS else (keys.day_visitors, keys.last_days)),
        *(() if any(map(enters_funnel, counted_models())) else (keys.funnel, keys.funnel_pass)),
        *(() if readers.has_ordinals() else (keys.readers, keys.readers_next)),
        *(() if conf.ANONYMOUS_READERS else (keys.anonymous_readers,)),
    }
    largest = sorted((row for row in kinds if row not in unused), key=lambda row: -kinds[row].total)
    sums = {
        name: sum(kinds[row].total for row in strategy.rows)
        for name, strategy in STRATEGIES.items()
    }
    ways = {
        name: KeyKind(numbers.viewed, round(total / max(1, numbers.viewed)), total)
        for name, total in sums.items()
    }
    advised, reason = (
        "",
        "no post has visitors that were flushed, so there is nothing to measure yet",
    )
    if numbers.visitors:
        # A strategy of signed-in readers suffices; but a bitmap with fewer of its bits set is
        # mostly empty.
        counts_all = conf.ANONYMOUS == "none" and numbers.visitors >= 0.1 * numbers.readers
        fitting = [
            one for one in STRATEGIES.values() if one.suits and (counts_all or not one.needs_reader)
        ]
        least = min(
            fitting,
            key=lambda one: (
                max(ways[one.name].each, SMALL),
                not one.is_exact,
                ways[one.name].each,
            ),
        )
        advised, reason = least.name, least.suits
    return Budget(
        key_kinds(), numbers, {row.pattern: kinds[row] for row in largest}, ways, advised, reason
    )


def key_kinds(limit: int = 200_000) -> dict[str, KeyKind]:
    """Returns the keys of each row of the table, "other" ones too, largest first, reckoned from
    `limit` at most.
    """
    groups: defaultdict[keys.Key | None, list[bytes]] = defaultdict(list)
    nodes: Any = servers(patient=True)
    scans = (islice(one.scan_iter(count=STEP), limit // len(nodes)) for one in nodes)
    scanned = dict.fromkeys(chain.from_iterable(scans))  # SCAN may return a key twice
    for key in scanned:
        groups[keys.parse(key.decode(errors="replace"))[0]].append(key)
    scale = max(1.0, sum(one.dbsize() for one in nodes) / len(scanned)) if scanned else 1.0
    found = {}
    for row, group in groups.items():
        calls = [scripts.Call[int | None]("MEMORY", ["USAGE"], (key,)) for key in group[:WEIGHED]]
        sizes = list(
            filter(None, scripts.run_all(*calls, patient=True))
        )  # None: it expired meanwhile
        each, count = fmean(sizes or [0]) + (row.overhead if row else 0), round(len(group) * scale)
        found[row.pattern if row else "other"] = KeyKind(count, round(each, 1), round(each * count))
    return dict(sorted(found.items(), key=lambda item: item[1].total, reverse=True))


def _amounts(row: keys.Key, numbers: Numbers) -> tuple[float, float]:
    """Returns the number of keys of the row, and of members of each, by the parts of its pattern,
    lifetime and type.
    """
    parts = set(keys.PART.findall(row.pattern))
    life = row.ttl
    if isinstance(life, str):  # 0 is one second there
        life = max(1, getattr(conf, life) * (keys.DAY if life.endswith("DAYS") else 1))
    # A list of the whole site holds an hour's subjects at least, as trending does.
    whole = life if parts & {"subject", "visitor"} else max(life, keys.HOUR)
    slot = next((SLOTS[part] for part in parts if part in SLOTS), whole)
    views = numbers.views * slot / keys.DAY if slot else numbers.viewed * max(1.0, numbers.visitors)
    subjects = numbers.categories if row.pattern.startswith("category:") else numbers.viewed
    # Views fall on posts by chance, so some posts get several in a slot, and some none.
    touched = subjects * (1 - exp(-views / subjects)) if slot and subjects else subjects
    count = views if "visitor" in parts else touched if "subject" in parts else 1
    times = {
        "model": len(counted_models()),
        "dimension": len(conf.DIMENSIONS),
    }
    count *= prod(times[part] for part in parts & times.keys())
    share = views / count if count else 0  # of a key, in its slot
    members = {
        "HyperLogLog": min(
            share, numbers.visitors if "subject" in parts else share, MOST
        ),  # it grows no further
        "set": min(numbers.visitors, share),
        "sorted set": 1 if "subject" in parts else touched,
        "hash": min(numbers.visitors, counters.VALUES)
        if "dimension" in parts
        else len(conf.FUNNEL),
    }
    return count * max(1, -(-life // slot) if slot else 1), members.get(
        row.type, numbers.readers + 1
    )


def _weighed(numbers: Numbers) -> dict[keys.Key, KeyKind]:
    """Returns the rows' numbers of keys and their sizes, by keys that are written for a moment."""
    label = label_of(counted_models()[0]) if counted_models() else "app.model"
    example = {
        "subject": f"{label}:{numbers.posts}",
        "visitor": "v" * 16,
        "hour": "h" * 10,
        "minute": "m" * 12,
    }
    start, found = keys.prefix() + keys.tags()[0], {}
    for row in keys.KEYS:
        count, members = _amounts(row, numbers)
        most = MOST_BITS // BITS[row.type] if row.type in BITS else MOST
        length = len(start + keys.PART.sub(lambda part: example.get(part[1], part[1]), row.pattern))
        written = measure(row, length=length, count=min(round(members), most))
        each = written * max(1, members / most if row.type in {*BITS, *MEMBERS} else 1)
        found[row] = KeyKind(round(count), round(each, 1), round(each * count))
    return found


def measure(row: keys.Key, *, length: int, count: int) -> int:
    """Returns the bytes of a key of the row with a name of that length and so many members: writes
    it for a moment.
    """
    name = keys.budget("", secrets.token_hex(4), row.type[0]).ljust(length, "0")
    writes: list[tuple[str | int, ...]] = [("SET", 10**6)]
    if row.type in BITS:
        writes = [("SETBIT", max(1, count) * BITS[row.type] - 1, 1)]
    elif row.type in MEMBERS:
        command, member = MEMBERS[row.type]
        portions = scripts.sliced(range(max(1, count)), STEP)
        writes = [(command, *chain.from_iterable(map(member, some))) for some in portions]
    calls = [scripts.Call[int]("write", [name], (keys.budget.ttl, *words)) for words in writes]
    weigh = scripts.Call("MEMORY", ["USAGE"], (name, "SAMPLES", 0), lambda size: size or 0)
    try:
        return int(scripts.run_all(*calls, weigh, patient=True)[-1]) + row.overhead
    finally:
        connect(patient=True).unlink(name)
