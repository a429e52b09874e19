"""Recording a hit, in one round trip."""

from collections.abc import Iterable, Sequence
from itertools import chain
from time import perf_counter
from typing import Any, NamedTuple, cast

from readtrack import buckets
from readtrack.conf import conf
from readtrack.hits.addresses import watch
from readtrack.hits.hit import Hit, Outcome, Reason
from readtrack.hits.reading import BINS, ENGAGED, READ, Reading
from readtrack.store import clock, day_keys, keys, read_state, scripts
from readtrack.store.counters import Name
from readtrack.store.counting import count_views, rate_limit
from readtrack.store.scripts import Call
from readtrack.store.skips import key_of, skip_buffer

# Marks of the honeypot in an hour; a robot can make up user agents.
ROBOTS = 5_000
VISITS_OF_ADDRESS = 20  # to the honeypot in an hour; further ones mark nobody

Step = tuple[str, str]  # a subject, and a stage of its funnel or of reading its text


def record(hit: Hit, *others: Call[Any]) -> Outcome:
    """Counts the hit's views and steps and marks its reads, in one round trip.

    Other calls go along. The first hit of a hashed visitor's day takes another trip, and so does
    the rate with several partitions. Raises redis.RedisError.
    """
    if hit.visitor.kind == "hash":
        hit = hit._replace(visitor=day_keys.resolve(hit.visitor, at=hit.at))
    hits = _count_rate(hit)
    # Views come first, because a step that is taken on the viewed page follows its view.
    views = [count_views(part, hits=hits) for part in by_partition(hit)]
    reads = _marks(hit)
    step_calls = steps(hit) if hits < keys.ROBOT else {}
    _run(*views, *reads, *step_calls.values(), *_upkeep(hit), *others)

    outcome = _outcome_of(hit, views, is_apart=hits > 0)
    _count_skips(hit, outcome)
    if not (reads or step_calls):
        return outcome
    return outcome._replace(
        read=tuple(chain.from_iterable(call.result for call in reads)),
        steps=tuple(step for step, call in step_calls.items() if call.result),
    )


def _count_skips(hit: Hit, outcome: Outcome) -> None:
    """Has the skips counted, but for those of a page's script, whose repeats are expected."""
    skipped = {} if hit.by_script else outcome.skipped
    if skipped or watch.notices:
        skip_buffer.add(key_of(hit.at), skipped.values())


def _run(*calls: Call[Any]) -> None:
    """Runs the calls, with the skips that wait if it is time for them."""
    if skip_buffer.skips and perf_counter() >= skip_buffer.due:
        skip_buffer.send(*calls)
    else:
        scripts.run_all(*calls)


def _count_rate(hit: Hit) -> int:
    """Returns the visitor's hits since the first, where the rate is in a partition of its own; or 0."""
    if conf.PARTITIONS == 1 or not (hit.views or hit.steps or hit.reading):
        return 0
    return scripts.run(rate(hit, 1 if hit.views else 0))


def by_partition(hit: Hit) -> list[Hit]:
    """Returns the hit in parts whose views are each of one partition, and as many as a script takes."""
    portions = scripts.parted(hit.views)
    if len(portions) == 1:
        return [hit]
    return [hit._replace(views=tuple(subjects)) for subjects in portions]


def _marks(hit: Hit) -> list[Call[tuple[str, ...]]]:
    if not hit.reads:
        return []
    reader = cast(Any, hit.reader)
    return read_state.marks(reader, hit.reads, began=hit.began, as_of=hit.as_of, absent=())


def _upkeep(hit: Hit) -> list[Call[Any]]:
    """Returns what a process asks now and then, to go along with a hit."""
    calls: list[Call[Any]] = []
    if hit.visitor.kind == "day":
        calls += day_keys.upkeep(hit.at)
    if perf_counter() >= clock.due:
        calls.append(clock.question())
    return calls


def _outcome_of(hit: Hit, views: Sequence[Call[Outcome]], *, is_apart: bool) -> Outcome:
    """Returns the outcome of the views of all partitions; takes the hit back where nothing counts."""
    if len(views) == 1 and not is_apart:
        return views[0].result
    counted: list[str] = []
    skipped: dict[str, Reason] = {}
    for call in views:
        counted += call.result.counted
        skipped.update(call.result.skipped)
    if views and not counted and takes_back(hit):
        scripts.run(rate(hit, -1))
    return Outcome(tuple(counted), skipped)


def will_count(hit: Hit) -> list[str]:
    """Returns those of the hit's views that would count now, in one round trip.

    Raises redis.RedisError.
    """
    visitor = day_keys.resolve(hit.visitor, at=hit.at)
    hits: Call[int] = Call("GET", [keys.rate(visitor.rate_id)], (), lambda rate: int(rate or 0))
    windows: list[Call[int]] = []  # the number of the visitor's open windows for each subject
    for subject in hit.views:
        names = [keys.window(identity, subject) for identity in visitor.identities]
        windows.append(Call("EXISTS", names, (), int))
    scripts.run_all(hits, *windows)
    if hits.result >= rate_limit().hits:
        return []
    subjects = []
    for subject, open_windows in zip(hit.views, windows, strict=True):
        if not open_windows.result:
            subjects.append(subject)
    return subjects


