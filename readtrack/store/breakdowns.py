"""Hashes of counts: the stages of funnels and the values of dimensions."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from readtrack import buckets
from readtrack.conf import conf
from readtrack.hits.visitors import Visitor
from readtrack.store import keys, scripts
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


def step(subject: str, stage: str, *, visitor: Visitor, at: datetime) -> Call[bool]:
    """Takes the visitor to the stage of the subject's funnel; the answer is True if that was new."""
    reached = list(conf.FUNNEL[: conf.FUNNEL.index(stage) + 1])
    rate = keys.rate(visitor.rate_id)
    bucket = keys.trending_bucket(buckets.minute_bucket(at))
    names = [rate, keys.unsettled(), keys.funnel(subject), bucket, *keys.passes(subject, visitor)]
    name = keys.member("funnel", subject)
    args = [keys.ROBOT, name, subject, keys.trending_bucket.ttl, keys.funnel_pass.ttl, len(reached), *reached]
    return Call("step", names, args, bool)


def hashes(subjects: Sequence[str], *, kind: str) -> dict[str, Hash]:
    """Returns the hash of that kind of each subject that has one, in one round trip. Raises redis.RedisError."""
    found = ChainMap(*scripts.run_all(*read([(kind, subject) for subject in subjects])))
    return {subject: one for (_, subject), one in found.items() if one.counts}


def read(wanted: Sequence[Name]) -> list[Call[dict[Name, Hash]]]:
    """Reads hashes by kind and subject; a missing one has no counts."""
    return [_read(some) for some in scripts.sliced(wanted)]


def _read(wanted: Sequence[Name]) -> Call[dict[Name, Hash]]:
    def decode(answer: list[list[list[bytes]]]) -> dict[Name, Hash]:
        if not answer:
            return dict.fromkeys(wanted, Hash({}))
        return {
            name: Hash(dict(scripts.pairs(fields)), is_settled=mark is None)
            for name, fields, mark in zip(wanted, *answer, strict=True)
        }

    names = [keys.unsettled(), *(keys.counter(kind, subject) for kind, subject in wanted)]
    return Call("hashes", names, [keys.member(kind, subject) for kind, subject in wanted], decode)
