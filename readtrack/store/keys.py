"""Every key in Redis: one row each, with its type, its lifetime and its purpose.

Calling a row gives the name of a key: `total("blog.post:42")`. Names begin with `READTRACK["PREFIX"]`, or with the name
of a tenant where PREFIX is the path of a function; while tests run, `TEST_PREFIX` comes before that. In patterns
`{subject}` is `blog.post:42`, `{model}` is `blog.post`, and `{visitor}` is a keyed hash.
"""

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any
from urllib.parse import quote

from django.utils.module_loading import import_string

from readtrack import buckets
from readtrack.conf import cached_setting, conf
from readtrack.hits import dimensions
from readtrack.hits.visitors import Visitor

MINUTE, HOUR, DAY = 60, 3600, 86_400  # seconds
ROBOT = 10**15  # the honeypot's mark: a rate beyond every limit, so that recording needs no further command to see it
PART = re.compile(r"\{(\w+)\}")
PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
LONGEST_TENANT = 100  # characters of a tenant's name in a prefix


@dataclass(frozen=True)
class Key:
    """One kind of key. `ttl` is in seconds, 0 for a key that stays; where a setting decides, `ttl` names it."""

    pattern: str
    type: str
    ttl: int | str
    why: str
    template: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "template", PART.sub("%s", self.pattern))

    def __call__(self, *parts: object) -> str:
        """Returns the name of one key: the prefix, and the pattern with the parts filled in."""
        return prefix() + self.template % parts

    @property
    def seconds(self) -> int:
        """The lifetime of a key whose lifetime no setting decides."""
        return int(self.ttl)

    @property
    def overhead(self) -> int:
        """Bytes that a key takes beside MEMORY USAGE, in tables of the server: measured with Redis 7 and Valkey 9."""
        return 30 if self.ttl else 16

    @property
    def matching(self) -> str:
        """The pattern for SCAN of all keys that begin as these do."""
        return matching(f"{self.pattern.partition('{')[0]}*")


_has_tested = False  # stays True after the tests, because what is sent then is still theirs


def test_prefix() -> str:
    """Returns the beginning of keys of tests, different for processes side by side; "" outside of tests."""
    global _has_tested
    if not _has_tested:
        # Not imported, because a process that serves pages has no use for Django's test tools.
        tools = sys.modules.get("django.test.utils")
        _has_tested = tools is not None and hasattr(tools._TestState, "saved_data")
    if not _has_tested or not conf.TEST_PREFIX:
        return ""
    # The number of the process, from Django's runner or pytest-xdist.
    runner = sys.modules.get("django.test.runner")
    process = os.environ.get("PYTEST_XDIST_WORKER") or str(getattr(runner, "_worker_id", 0) or "")
    return f"{conf.TEST_PREFIX}{process}:" if process else conf.TEST_PREFIX


def prefix() -> str:
    """Returns the beginning of every key."""
    return f"{test_prefix()}{_tenant_prefix() if '.' in conf.PREFIX else conf.PREFIX}"


@cached_setting()
def tenant_function() -> Callable[[], Any] | None:
    """Returns the function that PREFIX is the path of; None for a prefix that is no path. Raises ImportError."""
    return import_string(conf.PREFIX) if PATH.fullmatch(conf.PREFIX) else None


def _tenant_prefix() -> str:
    function = tenant_function()
    return conf.PREFIX if function is None else _encoded(str(function()))


@lru_cache(maxsize=1024)
def _encoded(tenant: str) -> str:
    """Returns the prefix of a tenant; a long name becomes a hash."""
    name = quote(tenant, safe="", errors="replace")
    return f"{name if len(name) <= LONGEST_TENANT else blake2b(name.encode(), digest_size=16).hexdigest()}:"


def matching(pattern: str) -> str:
    """Returns the pattern for SCAN of the keys that match it after our prefix."""
    start = "".join(f"\\{char}" if char in "*?[]\\" else char for char in prefix())
    return f"{start}{pattern}"


