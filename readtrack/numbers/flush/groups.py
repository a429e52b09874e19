"""Adding up what categories, authors and ages gained, and whom categories and authors had as
visitors.

It is done by full flushes, from the history of objects. A view counts for the groups that its
object is in when the view is added up, at most a few hours later.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from django.db.models import Min, Model

from readtrack import buckets
from readtrack.numbers import hours_of_models
from readtrack.numbers.counted import counts_days
from readtrack.numbers.flush import day_visitors
from readtrack.numbers.models import History
from readtrack.numbers.sql import group_sums, history_marks, memberships, period_gains
from readtrack.numbers.sql.day_visitors import Day, of_days
from readtrack.numbers.sql.group_sums import NUMBERS, HourName, Number
from readtrack.numbers.sql.history import BASELINE, of_reads
from readtrack.numbers.sql.history_marks import Marks
from readtrack.numbers.sql.memberships import Group, Membership, groups_of
from readtrack.numbers.sql.period_gains import OF_OBJECTS, gains_statement, rows_of
from readtrack.sql import databases
from readtrack.sql.faults import Faults
from readtrack.store import keys, scripts
from readtrack.subjects import counted_models, label_of, subject_column

Gained = Mapping[tuple[str, int], int]  # by subject and hour


class Portion(NamedTuple):
    """A range of objects, by their subjects as columns have them."""

    after: str  # the subject before the first one; "" for all subjects from the start
    last: str  # "" for all subjects to the end


# Hours that are added up once more, because another flush may have written rows of them.
HOURS_AGAIN = 2
# Older hours are not added up once more, because thinning may have added up their days.
FEW_HOURS = 3 * 24
HOURS_AT_ONCE = 24
# Hours of a model with few views that are added up at once: a year of days would take many queries.
MOST_HOURS_AT_ONCE = 16 * 24
# Rows of history that are in memory together, because an hour may have a million.
ROWS_AT_ONCE = 20_000


def renew(*, at: datetime, faults: Faults) -> None:
    """Adds up the hours up to `at`, from the last one on that was added up before, if any of them
    has changed since then.

    The first time it adds up all history.
    """
    until = buckets.hour_index(at) + 1
    for model in counted_models():
        if groups_of(model):
            faults.attempt(label_of(model), partial(_renew_model, model, until=until), None)


def _renew_model(model: type[Model], *, until: int) -> None:
    label = label_of(model)
    newest = _newest_hour(label, until=until)
    first_hour = _first_hour(newest, until=until)
    hour = _next_hour(label, since=first_hour)
    if hour is None or hour >= until:
        return
    # Read before the rows that are added up, so that what changes after it makes another mark.
    since = max(first_hour, until - FEW_HOURS)
    marks = history_marks.present(label, since=since)
    is_marked = newest is not None and hour >= since  # older hours have no marks
    if is_marked and marks == history_marks.stored(label, since=since):
        return
    hours_at_once = HOURS_AT_ONCE
    while hour is not None and hour < until:
        hours = range(hour, min(hour + hours_at_once, until))
        portions = _portions(label, hours)
        is_stored = _add_hours(model, hours, portions, newest=newest, marks=marks)
        if not is_stored:
            return  # another flush, or an import, came in between; the next flush goes on
        if len(portions) == 1:
            hours_at_once = min(2 * hours_at_once, MOST_HOURS_AT_ONCE)
        else:
            hours_at_once = HOURS_AT_ONCE
        newest = group_sums.newest_hour(label)
        hour = _next_hour(label, since=hours.stop)


def _newest_hour(label: str, *, until: int) -> int | None:
    """Returns the newest hour that was added up; None for none.

    Sums of hours from `until` on are from before Redis's clock was set back. With them those of the
    day go, because the hours in between have changed since.
    """
    newest = group_sums.newest_hour(label)
    if newest is None or newest < until:
        return newest
    group_sums.forget_in_own_transaction([label], since=until - 1)
    return group_sums.newest_hour(label)


def _first_hour(newest: int | None, *, until: int) -> int:
    """Returns the hour from which to add up, if the sums go up to the newest hour."""
    if newest is None:
        return BASELINE + 1
    if newest < until - FEW_HOURS:
        return newest + 1
    return newest - HOURS_AGAIN


def _next_hour(label: str, *, since: int) -> int | None:
    """Returns the next hour from `since` on in which history may have rows of the model's objects;
    None if it has none.

    It is found by the rows of the whole model, which are few. They have the hours of the views. The
    rows of objects have the hours of the flushes that stored these views later.
    """
    # History has the views of a model for each partition, such as `blog.post:{rt00}`.
    columns = [f"{label}{tag}" for tag in keys.past_tags()]
    viewed = databases.rows(History).filter(
        subject__in=columns, hour__gte=since - hours_of_models.MODEL_HOURS
    )
    first_viewed: int | None = viewed.aggregate(hour=Min("hour"))["hour"]
    return None if first_viewed is None else max(first_viewed, since)


def _add_hours(
    model: type[Model],
    hours: range,
    portions: Sequence[Portion],
    *,
    newest: int | None,
    marks: Marks,
) -> bool:
    """Adds up some hours of a model's objects. Returns False if it has to be done again.

    `marks` are those of the last hours, of which only those up to these hours are stored. The
    visitors come first, because the sums say how far all this has come.
    """
    label = label_of(model)
    sums: Counter[HourName] = Counter()
    for portion in portions:
        gained = {number: _gained(label, number, hours, portion) for number in NUMBERS}
        subjects = {subject for of_number in gained.values() for subject, _hour in of_number}
        members = memberships.of_subjects(subjects)
        _store_visitors(model, gained["views"], members)
        sums.update(_sums(model, gained, members))
    marks_until = {hour: mark for hour, mark in marks.items() if hour < hours.stop}
    return group_sums.replace(label, sums, hours=hours, newest=newest, marks=marks_until)


def _portions(label: str, hours: range) -> list[Portion]:
    """Divides the model's objects into portions that have some ROWS_AT_ONCE rows of views in these
    hours.
    """
    since = hours.start
    until = hours.stop
    ends = period_gains.subjects_of_every(ROWS_AT_ONCE, label, since=since, until=until)
    return [Portion(after, last) for after, last in pairwise(["", *ends, ""])]


def _gained(label: str, number: Number, hours: range, portion: Portion) -> Gained:
    """Returns what each object of a portion gained in each of these hours."""
    prefix = of_reads("") if number == "reads" else ""
    conditions = [period_gains.OF_LABEL, OF_OBJECTS]
    parameters = [period_gains.pattern(f"{prefix}{label}")]
    if portion.after:
        conditions.append("subject > %s")
        parameters.append(f"{prefix}{portion.after}")
    if portion.last:
        conditions.append("subject <= %s")
        parameters.append(f"{prefix}{portion.last}")
    condition = " AND ".join(conditions)
    statement = gains_statement(condition, since=hours.start, until=hours.stop, slot="hour")
    gained: dict[tuple[str, int], int] = {}
    for column, hour, views in rows_of(statement, parameters):
        gained[column.removeprefix(prefix), int(hour)] = int(views)
    return gained


def _sums(
    model: type[Model], gained: Mapping[Number, Gained], members: Mapping[str, Membership]
) -> Counter[HourName]:
    """Returns what each group gained in each hour. Objects that are gone are in no group."""
    sums: Counter[HourName] = Counter()
    for group in groups_of(model):
        for number, of_number in gained.items():
            kind = group_sums.kind_of(group, number)
            for (subject, hour), count in of_number.items():
                member = members.get(subject)
                if member is None:
                    continue
                for name in member.names(group, hour=hour):
                    sums[kind, hour, name] += count
    return sums


def _store_visitors(model: type[Model], gained: Gained, members: Mapping[str, Membership]) -> None:
    """Unites the visitors that objects had on the days of these views, by category and by
    author.
    """
    label = label_of(model)
    groups = _groups_with_visitors(model)
    if not groups or not gained or not counts_days(label):
        return
    hours = {hour for _subject, hour in gained}
    days = {*map(buckets.local_day, hours)}
    subjects = sorted(members.keys() & {subject for subject, _hour in gained})
    for portion in scripts.sliced(subjects, max(1, scripts.SLICE // len(days))):
        sketches: defaultdict[Day, list[bytes]] = defaultdict(list)
        for (subject, day), visitors in of_days(portion, days).items():
            for name in _names(label, members[subject], groups):
                sketches[subject_column(name), day].append(visitors.sketch)
        day_visitors.store_unions(sketches, tag=keys.tags()[0])


def _groups_with_visitors(model: type[Model]) -> list[Group]:
    """Returns the kinds of groups of the model whose visitors are stored."""
    return [group for group in groups_of(model) if group in group_sums.WITH_VISITORS]


def _names(label: str, member: Membership, groups: Sequence[Group]) -> Iterator[str]:
    """Yields the names under which the visitors of the object's categories and author are
    stored.
    """
    for group in groups:
        for name in member.names(group, hour=0):
            yield group_sums.visitors_of(label, group, name)
