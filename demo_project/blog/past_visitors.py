"""The different visitors of the past's days: groups of people who come to each story."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from operator import attrgetter
from random import Random

from demo_project.blog import bulk
from demo_project.blog.models import Post
from demo_project.blog.past import BLOCK, DAYS, Gain, Story, visitors_by_block
from readtrack import buckets
from readtrack.numbers.flush.day_visitors import roll_up
from readtrack.numbers.models import DayVisitors
from readtrack.numbers.sql import group_sums, memberships
from readtrack.store import keys, scripts
from readtrack.store.uniques import Union, union
from readtrack.subjects import label_of, subject_column, subject_of_row

#: The readers of the paper are in groups of these sizes. So many groups there are of each size.
GROUPS = {1_000: 300, 100: 600, 10: 3_000}
LOYAL = 0.2  # share of the groups that read the paper at a time; some stay away for good each day
RETURNING = 0.6  # visitors of a day for each first visit to one of its stories
AT_ONCE = 500  # unions in one round trip

Sketches = dict[int, list[bytes]]


def add_visitors(gained: Sequence[Gain], *, now: datetime) -> dict[Story, int]:
    """Stores the visitors of the days of each story, and of all stories together.

    Returns how many different visitors each story has had.
    """
    rng = Random(2030)
    groups = _groups()
    rows = _rows_of_stories(gained, groups, rng, now=now)
    visitors = _visitors_by_story(gained, rows)
    rows_of_groups = _rows_of_groups(rows)
    rows += _rows_of_all(gained, rows, groups, rng, now=now)
    rows += rows_of_groups
    fields = ("subject", "day", "length", "visitors", "sketch", "part_of")
    values = attrgetter(*fields)
    bulk.insert(DayVisitors, fields, [values(row) for row in rows if row.visitors])
    for days_ago in range(DAYS, -1, -4):
        roll_up(at=now - timedelta(days=days_ago))
    return visitors


def _visitors_by_story(
    gained: Iterable[Gain], rows_of_stories: Iterable[DayVisitors]
) -> dict[Story, int]:
    """Returns the different visitors that each story has in all its rows together."""
    sketches = defaultdict[str, list[bytes]](list)
    for row in rows_of_stories:
        sketches[row.subject].append(bytes(row.sketch))
    unions = dict(zip(sketches, _unions([*sketches.values()]), strict=True))
    visitors = {}
    for story in {gain.story for gain in gained}:
        subject = subject_column(subject_of_row(Post, story.pk))
        if subject in unions:
            visitors[story] = unions[subject].visitors
    return visitors


def _rows_of_stories(
    gained: Iterable[Gain], groups: Sketches, rng: Random, *, now: datetime
) -> list[DayVisitors]:
    """Returns the visitors of each story by day, and of earlier days mostly by the block."""
    numbers = visitors_by_block(gained, now=now)
    parts = [
        _people(number, groups, rng, progress=_progress(day, now=now))
        for (_, day, _), number in numbers.items()
    ]
    rows = []
    for (story, day, length), united in zip(numbers, _unions(parts), strict=True):
        subject = subject_column(subject_of_row(Post, story.pk))
        rows.append(_row(subject, day, united, length=length))
    return rows


def _rows_of_groups(rows_of_stories: Sequence[DayVisitors]) -> list[DayVisitors]:
    """Returns the visitors of each section and author by block; a flush unites those of the days."""
    blocks = [row for row in rows_of_stories if row.length == BLOCK]
    members = memberships.of_subjects({row.subject for row in blocks})
    sketches = defaultdict[tuple[str, date], list[bytes]](list)
    for row in blocks:
        member = members[row.subject]
        for group in group_sums.WITH_VISITORS:
            for name in member.names(group, hour=0):
                subject = group_sums.visitors_of(label_of(Post), group, name)
                sketches[subject, row.day].append(bytes(row.sketch))
    return [
        _row(subject, day, united, length=BLOCK)
        for (subject, day), united in zip(sketches, _unions([*sketches.values()]), strict=True)
    ]


def _rows_of_all(
    gained: Iterable[Gain],
    rows_of_stories: Iterable[DayVisitors],
    groups: Sketches,
    rng: Random,
    *,
    now: datetime,
) -> list[DayVisitors]:
    """Returns the visitors of all stories together by day: the union of those of the stories."""
    of_days = Counter[date]()
    for gain in gained:
        of_days[buckets.hour_start(gain.hour).date()] += gain.visitors
    sketches_of_days = defaultdict[date, list[bytes]](list)
    for row in rows_of_stories:
        if row.length == 1:
            sketches_of_days[row.day].append(bytes(row.sketch))
    parts = []
    for day, first_visits in of_days.items():
        visitors = round(RETURNING * first_visits)
        people = _people(visitors, groups, rng, progress=_progress(day, now=now))
        parts.append(sketches_of_days.get(day) or people)
    unions = zip(of_days, _unions(parts), strict=True)
    return [_row(label_of(Post), day, united, length=1) for day, united in unions]


def _progress(day: date, *, now: datetime) -> float:
    """Returns the share of the past that is over on that day."""
    return min(1.0, max(0.0, 1 - (now.date() - day).days / DAYS))


def _row(subject: str, day: date, visitors: Union, *, length: int) -> DayVisitors:
    return DayVisitors(
        subject=subject,
        day=day,
        length=length,
        visitors=visitors.visitors,
        sketch=visitors.sketch,
    )


def _groups() -> Sketches:
    """Returns the sketches of the groups of readers, by size."""
    groups: Sketches = {}
    for size, number in GROUPS.items():
        calls: list[scripts.Call[int]] = []
        for index in range(number):
            name = keys.united(keys.tags()[0], index)
            people = [f"{size} {index} {person}" for person in range(size)]
            calls.append(scripts.Call("PFADD", [name], people))
        scripts.run_all(*calls, patient=True)
        names = [keys.united(keys.tags()[0], index) for index in range(number)]
        sketches: list[bytes] = []
        for portion in scripts.parted(names, AT_ONCE):
            read: scripts.Call[list[bytes]] = scripts.Call("MGET", [*portion])
            scripts.run_all(read, scripts.Call("UNLINK", [*portion]), patient=True)
            sketches += read.result
        groups[size] = sketches
    return groups


def _people(number: int, groups: Sketches, rng: Random, *, progress: float) -> list[bytes]:
    """Returns the sketches of groups that have so many people together, at most.

    `progress` is the share of the past that is over by then.
    """
    chosen = []
    for size, sketches in groups.items():
        loyal = round(LOYAL * len(sketches))
        first = round(progress * (len(sketches) - loyal))
        count = min(number // size, loyal)
        chosen += rng.sample(sketches[first : first + loyal], count)
        number -= count * size
    return chosen


def _unions(parts: Sequence[Sequence[bytes]]) -> Iterator[Union]:
    """Yields the union of each list of sketches."""
    for start in range(0, len(parts), AT_ONCE):
        calls = [
            union(sketches, tag=keys.tags()[0], wants_sketch=True)
            for sketches in parts[start : start + AT_ONCE]
        ]
        scripts.run_all(*calls, patient=True)
        for call in calls:
            yield call.result
