"""Every key in Redis. All of them start with `READTRACK["PREFIX"]`, while tests run with `TEST_PREFIX` before it.

key                               type        TTL       why
--------------------------------  ----------  --------  ---------------------------------------------
views:total:{id}                  string      none      the live, absolute count
views:hour:{hour}:{id}            string      1 day     views of one subject in an hour
views:hour:{hour}:{model}         string      2 days    views of one model in an hour; the site's are their sum
views:hll:{id}                    HyperLogLog none      unique visitors: strategy hll
views:hll:{id}:stored             HyperLogLog none      for the moment of a merge, inside a script
views:unique:{id}                 set         none      unique visitors: strategy set
views:unique:day:{date}:{id}      set         2 days    unique visitors of a day: strategy daily
views:daily:{id}                  string      none      the sum of those days' counts
views:bitmap:{id}                 bitmap      none      unique visitors, bit by reader: strategy bitmap
views:hll:day:{date}:{id}         HyperLogLog 35 days   visitors of a day; kept for UNIQUE_DAYS days
views:hll:days:{n}:{date}:{id}    HyperLogLog 1 hour    those of n days, merged when asked for
views:{dimension}:{id}            hash        as total  views by value: 50 values, the rest is "other"
funnel:{id}                       hash        as total  how often each stage was reached
funnel:pass:{visitor}:{id}        string      1 hour    stage that a visitor reached; from the latest on
views:unsettled                     sorted set  none      counters that lack SQL's base, by when
                                                        (microseconds): what settling works off;
                                                        `{id}` or, of a hash and a model's hour, its key
views:reset                       sorted set  1 day     ids set to zero, by when (microseconds)
viewed:{visitor}:{id}             string      window    a reload is not a view; never extended
viewed:slice:{slice}:{shard}      set         window +  the same as hashed integers, for a slice of time
                                              a slice   (WINDOW_STORE = "compact")
rate:{visitor}                    string      10 s      hits since the first one; never extended. From
                                                        10^15 up, and for a day: honeypot's robots
views:skips:{hour}                hash        49 hours  hits that did not count, by reason
trending:bucket:{minute}          sorted set  70 min    views by subject in that minute; a funnel's step adds 0
trending:entered:{minute}         sorted set  80 min    what the list took of that bucket, to give up later
trending:top                      sorted set  10 min    the sum of the last 60 of them, and in "" the newest
trending:top:{minutes}            sorted set  10 min    the same for other windows, while somebody asks for it
trending:asked                    sorted set  10 min    those windows, by when they were asked for
trending:lock                     string      30 s      one process computes lists
category:{id}:read                bitmap      none      bit by user id: 1 has read; gone on publish
category:{id}:seen                string      none      4 bytes by user id: publications seen + 1; the
                                                        first 4 hold how many there were (for "3 new")
category:{id}:read:ordinal        bitmap      none      the same two by ordinal, for other user ids
category:{id}:seen:ordinal        string      none
category:{id}:published                string      1 day     when it was last published to (microseconds)
readers                           hash        none      the ordinal of each reader; goes with the two above
flush:epoch                       string      none      number of the last settling and of the one before:
                                                        tells a Redis that was restored (see epoch.py)
flush:last                        string      none      last start or end of a flush that this Redis knows of
flush:requested                        string      none      when a restored snapshot called for a full flush
flush:full                        string      none      start of the last full flush that ended well
flush:orphans                     sorted set  none      ids without a row, by when first missed (microseconds)
import:{source}                   hash        none      how far an import was announced and applied;
                                                        1 day once it is done
budget:{nonce}:{kind}             any         1 min     written and removed by `readtrack budget`

`{id}` is a subject's subject, `blog.post:42`; `{model}` what it begins with; `{visitor}` is a keyed hash.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache

from readtrack.conf import conf, test_prefix
from readtrack.hits import dimensions
from readtrack.hits.visitors import Visitor


def matching_totals() -> str:
    """Matches every total."""
    return _glob("views:total:*")


def matching_unique_sets() -> str:
    """Matches the sets of unique visitors."""
    return _glob("views:unique:*")


def matching_unique_bitmaps() -> str:
    """Matches the bitmaps of unique visitors."""
    return _glob("views:bitmap:*")


def matching_read_state() -> str:
    """Matches the read state of every category."""
    return _glob("category:*")


def matching_traces(visitor: str) -> str:
    """Matches every key that is named after the visitor."""
    return _glob(f"*{visitor}*")


def matching_everything() -> str:
    """Matches every key of ours, by its prefix: without one, every key there is."""
    return _glob("*")


def _glob(pattern: str) -> str:
    start = "".join(f"\\{char}" if char in "*?[]\\" else char for char in prefix())
    return f"{start}{pattern}"


def prefix() -> str:
    """What every key begins with: while Django's tests run, something that a live site's keys do not."""
    return f"{test_prefix()}{conf.PREFIX}"


def _one(name: str) -> Callable[[], str]:
    return lambda: f"{prefix()}{name}"


def _each(name: str) -> Callable[[str], str]:
    return lambda what: f"{prefix()}{name}:{what}"


# By a subject's subject
total = _each("views:total")
hll = _each("views:hll")
unique = _each("views:unique")
daily = _each("views:daily")
bitmap = _each("views:bitmap")
funnel = _each("funnel")
# By an hour or a minute
skips = _each("views:skips")
trending_bucket = _each("trending:bucket")
trending_copy = _each("trending:entered")
# By a visitor's name; by an import's source
rate = _each("rate")
importing = _each("import")

unsettled = _one("views:unsettled")
reset = _one("views:reset")
trending_asked = _one("trending:asked")
trending_lock = _one("trending:lock")
readers = _one("readers")
flush_epoch = _one("flush:epoch")
flush_last = _one("flush:last")
flush_requested = _one("flush:requested")
flush_full = _one("flush:full")
flush_orphans = _one("flush:orphans")


def recorded(visitor: str, *, minute: str) -> tuple[str, ...]:
    """The keys that every recorded hit names, in the order of record.lua."""
    start = prefix()
    return f"{start}rate:{visitor}", f"{start}views:unsettled", f"{start}trending:bucket:{minute}"


def viewing(subject: str, *, visitor: str, fallback_id: str, hour: str) -> tuple[str, ...]:
    """The keys of one view, in the order of record.lua."""
    start = prefix()
    names = (
        f"{start}views:total:{subject}",
        f"{start}views:hour:{hour}:{subject}",
        f"{start}views:hour:{hour}:{subject.partition(':')[0]}",
        f"{start}views:hll:{subject}",
        f"{start}viewed:{visitor}:{subject}",
    )
    return (*names, f"{start}viewed:{fallback_id}:{subject}") if fallback_id else names


def state(subject: str, family: str) -> str:
    """The read state of one category; the families are those of `readers`."""
    return f"{prefix()}category:{subject}:{family}"


def published(subject: str) -> str:
    return f"{prefix()}category:{subject}:published"


def hour(bucket: str, name: str) -> str:
    """The views in an hour of one subject by its subject, or of a model by its label."""
    return counter(hourly(bucket), name)


def hourly(bucket: str) -> str:
    """The family of the models' hours: `member(hourly(bucket), label)` is the name of one in `unsettled()`."""
    return f"views:hour:{bucket}"


