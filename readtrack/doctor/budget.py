"""Memory that readtrack takes of Redis now, and would take for other numbers of posts, visitors and readers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Avg, Count, Max, Q

from readtrack.conf import conf
from readtrack.sql import row_counts
from readtrack.store import keys, server
from readtrack.store.server import KeyKind
from readtrack.store.uniques import STRATEGIES
from readtrack.subjects import counted_models

MEMBERS = 20_000  # visitors written for a measurement, at most; sets grow evenly beyond that
READERS = 8_000_000  # highest bit set for a measurement: 1 MB; bitmaps grow evenly beyond that
SET_BYTES = 50  # textbook size of a visitor in a set
HLL_BYTES = 12_288  # textbook size of a HyperLogLog
SMALL = 1_000  # bytes of a post's set, up to which counting exactly costs nothing worth saving
SPARSE = 0.1  # a bitmap with a smaller share of its bits set is mostly empty
PROJECTED = {keys.total.pattern: (1, 89.0), keys.hour.pattern: (24, 96.0)}  # keys of a post; bytes if there is none yet


@dataclass(frozen=True, slots=True)
class Numbers:
    """Size of a site: posts, share of them with views, visitors of such a post, highest number of a reader."""

    posts: int
    active: float
    visitors: int
    readers: int

    @property
    def viewed(self) -> int:
        """Posts with views, and so with keys."""
        return round(self.posts * self.active)


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to count unique visitors: bytes of a post, measured and by the textbook, and of all posts."""

    name: str
    each: int
    textbook: int
    total: int
    answers: str


@dataclass(frozen=True, slots=True)
class Budget:
    """Everything that the command prints."""

    kinds: Mapping[str, KeyKind]
    numbers: Numbers
    projected: Mapping[str, int]  # bytes of the keys of each kind, beside those of unique visitors
    strategies: Sequence[Strategy]
    advised: str  # name of a strategy; "" while there is nothing to choose by
    reason: str
    warnings: Sequence[str]


def own_numbers() -> Numbers:
    """Returns the site's own numbers, from SQL."""
    posts, viewed, visitors = 0, 0, 0.0
    for model in counted_models():
        held = row_counts.held(model)
        has_views = Q(**{f"{held.views}__gt": 0})
        found = held.rows.aggregate(viewed=Count("pk", filter=has_views), visitors=Avg(held.visitors, filter=has_views))
        posts += model._default_manager.count()
        viewed += found["viewed"]
        visitors += (found["visitors"] or 0) * found["viewed"]
    users = get_user_model()._default_manager.aggregate(highest=Max("pk"), count=Count("pk"))
    readers = users["highest"] if isinstance(users["highest"], int) else users["count"]
    return Numbers(posts, viewed / posts if posts else 0.0, round(visitors / viewed) if viewed else 0, readers)


def budget(**given: Any) -> Budget:
    """Returns the memory of Redis, now and with the given `Numbers`; the others are the site's own.

    Raises redis.RedisError.
    """
    own = own_numbers()
    if not own.active and given.get("visitors"):
        own = replace(own, active=1.0)  # on a new site, whose posts have no views yet
    numbers = replace(own, **given)
    kinds, strategies = server.key_kinds(), _strategies(numbers)
    projected = {
        name: round(numbers.viewed * count * (kinds[name].each if name in kinds else assumed))
        for name, (count, assumed) in PROJECTED.items()
    }
    advised, reason = _advice(numbers, {strategy.name: strategy.each for strategy in strategies})
    return Budget(kinds, numbers, projected, strategies, advised, reason, list(_warnings(numbers)))


def _strategies(numbers: Numbers) -> list[Strategy]:
    members, highest = max(1, min(numbers.visitors, MEMBERS)), min(numbers.readers, READERS)
    small_set, hll, small_bitmap = server.measure(members=members, highest=highest)
    sizes = {
        "set": (round(small_set * max(1, numbers.visitors) / members), SET_BYTES * numbers.visitors),
        "hll": (hll, HLL_BYTES),
        "bitmap": (round(small_bitmap * (numbers.readers + 1) / (highest + 1)), numbers.readers // 8),
    }
    found = [(name, *sizes[strategy.holder], strategy.answers) for name, strategy in STRATEGIES.items()]
    return [Strategy(name, each, textbook, each * numbers.viewed, answers) for name, each, textbook, answers in found]


def _advice(numbers: Numbers, sizes: Mapping[str, int]) -> tuple[str, str]:
    """Returns the name of a strategy ("" for none), and the reason."""
    if not numbers.visitors:
        return "", "no post has visitors that were flushed, so there is nothing to measure yet"
    # A bitmap counts signed-in users only.
    if conf.ANONYMOUS == "none" and sizes["bitmap"] < min(sizes["set"], sizes["hll"]) and not _is_sparse(numbers):
        return "bitmap", "most readers view a post, and a bit for each takes least"
    if sizes["set"] <= max(sizes["hll"], SMALL):
        return "set", "a post has few visitors: their sets take next to nothing, and are exact"
    return "hll", "its size stays the same however many visitors come"


def _warnings(numbers: Numbers) -> Iterator[str]:
    """Yields the reasons against a bitmap."""
    if conf.ANONYMOUS != "none":
        yield "A bitmap would count signed-in users only, and this site counts anonymous visitors, too."
    if numbers.visitors and _is_sparse(numbers):
        share = f"{100 * numbers.visitors / numbers.readers:.2f} % of {numbers.readers:,} bits would be set"
        yield f"A bitmap would be mostly empty: {share}."


def _is_sparse(numbers: Numbers) -> bool:
    """Returns True if most bits of a bitmap would stay unset."""
    return numbers.visitors < numbers.readers * SPARSE