total = Key("views:total:{subject}", "string", 0, "views, absolute and live")
hour = Key("views:hour:{hour}:{subject}", "string", DAY, "views of one subject in an hour")
model_hour = Key("views:hour:{hour}:{model}", "string", 2 * DAY, "views of a model in an hour; their sum is the site's")
hll = Key("views:hll:{subject}", "HyperLogLog", 0, "unique visitors: strategy hll")
scratch = Key("views:hll:{subject}:stored", "HyperLogLog", 0, "exists only inside a script, during a merge")
unique = Key("views:unique:{subject}", "set", 0, "unique visitors: strategy set")
unique_day = Key("views:unique:day:{date}:{subject}", "set", 2 * DAY, "unique visitors of a day: strategy daily")
daily = Key("views:daily:{subject}", "string", 0, "sum of the daily numbers of visitors: strategy daily")
bitmap = Key("views:bitmap:{subject}", "bitmap", 0, "unique visitors, one bit by reader number: strategy bitmap")
earlier = Key("views:earlier:{subject}", "string", 0, "visitors that Redis lost: strategies set, daily and bitmap")
day_visitors = Key("views:hll:day:{date}:{subject}", "HyperLogLog", "UNIQUE_DAYS", "visitors of a day")
last_days = Key("views:hll:days:{n}:{date}:{subject}", "HyperLogLog", HOUR, "visitors of n days, merged on demand")
dimension = Key("views:{dimension}:{subject}", "hash", 0, "views by value: the 50 heaviest")
funnel = Key("funnel:{subject}", "hash", 0, "number of visitors who reached each stage")
funnel_pass = Key("funnel:pass:{visitor}:{subject}", "string", HOUR, "stage that a visitor reached")
reading = Key("reading:{subject}", "hash", 0, "reads, engaged views, and views by seconds of engagement reached")
reading_pass = Key("reading:pass:{visitor}:{subject}", "string", "WINDOW", "seconds' bin that a visitor reached")
read_pass = Key("reading:read:{visitor}:{subject}", "string", "WINDOW", "1: the visitor has read the text")
unsettled = Key("views:unsettled", "sorted set", 0, "counters that lack SQL's count, by when they began (µs); epoch")
reset = Key("views:reset", "sorted set", DAY, "subjects set to zero, by when (µs)")
window = Key("viewed:{visitor}:{subject}", "string", "WINDOW", "1: counted; a new cookie's: p, or 0 if refused")
window_slice = Key("viewed:slice:{slice}:{shard}", "set of integers", "WINDOW", "the same: WINDOW_STORE “compact”")
robots = Key("robots", "string", HOUR, "new marks of the honeypot; after 5,000 an hour there are no more")
rate = Key("rate:{visitor}", "string", "RATE_WINDOW", "hits since the first; 10^15, for a day, marks a robot")
day_key = Key("visitors:key:{date}", "string", 2 * DAY, "random key of the day's hashes of visitors without a cookie")
skips = Key("views:skips:{hour}", "hash", 49 * HOUR, "hits that did not count, by reason; notices of addresses")
trending_bucket = Key("trending:bucket:{minute}", "sorted set", 70 * MINUTE, "views by subject in that minute")
trending_copy = Key("trending:entered:{minute}", "sorted set", 80 * MINUTE, "what the list took from that bucket")
trending_top = Key("trending:top", "sorted set", 10 * MINUTE, "sum of the last 60 buckets; member “” is the newest one")
trending_top_of = Key("trending:top:{minutes}", "sorted set", 10 * MINUTE, "the same of fewer minutes, on demand")
trending_asked = Key("trending:asked", "sorted set", 10 * MINUTE, "numbers of minutes, by when they were asked for")
trending_lock = Key("trending:lock", "string", 30, "held by the process that computes the lists")
read_bits = Key("category:{subject}:read", "bitmap", 0, "one bit by user id: 1 has read; removed by a publication")
seen_counters = Key("category:{subject}:seen", "numbers", 0, "4 bytes by user id: publications seen, plus 1")
ordinal_read_bits = Key("category:{subject}:read:ordinal", "bitmap", 0, "the same by ordinal of the reader")
ordinal_seen_counters = Key("category:{subject}:seen:ordinal", "numbers", 0, "the same by ordinal of the reader")
published = Key("category:{subject}:published", "string", DAY, "time of the last publication (µs)")
sent = Key("category:{subject}:sent", "sorted set", DAY, "publications by token, so that none counts twice: sequence")
reads_began = Key(
    "reads:began", "string", 0, "since when Redis knows publications (µs); a page from before marks nothing"
)
readers = Key(
    "readers", "hash of readers", 0, "the ordinal of each reader whose id is no small number, by a keyed hash"
)
readers_next = Key("readers:next", "string", 0, "the next ordinal; an evicted `readers` hands none out again")
flush_last = Key("flush:last", "string", 0, "last start or end of a flush (µs)")
flush_requested = Key("flush:requested", "string", 0, "when a restored snapshot requested a full flush (µs)")
flush_full = Key("flush:full", "string", 0, "start of the last full flush that ended well (µs)")
flush_orphans = Key("flush:orphans", "sorted set", 0, "subjects without a row, by when that was first seen (µs)")
importing = Key("import:{source}", "hash", DAY, "position of an import; expires once it is finished")
budget = Key("budget:{nonce}:{kind}", "any", MINUTE, "written, weighed and removed by `readtrack budget`")

