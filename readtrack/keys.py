"""Every key in Redis. All of them start with `READTRACK["PREFIX"]`.

key                               type        TTL       why
--------------------------------  ----------  --------  ---------------------------------------------
views:total:{id}                  string      none      the live, absolute count
views:hour:{hour}:{id}            string      1 day     views of one subject in an hour
views:hour:{hour}                 string      2 days    views of the whole site in an hour
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
views:unbased                     sorted set  none      counters that lack SQL's base, by when
                                                        (microseconds): what settling works off;
                                                        `{id}` or, of a hash, its key
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
trending:top:{window}             sorted set  10 min    the same for other windows, while somebody asks for it
trending:asked                    sorted set  10 min    those windows, by when they were asked for
trending:lock                     string      30 s      one process computes lists
trending:tally:{hour}             hash        3 hours   views by minute (or import) and model, for history
category:{id}:read                bitmap      none      bit by user id: 1 has read; gone on publish
category:{id}:seen                string      none      4 bytes by user id: publications seen + 1; the
                                                        first 4 hold how many there were (for "3 new")
category:{id}:read:ordinal        bitmap      none      the same two by ordinal, for other user ids
category:{id}:seen:ordinal        string      none
category:{id}:news                string      1 day     when it was last published to (microseconds)
readers                           hash        none      the ordinal of each reader; goes with the two above
flush:epoch                       string      none      number of the last settling and of the one before:
                                                        tells a Redis that was restored (see lineage.py)
flush:last                        string      none      last start or end of a flush that this Redis knows of
flush:owed                        string      none      when a restored snapshot called for a full flush
flush:full                        string      none      start of the last full flush that ended well
flush:orphans                     sorted set  none      ids without a row, by when first missed (microseconds)
import:{source}                   hash        none      how far an import was announced and applied;
                                                        1 day once it is done
budget:{nonce}:{kind}             any         1 min     written and removed by `readtrack budget`

`{id}` is a subject's token, `blog.post:42`; `{visitor}` is a keyed hash.
"""

import re
from collections.abc import Sequence
from functools import cache

from readtrack import dimensions
from readtrack.conf import conf
from readtrack.visitors import Visitor


def recorded(visitor: str, *, minute: str, hour: str) -> tuple[str, ...]:
    """The keys that every recorded hit names, in the order of record.lua."""
    prefix = conf.PREFIX
    return (
        rate(visitor),
        f"{prefix}views:unbased",
        f"{prefix}trending:bucket:{minute}",
        f"{prefix}views:hour:{hour}",
    )


def viewing(token: str, *, visitor: str, seen_as: str, hour: str) -> tuple[str, ...]:
    """The keys of one view, in the order of record.lua."""
    prefix = conf.PREFIX
    names = (
        f"{prefix}views:total:{token}",
        f"{prefix}views:hour:{hour}:{token}",
        f"{prefix}views:hll:{token}",
        f"{prefix}viewed:{visitor}:{token}",
    )
    return (*names, f"{prefix}viewed:{seen_as}:{token}") if seen_as else names


def rate(visitor: str) -> str:
    return f"{conf.PREFIX}rate:{visitor}"


def skips(hour: str) -> str:
    return f"{conf.PREFIX}views:skips:{hour}"


def traces(visitor: str) -> str:
    """Matches every key that is named after the visitor, in a SCAN."""
    return f"{_literal(conf.PREFIX)}*{visitor}*"


def unique_pattern() -> str:
    """Matches the sets of unique visitors in a SCAN."""
    return f"{_literal(conf.PREFIX)}views:unique:*"


def bitmap_pattern() -> str:
    """Matches the bitmaps of unique visitors in a SCAN."""
    return f"{_literal(conf.PREFIX)}views:bitmap:*"


def read_pattern() -> str:
    """Matches the read state of every category in a SCAN."""
    return f"{_literal(conf.PREFIX)}category:*"


def state(token: str, family: str) -> str:
    """The read state of one category; the families are those of `readers`."""
    return f"{conf.PREFIX}category:{token}:{family}"


def state_pattern(family: str) -> str:
    """Matches the read state of that family in a SCAN."""
    return f"{read_pattern()}:{family}"


def news(token: str) -> str:
    return f"{conf.PREFIX}category:{token}:news"


def readers() -> str:
    return f"{conf.PREFIX}readers"


def total(token: str) -> str:
    return f"{conf.PREFIX}views:total:{token}"


def total_pattern() -> str:
    """Matches every total in a SCAN; glob characters of the prefix stand for themselves."""
    return f"{_literal(total(''))}*"


def hour(bucket: str, token: str = "") -> str:
    """The views of one subject, or of the whole site, in an hour."""
    return f"{conf.PREFIX}views:hour:{bucket}:{token}" if token else f"{conf.PREFIX}views:hour:{bucket}"


def hll(token: str) -> str:
    return f"{conf.PREFIX}views:hll:{token}"


def unique(token: str) -> str:
    return f"{conf.PREFIX}views:unique:{token}"


def unique_day(token: str, *, day: str) -> str:
    return f"{conf.PREFIX}views:unique:day:{day}:{token}"