def rate(hit: Hit, change: int) -> Call[int]:
    """Counts the hit (1), takes it back (-1), or neither (0). Answers with the hits since the first.

    For a rate in another partition than the views.
    """
    arguments = (change, rate_limit().seconds)
    return Call("rate", [keys.rate(hit.visitor.rate_id)], arguments, int, absent=1)


def mark(rate: str) -> Call[int]:
    """Reads whether the key of a rate marks a robot: a number beyond every limit, or 0."""

    def decode(hits: int) -> int:
        return hits + 1 if hits >= keys.ROBOT else 0

    return Call("rate", [rate], (0, 1), decode, absent=0)


def takes_back(hit: Hit) -> bool:
    """Returns True if the hit is taken back where nothing counts.

    In one partition record.lua does that itself.
    """
    is_told = bool(hit.by_script or hit.stand_in)
    return conf.PARTITIONS > 1 and is_told and not hit.visitor.new_cookie


class Stages(NamedTuple):
    """The stages of a funnel, or of reading a text, that a visitor is taken to."""

    name: Name  # of the hash of counts
    reached: Sequence[str]
    passes: Sequence[str]  # keys of the visitor's passes, one for each id
    life: int  # seconds that a pass lasts
    behind: Sequence[str] = ()  # keys of windows, one of which has to be open to begin a pass


def steps(hit: Hit) -> dict[Step, Call[bool]]:
    """Takes the visitor to the stages of the hit. The answers are True for what is new."""
    calls = {}
    for subject, stage in hit.steps:
        stages = Stages(
            ("funnel", subject),
            reached=conf.FUNNEL[: conf.FUNNEL.index(stage) + 1],
            passes=[keys.funnel_pass(identity, subject) for identity in hit.visitor.identities],
            life=keys.funnel_pass.ttl,
        )
        calls[subject, stage] = _take(hit, stages)
    if hit.reading:
        calls |= _reading_steps(hit, hit.reading)
    return calls


def _reading_steps(hit: Hit, text: Reading) -> dict[Step, Call[bool]]:
    """Takes the visitor to what the script tells of the text.

    Engagement and a read count once in a window, and only behind a view in the window.
    """
    subject = text.subject
    identities = hit.visitor.identities
    if hit.visitor.new_cookie:  # it comes from a browser that keeps none
        identities = identities[1:]
    life = conf.WINDOW + text.least  # longer than a window, so that long texts can be read
    engaged = [keys.reading_pass(identity, subject) for identity in identities]
    engagement = Stages(
        ("reading", subject),
        reached=[ENGAGED, *(str(seconds) for seconds in BINS if seconds <= text.seconds)],
        passes=engaged,
        life=life,
        behind=[keys.window(identity, subject) for identity in identities],
    )
    calls = {(subject, ENGAGED): _take(hit, engagement)}
    if text.is_read:
        read = Stages(
            ("reading", subject),
            reached=[READ],
            passes=[keys.read_pass(identity, subject) for identity in identities],
            life=life,
            behind=engaged,
        )
        calls[subject, READ] = _take(hit, read)
    return calls


def _take(hit: Hit, stages: Stages) -> Call[bool]:
    """Takes the visitor to the last of the stages."""
    subject = stages.name[1]
    tag = keys.tag(subject)
    unsettled = keys.unsettled(tag)
    member = keys.member(*stages.name)
    names = [
        # With several partitions the rate is in another one.
        unsettled if tag else keys.rate(hit.visitor.rate_id),
        unsettled,
        keys.prefix() + member,
        keys.trending_bucket(tag, buckets.minute_bucket(hit.at)),
        *stages.passes,
        *stages.behind,
    ]
    arguments: list[str | int] = [
        keys.ROBOT,
        member,
        subject,
        keys.trending_bucket.ttl,
        stages.life,
        len(stages.passes),
        len(stages.reached),
        *stages.reached,
    ]
    return Call("step", names, arguments, bool, absent=False)


def honeypot_visits(address: str) -> int:
    """Counts a visit of an address to the honeypot, and returns its visits of the hour. Raises
    redis.RedisError.

    So that one address does not use up the marks of the whole site.
    """
    key = keys.honeypot_visits(address)
    return scripts.run(Call("rate", [key], (1, keys.honeypot_visits.ttl), int))


def mark_robots(visitors: Iterable[str]) -> None:
    """Makes the next hits of these visitors not count, for a day. Raises redis.RedisError."""
    most = max(1, ROBOTS // conf.PARTITIONS)
    args = [keys.ROBOT, keys.DAY, most, keys.robots.ttl]
    calls = []
    for tag, ids in keys.by_tag(visitors).items():
        names = [keys.robots(tag), *map(keys.rate, ids)]
        calls.append(Call("mark_robots", names, args, int))
    scripts.run_all(*calls)
