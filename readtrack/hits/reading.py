"""Really read: what it takes, and what a page's script tells of the text on it.

The numbers are those of Site Kit's event `read_article` (google/site-kit-wp#13287). There must be
trusted signs of two kinds, because crawlers scroll and do nothing else (discourse/discourse#42498).
"""

import re
from html import unescape
from math import ceil
from typing import NamedTuple

WORDS_A_MINUTE, SHARE, LEAST = 238, 0.85, 5  # LEAST in seconds
# Seconds of engagement that are counted: a view that has reached one of them has reached those
# before it.
BINS = (5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 450, 675, 1000, 1500)
TEXTS = 10_000  # whose words a process remembers
_counted: dict[int, int] = {}
ENGAGED, READ = "engaged", "read"  # fields beside the bins

# Scripts without spaces, with the letters of a word as ICU's dictionaries divide prose.
UNSPACED = (
    (re.compile("[\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"), 1.5),
    (re.compile("[\u3040-\u30ff\u31f0-\u31ff]"), 1.9),
    (re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"), 4.5),
)
BREAK = r"\s!-&(-+/:-@\[-^`{-~\u00a1-\u00bf\u2010-\u2018\u201a-\u206f\u3000-\u303f\uff01-\uff0f\uff1a-\uff20-"
WORD = re.compile(rf"\w[^{BREAK}]*")
TAG = re.compile(
    r"<[^<>]*>"
)  # each of these takes time in proportion to the text, whatever a visitor has typed
CODE, CODE_END = (
    re.compile(r"<(?:script|style)\b", re.IGNORECASE),
    re.compile(r"</(?:script|style)", re.IGNORECASE),
)


class Reading(NamedTuple):
    """The engagement with a subject's text, as far as a page's script can have seen it."""

    subject: str
    least: int  # seconds that it takes at least to read the text
    seconds: int  # in which the page was visible, in focus and not left alone
    is_read: bool


def words(html: str) -> int:
    """Returns the number of words, by Unicode's rules for scripts with spaces, and by letters for
    those without.
    """
    # By its hash, because 1,000 words take half a millisecond.
    if (known := _counted.get(hash(html))) is not None:
        return known
    first, *others = CODE.split(html)
    text, found = (
        unescape(
            TAG.sub(" ", " ".join([first, *(CODE_END.split(part, 1)[-1] for part in others)]))
        ),
        0.0,
    )
    for letters, length in UNSPACED:
        text, count = letters.subn(" ", text)
        found += count / length
    if len(_counted) >= TEXTS:
        _counted.clear()
    return _counted.setdefault(hash(html), ceil(found) + len(WORD.findall(text)))


def least_seconds(words: int) -> int:
    """Returns the time that it takes at least to read so many words (s)."""
    return max(LEAST, int(words / WORDS_A_MINUTE * 60 * SHARE))
