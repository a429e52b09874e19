"""Live counts, visitors and read state, in one round trip each or for a whole page; funnels,
reading and breakdowns.
"""

from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from django.core.exceptions import SynchronousOnlyOperation
from django.db import Error
from django.db.models import Model

from readtrack import buckets
from readtrack.conf import conf
from readtrack.hits import dimensions, exclusions, readers
from readtrack.hits.hit import REASONS, Hit, Reason, refusal
from readtrack.hits.reading import BINS, ENGAGED, READ
from readtrack.hits.visitors import signed_in, user_id, visitor
from readtrack.models import Tracked
from readtrack.sql import archive, epochs, row_counts
from readtrack.store import clock, counters, keys, read_state, recording, scripts, uniques
from readtrack.store.circuit import fail_open, present_page
from readtrack.store.skips import by_hour
from readtrack.subjects import (
    AnyModel,
    can_be_unread,
    counted_subject_of,
    enters_funnel,
    listed,
    subject_of,
)


class PageState(NamedTuple):
    """Views, and numbers of new items for one reader, by subject; without the numbers that Redis
    does not have.
    """

    views: dict[str, int]
    unread: dict[str, int]
    others: list[Any]  # the answers to the other calls of the round trip; none while Redis is down


def views(objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """Returns the views of each object (live, one round trip), never less than SQL stores.

    Makes one query for each table of objects that do not carry their count (deferred, or without
    the columns of Tracked), and one for objects that SQL has views of and whose count Redis began
    anew since the last flush. Makes no other. A view that `request.readtrack.view` has announced in
    the present request is in it, if it is going to count; that takes another round trip. Raises
    TypeError for an object that has no counts.
    """
    subjects = {obj: counted_subject_of(obj) for obj in listed(objs)}
    shown = page_state(counts={subject: loaded(obj) for obj, subject in subjects.items()}).views
    request: Any = (page := present_page.get()) and page.request
    announced = tuple(
        subject for subject in subjects.values() if request and subject in request.readtrack.views
    )
    own: list[
        str
    ] = []  # whose view by the present request will count, although it is not recorded yet
    if announced:
        user = signed_in(request)
        reason = refusal(request.method, 200, request.META, is_anonymous=user is None)
        if not (reason or exclusions.is_excluded(request, user)):
            own = fail_open(
                recording.will_count,
                [],
                Hit(visitor(request, user), buckets.now(), views=announced),
            )
    return {obj: shown[subject] + (subject in own) for obj, subject in subjects.items()}


def loaded(obj: Any, name: str = "view_count") -> int | None:
    """Returns the stored count that the object carries; None for a deferred one, and without
    columns of Tracked.
    """
    count = obj.__dict__.get(name) if isinstance(obj, Tracked) else None
    # The view may have put an F() expression there.
    return count if isinstance(count, int) and count >= 0 else None


def unread(user: Any, objs: Iterable[AnyModel]) -> set[AnyModel]:
    """Returns the unread ones of the objects, in one round trip; none for anonymous users and ids
    out of bounds.

    Raises TypeError for an object that is no user of this site.
    """
    return {obj for obj, items in unread_counts(user, objs).items() if items}


def unread_counts(user: Any, objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """Returns the number of new items in each object, in one round trip; 0 for anonymous users and
    ids out of bounds.

    With READ_STATE "bitmap" it is 0 or 1. It is 0 for an object without read state, or whose
    `has_news` is false. Raises TypeError for an object that is no user of this site.
    """
    subjects, pk = {obj: subject_of(obj) for obj in listed(objs)}, readers.id_of(user)
    reader = None if pk is None else readers.or_none(pk)
    dots = (
        [subject for obj, subject in subjects.items() if can_be_unread(obj)]
        if reader is not None
        else []
    )
    found = page_state(dots=dots, reader=reader).unread
    return {obj: found.get(subject, 0) for obj, subject in subjects.items()}


def reader_counts(objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """Returns the number of readers of each object since its last publication. Raises
    redis.RedisError.
    """
    subjects = {obj: subject_of(obj) for obj in listed(objs)}
    found = read_state.count_readers(list(subjects.values()))
    return {obj: found[subject] for obj, subject in subjects.items()}


def as_of() -> int:
    """Returns Redis's time (µs): take it before a query, and give it to `mark_read`. Raises
    redis.RedisError.
    """
    return clock.recent()


def page_state(
    *,
    counts: Mapping[str, int | None] = {},
    dots: Sequence[str] = (),
    reader: readers.Reader | None = None,
    others: Sequence[scripts.Call[Any]] = (),
    run: Callable[..., list[Any]] = scripts.run_all,
) -> PageState:
    """Returns views and read state, in the round trip of `run`; while Redis is down SQL's counts,
    and no read state.

    `counts` are SQL's by subject; those that are None are read, because a Redis that was restored
    from an old snapshot may have less. An unsettled total takes another query.
    """
    stored = {subject: count or 0 for subject, count in counts.items()}
    # SQL is read before Redis, so that its count is not added to a total that is settled in
    # between.
    if lacking := [subject for subject, count in counts.items() if count is None]:
        stored.update(_read(lacking))
    totals = [counters.totals(some) for some in scripts.parted(stored)]
    read = (
        [read_state.unread(reader, some) for some in scripts.parted(dots)]
        if reader is not None
        else []
    )
    answers = fail_open(run, [], *totals, *read, *others)
    first, end = len(totals), len(totals) + len(read)
    asked = cache(is_sound)
    for subject, total in ChainMap(*answers[:first]).items():
        count = stored[subject]
        is_whole = total.is_settled or not count or not asked(keys.tag(subject))
        # By Redis's total and SQL's count, never less than either.
        stored[subject] = max(total.views, count) if is_whole else total.views + count
    return PageState(stored, dict(ChainMap(*answers[first:end])), answers[end:])


def _read(subjects: Sequence[str]) -> dict[str, int]:
    """Returns SQL's counts; none while SQL is down and Redis has the whole ones, for a page out of
    a cache.
    """
    try:
        return {
            subject: stored.views for subject, stored in row_counts.by_subject(subjects).items()
        }
    except Error:
        live = ChainMap(
            *fail_open(scripts.run_all, [], *map(counters.totals, scripts.parted(subjects)))
        )
        if not all(subject in live and live[subject].is_settled for subject in subjects):
            raise
        return {}


def visitors(
    objs: Iterable[AnyModel], *, days: int | None = None, at: datetime | None = None
) -> dict[AnyModel, int]:
    """Returns the unique visitors of each object, in one round trip.

    All-time numbers are never less than SQL's; while Redis is down they are SQL's. That takes one
    query if any object does not carry its count: a deferred one, or one without the columns of
    Tracked. Numbers of the last `days` (UTC, today is one of them) are up to an hour old. Raises
    UniquesError for days that are not kept, and TypeError for an object that has no counts.
    """
    subjects = {obj: counted_subject_of(obj) for obj in listed(objs)}
    if days is not None:
        recent = uniques.recent_visitors(list(subjects.values()), days=days, at=buckets.now(at))
        return {obj: recent[subject] for obj, subject in subjects.items()}
    calls = [uniques.visitors(some) for some in scripts.parted(subjects.values())]
    found = ChainMap(*fail_open(scripts.run_all, [], *calls))
    stored = _stored(subjects)
    return {obj: max(found.get(subject, 0), stored[subject]) for obj, subject in subjects.items()}


def _stored(subjects: Mapping[AnyModel, str]) -> dict[str, int]:
    carried = {subject: loaded(obj, "visitor_count") for obj, subject in subjects.items()}
    read = row_counts.by_subject(subject for subject, count in carried.items() if count is None)
    return {
        name: read[name].visitors if name in read else count or 0 for name, count in carried.items()
    }


def visitors_together(objs: Iterable[Model]) -> int:
    """Returns the number of different visitors of all the objects; a visitor of several objects
    counts once.

    All-time numbers are never less than SQL's of any of the objects. Raises UniquesError if the
    strategies do not know the number, and redis.RedisError.
    """
    subjects = {obj: counted_subject_of(obj) for obj in listed(objs)}
    return max(
        uniques.visitors_together(list(subjects.values())),
        max(_stored(subjects).values(), default=0),
    )


def has_seen(user: Any, obj: Model, *, at: datetime | None = None) -> bool:
    """Returns True if the signed-in user ever viewed the object; with "daily", on the day of `at`
    (UTC, default today).

    Raises UniquesError if the strategy does not know that: "set" and "bitmap" know no days, "daily"
    knows today and yesterday, others know nothing. Raises redis.RedisError.
    """
    if user is None or not user.is_authenticated:
        return False
    subject = subject_of(obj)
    number = readers.number_of(readers.or_none(user.pk))
    strategy, day = uniques.strategy_of(subject), buckets.day_bucket(buckets.now(at))
    if at is not None and day not in buckets.day_buckets(strategy.covers_days, until=buckets.now()):
        raise uniques.UniquesError(
            f"The strategy {strategy.name!r} does not know who viewed what on {day}."
        )
    return strategy.has_seen(subject, visitor=user_id(user.pk), reader=number, day=day)


def skips(hours: int = 24, *, at: datetime | None = None) -> dict[Reason, int]:
    """Returns the number of hits that did not count in the last hours (48 at most), by reason."""
    found = sum(
        fail_open(scripts.run, list[Counter[str]](), by_hour(hours, at=buckets.now(at))),
        Counter[str](),
    )
    return {reason: found[reason] for reason in REASONS}


def is_sound(tag: str) -> bool:
    """Returns True unless the Redis of the partition went back, so that SQL may hold what is
    unsettled there.
    """
    epoch = fail_open(scripts.run, None, counters.epoch(tag))
    try:
        known = epochs.SqlEpoch().known([epoch]).get(tag) if epoch else None
    except (
        Error,
        SynchronousOnlyOperation,
    ):  # then the page shows the higher count, which is never too high
        return False
    # Neither epoch of a Redis that went back is the one that SQL knows.
    return epoch is not None and (known is None or known.current in (epoch.current, epoch.previous))


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a funnel: its count, and the count's share of the first stage and of the stage
    before (0 to 1).
    """

    name: str
    count: int
    rate: float
    step_rate: float


def funnel(objs: Model | Iterable[Model]) -> list[Stage]:
    """Returns the stages in their order, of one object or of several together, in at most two round
    trips.

    Where views do not enter the funnel (FUNNELS, `has_funnel`), the live count is the first stage.
    """
    if not conf.FUNNEL:
        return []
    several = [objs] if isinstance(objs, Model) else list(objs)
    found = hashes([subject_of(obj) for obj in several], ["funnel"])
    outside = [obj for obj in several if not enters_funnel(type(obj))]
    return stages(found, {subject_of(obj): count for obj, count in views(outside).items()})


def stages(found: Mapping[counters.Name, Counter[str]], viewed: Mapping[str, int]) -> list[Stage]:
    """Returns the stages of funnels together; `viewed` are the views of subjects whose views enter
    no funnel.
    """
    totals, others = Counter[str](), Counter[str]()
    for (_, subject), counted in found.items():
        (others if subject in viewed else totals).update(counted)
    # A step without a counted view counts as a view, too.
    totals[conf.FUNNEL[0]] += max(others.pop(conf.FUNNEL[0], 0), sum(viewed.values()))
    totals.update(others)
    first = totals[conf.FUNNEL[0]]
    counts = [totals[name] for name in conf.FUNNEL]
    return [
        Stage(name, count, count / first if first else 0.0, count / before if before else 0.0)
        for name, count, before in zip(conf.FUNNEL, counts, [first, *counts])  # noqa: B905 - nothing comes after the last
    ]


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of one text, or of those of several objects together."""

    views: int
    engaged: int  # views with signs of a person
    reads: int
    ratio: float  # of reads to views, 0 to 1
    seconds: int  # median engagement of the engaged views, within a quarter


def reading(objs: Model | Iterable[Model]) -> Reading:
    """Returns the reads, live, of one object or of several together, in at most two round trips.

    Views are all views: a ratio is low where the text was marked after it was published, or the
    script is blocked.
    """
    several = [objs] if isinstance(objs, Model) else list(objs)
    found = sum(hashes([subject_of(obj) for obj in several], ["reading"]).values(), Counter[str]())
    total = sum(views(several).values())
    return Reading(
        total, found[ENGAGED], found[READ], found[READ] / total if total else 0.0, median(found)
    )


def reads(obj: Model) -> int:
    """Returns the reads of an object, live; see `reading`. Raises TypeError for an object that has
    no counts.
    """
    subject = counted_subject_of(obj)
    return hashes([subject], ["reading"])["reading", subject][READ]


def median(found: Counter[str]) -> int:
    """Returns the seconds that half of the engaged views reached, from the numbers of those that
    reached each bin.
    """
    half, before, most = found[ENGAGED] / 2, 0, found[ENGAGED]
    for least in BINS if half else ():
        reached = found[str(least)]
        if reached < half:  # between two bins, as if views were spread evenly
            return round(before + (least - before) * (most - half) / (most - reached))
        before, most = least, reached
    return before


def breakdown(objs: Model | Iterable[Model], dimension: str) -> dict[str, int]:
    """Returns the views by value of the dimension, of one object or of several together, most
    frequent value first.

    Takes one round trip. Raises ValueError for a dimension that DIMENSIONS lacks.
    """
    names = list(map(dimensions.name_of, conf.DIMENSIONS))
    if dimension not in names:
        raise ValueError(
            f"READTRACK['DIMENSIONS'] has no {dimension!r}; it has: {', '.join(names) or 'nothing yet'}."
        )
    several = [objs] if isinstance(objs, Model) else objs
    found = sum(
        hashes([subject_of(obj) for obj in several], [f"views:{dimension}"]).values(),
        Counter[str](),
    )
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def hashes(
    subjects: Sequence[str],
    kinds: Sequence[str],
    live: Mapping[counters.Name, counters.Hash] | None = None,
) -> dict[counters.Name, Counter[str]]:
    """Returns the counts by kind and subject; a hash that Redis lost takes a query and another
    round trip.

    `live` is what Redis has, where a caller has asked already. While Redis is down they are those
    that SQL stores.
    """
    found = dict(fail_open(counters.live_hashes, {}, subjects, kinds) if live is None else live)
    names = [(kind, subject) for kind in kinds for subject in subjects]
    lacking = [name for name in names if name not in found or not found[name].is_settled]
    stored = archive.breakdowns(lacking) if lacking else {}
    if any(stored.values()):
        # Read again after SQL, so that SQL's count is not added to a hash that was settled in
        # between.
        found |= fail_open(counters.live_hashes, {}, subjects, kinds)
    counts = {name: Counter(one.counts) for name, one in found.items()}
    asked = cache(is_sound)
    for name in lacking:
        in_sql, now = Counter(stored[name]), found.get(name, counters.Hash({}))
        is_whole = now.is_settled or not in_sql or not asked(keys.tag(name[1]))
        counts[name] = Counter(now.counts) | in_sql if is_whole else Counter(now.counts) + in_sql
    return counts
