"""Recording a hit: one script, one round trip, and all that a counted view does besides."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from readtrack import buckets
from readtrack.conf import cached_setting, conf
from readtrack.hits.hit import Hit, Outcome, Reason
from readtrack.store import daily_visitors, keys, uniques, windows
from readtrack.store.connection import connect
from readtrack.store.scripts import Call
from readtrack.store.uniques import Effect, Strategy
from readtrack.subjects import enters_funnel, model_with_label


class Profile(NamedTuple):
    """What recording a view of one model takes beyond the default."""

    strategy: Strategy
    has_days: bool
    stage: str  # the funnel's first, "" for a model without


def wants(hit: Hit) -> bool:
    """Whether the hit is more than record.lua does for everybody."""
    if hit.dimensions:
        return True
    for subject in hit.views:  # noqa: SIM110 - every hit comes this way, and a generator costs it half a microsecond
        if _profile(subject.partition(":")[0]):
            return True
    return False


def named(hit: Hit, *, shared: tuple[str, ...], hour: str, rate: tuple[int, int]) -> tuple[list[str], list[str | int]]:
    """The keys and arguments of the hit, in the order of record.lua's second form."""
    identities = [who for who in hit.visitor[:2] if who]
    slices = windows.count() if windows.is_compact() else 0
    names, members = list(shared), []
    for subject in hit.views:
        total, own_hour, model_hour, _, *strings = keys.viewing(
            subject, visitor=hit.visitor.id, fallback_id=hit.visitor.fallback_id, hour=hour
        )
        entries = [windows.entry(subject, visitor=who, hit=hit) for who in identities] if slices else []
        names += (total, own_hour, model_hour)
        names += [name for sets, _ in entries for name in sets] or strings
        members.append([member for _, member in entries])
    width = (len(names) - len(shared)) // len(hit.views)
    args: list[str | int] = [windows.life() if slices else conf.WINDOW or 1, *rate, hit.visitor.id, width]
    args += [len(hit.views), *hit.views, len(identities), slices]
    for subject, own in zip(hit.views, members, strict=True):
        effects = list(_effects(subject, hit))
        args += (*own, len(effects))
        for effect in effects:
            args += (effect.name, len(names) + 1, effect.argument)
            names += effect.keys
    return names, args


def _effects(subject: str, hit: Hit) -> Iterator[Effect]:
    label = subject.partition(":")[0]
    profile = _profile(label) or Profile(uniques.strategy_of(subject), has_days=False, stage="")
    if effect := profile.strategy.effect(subject, hit):
        yield effect
    if profile.has_days:
        yield Effect("day", (keys.sketch(subject, day=buckets.day_bucket(hit.at)),), daily_visitors.life())
    if profile.stage:
        yield Effect("funnel", (keys.funnel(subject), *keys.passes(subject, hit.visitor)), profile.stage)
    for name, value in hit.dimensions:
        yield Effect("value", (keys.breakdown(subject, name=name),), value)


@cached_setting()
def _profile(label: str) -> Profile | None:
    strategy = uniques.strategy_of(label)
    has_funnel = enters_funnel(model_with_label(label))
    stage = conf.FUNNEL[0] if has_funnel and conf.FUNNEL else ""
    if strategy.name == "hll" and not conf.UNIQUE_DAYS and not stage and not windows.is_compact():
        return None
    return Profile(strategy, has_days=conf.UNIQUE_DAYS > 0, stage=stage)


# A mark is a rate beyond all limits, so recording finds it without asking for anything more (record.lua).
TRAPPED = 10**15
NO_LIMIT = TRAPPED - 1  # a rate limit that only the marked exceed
ROBOT_LIFE = 86_400  # seconds that a mark lasts


def mark_robots(visitors: Iterable[str]) -> None:
    """Makes what they do from now on not count, for a day. Raises redis.RedisError."""
    pipeline = connect().pipeline(transaction=False)
    for visitor in visitors:
        pipeline.set(keys.rate(visitor), TRAPPED, ex=ROBOT_LIFE)
    pipeline.execute()


_SKIPPED: dict[int, Reason] = {2: "rate", 3: "repeat", 4: "honeypot"}


def record(hit: Hit) -> Call[Outcome]:
    """Counts the hit's views."""
    visitor, fallback_id = hit.visitor.id, hit.visitor.fallback_id
    hour = buckets.hour_bucket(hit.at)
    names = keys.recorded(fallback_id or visitor, minute=buckets.minute_bucket(hit.at))
    if wants(hit):
        rate = (conf.RATE_LIMIT or NO_LIMIT, conf.RATE_WINDOW or 1)
        return Call("record", *named(hit, shared=names, hour=hour, rate=rate), partial(_outcome, hit))
    for subject in hit.views:
        names += keys.viewing(subject, visitor=visitor, fallback_id=fallback_id, hour=hour)
    args: list[str | int] = [
        conf.WINDOW or 1,  # no window at all would count a hit that is sent again twice
        conf.RATE_LIMIT or NO_LIMIT,
        conf.RATE_WINDOW or 1,
        visitor,
        6 if fallback_id else 5,
        len(hit.views),
        *hit.views,
    ]
    return Call("record", names, args, partial(_outcome, hit))


def _outcome(hit: Hit, codes: list[int]) -> Outcome:
    if codes == [1]:
        return Outcome(hit.views)
    views = dict(zip(hit.views, codes, strict=True))
    return Outcome(
        counted=tuple(subject for subject, code in views.items() if code == 1),
        skipped={subject: _SKIPPED[code] for subject, code in views.items() if code != 1},
    )
