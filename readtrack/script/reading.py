"""Really read: how long it takes to read a text, and what a page's script reports about the text.

The numbers are those of Site Kit's event `read_article` (google/site-kit-wp#13287). The script
waits for trusted events of two kinds, because crawlers only scroll (discourse/discourse#42498).
"""

import re
from collections.abc import Sequence
from html import unescape
from math import ceil
from typing import NamedTuple

from readtrack import buckets
from readtrack.conf import conf
from readtrack.hits.hit import Hit
from readtrack.hits.stages import BINS, ENGAGED, READS, STAGES, StageName
from readtrack.script import keys
from readtrack.store import keys as core_keys
from readtrack.store import recording
from readtrack.store.limits import view_weight
from readtrack.store.recording import Step
from readtrack.store.scripts import Call

WORDS_A_MINUTE = 238
SHARE = 0.85  # the share of the reading time after which a text counts as read
LEAST = 5  # seconds that any text takes
TEXTS = 10_000  # texts whose number of words a process remembers
# The stages that a report on a text may have reached beyond engagement.
LATER_STAGES = tuple(STAGES)[tuple(STAGES).index(ENGAGED) + 1 :]
_counts: dict[int, int] = {}  # numbers of words, by the hash of the text

# Letters of scripts without spaces, and how many of them make a word, as ICU's dictionaries divide
# prose.
UNSPACED = (
    (re.compile("[\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"), 1.5),
    (re.compile("[\u3040-\u30ff\u31f0-\u31ff]"), 1.9),
    (re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"), 4.5),
)
BREAK = (
    r"\s!-&(-+/:-@\[-^`{-~\u00a1-\u00bf\u2010-\u2018\u201a-\u206f\u3000-\u303f"
    r"\uff01-\uff0f\uff1a-\uff20-"
)
WORD = re.compile(rf"\w[^{BREAK}]*")
# Each of these takes time in proportion to the text, whatever a visitor has typed.
TAG = re.compile(r"<[^<>]*>")
CODE = re.compile(r"<(?:script|style)\b", re.IGNORECASE)
CODE_END = re.compile(r"</(?:script|style)", re.IGNORECASE)


class Reading(NamedTuple):
    """How far a visitor has read the text of a subject, as a page's script reports it."""

    subject: str
    least: int  # the shortest time in which the text can be read (seconds)
    seconds: int  # how long the page was visible, in focus and in use
    stage: StageName  # the last stage that was reached: ENGAGED, or a later one

    @property
    def is_read(self) -> bool:
        """True if the text was read to its end, in the time that it takes."""
        return self.stage == READS

    def call(self, hit: Hit) -> Call[list[Step]]:
        """Returns the call that counts how far the visitor has read the text.

        The result are the stages that are new: ENGAGED and later ones.
        """
        subject = self.subject
        identities = hit.visitor.identities
        if hit.visitor.new_cookie:
            # A browser that reports without a cookie keeps none, so nobody will have the new id
            # again.
            identities = identities[1:]
        key_names, arguments = recording.of_hash(hit, (keys.reading.family, subject))
        tag = core_keys.tag(subject)
        minute = buckets.minute_bucket(hit.at)
        key_names += (core_keys.trending_bucket(tag, minute), core_keys.total(subject))
        for identity in identities:
            key_names += (
                core_keys.window(identity, subject),
                keys.reading_pass(identity, subject),
                keys.stage_pass(identity, subject),
            )
        if hit.stand_in:
            key_names.append(core_keys.window(hit.stand_in, subject))
        arguments += (
            conf.WINDOW + self.least,  # longer than a window, so that long texts can be read
            view_weight(),
            len(identities),
            _number_of(self.stage),
            len(LATER_STAGES),
            *LATER_STAGES,
            ENGAGED,
        )
        arguments += [str(seconds) for seconds in BINS if seconds <= self.seconds]
        return Call("readtrack.script/reading", key_names, arguments, self._new_stages, absent=[])

    def _new_stages(self, answer: Sequence[int]) -> list[Step]:
        """Returns the stages that are new by the answer of reading.lua."""
        is_new_of_stage = zip((ENGAGED, *LATER_STAGES), answer, strict=True)
        return [(self.subject, stage) for stage, is_new in is_new_of_stage if is_new]


def _number_of(stage: StageName) -> int:
    """Returns how many of the later stages a text has reached whose last one is this stage."""
    return 0 if stage == ENGAGED else LATER_STAGES.index(stage) + 1


def words(html: str) -> int:
    """Returns the number of words of a text.

    In writing systems with spaces, words are divided by Unicode's rules. In the others, such as
    Chinese, their number is estimated by that of the letters.
    """
    # Remembered by its hash, because 1,000 words take half a millisecond.
    key = hash(html)
    count = _counts.get(key)
    if count is None:
        count = _count_words(_text_of(html))
        if len(_counts) >= TEXTS:
            _counts.clear()
        _counts[key] = count
    return count


def _text_of(html: str) -> str:
    """Returns the text without tags, scripts and styles."""
    before_code, *pieces = CODE.split(html)
    after_code = [CODE_END.split(piece, maxsplit=1)[-1] for piece in pieces]
    return unescape(TAG.sub(" ", " ".join([before_code, *after_code])))


def _count_words(text: str) -> int:
    """Returns the number of words of a text without tags."""
    unspaced_words = 0.0
    for letters, letters_a_word in UNSPACED:
        text, count = letters.subn(" ", text)
        unspaced_words += count / letters_a_word
    return ceil(unspaced_words) + len(WORD.findall(text))


def least_seconds(word_count: int) -> int:
    """Returns the shortest time in which so many words can be read (seconds)."""
    return max(LEAST, int(word_count / WORDS_A_MINUTE * 60 * SHARE))
