"""Every key in Redis: one row each, with its type, its lifetime and its purpose.

Calling a row gives the name of a key: `total("blog.post:42")`. Names begin with `READTRACK["PREFIX"]`, or with the name
of a tenant where PREFIX is the path of a function; while tests run, `test:` comes before that. In patterns
`{subject}` is `blog.post:42`, `{model}` is `blog.post`, and `{visitor}` is a keyed hash.

With several partitions each key has the hash tag of its partition right behind its family, so that a cluster keeps the
keys of a partition together: `views:total:{rt07}:blog.post:42`. Rows with a subject or a visitor find the partition by
that; others take the tag as their first part, "" for a key that the whole site shares.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote
from zlib import crc32

from django.utils.module_loading import import_string

from readtrack import buckets
from readtrack.conf import cached_setting, conf
from readtrack.hits import dimensions

Item = TypeVar("Item")

MINUTE, HOUR, DAY = 60, 3600, 86_400  # seconds
ROBOT = (
    10**15
)  # the honeypot's mark: a rate beyond every limit, so that recording needs no further command to see it
PART = re.compile(r"\{(\w+)\}")
TAG = re.compile(r":\{rt[0-9a-f]+\}")
# Of parts whose names may hold something else than `[^:{]*`.
PARTS = {
    "tag": rf"(?:{TAG.pattern})?",
    "subject": r"[^:{]+:[^:{]+",
    "hour": r"\d{10}",
    "name": ".+",
}
MEMBER = re.compile(
    r"([^.]+?):([^:.]+\.[^:]+:.*)", re.DOTALL
)  # a kind, which has no dot, and a subject of `app.model`
PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


class Key:
    """One kind of key. `ttl` is in seconds, 0 for a key that stays; where a setting decides, `ttl` names it."""

    def __init__(self, pattern: str, type: str, ttl: Any, why: str) -> None:  # noqa: A002 - as the docs call it
        self.pattern, self.type, self.ttl, self.why = pattern, type, ttl, why
        self.family = re.split(r":\{(?!dimension)", pattern)[0]  # the beginning, before the tag
        self.tagged = f"{self.family}{{tag}}{pattern[len(self.family) :]}"
        self.template, parts = PART.sub("%s", self.tagged), PART.findall(pattern)
        # Bytes that a key takes beside MEMORY USAGE, in tables of the server: measured with Redis 7 and Valkey 9.
        self.overhead = 30 if ttl else 16
        # The place of the part that tells the partition.
        self.owner = next(
            (parts.index(name) for name in ("subject", "visitor") if name in parts), None
        )

    def __call__(self, *parts: Any) -> str:
        """Returns the name of one key: the prefix, and the pattern with the parts filled in."""
        if self.owner is not None:
            parts = (tag(parts[self.owner]) if conf.PARTITIONS > 1 else "", *parts)
        return prefix() + self.template % parts

    def placed(self, parts: Mapping[str, str], *, tag: str) -> str:
        """Returns the name of the key with these parts of a parsed name in the partition with that tag."""
        return prefix() + self.tagged.format_map({**parts, "tag": tag})

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """Returns the expression of these keys' names behind the prefix. Its groups are their parts, and the tag."""
        return re.compile(
            PART.sub(lambda part: f"(?P<{part[1]}>{PARTS.get(part[1], '[^:{]*')})", self.tagged)
        )


TESTS = "test:"  # leaves the keys of a live site alone
_has_tested = False  # stays True after the tests, because what is sent then is still theirs


def test_prefix() -> str:
    """Returns the beginning of keys of tests, different for processes side by side; "" outside of tests."""
    global _has_tested
    # Not imported, because a process that serves pages has no use for Django's test tools.
    tools = sys.modules.get("django.test.utils")
    _has_tested = _has_tested or (tools is not None and hasattr(tools._TestState, "saved_data"))
    if not _has_tested:
        return ""
    # The number of the process, from Django's runner or pytest-xdist.
    runner = sys.modules.get("django.test.runner")
    process = os.environ.get("PYTEST_XDIST_WORKER") or str(getattr(runner, "_worker_id", 0) or "")
    return f"{TESTS}{process}:" if process else TESTS


def prefix() -> str:
    """Returns the beginning of every key."""
    return test_prefix() + _own_prefix()


def salt(purpose: str) -> str:
    """Returns the salt of all that is signed for a purpose: `outbound:` and what begins the keys of the tenant."""
    return _salt_of_site(purpose) or f"{purpose}:{_own_prefix()}"


@cached_setting()  # because a page may have a hundred placeholders
def _salt_of_site(purpose: str) -> str:
    """Returns the salt of a site without tenants, else ""."""
    return "" if tenant_function() else f"{purpose}:{_own_prefix()}"


def _own_prefix() -> str:
    function = tenant_function() if "." in conf.PREFIX else None
    return conf.PREFIX if function is None else _encoded(str(function()))


