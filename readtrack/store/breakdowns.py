"""Hashes of counts by name: the stages of funnels and the values of dimensions."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from readtrack import buckets
from readtrack.conf import conf
from readtrack.hits.visitors import Visitor
from readtrack.store import keys, scripts
from readtrack.store.scripts import Call

PASS_LIFE = 3600  # seconds after its latest new stage that a visitor's pass ends; record.lua has it, too


class Hash(NamedTuple):
    """Live counts by field. One that is not based lacks what SQL kept before Redis lost the key."""

    counts: Mapping[str, int]
    is_settled: bool = True


def step(subject: str, stage: str, *, visitor: Visitor, at: datetime) -> Call[bool]:
    """Takes the visitor to the stage of the subject's funnel; whether that was new."""
    reached = list(conf.FUNNEL[: conf.FUNNEL.index(stage) + 1])
    rate = keys.rate(visitor.fallback_id or visitor.id)
    bucket = keys.trending_bucket(buckets.minute_bucket(at))
    names = [rate, keys.unsettled(), keys.funnel(subject), bucket, *keys.passes(subject, visitor)]
    return Call("step", names, [PASS_LIFE, len(reached), *reached], bool)


def hashes(subjects: Sequence[str], *, family: str) -> dict[str, Hash]:
    """The subjects' hashes of that family by subject, in one round trip; those that Redis lacks are left out."""
    return dict(ChainMap(*scripts.run_all(*(_hashes(some, family) for some in scripts.sliced(subjects)))))


def _hashes(subjects: Sequence[str], family: str) -> Call[dict[str, Hash]]:
    def decode(answer: list[list[list[bytes]]]) -> dict[str, Hash]:
        found, marks = answer if len(answer) == 2 else (answer[0], [None] * len(subjects))
        return {
            subject: Hash(_counts(fields), is_settled=mark is None)
            for subject, fields, mark in zip(subjects, found, marks, strict=True)
            if fields
        }

    names = [keys.unsettled(), *(keys.counter(family, subject) for subject in subjects)]
    return Call("hashes", names, [keys.member(family, subject) for subject in subjects], decode)


def _counts(fields: Sequence[bytes]) -> dict[str, int]:
    return {field.decode(): int(count) for field, count in zip(fields[::2], fields[1::2], strict=True)}
