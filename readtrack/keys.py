"""Every key in Redis. All of them start with `READTRACK["PREFIX"]`.

key                               type        TTL       why
--------------------------------  ----------  --------  ---------------------------------------------
views:total:{id}                  string      none      the live, absolute count
views:hour:{hour}:{id}            string      1 day     views of one subject in an hour
views:hour:{hour}                 string      2 days    views of the whole site in an hour
views:hll:{id}                    HyperLogLog none      unique visitors
views:unbased                     sorted set  none      ids whose total lacks SQL's base, by when
                                                        (microseconds): what settling works off
viewed:{visitor}:{id}             string      window    a reload is not a view; never extended
rate:{visitor}                    string      10 s      hits since the first one; never extended. From
                                                        10^15 up, and for a day: honeypot's robots
views:skips:{hour}                hash        49 hours  hits that did not count, by reason
trending:bucket:{minute}          sorted set  70 min    views by subject in that minute
trending:top                      sorted set  30 s      the sum of the last 60 of them
trending:lock                     string      5 s       one process computes the sum
category:{id}:read                bitmap      none      bit by reader: 1 has read; gone on publish
category:{id}:news                string      1 hour    when it was last published to (microseconds)
flush:epoch                       string      none      number of the last settling and of the one before:
                                                        tells a Redis that was restored (see lineage.py)
import:{source}                   hash        none      how far an import was announced and applied;
                                                        1 day once it is done
budget:{nonce}:{kind}             any         1 min     written and removed by `readtrack budget`

`{id}` is a subject's token, `blog.post:42`; `{visitor}` is a keyed hash.
"""

import re
from functools import cache

from readtrack.conf import conf


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


def readers() -> str:
    return f"{conf.PREFIX}readers"


def reading(token: str) -> tuple[str, str]:
    """The keys of one category's read state: its bitmap, and when it was last published to."""
    return f"{conf.PREFIX}category:{token}:read", f"{conf.PREFIX}category:{token}:news"


def total(token: str) -> str:
    return f"{conf.PREFIX}views:total:{token}"


def total_pattern() -> str:
    """Matches every total in a SCAN; glob characters of the prefix stand for themselves."""
    return f"{_literal(total(''))}*"


def site_hour(bucket: str) -> str:
    return f"{conf.PREFIX}views:hour:{bucket}"


def hll(token: str) -> str:
    return f"{conf.PREFIX}views:hll:{token}"


def unbased() -> str:
    return f"{conf.PREFIX}views:unbased"


def trending_bucket(minute: str) -> str:
    return f"{conf.PREFIX}trending:bucket:{minute}"


def trending_top() -> str:
    return f"{conf.PREFIX}trending:top"


def trending_lock() -> str:
    return f"{conf.PREFIX}trending:lock"


def flush_epoch() -> str:
    return f"{conf.PREFIX}flush:epoch"


def hour(token: str, bucket: str) -> str:
    return f"{conf.PREFIX}views:hour:{bucket}:{token}"


def importing(source: str) -> str:
    return f"{conf.PREFIX}import:{source}"


def _literal(text: str) -> str:
    return "".join(f"\\{char}" if char in "*?[]\\" else char for char in text)


def scratch(nonce: str, kind: str) -> str:
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