@cached_setting()
def tenant_function() -> Callable[[], Any] | None:
    """Returns the function that PREFIX is the path of; None for a prefix that is no path. Raises ImportError."""
    return import_string(conf.PREFIX) if PATH.fullmatch(conf.PREFIX) else None


@lru_cache(maxsize=1024)
def _encoded(tenant: str) -> str:
    """Returns the prefix of a tenant; a name of more than 100 characters becomes a hash."""
    name = quote(tenant, safe="", errors="replace")
    return f"{name if len(name) <= 100 else blake2b(name.encode(), digest_size=16).hexdigest()}:"


def matching(pattern: str) -> str:
    """Returns the pattern for SCAN of the keys that match it after our prefix."""
    return "".join(f"\\{char}" if char in "*?[]\\" else char for char in prefix()) + pattern


@cached_setting(maxsize=4096)
def tag(name: str) -> str:
    """Returns the hash tag of the partition of a subject or a visitor, `:{rt07}`; "" without partitions."""
    return tags()[crc32(name.encode()) % len(tags())]


@cached_setting()
def tags() -> Sequence[str]:
    """Returns the hash tags of all partitions."""
    return (
        [f":{{rt{number:02x}}}" for number in range(conf.PARTITIONS)]
        if conf.PARTITIONS > 1
        else [""]
    )


def past_tags() -> Sequence[str]:
    """Returns the hash tags of all partitions that there are or were: their number only grows."""
    return list(dict.fromkeys(["", *tags()]))


def by_tag(
    items: Iterable[Item], tag_of: Callable[[Any], str] = tag
) -> Mapping[str, Sequence[Item]]:
    """Returns the subjects, visitors or other items of each partition that has any, in their order."""
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(tag_of(item), []).append(item)
    return found


# One line for each key.
# fmt: off
total = Key("views:total:{subject}", "string", 0, "views, absolute and live")
hour = Key("views:hour:{hour}:{subject}", "string", DAY, "views of one subject in an hour")
model_hour = Key("views:hour:{hour}:{model}", "string", 2 * DAY, "views of a model in an hour; their sum is the site's")
minute_visitors = Key("visitors:minute:{minute}:{model}", "HyperLogLog", 6 * MINUTE, "visitors of a model in a minute")
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
funnel = Key("funnel:{subject}", "hash", 0, "number of passes that reached each stage")
funnel_pass = Key("funnel:pass:{visitor}:{subject}", "string", HOUR, "stage that a visitor reached")
reading = Key("reading:{subject}", "hash", 0, "reads, engaged views, and views by seconds of engagement reached")
reading_pass = Key("reading:pass:{visitor}:{subject}", "string", "WINDOW", "seconds' bin that a visitor reached")
read_pass = Key("reading:read:{visitor}:{subject}", "string", "WINDOW", "1: the visitor has read the text")
unsettled = Key("views:unsettled", "sorted set", 0, "counters that lack SQL's count, by when they began (µs); epoch")
reset = Key("views:reset", "sorted set", DAY, "subjects set to zero, by when (µs)")
window = Key("viewed:{visitor}:{subject}", "string", "WINDOW", "1: counted; a new cookie's: p, or 0 if refused")
robots = Key("robots", "string", HOUR, "new marks of the honeypot; after 5,000 an hour there are no more")
honeypot_visits = Key("robots:address:{visitor}", "string", HOUR, "visits of an address to the honeypot, by a hash of the day")
rate = Key("rate:{visitor}", "string", "RATE", "hits since the first; 10^15, for a day, marks a robot")
day_key = Key("visitors:key:{date}", "string", 2 * DAY, "random key of the day's hashes of visitors without a cookie")
skips = Key("views:skips:{hour}", "hash", 49 * HOUR, "hits that did not count, by reason; robots; notices")
trending_bucket = Key("trending:bucket:{minute}", "sorted set", 70 * MINUTE, "views by subject in that minute")
trending_copy = Key("trending:entered:{minute}", "sorted set", 80 * MINUTE, "what the list took from that bucket")
trending_top = Key("trending:top", "sorted set", 10 * MINUTE, "sum of the last 60 buckets; member “” is the newest one")
read_bits = Key("category:{subject}:read", "bitmap", 0, "one bit by user id: 1 has read; removed by a publication")
seen_counters = Key("category:{subject}:seen", "numbers", 0, "4 bytes by user id: publications seen, plus 1")
ordinal_read_bits = Key("category:{subject}:read:ordinal", "bitmap", 0, "the same by ordinal of the reader")
ordinal_seen_counters = Key("category:{subject}:seen:ordinal", "numbers", 0, "the same by ordinal of the reader")
published = Key("category:{subject}:published", "string", DAY, "time of the last publication (µs)")
sent = Key("category:{subject}:sent", "sorted set", DAY, "publications by token, so that none counts twice: sequence")
reads_began = Key("reads:began", "string", 0, "since when Redis knows publications (µs); earlier pages mark nothing")
readers = Key("readers", "hash of readers", 0, "the ordinal of each reader without a small number, by a keyed hash")
anonymous_readers = Key("readers:anonymous:{generation}", "hash of readers", "COOKIE_AGE", "the same by cookies, by when they were numbered; kept for up to two COOKIE_AGE")
readers_next = Key("readers:next", "string", 0, "the next ordinal; an evicted `readers` hands none out again")
flush_last = Key("flush:last", "string", 0, "last start or end of a flush (µs)")
flush_requested = Key("flush:requested", "string", 0, "when a restored snapshot requested a full flush (µs)")
flush_full = Key("flush:full", "string", 0, "start of the last full flush that ended well (µs)")
flush_orphans = Key("flush:orphans", "sorted set", 0, "subjects without a row, by when that was first seen (µs)")
flush_layout = Key("flush:partitions", "string", 0, "PARTITIONS that flushes know; a flush with others does nothing")
importing = Key("import:{source}", "hash", 30 * DAY, "position of an import, for as long after a batch")
renaming = Key("renaming", "string", MINUTE, "the process that moves keys of a renamed model to their new names")
moving = Key("moving:{state}:{token}:{name}", "any", 0, "a key of a renamed model on its way to another partition")
budget = Key("budget:{nonce}:{kind}", "any", MINUTE, "written, weighed and removed by `readtrack budget`")
# fmt: on

