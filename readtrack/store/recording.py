"""Recording a hit, in one round trip."""

import json
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from time import perf_counter
from typing import Any, NamedTuple, cast

from readtrack import buckets
from readtrack.conf import cached_setting, conf
from readtrack.hits.addresses import watch
from readtrack.hits.hit import Hit, Outcome, Reason
from readtrack.hits.readers import Reader
from readtrack.store import clock, counters, day_keys, keys, read_state, scripts, uniques
from readtrack.store.connection import connect
from readtrack.store.scripts import Call
from readtrack.store.skips import skip_buffer
from readtrack.store.uniques import Effect, Strategy
from readtrack.subjects import enters_funnel, model_with_label

NO_LIMIT = keys.ROBOT - 1
COUNTERS = 3  # keys of a view, before those of its windows
NEWCOMERS = 100  # refused hits of an address and browser, in a RATE_WINDOW, whose new cookies are given windows
ROBOTS = 5_000  # marks of the honeypot in an hour; a robot can make up user agents

_LIFETIMES = (keys.hour.ttl, keys.model_hour.ttl, keys.trending_bucket.ttl, keys.minute_visitors.ttl)
_SKIPPED: dict[int, Reason] = {2: "rate", 3: "repeat", 4: "honeypot", 5: "error"}


def record(hit: Hit, *others: Call[Any], results: list[Any] | None = None) -> Outcome:
    """Counts the hit's views and steps and marks its reads, in one round trip. Raises redis.RedisError.

    Other calls go along, and their results into the list. The first hit of a hashed visitor's day takes another trip.
    """
    if hit.visitor.kind == "hash":
        hit = hit._replace(visitor=day_keys.resolve(hit.visitor, at=hit.at))
    hits = 0
    if conf.PARTITIONS > 1 and (hit.views or hit.steps or hit.reading):
        hits = scripts.run(rate(hit, int(bool(hit.views))))
    # Views come first, because a step that is taken on the viewed page follows its view.
    parts = [hit] if len(hit.views) == 1 else [hit._replace(views=tuple(some)) for some in scripts.parted(hit.views)]
    calls: list[Call[Any]] = [
        count_views([Views.of(part, hits=hits)], absent=[dict.fromkeys(part.views, "error")] if hits else ...)
        for part in parts
    ]
    views = len(calls)
    reader = cast(Reader, hit.reader)
    calls += read_state.marks(reader, hit.reads, began=hit.began, as_of=hit.as_of, absent=()) if hit.reads else ()
    reads = len(calls)
    steps = counters.steps(hit) if (hit.steps or hit.reading) and hits < keys.ROBOT else {}
    calls += steps.values()
    if hit.visitor.kind == "day":
        calls += day_keys.upkeep(hit)
    if perf_counter() >= clock.due:
        calls.append(clock.question())
    calls += others
    answers = skip_buffer.send(*calls) if skip_buffer.skips and skip_buffer.is_due else scripts.run_all(*calls)
    if results is not None:
        results += answers[len(calls) - len(others) :]
    refused = dict(ChainMap(*chain.from_iterable(answers[:views])))
    outcome = Outcome(tuple([subject for subject in hit.views if subject not in refused]), refused)
    if views and not outcome.counted and takes_back(hit):
        scripts.run(rate(hit, -1))
    skipped = {} if hit.by_script else outcome.skipped
    if skipped or watch.found:
        skip_buffer.add(skipped.values(), at=hit.at)
    if hit.reads:
        outcome = outcome._replace(read=tuple(chain.from_iterable(answers[views:reads])))
    if steps:
        new = zip(steps, answers[reads:], strict=False)
        outcome = outcome._replace(steps=tuple(step for step, is_new in new if is_new))
    return outcome


