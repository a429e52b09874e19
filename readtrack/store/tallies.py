"""Hashes of counts by name: the stages of funnels and the values of dimensions."""

from collections.abc import Sequence
from typing import Any

from readtrack import keys
from readtrack.conf import conf
from readtrack.store import scripts
from readtrack.store.connection import connect
from readtrack.store.scripts import Call
from readtrack.visitors import Visitor

PASS_LIFE = 3600  # seconds after its latest new stage that a visitor's pass ends; record.lua has it, too


def step(token: str, stage: str, *, visitor: Visitor) -> Call[bool]:
    """Takes the visitor to the stage of the subject's funnel; whether that was new."""
    reached = list(conf.FUNNEL[: conf.FUNNEL.index(stage) + 1])
    rate = keys.rate(visitor.seen_as or visitor.id)
    names = [rate, keys.unbased(), keys.funnel(token), *keys.passes(token, visitor)]
    return Call("step", names, [PASS_LIFE, len(reached), *reached], bool)


def stages(tokens: Sequence[str]) -> dict[str, int]:
    """How often each stage was reached, of all the subjects together, in one round trip."""
    return _summed([keys.funnel(token) for token in tokens])


def values(tokens: Sequence[str], *, dimension: str) -> dict[str, int]:
    """The views by value of a dimension, of all the subjects together, in one round trip."""
    return _summed([keys.breakdown(token, name=dimension) for token in tokens])


def _summed(names: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in scripts.sliced(names):
        pipeline: Any = connect().pipeline(transaction=False)
        for name in part:
            pipeline.hgetall(name)
        for counts in pipeline.execute():
            for field, count in counts.items():
                value = field.decode()
                found[value] = found.get(value, 0) + int(count)
    return found
