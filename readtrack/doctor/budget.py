"""What readtrack takes of Redis's memory: now, and for numbers that a site may come to have."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import Avg, Count, Max, Q
from django.utils.formats import number_format
from django.utils.translation import gettext

from readtrack.conf import conf
from readtrack.numerals import exact
from readtrack.store import server
from readtrack.store.server import KeyFamily
from readtrack.subjects import tracked_models

MEMBERS = 20_000  # visitors written for a measurement, at most; sets grow evenly beyond that
READERS = 8_000_000  # highest number set for a measurement: 1 MB; bitmaps grow evenly beyond that
SET_BYTES = 50  # the textbook's figure for a visitor in a set
HLL_BYTES = 12_288  # the textbook's figure for a sketch
SMALL = 1_000  # bytes a post that are no reason to count less than exactly
EMPTY = 0.1  # a bitmap with fewer of its bits set is mostly empty


class Numbers(NamedTuple):
    """A site: its posts, the share of them that is viewed, visitors of one of those, highest reader number."""

    posts: int
    active: float
    visitors: int
    readers: int

    @property
    def viewed(self) -> int:
        """Posts with views, and so with keys."""
        return round(self.posts * self.active)


class Strategy(NamedTuple):
    """One way to count unique visitors: bytes a post, measured and by the textbook, and bytes of all posts."""

    name: str
    each: int
    textbook: int
    all: int
    answers: str


class Budget(NamedTuple):
    """Everything that the command prints."""

    families: dict[str, KeyFamily]
    numbers: Numbers
    projected: dict[str, int]
    strategies: Sequence[Strategy]
    advised: str
    reason: str
    warnings: Sequence[str]


def own_numbers() -> Numbers:
    """The site's own, as SQL has them."""
    posts, viewed, visitors = 0, 0, 0.0
    for model in tracked_models():
        found = model._default_manager.aggregate(
            posts=Count("pk"),
            viewed=Count("pk", filter=Q(view_count__gt=0)),
            visitors=Avg("visitor_count", filter=Q(view_count__gt=0)),
        )
        posts += found["posts"]
        viewed += found["viewed"]
        visitors += (found["visitors"] or 0) * found["viewed"]
    highest = get_user_model()._default_manager.aggregate(highest=Max("pk"), users=Count("pk"))
    readers = highest["highest"] if isinstance(highest["highest"], int) else highest["users"]
    return Numbers(posts, viewed / posts if posts else 0.0, round(visitors / viewed) if viewed else 0, readers or 0)


def budget(
    *, posts: int | None = None, active: float | None = None, visitors: int | None = None, readers: int | None = None
) -> Budget:
    """What is in Redis, and what it would be with those numbers instead of the site's own. Raises redis.RedisError."""
    given = Numbers._fields, (posts, active, visitors, readers)
    known: dict[str, Any] = {name: value for name, value in zip(*given, strict=True) if value is not None}
    own = own_numbers()
    if not own.active and visitors:
        own = own._replace(active=1.0)  # nothing is viewed yet, and that is to be reckoned with
    numbers = own._replace(**known)
    families = server.key_families()
    strategies = _strategies(numbers)
    advised, reason = _advice(numbers, {strategy.name: strategy for strategy in strategies})
    return Budget(
        families, numbers, _projected(numbers, families), strategies, advised, reason, list(_warnings(numbers))
    )


def _strategies(numbers: Numbers) -> list[Strategy]:
    members, highest = max(1, min(numbers.visitors, MEMBERS)), min(numbers.readers, READERS)
    sizes = server.measured(members=members, highest=highest)
    of_set = round(sizes.set * max(1, numbers.visitors) / members)
    of_bitmap = round(sizes.bitmap * (numbers.readers + 1) / (highest + 1))
    found = [
        ("set", of_set, SET_BYTES * numbers.visitors, gettext("exact, who has seen what")),
        ("daily", of_set, SET_BYTES * numbers.visitors, gettext("exact for a day; at most two such days are kept")),
        ("hll", sizes.hll, HLL_BYTES, gettext("within 0.81 %, any posts together")),
        ("bitmap", of_bitmap, numbers.readers // 8, gettext("exact, signed-in users only, who has seen what")),
    ]
    return [Strategy(name, each, textbook, each * numbers.viewed, answers) for name, each, textbook, answers in found]


def _advice(numbers: Numbers, strategies: dict[str, Strategy]) -> tuple[str, str]:
    """The name of a strategy and why; no name where there is nothing to choose by."""
    exact, sketch, bits = strategies["set"], strategies["hll"], strategies["bitmap"]
    if not numbers.visitors:
        return "", gettext("no post has visitors that were flushed: there is nothing to measure yet")
    if _is_bitmap_enough() and bits.each < min(exact.each, sketch.each) and not _is_empty(numbers):
        return "bitmap", gettext("most readers view a post, and a bit each is the least")
    if exact.each <= max(sketch.each, SMALL):
        return "set", gettext("few visitors a post: sets take next to nothing, and are exact")
    return "hll", gettext("its size stays the same however many visitors come")


def _is_bitmap_enough() -> bool:
    """Whether nobody would be missed: a bitmap counts signed-in users only."""
    return conf.ANONYMOUS == "none"


def _is_empty(numbers: Numbers) -> bool:
    """Whether most bits of a bitmap would stay unset."""
    return numbers.visitors < numbers.readers * EMPTY


def _warnings(numbers: Numbers) -> Sequence[str]:
    """What speaks against a bitmap."""
    found = []
    if not _is_bitmap_enough():
        found.append(
            gettext("A bitmap would count signed-in users only, and this site counts anonymous visitors, too.")
        )
    if numbers.visitors and _is_empty(numbers):
        share = number_format(100 * numbers.visitors / numbers.readers, 2)
        words = gettext("A bitmap would be mostly empty: %(share)s %% of %(bits)s bits would be set.")
        found.append(words % {"share": share, "bits": exact(numbers.readers)})
    return found


def _projected(numbers: Numbers, families: dict[str, KeyFamily]) -> dict[str, int]:
    """Bytes of what grows with the posts that are viewed, by what one such key takes here."""
    assumed = {"views:total:{id}": 89.0, "views:hour:{hour}:{id}": 96.0}  # where there is none to weigh
    hours = {"views:total:{id}": 1, "views:hour:{hour}:{id}": 24}
    return {
        name: round(numbers.viewed * hours[name] * (families[name].each if name in families else each))
        for name, each in assumed.items()
    }