KEYS: tuple[Key, ...] = tuple(row for row in globals().values() if isinstance(row, Key))


def viewed(
    subjects: Sequence[str], *, visitor: Visitor, hour_bucket: str, minute: str, stand_in: str = ""
) -> list[str]:
    """Returns the keys of a hit's views, in the order of record.lua: three of the hit, then those of each subject."""
    start, (who, fallback_id, *_) = prefix(), visitor
    names = [
        start + rate.template % visitor.rate_id,
        start + unsettled.template,
        start + trending_bucket.template % minute,
    ]
    for subject in subjects:
        names += (
            start + total.template % subject,
            start + hour.template % (hour_bucket, subject),
            start + model_hour.template % (hour_bucket, subject.partition(":")[0]),
            start + hll.template % subject,
            start + window.template % (who, subject),
        )
        if other := fallback_id or stand_in:
            names.append(start + window.template % (other, subject))
    return names


def passes(subject: str, visitor: Visitor) -> tuple[str, ...]:
    """Returns the keys of the visitor's pass through the funnel: one for each id that the visitor is known by."""
    return tuple(funnel_pass(who, subject) for who in (visitor.id, visitor.fallback_id) if who)


def days(subject: str, *, dates: Sequence[str]) -> tuple[str, ...]:
    """Returns the key of the merged visitors of these days (oldest first), and the key of each day."""
    return last_days(len(dates), dates[-1], subject), *(day_visitors(date, subject) for date in dates)


def state(subject: str, kind: str) -> str:
    """Returns the key of a category's read state; `hits.readers.state_kind()` is the kind in use."""
    return f"{prefix()}category:{subject}:{kind}"


def hash_kinds() -> tuple[str, ...]:
    """Returns the beginnings of the keys of a subject's hashes: the funnel, reading, and each dimension.

    A script that creates such a hash enters its key without the prefix into `views:unsettled`.
    """
    return ("funnel", "reading", *(f"views:{dimensions.name_of(path)}" for path in conf.DIMENSIONS))


def counter(kind: str, subject: str) -> str:
    """Returns the key of a counter or a hash of counts, by the beginning of its name."""
    return f"{prefix()}{kind}:{subject}"


def member(kind: str, subject: str) -> str:
    """Returns the name of a counter in `views:unsettled`; the kind of a total is ""."""
    return f"{kind}:{subject}" if kind else subject


def split_member(name: str) -> tuple[str, str]:
    """Returns the kind ("" for a total) and the subject (or the model of an hour) of a name in `views:unsettled`."""
    if is_hour(name):
        kind, _, model = name.rpartition(":")
        return kind, model
    for kind in hash_kinds():
        if name.startswith(f"{kind}:"):
            return kind, name[len(kind) + 1 :]
    return "", name


def hour_kind(hour: int) -> str:
    """Returns the kind of the counters of models in that hour (since 1970), for `member` and `counter`."""
    return model_hour.template.rpartition(":")[0] % buckets.hour_bucket(buckets.hour_start(hour))


def parse_hour(name: str) -> tuple[str, int]:
    """Returns the model and the hour (since 1970) of a name in `views:unsettled`."""
    kind, _, model = name.rpartition(":")
    return model, buckets.bucket_index(kind.rpartition(":")[2])


def is_hour(name: str) -> bool:
    """Returns True if a name in `views:unsettled` is of a model's hour."""
    return name.startswith("views:hour:")


def lasting(subject: str) -> tuple[str, ...]:
    """Returns all lasting keys of a subject: its total, its sketch, its hashes, and those of other strategies."""
    hashes = (counter(kind, subject) for kind in hash_kinds())
    return total(subject), hll(subject), *hashes, *(row(subject) for row in (unique, daily, bitmap, earlier))


def kind_of(key: str) -> str:
    """Returns the pattern of a key's row; "other" for a key that is not ours."""
    if not key.startswith(prefix()):
        return "other"
    name = key[len(prefix()) :]
    return next((pattern for pattern, expression in _expressions() if expression.fullmatch(name)), "other")


@cache
def _expressions() -> list[tuple[str, re.Pattern[str]]]:
    """Returns the patterns as expressions, those with the most literal text first."""
    parts = {"subject": r"[^:]+:[^:]+", "hour": r"\d{10}"}
    ordered = sorted((row.pattern for row in KEYS), key=lambda pattern: len(PART.sub("", pattern)), reverse=True)
    return [
        (pattern, re.compile(re.sub(r"\\{(\w+)\\}", lambda part: parts.get(part[1], "[^:]*"), re.escape(pattern))))
        for pattern in ordered
    ]
