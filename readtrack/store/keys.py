"""Every key in Redis: one row each, with its type, its lifetime and its purpose.

A row is called to get the name of a key: `total("blog.post:42")`. Names begin with
`READTRACK["PREFIX"]`, or with the name of a tenant if PREFIX is the path of a function. While tests
run, `test:` comes before that. In patterns `{subject}` is `blog.post:42`, `{model}` is `blog.post`,
and `{visitor}` is a keyed hash.

With several partitions, the hash tag of the partition follows the family of the key, so that a
cluster keeps the keys of a partition together: `views:total:{rt07}:blog.post:42`. The family is the
constant beginning, `views:total`. A row with a subject or a visitor computes the tag from that. Any
other row takes the tag as its first piece; it is "" for a key that the whole site shares.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, Literal, TypeVar
from urllib.parse import quote
from zlib import crc32

from django.utils.module_loading import import_string

from readtrack import parts
from readtrack.conf import after_change, cached_setting, conf

Item = TypeVar("Item")

MINUTE = 60  # seconds
HOUR = 3600
DAY = 86_400
# The mark of the honeypot: a rate beyond every limit. Recording sees it without a further command.
ROBOT = 10**15
PIECE = re.compile(r"\{(\w+)\}")
TAG = re.compile(r":\{rt[0-9a-f]+\}")
# What the pieces of a name may hold; any other piece holds `[^:{]*`.
PIECES = {
    "tag": rf"(?:{TAG.pattern})?",
    "subject": r"[^:{]+:[^:{]+",
    "within": r"[^:{]+:[^:{]+",  # the subject of an object that others are within
    "hour": r"\d{10}",
    "name": ".+",
}
# A kind, which has no dot, and a subject of `app.model`.
MEMBER = re.compile(r"([^.]+?):([^:.]+\.[^:]+:.*)", re.DOTALL)
PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


class Key:
    """A row of the table of keys: all keys with the same pattern."""

    def __init__(
        self,
        pattern: str,
        type: str,  # noqa: A002 - as the docs call it
        ttl: Any,
        why: str,
        *,
        kept_with: Literal["counts", "read state", ""] = "",
        united: str = "keep",
        settles: bool = False,
        holds: Literal["subjects", "visitors", "readers", ""] = "",
        divided: Literal["copied", "first", "anew", "left", ""] = "",
        is_used: Callable[[], bool] = lambda: True,
        amount: Callable[[Any], tuple[float, float]] | None = None,
    ) -> None:
        """Takes the lifetime in seconds, or the name of the setting that decides it; 0 for ever.

        `kept_with`: keys about a subject are removed with its counts (by a reset, too; of an idle
        subject only those that do not expire), or with its read state.
        `united`: what becomes of a key that gets a name which another key has: "keep" the other,
        "add" its counts, the "highest" of both, "PFMERGE", "SUNIONSTORE" or "BITOP".
        `settles`: the key is a counter that is in `views:unsettled` until it has SQL's count. A
        hash `family:{subject}` that settles is stored as one of the subject's hashes.
        `holds`: the members are "subjects" of a sorted set, which follow a new name, and go to
        their partition (of two scores of a subject, they "add" up, or the "highest" stays; those of
        a visitor's key stay in it, and follow only while `is_used`); "visitors" of a set or
        "readers" of a bitmap, who may be erased.
        `divided`: what becomes of a key without a subject and a visitor if its partition is
        divided. It is "copied" to each; all go to the "first" partition; it begins "anew"; it is
        "left" alone; or it stays if its partition does.
        `is_used` returns False if the budget leaves the key out: the settings do without it, there
        are few, or they are there for a moment or after a loss.
        `amount` returns the number of keys and of the members of each, by the `SiteSize` of the
        budget. Without it they follow from the views and the lifetime.
        """
        self.pattern = pattern
        self.type = type
        self.ttl = ttl
        self.why = why
        self.kept_with = kept_with
        self.united = united
        self.settles = settles
        self.holds = holds
        self.divided = divided
        self.is_used = is_used
        self.amount = amount
        self.family = re.split(r":\{(?!dimension)", pattern)[0]  # the beginning, before the tag
        self.tagged = f"{self.family}{{tag}}{pattern[len(self.family) :]}"
        self.template = PIECE.sub("%s", self.tagged)
        # The index of the piece by which the partition is computed; None without such a piece.
        self.owner: int | None = None
        self.piece_names: Sequence[str] = PIECE.findall(pattern)
        for name in ("visitor", "subject"):  # a subject decides if there are both
            if name in self.piece_names:
                self.owner = self.piece_names.index(name)

    def __call__(self, *pieces: Any) -> str:
        """Returns the name of one key: the prefix, and the pattern with the pieces filled in."""
        if self.owner is not None:
            own_tag = ""
            if _is_divided or (_is_divided is None and is_divided()):
                own_tag = tag(pieces[self.owner])
            pieces = (own_tag, *pieces)
        return prefix() + self.template % pieces

    def start(self, tag: str, *pieces: Any) -> str:
        """Returns what the names of many keys of the tag's partition begin with: all but the last
        piece, with which they end.

        To put a piece behind it takes a fraction of the time that a call of the row takes.
        """
        return prefix() + self.template % (tag, *pieces, "")

    def placed(self, pieces: Mapping[str, str], *, tag: str) -> str:
        """Returns the name of the key with these pieces, by their names, in the tag's partition."""
        return prefix() + self.tagged.format_map({**pieces, "tag": tag})

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """Returns the regular expression of these keys' names after the prefix.

        It has a group for each piece, and one for the tag.
        """

        def group_of(piece: re.Match[str]) -> str:
            name = piece[1]
            content = PIECES.get(name, "[^:{]*")
            return f"(?P<{name}>{content})"

        return re.compile(PIECE.sub(group_of, self.tagged))


TESTS = "test:"  # begins the keys of tests, so that they leave the keys of a live site alone
TESTSERVER = "django.core.management.commands.testserver"  # loaded by `manage.py testserver` alone
_has_tested = False  # stays True after the tests, because threads may still send what tests left


def test_prefix() -> str:
    """Returns what begins the keys of tests, during and after them; "" in a process without tests.

    It differs between test processes that run side by side.
    """
    global _has_tested
    _has_tested = _has_tested or _is_testing()
    if not _has_tested:
        return ""
    # The number of the process, from Django's runner or pytest-xdist.
    runner = sys.modules.get("django.test.runner")
    process = os.environ.get("PYTEST_XDIST_WORKER") or str(getattr(runner, "_worker_id", 0) or "")
    return f"{TESTS}{process}:" if process else TESTS


def _is_testing() -> bool:
    """Returns True once this process runs Django's tests, or its server with a database of tests.

    The modules are not imported, because a process that serves pages has no use for them.
    """
    # Django's test tools have `saved_data` once a test run has begun.
    tools = sys.modules.get("django.test.utils")
    if tools is not None and hasattr(tools._TestState, "saved_data"):
        return True
    return TESTSERVER in sys.modules


def prefix() -> str:
    """Returns the beginning of every key."""
    prefix_of_site = conf.PREFIX
    if "." in prefix_of_site:
        prefix_of_site = _prefix_of_site()
    if _has_tested or _is_testing():
        return test_prefix() + prefix_of_site
    return prefix_of_site


def salt(purpose: str) -> str:
    """Returns the salt for signing: the purpose, such as `outbound`, and the prefix of the tenant.

    So no tenant accepts what another tenant has signed.
    """
    return _cached_salt(purpose) or f"{purpose}:{_prefix_of_site()}"


@cached_setting()  # because a page may have a hundred placeholders
def _cached_salt(purpose: str) -> str:
    """Returns the salt; "" if it depends on the tenant."""
    return "" if tenant_function() else f"{purpose}:{_prefix_of_site()}"


def _prefix_of_site() -> str:
    """Returns the prefix of the site or of the present tenant, without that of tests."""
    function = tenant_function() if "." in conf.PREFIX else None
    return conf.PREFIX if function is None else _prefix_of_tenant(str(function()))


@cached_setting()
def tenant_function() -> Callable[[], Any] | None:
    """Returns the function whose path is PREFIX; None if PREFIX is no path. Raises ImportError."""
    return import_string(conf.PREFIX) if PATH.fullmatch(conf.PREFIX) else None


@lru_cache(maxsize=1024)
def _prefix_of_tenant(tenant: str) -> str:
    """Returns the prefix of a tenant; a name of more than 100 characters becomes a hash."""
    name = quote(tenant, safe="", errors="replace")
    if len(name) > 100:
        name = blake2b(name.encode(), digest_size=16).hexdigest()
    return f"{name}:"


def prefix_of(tenant: str) -> str:
    """Returns the beginning of every key of the tenant for which PREFIX returns that name."""
    return test_prefix() + _prefix_of_tenant(tenant)


def matching(pattern: str, *, beginning: str | None = None) -> str:
    """Returns the pattern for SCAN that finds the pattern behind our prefix, or behind another
    beginning.
    """
    beginning = prefix() if beginning is None else beginning
    # The prefix itself is no pattern.
    escaped_prefix = re.sub(r"[*?\[\]\\]", r"\\\g<0>", beginning)
    return escaped_prefix + pattern


@cached_setting("INSTALLED_APPS", maxsize=4096)
def tag(name: str) -> str:
    """Returns the hash tag of the partition of a subject or a visitor, `:{rt07}`.

    With one partition it is "".
    """
    return tags()[crc32(name.encode()) % len(tags())]


# What `is_divided` returns; None until it is asked after a change of the settings. A plain value,
# because each key that is named asks for it.
_is_divided: bool | None = None


def is_divided() -> bool:
    """Returns True if there are several partitions, which an installed part decides."""
    global _is_divided
    if _is_divided is None:
        _is_divided = parts.division().partitions > 1
    return _is_divided


@after_change("INSTALLED_APPS")
def _forget_division() -> None:
    global _is_divided
    _is_divided = None


@cached_setting("INSTALLED_APPS", maxsize=1)
def tags() -> Sequence[str]:
    """Returns the hash tags of all partitions; one "" for a site with one partition."""
    if is_divided():
        return [f":{{rt{number:02x}}}" for number in range(parts.division().partitions)]
    return [""]


def past_tags() -> Sequence[str]:
    """Returns the hash tags of all partitions that the site has, or had when there were fewer.

    The number of partitions never falls.
    """
    return list(dict.fromkeys(["", *tags()]))


def by_tag(
    items: Iterable[Item], tag_of: Callable[[Any], str] = tag
) -> Mapping[str, Sequence[Item]]:
    """Returns the items by the tag of their partition, in their order.

    Items are subjects or visitors; for other items `tag_of` returns the tag.
    """
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(tag_of(item), []).append(item)
    return groups


def _never() -> bool:
    return False


# One line for each key.
# fmt: off
total = Key("views:total:{subject}", "string", 0, "views, absolute and live", kept_with="counts", united="add", settles=True)
hours = Key("views:hours:{subject}", "hash", 3 * DAY, "views of one subject by hour; once a full flush has stored them, for a day more", kept_with="counts", united="add")
model_hour = Key("views:hour:{hour}:{model}", "string", 3 * DAY, "views of a model in an hour; their sum is the site's", united="add", settles=True)
minute_visitors = Key("visitors:minute:{minute}:{model}", "HyperLogLog", 6 * MINUTE, "visitors of a model in a minute", united="PFMERGE")
hll = Key("views:hll:{subject}", "HyperLogLog", 0, "unique visitors: strategy hll", kept_with="counts", united="PFMERGE")
scratch = Key("views:hll:{subject}:stored", "HyperLogLog", 0, "exists only inside a script, during a merge", is_used=_never)
unique = Key("views:unique:{subject}", "set", 0, "unique visitors: strategy set", kept_with="counts", united="SUNIONSTORE", holds="visitors")
unique_day = Key("views:unique:day:{date}:{subject}", "set", 2 * DAY, "unique visitors of a day: strategy daily", kept_with="counts", united="SUNIONSTORE", holds="visitors")
daily = Key("views:daily:{subject}", "string", 0, "sum of the daily numbers of visitors: strategy daily", kept_with="counts", united="add")
bitmap = Key("views:bitmap:{subject}", "bitmap", 0, "unique visitors, one bit by reader number: strategy bitmap", kept_with="counts", united="BITOP", holds="readers")
earlier = Key("views:earlier:{subject}", "string", 0, "visitors that Redis lost: strategies set, daily and bitmap", kept_with="counts", united="highest", is_used=_never)
day_visitors = Key("views:hll:day:{date}:{subject}", "HyperLogLog", 3 * DAY, "visitors of a day of TIME_ZONE, until flushes have stored them", kept_with="counts", united="PFMERGE")
united = Key("views:hll:united:{number}", "HyperLogLog", 0, "exists only inside a script, while sketches are united", is_used=_never)
funnel = Key("funnel:{subject}", "hash", 0, "number of passes that reached each stage", kept_with="counts", united="add", settles=True)
funnel_pass = Key("funnel:reached:{visitor}:{subject}", "string", HOUR, "the last stage that a visitor reached, by its name")
dimension = Key("views:{dimension}:{subject}", "hash", 0, "views by value: the 50 heaviest", kept_with="counts", united="add", settles=True)
dimension_names = Key("views:dimensions", "sorted set", 0, "names of dimensions, by when the site last had them (µs)", divided="copied", is_used=_never)
unsettled = Key("views:unsettled", "sorted set", 0, "counters that lack SQL's count, by when they began (µs); epoch")
changed = Key("views:changed", "sorted set", 70 * MINUTE, "subjects that changed since a flush took this list", united="highest", holds="subjects")
flushing = Key("views:flushing", "sorted set", 70 * MINUTE, "subjects that a flush took and has not stored yet, by when it took them (µs)", united="highest", holds="subjects")
reset = Key("views:reset", "sorted set", DAY, "subjects set to zero, by when (µs)", united="highest", holds="subjects")
purged = Key("views:purged", "sorted set", DAY, "subjects whose counts went with a deleted row, or were from before a reset, by when (µs)", united="highest", holds="subjects")
window = Key("viewed:{visitor}:{subject}", "string", "WINDOW", "1: counted; s: counted and seen; 2: the view of another id; a new cookie's: p, or 0 if refused")
rate = Key("rate:{visitor}", "string", "RATE", "hits since the first; 10^15, for a day, marks a robot")
day_key = Key("visitors:key:{date}", "string", 2 * DAY, "random key of the day's hashes of visitors without a cookie", divided="first")
skips = Key("views:skips:{hour}", "hash", 49 * HOUR, "hits that did not count, by reason; robots; notices", divided="first")
trending_bucket = Key("trending:bucket:{minute}", "sorted set", 70 * MINUTE, "views by subject in that minute that the trending list has not taken in yet", united="add", holds="subjects")
trending_taken = Key("trending:taken:{minute}", "sorted set", 80 * MINUTE, "views by subject in that minute that the list has taken in", united="add", holds="subjects")
trending_list = Key("trending:list", "sorted set", 10 * MINUTE, "views by subject of the last 60 minutes; member “” is the newest of them", divided="anew")
read_bits = Key("category:{subject}:read", "bitmap", 0, "one bit by user id: 1 has read; removed by a publication", kept_with="read state")
seen_counters = Key("category:{subject}:seen", "numbers", 0, "4 bytes by user id: publications seen, plus 1", kept_with="read state")
ordinal_read_bits = Key("category:{subject}:read:ordinal", "bitmap", 0, "the same by ordinal of the reader", kept_with="read state")
ordinal_seen_counters = Key("category:{subject}:seen:ordinal", "numbers", 0, "the same by ordinal of the reader", kept_with="read state")
read_scratch = Key("category:{subject}:read:stored", "bitmap", 0, "exists only inside a script, while the copy that SQL has is joined", is_used=_never)
published = Key("category:{subject}:published", "string", 0, "time of the last publication (µs)", kept_with="read state")
sent = Key("category:{subject}:sent", "sorted set", DAY, "publications by token, so that none counts twice: sequence", kept_with="read state")
reads_began = Key("reads:began", "string", 0, "since when Redis knows publications (µs); earlier pages mark nothing, and without it there are no dots", divided="copied")
reads_restoring = Key("reads:restoring", "string", DAY, "the flush that gives Redis its read state back, by a random number")
reads_changed = Key("reads:changed", "sorted set", 0, "keys of read state that changed since SQL got a copy, by when (µs)", is_used=_never)
readers = Key("readers", "hash of readers", 0, "the ordinal of each reader without a small number, by a keyed hash", divided="copied")
anonymous_readers = Key("readers:anonymous:{generation}", "hash of readers", "COOKIE.age", "the same by cookies, by when they were numbered; kept for up to twice the age", divided="copied")
readers_next = Key("readers:next", "string", 0, "the next ordinal; an evicted `readers` hands none out again", divided="copied")
readers_new = Key("readers:new", "sorted set", 0, "readers that SQL does not know yet, by their ordinals", is_used=_never)
flush_last = Key("flush:last", "string", 0, "last start or end of a flush (µs)", divided="copied")
flush_requested = Key("flush:requested", "string", 0, "when a restored snapshot requested a full flush (µs)")
flush_full = Key("flush:full", "string", 0, "start of the last full flush that ended well (µs)", divided="copied")
flush_orphans = Key("flush:orphans", "sorted set", 0, "subjects without a row, by when that was first seen (µs)")
flush_layout = Key("flush:layout", "hash", 0, "number of partitions, and layout of the keys, that flushes know; a flush with others, or of a version that does not know the layout, does nothing", divided="left")
renaming = Key("renaming", "string", MINUTE, "the process that moves keys of a renamed model to their new names")
moving = Key("moving:{state}:{move_id}:{name}", "any", 0, "a key of a renamed model on its way to another partition")
job = Key("job:{name}", "string", DAY, "random: a job was claimed, and is not due; for about its interval, which may be more than a day")
# fmt: on

CORE: tuple[Key, ...] = tuple(row for row in globals().values() if isinstance(row, Key))


@cached_setting("INSTALLED_APPS", maxsize=1)
def every() -> tuple[Key, ...]:
    """Returns all rows of the table: those of the core, and those of the installed parts."""
    rows = [*CORE]
    for part in parts.installed():
        rows += part.keys()
    return tuple(rows)


def reserved() -> set[str]:
    """Returns the names that no dimension may have: `total` of `views:total:…`, and so on."""
    return {row.pattern.split(":")[1] for row in every() if row.pattern.startswith("views:")}


@cached_setting("INSTALLED_APPS", maxsize=1)
def _rows_by_word() -> dict[str, list[Key]]:
    """Returns the rows by the first word of their pattern, those with the most literal text
    first.
    """
    rows: dict[str, list[Key]] = {}
    for row in sorted(every(), key=lambda row: len(PIECE.sub("", row.pattern)), reverse=True):
        word, _, _ = row.pattern.partition(":")
        rows.setdefault(word, []).append(row)
    return rows


@cached_setting("INSTALLED_APPS", maxsize=1)
def hash_kinds() -> tuple[str, ...]:
    """Returns the families of a subject's hashes: `funnel`, `reading`, `views:device` and so on."""
    kinds = []
    for row in every():
        if row is dimension:
            kinds += [f"views:{name}" for name in parts.dimensions()]
        elif row.settles and row.type == "hash":
            kinds.append(row.family)
    return tuple(kinds)


def member(kind: str, subject: str) -> str:
    """Returns the member of `views:unsettled` that stands for a counter of the subject.

    For a total, whose kind is "", it is the subject; for a hash it is the key without the prefix.
    """
    if not kind:
        return subject
    subject_tag = tag(subject) if is_divided() else ""
    return member_start(kind, subject_tag) + subject


def member_start(kind: str, subject_tag: str) -> str:
    """Returns what comes before the subject in `member`, for a kind of hash in the tag's
    partition.
    """
    return f"{kind}{subject_tag}:"


def split_member(name: str) -> tuple[str, str]:
    """Returns the kind and the subject of a member of `views:unsettled`.

    The kind is "" for a total. For the hour of a model it is "hour", and the member itself is in
    the place of a subject.
    """
    if name.startswith("views:hour:"):
        return "hour", name
    # Not compared with `hash_kinds`, because the site may have removed the dimension since.
    match = MEMBER.fullmatch(TAG.sub("", name))
    if match is None:
        return "", name
    return match[1], match[2]


def tag_in(name: str) -> str:
    """Returns the hash tag in the name of a key; "" if it has none."""
    match = TAG.search(name)
    return match[0] if match else ""


def parse(key: str, *, beginning: str | None = None) -> tuple[Key | None, dict[str, str]]:
    """Returns the row of a key, and the pieces of its name by their names, the tag among them.

    `beginning` is the prefix of the key, by default ours. Returns None and no pieces for a key that
    is not ours.
    """
    beginning = prefix() if beginning is None else beginning
    if not key.startswith(beginning):
        return None, {}
    word, _, _ = key[len(beginning) :].partition(":")
    for row in _rows_by_word().get(word, ()):
        match = row.expression.fullmatch(key, len(beginning))
        if match:
            return row, match.groupdict()
    return None, {}
