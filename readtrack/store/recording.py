"""Recording a hit, in one round trip."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from functools import lru_cache, partial
from itertools import chain, groupby
from math import prod
from operator import itemgetter
from time import perf_counter
from typing import Any, cast

from readtrack import buckets
from readtrack.conf import cached_setting, conf
from readtrack.hits.addresses import watch
from readtrack.hits.hit import Hit, Outcome, Reason
from readtrack.hits.reading import BINS, ENGAGED, READ
from readtrack.store import clock, counters, day_keys, keys, read_state, scripts, uniques
from readtrack.store.counters import Name
from readtrack.store.scripts import Call
from readtrack.store.skips import key_of, skip_buffer
from readtrack.subjects import enters_funnel, model_with_label

NO_LIMIT = keys.ROBOT - 1
SHARED = 3  # keys of a hit, before those of each view
# refused hits of an address and browser, in a RATE_WINDOW, whose new cookies are given windows
NEWCOMERS = 100
ROBOTS = 5_000  # marks of the honeypot in an hour; a robot can make up user agents

# Of a hit of a batch: what it shares with hits of its model and minute that have its shape (keys,
# and that shape), None for a hit of several views or with options; its other keys; its arguments.
Part = tuple[tuple[Sequence[str], str] | None, Sequence[str], Sequence[str | int | bytes]]

Window = tuple[str, int | str]  # its key, and the view's member; "" for a string
_SKIPPED: dict[int, Reason] = {2: "rate", 3: "repeat", 4: "honeypot", 5: "error"}


def record(hit: Hit, *others: Call[Any], results: list[Any] | None = None) -> Outcome:
    """Counts the hit's views and steps and marks its reads, in one round trip. Raises
    redis.RedisError.

    Other calls go along, and their results into the list. The first hit of a hashed visitor's day
    takes another trip.
    """
    if hit.visitor.kind == "hash":
        hit = hit._replace(visitor=day_keys.resolve(hit.visitor, at=hit.at))
    is_apart = conf.PARTITIONS > 1 and (hit.views or hit.steps or hit.reading)
    hits = scripts.run(rate(hit, int(bool(hit.views)))) if is_apart else 0
    # Views come first, because a step that is taken on the viewed page follows its view.
    calls: list[Call[Any]] = [
        count_views(
            hit if len(some) == len(hit.views) else hit._replace(views=tuple(some)), hits=hits
        )
        for some in scripts.parted(hit.views)
    ]
    views, reader = len(calls), cast(Any, hit.reader)
    calls += (
        read_state.marks(reader, hit.reads, began=hit.began, as_of=hit.as_of, absent=())
        if hit.reads
        else ()
    )
    reads = len(calls)
    taken = steps(hit) if (hit.steps or hit.reading) and hits < keys.ROBOT else {}
    calls += taken.values()
    if hit.visitor.kind == "day":
        calls += day_keys.upkeep(hit)
    if perf_counter() >= clock.due:
        calls.append(clock.question())
    calls += others
    run = (
        skip_buffer.send
        if skip_buffer.skips and perf_counter() >= skip_buffer.due
        else scripts.run_all
    )
    answers = run(*calls)
    if results is not None:
        results += answers[len(calls) - len(others) :]
    outcome = answers[0] if views == 1 and not hits else _together(hit, answers[:views])
    skipped = {} if hit.by_script else outcome.skipped
    if skipped or watch.notices:
        skip_buffer.add(key_of(hit.at), skipped.values())
    if hit.reads:
        outcome = outcome._replace(read=tuple(chain.from_iterable(answers[views:reads])))
    if taken:
        new = zip(taken, answers[reads:], strict=False)
        outcome = outcome._replace(steps=tuple(step for step, is_new in new if is_new))
    return outcome


def will_count(hit: Hit) -> list[str]:
    """Returns those of the hit's views that would count now, in one round trip. Raises
    redis.RedisError.
    """
    visitor = day_keys.resolve(hit.visitor, at=hit.at)
    identities = [who for who in (visitor.id, visitor.fallback_id) if who]
    calls = [Call("GET", [keys.rate(visitor.rate_id)], (), lambda found: int(found or 0))]
    for subject in hit.views:
        for name, member in keys.windows(subject, identities=identities, at=hit.at):
            calls.append(
                Call("EXISTS", [name], (), int)
                if member == ""
                else Call("SISMEMBER", [name], (member,), int)
            )
    hits, *seen = scripts.run_all(*calls)
    if hits >= (conf.RATE_LIMIT or NO_LIMIT):
        return []
    answers = scripts.sliced(seen, len(seen) // len(hit.views))
    return [subject for subject, found in zip(hit.views, answers, strict=True) if not any(found)]


def rate(hit: Hit, change: int) -> Call[int]:
    """Counts the hit (1), takes it back (-1) or neither (0), where the rate is in another partition
    than the views.
    """
    return Call("rate", [keys.rate(hit.visitor.rate_id)], (change, conf.RATE_WINDOW or 1), int, 1)


def mark(rate: str) -> Call[int]:
    """Reads whether the key of a rate marks a robot: a number beyond every limit, or 0."""
    return Call("rate", [rate], (0, 1), lambda hits: hits + 1 if hits >= keys.ROBOT else 0, 0)


def set_hits(views: Call[Outcome], hits: int) -> None:
    """Tells a call of `count_views` the number that the call of `rate` or `mark` returned."""
    views.keys = [views.keys[1], *views.keys[1:]]
    common, shape, *others = map(str, views.args)
    views.args = (common, f"{hits} {shape.partition(' ')[2]}", *others)


def takes_back(hit: Hit) -> bool:
    """Returns True if the hit is taken back where nothing counts, which record.lua does itself in
    one partition.
    """
    return (
        conf.PARTITIONS > 1 and bool(hit.by_script or hit.stand_in) and not hit.visitor.new_cookie
    )


def _together(hit: Hit, outcomes: Sequence[Outcome]) -> Outcome:
    """Returns the outcome of views of several partitions."""
    counted = tuple(subject for outcome in outcomes for subject in outcome.counted)
    if outcomes and not counted and takes_back(hit):
        scripts.run(rate(hit, -1))
    return Outcome(
        counted, {subject: why for one in outcomes for subject, why in one.skipped.items()}
    )


def count_views(hit: Hit, *, hits: int = 0) -> Call[Outcome]:
    """Counts the hit's views of one partition by one script. With several, `hits` is what rate.lua
    returned.
    """
    visitor, views, prefix, names = hit.visitor, hit.views, keys.prefix(), [""]
    own, minute = (
        keys.tag(views[0]) if conf.PARTITIONS > 1 else "",
        int(hit.at.timestamp()) // keys.MINUTE,
    )
    other, has_options = visitor.fallback_id or hit.stand_in, bool(hit.dimensions)
    for subject in views:
        label = subject.partition(":")[0]
        rates, mark, bucket, totals, hours, model, people, hlls, seen = keys.of_minute(
            minute, prefix, own, label
        )
        if not names[0]:
            names = [mark if own else rates + visitor.rate_id, mark, bucket]
        names += (
            totals + subject,
            hours + subject,
            model,
            people,
            hlls + subject,
            f"{seen}{visitor.id}:{subject}",
        )
        if other:
            names.append(f"{seen}{other}:{subject}")
        has_options = has_options or _profile(label) is not None
    width, others = 7 if other else 6, [visitor.id, *views]
    if has_options:
        names, width, options = _with_options(hit, names)
        others.append(options)
    newcomers, script = (
        NEWCOMERS if visitor.new_cookie else 0,
        2 if hit.stand_in else int(hit.by_script),
    )
    shape = _shape(hits, prefix, own, newcomers, script, width, len(views), len(names), len(others))
    absent = Outcome(skipped=dict.fromkeys(hit.views, "error")) if hits else ...
    return Call("record", names, (_common(), shape, *others), partial(_outcome, hit), absent)


@lru_cache(maxsize=256)
def _shape(hits: int, prefix: str, own: str, *others: int) -> str:
    """Returns the shape of a hit in the partition `own`; `others` are its numbers behind the length
    of the prefix.
    """
    starts = [len(f"{prefix}{row.family}{own}:".encode()) + 1 for row in (keys.total, keys.window)]
    return " ".join(map(str, (hits, len(prefix.encode()), *others, *starts)))


@cached_setting()
def _common() -> str:
    # Without a window, a hit that is sent again would count twice.
    window = prod(keys.slicing()) if conf.WINDOW_STORE == "compact" else conf.WINDOW or 1
    lifetimes = (
        keys.hour.ttl,
        keys.model_hour.ttl,
        keys.trending_bucket.ttl,
        keys.minute_visitors.ttl,
    )
    return " ".join(
        map(
            str,
            (window, conf.RATE_LIMIT or NO_LIMIT, keys.ROBOT, *lifetimes, conf.RATE_WINDOW or 1),
        )
    )


def plain_parts(hits: Iterable[Sequence[Any]]) -> Iterator[Part]:
    """Yields what `part` makes of the `count_views` of each plain hit, without options in a quarter
    of the time.
    """
    prefix, known = keys.prefix(), ""
    began = until = datetime.min.replace(tzinfo=timezone.utc)
    for hit in hits:
        (
            own,
            fallback_id,
            new_cookie,
            kind,
            _,
            _,
            at,
            views,
            _,
            dimensions,
            _,
            _,
            by_script,
            stand_in,
            _,
            _,
            _,
        ) = hit
        subject = views[0]
        label = subject.partition(":")[0]
        if len(views) > 1 or dimensions or _profile(label):
            yield part(count_views(Hit.of_plain(hit)))
            continue
        if (
            label != known or not began <= at < until
        ):  # most hits are of the model and the minute of the hit before
            minute, known = int(at.timestamp()) // keys.MINUTE, label
            began = datetime.fromtimestamp(minute * keys.MINUTE, timezone.utc)
            until = began + timedelta(seconds=keys.MINUTE)
            rates, mark, bucket, totals, hours, model, people, hlls, seen = keys.of_minute(
                minute, prefix, "", label
            )
            alike: dict[tuple[Any, ...], tuple[Sequence[str], str]] = {}
        rate_id = own if kind == "user" else fallback_id or own
        names = [
            rates + rate_id,
            totals + subject,
            hours + subject,
            hlls + subject,
            f"{seen}{own}:{subject}",
        ]
        if other := fallback_id or stand_in:
            names.append(f"{seen}{other}:{subject}")
        traits = not new_cookie, not stand_in, by_script, not other
        if traits not in alike:
            newcomers, script = NEWCOMERS if new_cookie else 0, 2 if stand_in else int(by_script)
            shape = _shape(
                0, prefix, "", newcomers, script, len(names) + 1, 1, SHARED + len(names) + 1, 2
            )
            alike[traits] = (mark, bucket, model, people), shape
        yield alike[traits], names, ()


def part(call: Call[Outcome]) -> Part:
    """Returns what a batch takes of a call of `count_views`."""
    if len(call.args) > 4:  # of several views, or with options
        return None, call.keys, call.args[1:]
    rate, mark, bucket, total, hour, model, people, *others = call.keys
    return ((mark, bucket, model, people), str(call.args[1])), (rate, total, hour, *others), ()


def count_batch(parts: Iterable[Part]) -> Call[list[Sequence[Reason]] | None]:
    """Counts hits of one partition by one script; the result is why views of each do not, None of a
    silent server.
    """
    names: list[str] = []
    args: list[str | int | bytes] = [_common()]
    shared: Sequence[str] = ()
    for alike, run in groupby(parts, itemgetter(0)):
        place, hits, kind = len(args), 0, "other"
        args.append("")
        if alike:
            kind = "same" if alike[0] == shared else "alike"
            names += alike[0] if kind == "alike" else ()
            shared = alike[0]
        for _, own_names, own_args in run:
            names += own_names
            args += own_args
            hits += 1
        args[place] = f"{kind} {hits} {alike[1] if alike else ''}"

    def decode(answers: Sequence[Any]) -> list[Sequence[Reason]]:
        several = ([codes] if isinstance(codes, int) else codes for codes in answers)
        return [
            () if codes == [1] else [_SKIPPED[code] for code in codes if code != 1]
            for codes in several
        ]

    return Call("record_batch", names, args, decode, absent=None)


def _outcome(hit: Hit, codes: list[int]) -> Outcome:
    if codes == [1]:
        return Outcome(hit.views)
    views = dict(zip(hit.views, codes, strict=True))
    counted = tuple(subject for subject, code in views.items() if code == 1)
    return Outcome(
        counted, {subject: _SKIPPED[code] for subject, code in views.items() if code != 1}
    )


def steps(hit: Hit) -> dict[tuple[str, str], Call[bool]]:
    """Takes the visitor to the stages of the hit, by subject and stage. The answers are True for
    what is new.
    """
    visitor, text, calls = hit.visitor, hit.reading, {}
    for subject, stage in hit.steps:
        reached = conf.FUNNEL[: conf.FUNNEL.index(stage) + 1]
        passes = [
            keys.funnel_pass(who, subject) for who in (visitor.id, visitor.fallback_id) if who
        ]
        calls[subject, stage] = _step(
            hit, ("funnel", subject), reached, passes, life=keys.funnel_pass.ttl
        )
    if (
        text
    ):  # engagement with it, and a read, count once in a window and behind a view of the window
        subject = text.subject
        # A cookie that is new comes from a browser that keeps none.
        identities = [
            who for who in ("" if visitor.new_cookie else visitor.id, visitor.fallback_id) if who
        ]
        engaged = [keys.reading_pass(who, subject) for who in identities]
        # A pass lives longer than a window, so that long texts can be read.
        take = partial(_step, hit, ("reading", subject), life=conf.WINDOW + text.least)
        reached = [ENGAGED, *(str(seconds) for seconds in BINS if seconds <= text.seconds)]
        calls[subject, ENGAGED] = take(
            reached, engaged, keys.windows(subject, identities=identities, at=hit.at)
        )
        if text.is_read:
            reads = [keys.read_pass(who, subject) for who in identities]
            calls[subject, READ] = take([READ], reads, [(name, "") for name in engaged])
    return calls


def _step(
    hit: Hit,
    name: Name,
    reached: Sequence[str],
    passes: Sequence[str],
    behind: Sequence[Window] = (),
    *,
    life: int,
) -> Call[bool]:
    """Takes the visitor to the last of the stages; `behind` are the windows that it needs, and the
    view's members.
    """
    subject, tag = name[1], keys.tag(name[1])
    mark, bucket = keys.unsettled(tag), keys.trending_bucket(tag, buckets.minute_bucket(hit.at))
    rate = mark if tag else keys.rate(hit.visitor.rate_id)
    member = keys.member(*name)
    names = [rate, mark, keys.prefix() + member, bucket, *passes, *(window for window, _ in behind)]
    args: list[str | int] = [keys.ROBOT, member, subject, keys.trending_bucket.ttl, life]
    args += (len(passes), len(reached), *reached, *(member for _, member in behind))
    return Call("step", names, args, bool, False)  # noqa: FBT003


def mark_robots(visitors: Iterable[str]) -> None:
    """Makes the next hits of these visitors not count, for a day. Raises redis.RedisError."""
    args = [keys.ROBOT, keys.DAY, max(1, ROBOTS // conf.PARTITIONS), keys.robots.ttl]
    names = [
        [keys.robots(tag), *map(keys.rate, some)] for tag, some in keys.by_tag(visitors).items()
    ]
    scripts.run_all(*(Call("mark_robots", some, args, int) for some in names))


def _with_options(hit: Hit, plain: list[str]) -> tuple[list[str], int, str]:
    """Returns the keys of record.lua with its options, the number of a view's, and the options.
    `plain` are without.
    """
    identities = [who for who in (hit.visitor.id, hit.visitor.fallback_id) if who]
    slices = keys.slicing()[1] if conf.WINDOW_STORE == "compact" else 0
    owners = [*identities, *filter(None, [hit.stand_in])] if slices else []
    windows = [
        [keys.slices(subject, visitor=who, at=hit.at) for who in owners] for subject in hit.views
    ]
    names, own = (
        plain[:SHARED],
        scripts.sliced(plain[SHARED:], len(plain[SHARED:]) // len(hit.views)),
    )
    for (total, own_hour, model_hour, minute, _, *strings), entries in zip(
        own, windows, strict=True
    ):
        sets = [name for some, _ in entries for name in some]
        names += (total, own_hour, model_hour, minute, *(sets or strings))
    width = (len(names) - SHARED) // len(hit.views)
    views: list[dict[str, Any]] = []
    for subject, entries in zip(hit.views, windows, strict=True):
        effects: list[Any] = []
        for name, own_names, argument in _effects(subject, hit, identities):
            effects.append((name, len(names) + 1, argument))
            names += own_names
        views.append({"members": [str(member) for _, member in entries], "effects": effects})
    options = {
        "identities": len(identities),
        "slices": slices,
        "values": counters.VALUES,
        "pass": keys.funnel_pass.ttl,
    }
    return names, width, json.dumps({**options, "views": views})


def _effects(subject: str, hit: Hit, identities: Sequence[str]) -> Iterator[uniques.Effect]:
    strategy, has_days, stage = _profile(subject.partition(":")[0]) or (
        uniques.strategy_of(subject),
        False,
        "",
    )
    if effect := strategy.effect(subject, hit):
        yield effect
    if has_days:
        yield (
            "day",
            (keys.day_visitors(buckets.day_bucket(hit.at), subject),),
            conf.UNIQUE_DAYS * keys.DAY,
        )
    if stage:
        yield (
            "funnel",
            (keys.funnel(subject), *(keys.funnel_pass(who, subject) for who in identities)),
            stage,
        )
    for name, value in hit.dimensions:
        yield "value", (keys.prefix() + keys.member(f"views:{name}", subject),), value


@cached_setting()
def _profile(label: str) -> tuple[uniques.Strategy, bool, str] | None:
    """Returns strategy, True with visitors by the day, and first stage of a model; None if it
    counts as "hll" alone.
    """
    strategy = uniques.strategy_of(label)
    stage = conf.FUNNEL[0] if conf.FUNNEL and enters_funnel(model_with_label(label)) else ""
    if (
        strategy.name == "hll"
        and not conf.UNIQUE_DAYS
        and not stage
        and conf.WINDOW_STORE != "compact"
    ):
        return None
    return strategy, conf.UNIQUE_DAYS > 0 and bool(strategy.rows), stage
