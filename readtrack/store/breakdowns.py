"""Hashes of counts: the stages of funnels, what was read, and the values of dimensions."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from readtrack import buckets
from readtrack.conf import conf
from readtrack.hits.hit import Hit
from readtrack.hits.reading import BINS, ENGAGED, READ, Reading
from readtrack.hits.visitors import Visitor
from readtrack.store import keys, scripts, windows
from readtrack.store.scripts import Call

Name = tuple[str, str]  # of a hash: its kind, and the subject

VALUES = 50  # values of a dimension that a subject keeps, beside "other"


class Hash(NamedTuple):
    """Live counts by field. An unsettled hash lacks what SQL had stored before Redis lost the key."""

    counts: Mapping[str, int]
    is_settled: bool = True

    @property
    def floor(self) -> int:
        """The highest count that a value may have had which record.lua replaced; 0 before it replaces any."""
        values = [count for value, count in self.counts.items() if value != "other"]
        return min(values) if len(values) >= VALUES else 0


def steps(hit: Hit) -> dict[tuple[str, str], Call[bool]]:
    """Takes the visitor to the stages of the hit, by subject and stage. The answers are True for what is new."""
    calls = {(one, stage): step(one, stage, visitor=hit.visitor, at=hit.at) for one, stage in hit.steps}
    return {**calls, **_reading(hit, hit.reading)} if hit.reading else calls


def step(subject: str, stage: str, *, visitor: Visitor, at: datetime) -> Call[bool]:
    """Takes the visitor to the stage of the subject's funnel; the answer is True if that was new."""
    reached = conf.FUNNEL[: conf.FUNNEL.index(stage) + 1]
    passes = keys.passes(subject, visitor)
    return _step("funnel", subject, reached, passes, life=keys.funnel_pass.ttl, visitor=visitor, at=at)


def _reading(hit: Hit, text: Reading) -> dict[tuple[str, str], Call[bool]]:
    """Counts engagement with the text, and a read, once in a window and behind a view of the window."""
    visitor, subject = hit.visitor, text.subject
    # A cookie that is new comes from a browser that keeps none.
    identities = [who for who in ("" if visitor.new_cookie else visitor.id, visitor.fallback_id) if who]
    passes = [keys.reading_pass(who, subject) for who in identities]
    names = windows.of_view(subject, identities=identities, hit=hit)
    # A pass lives longer than a window, so that long texts can be read.
    take = partial(_step, "reading", subject, life=conf.WINDOW + text.least, visitor=visitor, at=hit.at)
    reached = [ENGAGED, *(str(seconds) for seconds in BINS if seconds <= text.seconds)]
    calls = {(subject, ENGAGED): take(reached, passes, names)}
    if text.is_read:
        reads = [keys.read_pass(who, subject) for who in identities]
        calls[subject, READ] = take([READ], reads, [(name, "") for name in passes])
    return calls


def _step(
    kind: str,
    subject: str,
    reached: Sequence[str],
    passes: Sequence[str],
    behind: Sequence[tuple[str, int | str]] = (),
    *,
    life: int,
    visitor: Visitor,
    at: datetime,
) -> Call[bool]:
    """Takes the visitor to the last of the stages; `behind` are the windows that it needs, and the view's members."""
    tag = keys.tag(subject)
    mark, bucket = keys.unsettled(tag), keys.trending_bucket(tag, buckets.minute_bucket(at))
    rate = mark if tag else keys.rate(visitor.rate_id)
    names = [rate, mark, keys.counter(kind, subject), bucket, *passes]
    names += (name for name, _ in behind)
    args: list[str | int] = [keys.ROBOT, keys.member(kind, subject), subject, keys.trending_bucket.ttl, life]
    args += (len(passes), len(reached), *reached, *(member for _, member in behind))
    return Call("step", names, args, bool, False)  # noqa: FBT003


def hashes(subjects: Sequence[str], kinds: Sequence[str]) -> dict[Name, Hash]:
    """Returns the hashes of these kinds by kind and subject, in one round trip. Raises redis.RedisError."""
    return {name: one for name, one in ChainMap(*scripts.run_all(*read(subjects, kinds))).items() if one.counts}


def read(subjects: Sequence[str], kinds: Sequence[str]) -> list[Call[dict[Name, Hash]]]:
    """Reads the hashes of these kinds by kind and subject; a missing one has no counts."""
    return [
        _read(keys.tag(some[0]), [(kind, subject) for subject in some for kind in kinds])
        for some in scripts.parted(subjects, scripts.SLICE // len(kinds))
    ]


def _read(tag: str, wanted: Sequence[Name]) -> Call[dict[Name, Hash]]:
    def decode(answer: list[list[list[bytes]]]) -> dict[Name, Hash]:
        if not answer:
            return dict.fromkeys(wanted, Hash({}))
        return {
            name: Hash(dict(scripts.pairs(fields)), is_settled=mark is None)
            for name, fields, mark in zip(wanted, *answer, strict=True)
        }

    names = [keys.unsettled(tag), *(keys.counter(kind, subject) for kind, subject in wanted)]
    return Call("hashes", names, [keys.member(kind, subject) for kind, subject in wanted], decode, {})