def daily(token: str) -> str:
    return f"{conf.PREFIX}views:daily:{token}"


def bitmap(token: str) -> str:
    return f"{conf.PREFIX}views:bitmap:{token}"


def sketch(token: str, *, day: str) -> str:
    return f"{conf.PREFIX}views:hll:day:{day}:{token}"


def sketches(token: str, *, days: Sequence[str]) -> tuple[str, ...]:
    """The merged sketch of the days, oldest first, and the sketch of each."""
    merged = f"{conf.PREFIX}views:hll:days:{len(days)}:{days[-1]}:{token}"
    return merged, *(sketch(token, day=day) for day in days)


def breakdown(token: str, *, name: str) -> str:
    return f"{conf.PREFIX}views:{name}:{token}"


def funnel(token: str) -> str:
    return f"{conf.PREFIX}funnel:{token}"


def passes(token: str, visitor: Visitor) -> tuple[str, ...]:
    """How far the visitor came, under each name that the visitor is known by."""
    return tuple(f"{conf.PREFIX}funnel:pass:{who}:{token}" for who in (visitor.id, visitor.seen_as) if who)


def window_slice(number: int, shard: int) -> str:
    return f"{conf.PREFIX}viewed:slice:{number:x}:{shard:x}"


def families() -> tuple[str, ...]:
    """The hashes of counts that a subject has: `{family}:{id}`, field -> count.

    Who creates such a hash, with its first field, adds its name without the prefix to `views:unbased`, as is
    done for totals; the flush cares for the rest.
    """
    return ("funnel", *(f"views:{dimensions.name_of(path)}" for path in conf.DIMENSIONS))


def counts(family: str, token: str) -> str:
    """The hash of counts of that family."""
    return f"{conf.PREFIX}{family}:{token}"


def member(family: str, token: str) -> str:
    """A counter's name in `unbased()`; the total's family is ""."""
    return f"{family}:{token}" if family else token


def split_member(name: str) -> tuple[str, str]:
    """The family ("" for a total) and token of a name in `unbased()`."""
    for family in families():
        if name.startswith(f"{family}:"):
            return family, name[len(family) + 1 :]
    return "", name


def owned(token: str) -> tuple[str, ...]:
    """The lasting keys of one subject that SQL keeps, too: its total, its sketch, its hashes."""
    return total(token), hll(token), *(counts(family, token) for family in families())


def others(token: str) -> tuple[str, ...]:
    """Its lasting keys that only Redis has."""
    return unique(token), daily(token), bitmap(token)


def reset() -> str:
    return f"{conf.PREFIX}views:reset"


def scratch(token: str) -> str:
    """Where a script puts a stored sketch while it merges it."""
    return f"{conf.PREFIX}views:hll:{token}:stored"


def unbased() -> str:
    return f"{conf.PREFIX}views:unbased"


def trending_bucket(minute: str) -> str:
    return f"{conf.PREFIX}trending:bucket:{minute}"


def trending_copy(minute: str) -> str:
    return f"{conf.PREFIX}trending:entered:{minute}"


def trending_top(name: str) -> str:
    return f"{conf.PREFIX}trending:top:{name}" if name else f"{conf.PREFIX}trending:top"


def trending_asked() -> str:
    return f"{conf.PREFIX}trending:asked"


def trending_lock() -> str:
    return f"{conf.PREFIX}trending:lock"


def flush_epoch() -> str:
    return f"{conf.PREFIX}flush:epoch"


def importing(source: str) -> str:
    return f"{conf.PREFIX}import:{source}"


def _literal(text: str) -> str:
    return "".join(f"\\{char}" if char in "*?[]\\" else char for char in text)


def flush_last() -> str:
    return f"{conf.PREFIX}flush:last"


def flush_owed() -> str:
    return f"{conf.PREFIX}flush:owed"


def flush_full() -> str:
    return f"{conf.PREFIX}flush:full"


def flush_orphans() -> str:
    return f"{conf.PREFIX}flush:orphans"


def tally(hour: str) -> str:
    return f"{conf.PREFIX}trending:tally:{hour}"


def budget(nonce: str, kind: str) -> str:
    return f"{conf.PREFIX}budget:{nonce}:{kind}"


def family(key: str) -> str:
    """Which row of the table above the key is of; "other" for none."""
    if not key.startswith(conf.PREFIX):
        return "other"
    name = key[len(conf.PREFIX) :]
    return next((row for row, pattern in _families() if pattern.fullmatch(name)), "other")


@cache
def _families() -> list[tuple[str, re.Pattern[str]]]:
    """The rows of the table, those that say most of a key first."""
    rows = re.findall(r"^([a-z]\S*:\S*) ", __doc__ or "", re.MULTILINE)
    parts = {"id": r"[^:]+:[^:]+", "hour": r"\d{10}"}
    return [
        (row, re.compile(re.sub(r"\\{(\w+)\\}", lambda part: parts.get(part[1], "[^:]*"), re.escape(row))))
        for row in sorted(rows, key=lambda row: len(re.sub(r"\{.*?\}", "", row)), reverse=True)
    ]