def unique_day(subject: str, *, day: str) -> str:
    return f"{prefix()}views:unique:day:{day}:{subject}"


def sketch(subject: str, *, day: str) -> str:
    return f"{prefix()}views:hll:day:{day}:{subject}"


def sketches(subject: str, *, days: Sequence[str]) -> tuple[str, ...]:
    """The merged sketch of the days, oldest first, and the sketch of each."""
    merged = f"{prefix()}views:hll:days:{len(days)}:{days[-1]}:{subject}"
    return merged, *(sketch(subject, day=day) for day in days)


def breakdown(subject: str, *, name: str) -> str:
    return f"{prefix()}views:{name}:{subject}"


def passes(subject: str, visitor: Visitor) -> tuple[str, ...]:
    """How far the visitor came, under each name that the visitor is known by."""
    return tuple(f"{prefix()}funnel:pass:{who}:{subject}" for who in (visitor.id, visitor.fallback_id) if who)


def window_slice(number: int, shard: int) -> str:
    return f"{prefix()}viewed:slice:{number:x}:{shard:x}"


def hash_kinds() -> tuple[str, ...]:
    """The hashes of counts that a subject has: `{family}:{id}`, field -> count.

    Who creates such a hash, with its first field, adds its name without the prefix to `views:unsettled`, as is
    done for totals; the flush cares for the rest.
    """
    return ("funnel", *(f"views:{dimensions.name_of(path)}" for path in conf.DIMENSIONS))


def counter(family: str, subject: str) -> str:
    """The counter, or the hash of counts, of that family."""
    return f"{prefix()}{family}:{subject}"


def member(family: str, subject: str) -> str:
    """A counter's name in `unsettled()`; the total's family is ""."""
    return f"{family}:{subject}" if family else subject


def split_member(name: str) -> tuple[str, str]:
    """The family ("" for a total) and subject (for an hour the model's label) of a name in `unsettled()`."""
    if is_hour(name):
        family, _, label = name.rpartition(":")
        return family, label
    for family in hash_kinds():
        if name.startswith(f"{family}:"):
            return family, name[len(family) + 1 :]
    return "", name


def is_hour(name: str) -> bool:
    """Whether a name in `unsettled()` is of a model's hour."""
    return name.startswith("views:hour:")


def owned(subject: str) -> tuple[str, ...]:
    """The lasting keys of one subject that SQL keeps, too: its total, its sketch, its hashes."""
    return total(subject), hll(subject), *(counter(family, subject) for family in hash_kinds())


def others(subject: str) -> tuple[str, ...]:
    """Its lasting keys that only Redis has."""
    return unique(subject), daily(subject), bitmap(subject)


def scratch(subject: str) -> str:
    """Where a script puts a stored sketch while it merges it."""
    return f"{prefix()}views:hll:{subject}:stored"


def trending_top(name: str) -> str:
    return f"{prefix()}trending:top:{name}" if name else f"{prefix()}trending:top"


def budget(nonce: str, kind: str) -> str:
    return f"{prefix()}budget:{nonce}:{kind}"


def kind_of(key: str) -> str:
    """Which row of the table above the key is of; "other" for none."""
    if not key.startswith(prefix()):
        return "other"
    name = key[len(prefix()) :]
    return next((row for row, pattern in _kinds() if pattern.fullmatch(name)), "other")


@cache
def _kinds() -> list[tuple[str, re.Pattern[str]]]:
    """The rows of the table, those that say most of a key first."""
    _, *rows = re.findall(r"^([a-z]\S*) ", __doc__ or "", re.MULTILINE)  # but the table's head
    parts = {"id": r"[^:]+:[^:]+", "hour": r"\d{10}"}
    return [
        (row, re.compile(re.sub(r"\\{(\w+)\\}", lambda part: parts.get(part[1], "[^:]*"), re.escape(row))))
        for row in sorted(rows, key=lambda row: len(re.sub(r"\{.*?\}", "", row)), reverse=True)
    ]