KEYS: tuple[Key, ...] = tuple(row for row in globals().values() if isinstance(row, Key))
# Names that no dimension may have: views:total:…, views:hour:…
RESERVED = frozenset(row.pattern.split(":")[1] for row in KEYS if row.pattern.startswith("views:"))
_MOST_LITERAL_FIRST = sorted(KEYS, key=lambda row: len(PART.sub("", row.pattern)), reverse=True)


class ViewKeys(NamedTuple):
    """The keys of a model's views in a minute, each without the subject or visitor at its end."""

    rate: str
    unsettled: str
    bucket: str
    total: str
    hour: str
    model_hour: str
    minute_visitors: str
    hll: str
    window: str


@lru_cache(maxsize=1024)
def of_minute(minute: int, prefix: str, tag: str, label: str) -> ViewKeys:
    """Returns the keys of the model's views in the minute (since 1970) in the tag's partition."""
    at = datetime.fromtimestamp(minute * MINUTE, timezone.utc)
    parts = {
        "tag": tag,
        "hour": buckets.hour_bucket(at),
        "minute": buckets.minute_bucket(at),
        "model": label,
        "subject": "",
        "visitor": "",
    }
    rows = (rate, unsettled, trending_bucket, total, hour, model_hour, minute_visitors, hll)
    names = [row.tagged.format_map(parts) for row in rows]
    names.append(f"{window.family}{tag}:")
    return ViewKeys(*(prefix + name for name in names))


def hash_kinds() -> tuple[str, ...]:
    """Returns the beginnings of the keys of a subject's hashes: the funnel, reading, and each dimension."""
    return ("funnel", "reading", *(f"views:{dimensions.name_of(path)}" for path in conf.DIMENSIONS))


def member(kind: str, subject: str) -> str:
    """Returns the name of a counter in `views:unsettled`: its key without the prefix, but that of a total (kind "")."""
    if not kind:
        return subject
    own_tag = tag(subject) if conf.PARTITIONS > 1 else ""
    return f"{kind}{own_tag}:{subject}"


def split_member(name: str) -> tuple[str, str]:
    """Returns the kind and the subject of a name in `views:unsettled`: "" for a total, "hour" for a model's hour."""
    if name.startswith("views:hour:"):
        return "hour", name
    # The kind may be a dimension's that is in the settings no more.
    parts = MEMBER.fullmatch(TAG.sub("", name))
    if parts is None:
        return "", name
    return parts[1], parts[2]


def tag_in(name: str) -> str:
    """Returns the hash tag in a name, "" for none."""
    match = TAG.search(name)
    return match[0] if match else ""


@lru_cache(maxsize=4096)  # each full flush asks for two days of each model
def hour_name(model: str, hour: int) -> str:
    """Returns the name in `views:unsettled` of the counter of `blog.post`, or `blog.post:{rt07}`, in that hour."""
    label, colon, own = model.partition(":")
    return model_hour.template % (colon + own, buckets.hour_bucket(buckets.hour_start(hour)), label)


def parse_hour(name: str) -> tuple[str, int]:
    """Returns the model and the hour (since 1970) of a name in `views:unsettled`."""
    family, bucket, label = name.rsplit(":", 2)
    return label + family.removeprefix(model_hour.family), buckets.bucket_index(bucket)


def parse(key: str) -> tuple[Key | None, dict[str, str]]:
    """Returns the row of a key and the parts of its name, "tag" too; None and no parts for a key that is not ours."""
    beginning = prefix()
    if not key.startswith(beginning):
        return None, {}
    for row in _MOST_LITERAL_FIRST:
        match = row.expression.fullmatch(key, len(beginning))
        if match:
            return row, match.groupdict()
    return None, {}