def will_count(hit: Hit) -> list[str]:
    """Returns those of the hit's views that would count now, in one round trip. Raises redis.RedisError."""
    visitor = day_keys.resolve(hit.visitor, at=hit.at)
    identities = [who for who in (visitor.id, visitor.fallback_id) if who]
    pipeline: Any = connect().pipeline(transaction=False)
    pipeline.get(keys.rate(visitor.rate_id))
    for subject in hit.views:
        for name, member in keys.windows(subject, identities=identities, hit=hit):
            pipeline.exists(name) if member == "" else pipeline.sismember(name, member)
    hits, *seen = pipeline.execute()
    if int(hits or 0) >= (conf.RATE_LIMIT or NO_LIMIT):
        return []
    answers = scripts.sliced(seen, len(seen) // len(hit.views))
    return [subject for subject, found in zip(hit.views, answers, strict=True) if not any(found)]


def rate(hit: Hit, change: int) -> Call[int]:
    """Counts the hit (1), takes it back (-1) or neither (0), where the rate is in another partition than the views."""
    return Call("rate", [keys.rate(hit.visitor.rate_id)], (change, conf.RATE_WINDOW or 1), int, 1)


def mark(rate: str) -> Call[int]:
    """Reads whether the key of a rate marks a robot: a number beyond every limit, or 0."""
    return Call("rate", [rate], (0, 1), lambda hits: hits + 1 if hits >= keys.ROBOT else 0, 0)


def takes_back(hit: Hit) -> bool:
    """Returns True if the hit is taken back where nothing counts, which record.lua does itself in one partition."""
    return conf.PARTITIONS > 1 and bool(hit.by_script or hit.stand_in) and not hit.visitor.new_cookie


class Group(NamedTuple):
    """What hits have in common that are recorded together."""

    minutes: tuple[keys.Minute, ...]  # of the model of each view
    prefix: str
    tag: str
    hits: int  # of the rate window, by rate.lua; 0 if record.lua is to count them
    newcomers: int
    script: int
    width: int  # keys of a view
    keys: int
    args: int


@dataclass(slots=True)
class Views:
    """The views of a hit that are of one partition, as record.lua takes them."""

    group: Group
    rate: str  # key; "" if the hit is counted already
    keys: list[str]  # of views, then of effects
    args: list[str]  # visitor, subjects, options

    @classmethod
    def of(cls, hit: Hit, *, hits: int = 0) -> "Views":
        """Returns the views of a hit. With several partitions `hits` is what rate.lua returned."""
        visitor, other = hit.visitor, hit.visitor.fallback_id or hit.stand_in
        prefix, tag = keys.prefix(), keys.tag(hit.views[0]) if conf.PARTITIONS > 1 else ""
        index, models = int(hit.at.timestamp()) // keys.MINUTE, [name.partition(":")[0] for name in hit.views]
        minutes = tuple([keys.minute(index, prefix, tag, label) for label in models])
        identities = (visitor.id, other) if other else (visitor.id,)
        names: list[str] = []
        for subject, own in zip(hit.views, minutes, strict=True):
            names += (own.total + subject, own.hour + subject, own.hll + subject)
            names += [f"{own.window}{who}:{subject}" for who in identities]
        width, args = COUNTERS + len(identities), [visitor.id, *hit.views]
        # Not a generator, which would cost every hit half a microsecond.
        if hit.dimensions or any(map(_profile, models)):
            names, width, options = _with_options(hit, names)
            args.append(options)
        newcomers, script = NEWCOMERS if visitor.new_cookie else 0, 2 if hit.stand_in else int(hit.by_script)
        rate = "" if tag else f"{prefix}{keys.rate.family}:{visitor.rate_id}"
        shape = (hits or int(bool(tag)), newcomers, script, width, len(names), len(args))
        return cls(Group(minutes, prefix, tag, *shape), rate, names, args)

    def set_hits(self, hits: int) -> None:
        """Notes the number that a call of `rate` or `mark` returned."""
        self.rate, self.group = "", self.group._replace(hits=hits)


def count_views(batch: Sequence[Views], *, absent: Any = None) -> Call[list[dict[str, Reason]] | None]:
    """Counts the views of hits of one partition by one script. Returns the reasons of those that do not count, by hit.

    `absent` is the result where their server is silent.
    """
    groups: dict[Group, list[int]] = {}
    for place, views in enumerate(batch):
        groups.setdefault(views.group, []).append(place)
    names, args = list[str](), [_common()]
    for group, places in groups.items():
        minutes, prefix, _, *shape = group
        names += minutes[0][:2]
        for own in minutes:
            names += (own.model_hour, own.visitors)
        args.append(" ".join(map(str, (len(places), len(minutes), len(prefix.encode()), *shape))))
        for place in places:
            views = batch[place]
            if views.rate:
                names.append(views.rate)
            names += views.keys
            args += views.args

    def decode(answers: Sequence[Any]) -> list[dict[str, Reason]]:
        found: list[dict[str, Reason]] = [{}] * len(batch)
        for place, codes in zip(chain.from_iterable(groups.values()), answers, strict=True):
            if codes.count(1) < len(codes):
                views = zip(batch[place].args[1:], codes)  # noqa: B905 - behind the subjects may be options
                found[place] = {subject: _SKIPPED[code] for subject, code in views if code != 1}
        return found

    return Call("record", names, args, decode, absent)


@cached_setting()
def _common() -> str:
    # Without a window, a hit that is sent again would count twice.
    window = keys.slice_count() * keys.slice_length() if keys.is_compact() else conf.WINDOW or 1
    return " ".join(map(str, (window, conf.RATE_LIMIT or NO_LIMIT, keys.ROBOT, *_LIFETIMES, conf.RATE_WINDOW or 1)))


def mark_robots(visitors: Iterable[str]) -> None:
    """Makes the next hits of these visitors not count, for a day. Raises redis.RedisError."""
    args = [keys.ROBOT, keys.DAY, max(1, ROBOTS // conf.PARTITIONS), keys.robots.ttl]
    groups = keys.by_tag(visitors)
    scripts.run_all(
        *(Call("mark_robots", [keys.robots(tag), *map(keys.rate, some)], args, int) for tag, some in groups.items())
    )


def _with_options(hit: Hit, plain: list[str]) -> tuple[list[str], int, str]:
    """Returns the keys of the hit's views and effects, the number of keys of a view, and the options.

    `plain` are the keys of its views without options.
    """
    identities = [who for who in (hit.visitor.id, hit.visitor.fallback_id) if who]
    slices = keys.slice_count() if keys.is_compact() else 0
    owners = [*identities, *filter(None, [hit.stand_in])] if slices else []
    windows = [[keys.slices(subject, visitor=who, hit=hit) for who in owners] for subject in hit.views]
    names: list[str] = []
    for own, entries in zip(scripts.sliced(plain, len(plain) // len(hit.views)), windows, strict=True):
        counted = own[:COUNTERS] if slices else own
        names += (*counted, *(name for sets, _ in entries for name in sets))
    width = len(names) // len(hit.views)
    views: list[dict[str, Any]] = []
    for subject, entries in zip(hit.views, windows, strict=True):
        effects: list[Any] = []
        for effect in _effects(subject, hit):
            effects.append((effect.name, len(names) + 1, effect.argument))
            names += effect.keys
        views.append({"members": [str(member) for _, member in entries], "effects": effects})
    options = {"identities": len(identities), "slices": slices, "values": counters.VALUES, "pass": keys.funnel_pass.ttl}
    return names, width, json.dumps({**options, "views": views})


def _effects(subject: str, hit: Hit) -> Iterator[Effect]:
    strategy, has_days, stage = _profile(subject.partition(":")[0]) or (uniques.strategy_of(subject), False, "")
    if effect := strategy.effect(subject, hit):
        yield effect
    if has_days:
        yield Effect("day", (keys.day_visitors(buckets.day_bucket(hit.at), subject),), conf.UNIQUE_DAYS * keys.DAY)
    if stage:
        yield Effect("funnel", (keys.funnel(subject), *keys.passes(subject, hit.visitor)), stage)
    for name, value in hit.dimensions:
        yield Effect("value", (keys.counter(f"views:{name}", subject),), value)


@cached_setting()
def _profile(label: str) -> tuple[Strategy, bool, str] | None:
    """Returns strategy, True with visitors by the day, and first stage of a model; None if it counts as "hll" alone."""
    strategy = uniques.model_strategy(label)
    stage = conf.FUNNEL[0] if conf.FUNNEL and enters_funnel(model_with_label(label)) else ""
    if strategy.is_default and not conf.UNIQUE_DAYS and not stage and not keys.is_compact():
        return None
    return strategy, conf.UNIQUE_DAYS > 0 and bool(strategy.rows), stage
